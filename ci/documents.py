"""Writes the generated parts of README.md and docs/build-toml.md; with --check only says whether they are true.

python ci/documents.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder import settings as builder_settings
from kernel_builder.errors import EXIT_CODES
from kernel_builder.plan.plan import make_plan, services_of
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.read import find_kernels
from kernel_builder.spec.schema import documentation
from kernel_loader import settings as loader_settings
from kernel_loader.environment import dotted
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel_builder.plan.cells import Service

ROOT = Path(__file__).resolve().parents[1]


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows])


def kernels() -> str:
    rows = [
        (f"[{k.name}](kernels-src/{k.name}/CARD.md)", f"v{k.version}", ", ".join(k.backends), k.hub.repo_id or "")
        for k in find_kernels((), ROOT / "kernels-src")
    ]
    return table(("kernel", "version", "backends", "repository"), rows)


def matrix() -> str:
    """What serves each torch build: rows with the same answer for all kernels, torches joined."""
    kernels = find_kernels((), ROOT / "kernels-src")
    services = services_of(make_plan(kernels, selection=Selection()), selection=Selection())
    rows: dict[tuple[str, ...], dict[str, None]] = {}
    for (torch, build, variant, grade), gpus in _gpus_by_answer(services).items():
        rows.setdefault((build, " ".join(gpus), variant, grade), {})[torch] = None
    return table(
        ("torch", "its build", "GPUs", "variant", "served with"),
        [(" … ".join(dict.fromkeys((min(t, key=_number), max(t, key=_number)))), *row) for row, t in rows.items()],
    )


def _number(version: str) -> MajorMinor:
    return MajorMinor.parse(version)


def _gpus_by_answer(services: Mapping[str, Sequence[Service]]) -> dict[tuple[str, ...], dict[str, None]]:
    answers: dict[tuple[str, ...], dict[str, None]] = {}
    for service in (service for of_kernel in services.values() for service in of_kernel):
        cell = service.cell
        grade = f"PTX, driver {service.driver} or newer" if service.grade == "PTX" else service.grade
        grade = {"native": "machine code"}.get(grade, grade)
        key = (str(cell.torch), str(cell.backend), f"`{service.variant}`" if service.variant else "–", grade)
        answers.setdefault(key, {})["–" if cell.gpu is None else dotted(cell.gpu.capability)] = None
    return answers


def variables() -> str:
    read = {"builder": builder_settings.VARIABLES, "loader": loader_settings.VARIABLES}
    meanings = {name: text for texts in read.values() for name, text in texts.items()}
    rows = [
        (f"`{name}`", ", ".join(package for package, texts in read.items() if name in texts), text)
        for name, text in meanings.items()
    ]
    return table(("variable", "read by", "meaning"), rows)


def exit_codes() -> str:
    return table(("code", "meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()])


def keys() -> str:
    rows = [(file, code(table), code(key), kind, meaning) for file, table, key, kind, meaning in documentation()]
    return table(("file", "table", "key", "type", "meaning"), rows)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


PARTS = {
    "README.md": {"kernels": kernels, "matrix": matrix, "variables": variables, "exit codes": exit_codes},
    "docs/build-toml.md": {"keys": keys},
}


def rendered(text: str, parts: dict) -> str:
    """The document with every part between its markers made anew."""
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, marker, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not marker or not closed:
            raise SystemExit(f"the marker {begin} or its end is missing")
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def main() -> int:
    stale = []
    for name, parts in PARTS.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = rendered(before, parts)
        if after != before:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.write_text(after, encoding="utf-8")
    print("\n".join(f"{name} was out of date" for name in stale) or "documents are up to date")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
