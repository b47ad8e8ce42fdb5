"""What an import does to the process, and how its failures read."""

from __future__ import annotations

import sys
import threading

import pytest
from kernel_fakes import files_of, variant_files, write_files

import kernel_loader
from kernel_loader.environment import Environment
from kernel_loader.failures import explain
from kernel_loader.format.metadata import Metadata

pytestmark = pytest.mark.usefixtures("environment")


def load(tmp_path, uid, *, name="torch-cpu", init=None, files=None, **values):
    files = files or (files_of() if init is None else files_of(init=init))
    return kernel_loader.get_local_kernel(write_files(tmp_path / name, variant_files(uid, files=files, **values)))


def test_the_module_has_the_id_as_its_name_and_is_loaded_once(tmp_path, uid):
    first, second = load(tmp_path, uid), load(tmp_path, uid)
    assert first is second
    assert sys.modules[f"_toy_cpu_{uid}"] is first
    loaded = kernel_loader.get_loaded_kernels()[-1]
    assert (loaded.module, loaded.metadata.name, loaded.variant) == (first, "toy", "torch-cpu")


def test_a_copy_elsewhere_is_the_same_kernel(tmp_path, uid):
    assert load(tmp_path / "one", uid) is load(tmp_path / "two", uid)


def test_other_content_under_the_same_id_is_refused(tmp_path, uid):
    load(tmp_path / "one", uid)
    with pytest.raises(kernel_loader.KernelConflict, match=r"already loaded[\s\S]*another process"):
        load(tmp_path / "two", uid, files=files_of(value=2))


@pytest.mark.parametrize("module", ["json", "numbers", "kernel_loader"])
def test_an_id_that_shadows_a_python_module_is_refused(tmp_path, uid, module):
    with pytest.raises(kernel_loader.KernelConflict, match="name of another Python module"):
        load(tmp_path, uid, id=module)


def test_sub_packages_and_relative_imports(tmp_path, uid):
    module = load(tmp_path, uid)
    assert module.scale(2) == 21
    assert sys.modules[f"{module.__name__}.sub.deep"].FACTOR == 10
    assert module.__path__ == [str(tmp_path / "torch-cpu")]


def test_data_files_are_found_beside_the_module(tmp_path, uid):
    from importlib.resources import files as resources

    init = "from pathlib import Path\ntext = (Path(__file__).parent / 'data' / 'x.txt').read_text()\n"
    module = load(tmp_path, uid, files={**files_of(init=init), "data/x.txt": b"hello"})
    assert module.text == "hello"
    assert (resources(module) / "data" / "x.txt").read_text() == "hello"


def test_a_failed_import_leaves_no_module_behind(tmp_path, uid):
    before = set(sys.modules)
    init = "from . import _ops\nfrom .sub import deep\nraise RuntimeError('no luck')\n"
    with pytest.raises(kernel_loader.LoadFailed, match="raised RuntimeError while it was imported: no luck"):
        load(tmp_path, uid, init=init)
    assert {name for name in set(sys.modules) - before if name.startswith("_toy")} == set()
    assert load(tmp_path / "fixed", uid).scale(1) == 11


def test_an_interrupt_is_not_wrapped(tmp_path, uid):
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, uid, init="raise KeyboardInterrupt\n")
    assert f"_toy_cpu_{uid}" not in sys.modules


def test_an_absolute_import_of_itself_is_explained(tmp_path, uid):
    with pytest.raises(kernel_loader.LoadFailed, match=r"imports itself as toy;[\s\S]*from \. import"):
        load(tmp_path, uid, init="from toy.sub import deep\n")


def test_a_missing_module_of_its_own_is_explained(tmp_path, uid):
    with pytest.raises(kernel_loader.LoadFailed, match=r"imports _toy_cpu_\w+\.absent, which is not part of it"):
        load(tmp_path, uid, init="from .absent import x\n")


def test_an_undeclared_package_is_explained(tmp_path, uid):
    with pytest.raises(kernel_loader.DependencyMissing, match=r"no_such_package[\s\S]*pip install no_such_package"):
        load(tmp_path, uid, init="import no_such_package.sub\n")


def test_declared_packages_are_checked_before_the_import(tmp_path, uid):
    depends = ("no-such-package>=0.8", "pytest>=1", "packaging>=999")
    with pytest.raises(kernel_loader.DependencyMissing) as caught:
        load(tmp_path, uid, init="raise SystemExit\n", python_depends=depends)
    text = str(caught.value)
    assert "no-such-package>=0.8, which is not installed" in text
    assert "packaging>=999, and version" in text
    assert text.endswith("hint: pip install 'no-such-package>=0.8' 'packaging>=999'")


