"""A griffe extension for the library reference: examples in docstrings become code blocks."""

from typing import Any

import griffe


class FenceDoctests(griffe.Extension):
    """Puts fences around `>>>` lines and what they print, up to the next empty line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return the text with its examples inside code fences."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
