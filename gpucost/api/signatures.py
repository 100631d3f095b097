"""The typed signature and the docstring of a question's function, from the table of arguments."""

from inspect import Parameter, Signature
from textwrap import fill

from gpucost.arguments import Argument, Question


def _annotation(argument: Argument) -> str:
    kind = argument.kind.python
    if argument.column:
        kind += " | Sequence[str]" if kind.startswith("str") and "int" not in kind else " | ArrayLike"
    return kind if argument.required or argument.default is not None else f"{kind} | None"


def signature_of(found: Question) -> Signature:
    """Return the typed signature of a question's function."""
    made = [
        Parameter(
            argument.name, Parameter.POSITIONAL_OR_KEYWORD if place < found.places else Parameter.KEYWORD_ONLY,
            default=Parameter.empty if argument.required else argument.default, annotation=_annotation(argument),
        )
        for place, argument in enumerate(found.arguments)
    ]  # fmt: skip
    made.append(Parameter("catalog", Parameter.KEYWORD_ONLY, default=None, annotation="Catalog | None"))
    return Signature(made, return_annotation=" | ".join(part.split(".")[1] for part in found.result.split(" | ")))


def meaning_of(found: Question) -> str:
    """Return the docstring of a question's function."""
    lines = [f"Return {found.returns}.", "", "    Args:"]
    for argument in found.arguments:
        words = f"{argument.name}: {argument.help}"
        words += f" One of {', '.join(argument.kind.choices)}." if argument.kind.choices else ""
        lines.append(wrapped(words + (f" Default: {argument.usual}." if argument.usual else ""), 8, 12))
    lines.append("        catalog: A catalog that is already open; else one is opened for the days asked for.")
    return "\n".join([*lines, "    "])


def wrapped(text: str, first: int, rest: int) -> str:
    """Break a text into lines of 120 signs, indented."""
    return fill(text, 120, break_long_words=False, break_on_hyphens=False, initial_indent=" " * first,
                subsequent_indent=" " * rest)  # fmt: skip
