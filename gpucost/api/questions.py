"""The questions as functions, made from the table of arguments; `questions.pyi` tells editors and checkers the same."""

from typing import Any

from gpucost.api.asking import question
from gpucost.api.signatures import meaning_of, signature_of
from gpucost.arguments import QUESTIONS


def __getattr__(name: str) -> Any:
    if name not in QUESTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = question(name, signature_of(QUESTIONS[name]), meaning_of(QUESTIONS[name]))
    return made
