"""What needs a process of its own: import cost, concurrency, killed copies, offline sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from kernel_fakes import publish, variant_files

FORBIDDEN = ("torch", "huggingface_hub", "jinja2", "ninja", "rich", "elftools", "requests", "click", "packaging")
# Unit tests describe the environment instead of importing torch.
PRELUDE = """
import kernel_loader, kernel_loader.api
from kernel_loader.environment import Environment
kernel_loader.api.probe = lambda: Environment.from_dict({"torch": "2.13.0"})
"""


def python(code, *arguments, **values):
    argv = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **values)


def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out.strip()


def test_importing_the_loader_is_light():
    code = """
    import sys
    before = set(sys.modules)
    import kernel_loader
    print(len(set(sys.modules) - before))
    """
    assert int(finish(python(code))) <= 60


def test_loading_needs_none_of_the_builder_nor_torch(hub, uid, tmp_path):
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid)})
    code = f"""
    import sys

    class Forbidden:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {FORBIDDEN!r}:
                raise AssertionError(f"imported {{name}}")

    sys.meta_path.insert(0, Forbidden())
    {textwrap.indent(PRELUDE, "    ").strip()}
    print(kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1]).scale(1))
    """
    assert finish(python(code, hub)) == "11"


def test_every_public_name_exists():
    code = """
    import kernel_loader
    for name in kernel_loader.__all__:
        getattr(kernel_loader, name)
    assert set(kernel_loader.__all__) <= set(dir(kernel_loader))
    """
    finish(python(code))


def test_many_processes_copy_a_kernel_once(hub, uid, tmp_path):
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid)})
    code = f"""
    import pathlib, sys, time
    {textwrap.indent(PRELUDE, "    ").strip()}
    import kernel_loader.fetch as fetch
    original, copies = fetch._copy, []

    def copy(*arguments):
        copies.append(1)
        time.sleep(0.3)
        original(*arguments)

    fetch._copy = copy
    print("ready", flush=True)
    while not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.005)
    assert kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1]).scale(1) == 11
    print(len(copies))
    """
    processes = [python(code, hub, tmp_path / "go") for _ in range(4)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    (tmp_path / "go").touch()
    assert sum(int(finish(process)) for process in processes) == 1


def test_a_killed_copy_is_started_anew(hub, uid, cache):
    """The process dies in the third file; nothing half-made is ever taken for a kernel, and its lock is free."""
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid)})
    code = f"""
    import sys, time
    {textwrap.indent(PRELUDE, "    ").strip()}
    from kernel_loader.hub import HubRepo
    original, files = HubRepo.chunks, []

    def chunks(self, path, entry):
        files.append(path)
        if len(files) == 5 and sys.argv[2] == "die":
            print("half", flush=True)
            time.sleep(60)
        return original(self, path, entry)

    HubRepo.chunks = chunks
    print(kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1]).scale(1))
    """
    process = python(code, hub, "die")
    assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(cache.glob("kernels--*/snapshots/*/build/*"))
    offline = "import kernel_loader, sys\nprint(kernel_loader.has_kernel('acme/toy', version=1))"
    assert finish(python(offline, env={**os.environ, "HF_HUB_OFFLINE": "1"})) == "False"
    assert finish(python(code, hub, "live")) == "11"


def test_a_cached_kernel_loads_without_a_single_socket(hub, uid):
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid)})
    code = f"""
    import socket, sys

    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    socket.socket = socket.create_connection = socket.getaddrinfo = refuse
    {textwrap.indent(PRELUDE, "    ").strip()}
    print(kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1] or None).scale(1))
    """
    assert finish(python(code, hub)) == "11"
    assert finish(python(code, "", env={**os.environ, "HF_HUB_OFFLINE": "1"})) == "11"


def test_a_stamped_kernel_starts_without_hashing(hub, uid):
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid)})
    code = f"""
    import sys
    {textwrap.indent(PRELUDE, "    ").strip()}
    import kernel_loader.integrity as integrity
    original, hashed = integrity._hash_file, []
    integrity._hash_file = lambda *a: (hashed.append(1), original(*a))[1]
    kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1])
    print(len(hashed))
    """
    finish(python(code, hub))
    time.sleep(0.06)
    finish(python(code, hub))
    assert finish(python(code, hub)) == "0"


def test_the_module_runs_as_a_program(tmp_path, uid):
    argv = [sys.executable, "-m", "kernel_loader", "verify", str(Path(tmp_path))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 9
    assert "Traceback" not in done.stderr