@pytest.mark.parametrize("name", ["tvm-ffi", "nvidia-cutlass-dsl"])
def test_curated_names_are_translated(tmp_path, uid, name, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    expected = {"tvm-ffi": "apache-tvm-ffi"}.get(name, name)
    with pytest.raises(kernel_loader.DependencyMissing, match=f"pip install '{expected}'"):
        load(tmp_path, uid, python_depends=(name,))


def test_satisfied_and_inapplicable_packages_do_not_hinder(tmp_path, uid):
    depends = ("pytest", "packaging>=20", "no-such-package; sys_platform == 'nowhere'")
    assert load(tmp_path, uid, python_depends=depends).scale(1) == 11


@pytest.mark.parametrize("entry", ["evil @ https://evil.example/x.whl", "--index-url=https://evil.example", "a b"])
def test_a_dependency_that_is_no_plain_name_never_reaches_a_pip_line(tmp_path, uid, entry):
    with pytest.raises(kernel_loader.DependencyMissing) as caught:
        load(tmp_path, uid, python_depends=(entry,))
    assert "pip install" not in str(caught.value)


def test_many_threads_get_one_module(tmp_path, uid):
    write_files(tmp_path / "torch-cpu", variant_files(uid, files=files_of(init="import time\ntime.sleep(0.05)\n")))
    modules, start = [], threading.Barrier(8)

    def work():
        start.wait()
        modules.append(kernel_loader.get_local_kernel(tmp_path / "torch-cpu"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(modules) == 8
    assert len(set(map(id, modules))) == 1


def test_a_library_that_is_none_is_explained(tmp_path, uid):
    files = {**files_of(init=f"from . import _toy_cpu_{uid}\n"), f"_toy_cpu_{uid}.abi3.so": b"not a library"}
    name = "torch213-cxx11-cpu-x86_64-linux"
    with pytest.raises(
        kernel_loader.LoadFailed, match=r"damaged or for another system: built for torch 2\.13"
    ) as caught:
        load(tmp_path, uid, name=name, files=files)
    assert isinstance(caught.value.__cause__, ImportError)
    assert f"_toy_cpu_{uid}" not in sys.modules


def test_an_id_stays_taken_once_a_library_was_opened(tmp_path, uid):
    """The linker cannot forget a library: other content under its namespace would crash the process."""
    library = {f"_toy_cpu_{uid}.abi3.so": b"not a library"}
    with pytest.raises(kernel_loader.LoadFailed):
        load(tmp_path / "one", uid, files={**files_of(init=f"from . import _toy_cpu_{uid}\n"), **library})
    with pytest.raises(kernel_loader.KernelConflict):
        load(tmp_path / "two", uid)


def test_a_library_that_changes_after_verification_is_not_opened(tmp_path, uid):
    init = f"def late():\n    from . import _toy_cpu_{uid}\n"
    files = {**files_of(init=init), f"_toy_cpu_{uid}.abi3.so": b"not a library"}
    module = load(tmp_path, uid, files=files)
    (tmp_path / "torch-cpu" / f"_toy_cpu_{uid}.abi3.so").write_bytes(b"something else")
    with pytest.raises(kernel_loader.DigestMismatch, match="changed after it was verified"):
        module.late()


TORCH = Environment.from_dict({"torch": "2.13.0+cu130", "cuda": "13.0"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE", "the symbol c10::Error::Error is missing"),
        ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by x.so)", "version 2.38 of the C library"),
        ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found", "version 3.4.32 of the C++ library"),
        ("libcudart.so.12: cannot open shared object file: No such file", "needs the library libcudart.so.12"),
        ("x.so: file too short", "damaged or for another system"),
    ],
)
def test_linker_errors_in_words(text, expected):
    metadata = Metadata(name="toy", id="_toy", version=1, license="", backend="cuda")
    variant = "torch212-cxx11-cu126-x86_64-linux"
    error = explain(ImportError(text), metadata=metadata, module="_toy", variant=variant, env=TORCH)
    assert expected.replace("Error::Error", "Error") in str(error)
    assert text in str(error)
    if "GLIBC" not in text:
        assert "built for torch 2.12 (cxx11 ABI) and cuda 12.6, running is torch 2.13.0+cu130" in str(error)
    assert "hint: " in str(error)
