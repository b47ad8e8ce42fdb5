"""Proofs that need many torch releases: too large for every run, made before a release.

    python ci/torches.py run 2.7.1 2.9.1 2.14.1     the kernels' CPU tests in each of these releases, installed by pip
    python ci/torches.py resolve                    every import of every variant, in every torch that it claims

`run` installs a release into an environment that it removes afterwards; a CUDA build takes about 6 GB for that while.
What pip and the tests said stays in the store, as torches/RELEASE.log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from contextlib import closing
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "builder"))

from kernel_builder.check.elf import read_elf  # noqa: E402 - after the path
from kernel_builder.check.symbols import is_torch  # noqa: E402
from kernel_builder.console.text import table  # noqa: E402
from kernel_builder.package.read import variant_folders  # noqa: E402
from kernel_builder.reporting import SilentReporter  # noqa: E402
from kernel_builder.settings import Settings  # noqa: E402
from kernel_builder.toolchain.lock import read_lock  # noqa: E402
from kernel_builder.toolchain.supply import Supply  # noqa: E402
from kernel_builder.toolchain.symbols.tables import names_of, symbols_at  # noqa: E402
from kernel_loader.format.variants import ArchVariant, parse  # noqa: E402


def run(releases: list[str], dist: Path) -> int:
    """Test the packaged CPU variants in each release; returns the exit status."""
    logs, failed = Settings.from_environment().store / "torches", 0
    logs.mkdir(parents=True, exist_ok=True)
    for release in releases:
        log = logs / f"{release}.log"
        with tempfile.TemporaryDirectory(prefix="torch-") as folder, log.open("w", encoding="utf-8") as stream:
            status, line = _test(release, Path(folder), dist, stream)
        print(f"torch {release}: {line}" + (f" (see {log})" if status else ""), flush=True)
        failed += status != 0
    return 1 if failed else 0


def _test(release: str, folder: Path, dist: Path, log: TextIO) -> tuple[int, str]:
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    packages = [f"torch=={release}", "numpy", "pytest", f"{ROOT}[build]"]
    done = _logged([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *packages], log)
    if done.returncode != 0:
        return done.returncode, f"cannot be installed: {done.stderr.strip().splitlines()[-1]}"
    # A copy: receipts of this run are not those of the torch that a release is tested with.
    shutil.copytree(dist, folder / "dist", ignore=shutil.ignore_patterns("hub"))
    command = [python, "-m", "kernel_builder", "test", "--device", "cpu", "--out", str(folder / "dist"), "--json"]
    done = _logged(command, log)
    if not done.stdout.startswith("{"):
        return done.returncode or 1, done.stderr.strip()[-500:]
    receipts = json.loads(done.stdout)["receipts"]
    counts = (f"{r['variant']} {r['tests']['passed']} passed, {r['tests']['failed']} failed" for r in receipts)
    # An index may serve another build of torch than the release that the line below vouches for.
    others = {r["torch"] for r in receipts if r["torch"].partition("+")[0] != release}
    if others:
        return 1, f"it was torch {', '.join(sorted(others))} that ran"
    passed = receipts and all(r["tests"]["passed"] for r in receipts)
    return done.returncode or not passed, "; ".join(counts) or "no variant fits"


def _logged(command: list[str], log: TextIO) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}exit status {done.returncode}\n")
    log.flush()
    return done


def resolve(dist: Path) -> int:
    """Look up every import from torch in the libraries of every torch; returns the exit status."""
    settings, lock, rows, missing = Settings.from_environment(), read_lock(), [], 0
    kernels = [kernel for kernel in sorted(dist.iterdir()) if (kernel / "build").is_dir()]
    folders = [folder for kernel in kernels for folder in variant_folders(kernel)]
    with closing(Supply(settings, SilentReporter())) as supply:
        for folder in folders:
            variant = parse(folder.name)
            if not isinstance(variant, ArchVariant):
                continue
            imports = {
                symbol.name: symbol.weak
                for library in folder.glob("*.so")
                for symbol in read_elf(library).unversioned
                if is_torch(symbol.name)
            }
            for item in lock.sdks.values():
                stable, own = variant.framework.kind == "torch-stable-abi", variant.framework.version
                if item.version < own or (item.version != own and not stable):
                    continue
                exported = names_of(symbols_at(supply.symbols(item), item), variant.backend.name)
                lacking = [name for name, weak in imports.items() if name not in exported and not weak]
                found = sum(name in exported for name in imports)
                rows.append((folder.name, item.release, f"{found} of {len(imports)}", ", ".join(lacking) or "–"))
                missing += len(lacking)
    print("\n".join(table(("VARIANT", "TORCH", "RESOLVED", "MISSING"), rows)))
    print(f"{len(folders)} variants, {supply.received / 1e6:.1f} MB read from wheels; weak imports may be missing")
    return 1 if missing or not rows else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "resolve"])
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    asked = parser.parse_args()
    return run(asked.releases, asked.dist) if asked.what == "run" else resolve(asked.dist)


if __name__ == "__main__":
    sys.exit(main())
