"""Write the public functions with their typed signatures from the table of arguments."""

from textwrap import fill

from gpucost.arguments import QUESTIONS, Argument, Question

HEAD = '''"""The questions as functions, with typed signatures: made by docs/generate.py from gpucost.arguments."""

# mypy: disable-error-code="empty-body"
# fmt: off

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpucost.api.asking import question

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gpucost.api.audit import AuditResult
    from gpucost.api.choose import ChoiceResult
    from gpucost.api.estimate import EstimateResult
    from gpucost.api.fit import FitResult, FitsResult, ServingFitResult
    from gpucost.api.inference import InferenceResult
    from gpucost.api.mix import MixResult
    from gpucost.api.roofline import RooflineResult
    from gpucost.api.tco import TcoResult
    from gpucost.api.throughput import ThroughputResult, ThroughputTable
    from gpucost.catalog import Catalog
    from gpucost.types import Architecture
'''


def functions() -> str:
    """Return the module's text."""
    return HEAD + "".join(f"\n\n{_function(name, found)}" for name, found in QUESTIONS.items())


def _function(name: str, found: Question) -> str:
    takes = [_parameter(argument) for argument in found.arguments]
    takes.insert(found.places, "*")
    result = " | ".join(part.split(".")[1] for part in found.result.split(" | "))
    lines = [
        "@question",
        f"def {name}(",
        _wrapped(", ".join(text.replace(" ", "\0") for text in [*takes, "catalog: Catalog | None = None"]) + ",", 4),
        f") -> {result}:",
        f'    """Return {found.returns}.',
        "",
        "    Args:",
        *(_meaning(argument) for argument in found.arguments),
        "        catalog: A catalog that is already open; else one is opened for the days asked for.",
        '    """',
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _parameter(argument: Argument) -> str:
    kind = argument.kind.python
    if argument.column:
        kind += " | Sequence[str]" if kind.startswith("str") and "int" not in kind else " | ArrayLike"
    kind += "" if argument.required or argument.default is not None else " | None"
    return f"{argument.name}: {kind}" + ("" if argument.required else f" = {_literal(argument.default)}")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _meaning(argument: Argument) -> str:
    words = f"{argument.name}: {argument.help}"
    if argument.kind.choices:
        words += f" One of {', '.join(argument.kind.choices)}."
    if argument.usual:
        words += f" Default: {argument.usual}."
    return _wrapped(words, 8, 12)


def _wrapped(text: str, first: int, rest: int | None = None) -> str:
    indents = {"initial_indent": " " * first, "subsequent_indent": " " * (first if rest is None else rest)}
    return fill(text, 120, break_long_words=False, break_on_hyphens=False, **indents).replace("\0", " ")
