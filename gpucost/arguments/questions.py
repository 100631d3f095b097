"""The questions: what each is for, examples, the arguments that it takes, which exclude and which need each other.

questions.csv has a row for each thing that is said of a question; paragraphs of its help and examples in their order.
"""

from functools import cache
from typing import NamedTuple

from gpucost.arguments.table import Argument, Made, arguments_of
from gpucost.gate import beside


class Question(NamedTuple):
    """A question that the library, a command and, for some, a part of a scenario ask."""

    arguments: tuple[Argument, ...]
    help: str
    examples: tuple[str, ...]
    result: str  # class of the answer, in gpucost.api
    places: int  # how many arguments may be given by place in the library
    exclusive: tuple[tuple[str, ...], ...]  # say the same thing: at most one of each
    returns: str  # the answer in one clause, for the library
    needs: tuple["Need", ...]  # what would be ignored alone


class Need(NamedTuple):
    """Arguments that mean something only beside another one: `a b: c | d=x/y | e!=z; in words`, one of what follows."""

    names: tuple[str, ...]
    one_of: tuple[
        tuple[str, bool, tuple[str, ...]], ...
    ]  # the other, whether it must be one of these values; none: given
    words: str


@cache
def _said() -> dict[str, dict[str, list[str]]]:
    """Return what is said of each question, by what it is."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, what, text in beside(__file__, "questions")[1:]:
        found.setdefault(name, {}).setdefault(what, []).append(text)
    return found


def _question(name: str) -> Question:
    said = _said()[name]
    exclusive = tuple(tuple(one.split()) for one in said.get("exclusive", ()))
    return Question(
        arguments_of(name), "\n\n".join(said["help"]), tuple(said["example"]), said["result"][0],
        int(said.get("places", "0")[0]), exclusive, said["returns"][0],
        tuple(_need(one) for one in said.get("needs", ())),
    )  # fmt: skip


def _need(text: str) -> Need:
    names, _, rest = text.partition(":")
    others, _, words = rest.partition(";")
    found = []
    for other in others.split("|"):
        name, _, values = other.strip().partition("=")
        found.append((name.rstrip("!"), not name.endswith("!"), tuple(values.split("/")) if values else ()))
    return Need(tuple(names.split()), tuple(found), words.strip())


QUESTIONS = Made(_said, _question)
