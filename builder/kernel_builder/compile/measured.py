"""Worker that runs one compile step and notes how much memory it took; run by file path with a bare interpreter.

The note is the largest resident size of a single process among the step and all that it started, in KiB: compilers'
drivers wait for the one that does the work. Built-in modules only, not even ``os``: its start-up time is paid once per
unit.
"""

from __future__ import annotations

import posix
import sys

_SIGNALLED, _NOT_STARTED = 128, 127  # as shells report a program that a signal ended, and one that is not there
_KILLED = 9


def main(argv: list[str]) -> int:
    """``measured.py NOTE PROGRAM ARGUMENT...``; returns the program's exit status."""
    note, *command = argv
    try:
        child = posix.posix_spawnp(command[0], command, posix.environ)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return _NOT_STARTED
    _, status, usage = posix.wait4(child, 0)
    with open(note, "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib takes as long to import as all of this
        file.write(str(usage.ru_maxrss))
    code = posix.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    sys.stderr.write(f"{command[0]}: {'Killed' if code == -_KILLED else f'ended by signal {-code}'}\n")
    return _SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
