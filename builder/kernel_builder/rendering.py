"""Templates → text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_builder.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path


def render_file(path: Path, **variables: Any) -> str:
    """Render one jinja2 file; a name that is not among ``variables`` is an error.

    Raises:
        SpecError: The template has a fault; ``where`` names file and line.
    """
    import jinja2
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    try:
        return environment.from_string(path.read_text("utf-8")).render(**variables)
    except jinja2.TemplateSyntaxError as e:
        raise SpecError(f"The template has a fault: {e.message}.", where=f"{path}:{e.lineno}") from e
    except jinja2.TemplateError as e:
        known = ", ".join(sorted(variables))
        raise SpecError(f"The template cannot be filled: {e}.", where=str(path), hint=f"it may use {known}") from e
