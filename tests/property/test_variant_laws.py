"""Laws of names and selection, for any name and any environment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel_loader.environment import Environment
from kernel_loader.format.archs import Arch
from kernel_loader.format.variants import ArchVariant, Backend, Framework, NoarchVariant, VariantNameError, parse
from kernel_loader.format.versions import MajorMinor
from kernel_loader.select import select

frameworks = st.one_of(
    st.builds(
        Framework,
        st.just("torch"),
        st.builds(MajorMinor, st.integers(0, 9), st.integers(0, 40)),
        st.sampled_from(["", "cxx11", "cxx98"]),
    ),
    st.builds(
        Framework,
        st.sampled_from(["torch-stable-abi", "tvm-ffi"]),
        st.builds(MajorMinor, st.integers(0, 9), st.integers(0, 40)),
    ),
)
backends = st.one_of(
    st.sampled_from([Backend(name) for name in ("cpu", "metal", "neuron", "tpu")]),
    st.builds(Backend, st.just("cuda"), st.builds(MajorMinor, st.integers(10, 99), st.integers(0, 9))),
    st.builds(Backend, st.sampled_from(["rocm", "cann"]), st.builds(MajorMinor, st.integers(1, 9), st.integers(0, 9))),
    st.builds(Backend, st.just("xpu"), st.builds(MajorMinor, st.integers(2024, 2030), st.integers(0, 9))),
)
noarch = st.builds(NoarchVariant, st.sampled_from(["cpu", "cuda", "npu", "rocm", "universal"]))
arch = st.builds(
    ArchVariant, frameworks, backends, st.sampled_from(["x86_64", "aarch64"]), st.sampled_from(["linux", "windows"])
)
variants = st.one_of(arch, noarch)

# Names and environments that are close to each other, so that most selections find something.
near = st.one_of(
    noarch.map(str),
    st.builds(
        "torch{}-{}-x86_64-linux".format,
        st.sampled_from(["212", "212-cxx11", "213-cxx11", "-stable-abi29", "-stable-abi210", "-stable-abi213"]),
        st.sampled_from(["cu126", "cu128", "cu130", "cu131", "cpu"]),
    ),
    st.sampled_from(["tvm-ffi01-cu126-x86_64-linux", "tvm-ffi01-cpu-x86_64-linux", "new-thing", "torch-what"]),
)
listings = st.lists(near, max_size=12, unique=True)
environments = st.builds(
    lambda torch, cuda, **values: Environment.from_dict({"torch": torch, "cuda": cuda, **values}),
    st.sampled_from(["2.9.1", "2.12.0", "2.13.0+cu130", "2.14.0.dev20260810", "3.0.0"]),
    st.sampled_from([None, "12.6", "12.8", "13.0", "13.2"]),
    tvm_ffi=st.sampled_from([None, "0.1"]),
    free_threaded=st.booleans(),
    cxx11=st.sampled_from([True, False, None]),
)


@given(variants)
def test_a_value_reads_back_from_its_name(variant):
    assert parse(str(variant)) == variant


@given(variants, variants)
def test_two_values_never_share_a_name(one, other):
    assert (str(one) == str(other)) == (one == other)


@given(st.text(max_size=60) | st.from_regex(r"torch[-a-z0-9]{0,40}", fullmatch=True))
def test_any_text_is_one_name_or_none(text):
    try:
        variant = parse(text)
    except VariantNameError:
        return
    assert str(variant) == text


@given(st.builds(Arch, st.integers(1, 99), st.integers(0, 9), st.sampled_from(["", "a", "f"]), st.booleans()))
def test_an_architecture_reads_back_from_its_spelling(value):
    assert Arch.parse(str(value)) == value


@given(listings, environments, st.randoms())
def test_the_order_of_a_listing_does_not_matter(names, env, random):
    shuffled = random.sample(names, len(names))
    assert select(shuffled, env) == select(names, env) == select(names * 2, env)


@given(listings, environments)
def test_every_name_gets_one_decision_and_the_best_is_accepted(names, env):
    selection = select(names, env)
    assert sorted(decision.name for decision in selection.decisions) == sorted(names)
    accepted = [decision for decision in selection.decisions if decision.accepted]
    assert list(selection.decisions[: len(accepted)]) == accepted
    assert selection.best == (accepted[0] if accepted else None)
    assert all(bool(decision.reason) != decision.accepted for decision in selection.decisions)


@given(listings, environments)
def test_preference_does_not_depend_on_what_else_is_offered(names, env):
    """Taking the best away leaves the second best, whatever the rest."""
    accepted = [decision.name for decision in select(names, env).decisions if decision.accepted]
    for index, name in enumerate(accepted):
        remaining = [other for other in names if other not in accepted[:index]]
        assert select(remaining, env).best.name == name


@given(listings, environments, near)
def test_one_more_variant_never_makes_a_kernel_unusable(names, env, more):
    if select(names, env).best:
        assert select([*names, more], env).best


@given(listings, environments, st.sampled_from(["cuda", "tvm_ffi", "gil"]))
def test_a_more_permissive_environment_never_loses_its_best(names, env, grant):
    """A newer CUDA of the same major version, an added tvm-ffi, an interpreter lock: none takes anything away."""
    data = env.to_json()
    if grant == "cuda" and env.cuda:
        data["cuda"] = f"{env.cuda.major}.9"
    elif grant == "tvm_ffi":
        data["tvm_ffi"] = data["tvm_ffi"] or "0.1"
    else:
        data["free_threaded"] = False
    before = {decision.name for decision in select(names, env).decisions if decision.accepted}
    after = {decision.name for decision in select(names, Environment.from_dict(data)).decisions if decision.accepted}
    assert before <= after


@given(listings, environments)
def test_a_newer_torch_of_the_same_major_keeps_every_stable_variant(names, env):
    newer = Environment.from_dict({**env.to_json(), "torch": f"{env.torch_version.major}.40.0"})
    stable = [name for name in names if name.startswith("torch-stable-abi")]
    before = {decision.name for decision in select(stable, env).decisions if decision.accepted}
    assert before <= {decision.name for decision in select(stable, newer).decisions if decision.accepted}
