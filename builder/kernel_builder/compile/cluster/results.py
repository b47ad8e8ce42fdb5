"""What came back: answers of workers are checked, written to the log, and taken into the store that asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from kernel_builder.compile.run import Failure
from kernel_builder.compile.store import PEAK
from kernel_builder.compile.units import expand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.compile.graph import Step
    from kernel_builder.compile.store import UnitStore
    from kernel_builder.compile.units import Unit


@dataclass(kw_only=True, slots=True)
class Results:
    """The state of a run: ``done`` units, in order, and ``failures``."""

    folder: Path
    store: UnitStore
    log: TextIO
    done: list[Unit] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def take(self, step: Step, answer: Mapping[str, Any]) -> None:
        """Adopt the result of a step, or note why there is none.

        Args:
            step: The step that was ordered.
            answer: Of ``worker.carry_out``, ``made`` or ``failed``.
        """
        output = tuple(expand(line, step.unit.places) for line in answer["output"])
        sentence = answer["sentence"] if answer["status"] == "failed" else self._adopt(step, answer)
        self._note(step, answer["worker"], output, failed=bool(sentence))
        if sentence:
            self.failures.append(Failure(unit=step.unit, sentence=sentence, command=step.command, output=output))
        else:
            self.done.append(step.unit)

    def fail(self, step: Step, sentence: str, *output: str) -> None:
        """Note a step that no worker brought to an end."""
        self._note(step, "", output, failed=True)
        self.failures.append(Failure(unit=step.unit, sentence=sentence, command=step.command, output=output))

    def _note(self, step: Step, worker: str, output: Sequence[str], *, failed: bool) -> None:
        label = f"# {step.unit.label}" + (f" [{worker}]" if worker else "")
        self.log.write("\n".join([label, step.command, *output, *["# FAILED"] * failed, ""]))
        self.log.flush()

    def _adopt(self, step: Step, answer: Mapping[str, Any]) -> str:
        """Take the bytes into the store; returns what is wrong with them."""
        data = answer["data"]
        if hashlib.sha256(data).hexdigest() != answer["sha256"]:
            return f"The bytes that {answer['worker']} sent are not those that it made."
        touched = [name for name, file in step.unit.files.items() if not file.untouched()]
        if touched:
            return f"{touched[0]} was changed while it was compiled; run the build again."
        made = self.folder / step.output
        made.write_bytes(data)
        if answer["peak"]:
            (made.parent / PEAK).write_text(str(answer["peak"]), encoding="ascii")
        self.store.adopt(step.unit, made)
        return ""
