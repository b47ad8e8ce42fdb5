"""``python -m kernel_builder`` is ``kernel-builder``."""

from __future__ import annotations

from kernel_builder.cli.main import main

if __name__ == "__main__":
    main()
