"""The questions: each a function whose signature says what it takes, and what every answer can do."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from gpucost import QUESTION_MODULES
from gpucost.arguments import Question


@cache
def _question(name: str) -> Question:
    # the name of a question is that of its function, which `question` decorates
    question: Question = getattr(import_module(QUESTION_MODULES[name]), name).question
    return question


class Questions(Mapping[str, Question]):
    """The questions by name; the module of each is imported when it is first looked up."""

    def __getitem__(self, name: str) -> Question:
        if name not in QUESTION_MODULES:
            raise KeyError(f"{name} is no question: gpucost/__init__.py names the module of each")
        return _question(name)

    def __iter__(self) -> Iterator[str]:
        return iter(QUESTION_MODULES)

    def __len__(self) -> int:
        return len(QUESTION_MODULES)


QUESTIONS = Questions()
