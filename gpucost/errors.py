"""Errors that a user can act on: each says what, where, why and what to try, and carries its exit code.

Exit codes: 0 ok, 1 crash, 2 usage or unreadable input, 3 over the given budget, 4 price missing or stale,
5 a check failed, 6 nothing fits, 130 interrupted.
"""

import copyreg
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

_LONGEST_WORD, _LONGEST_MESSAGE = 300, 2000  # characters of a value, and of a sentence, that an error repeats

_ALLOWED_SPACES = "\n\t\u00a0\u2009\u202f"  # signs that a terminal takes as space and nothing else
_SPACES = re.compile(f"[{_ALLOWED_SPACES}]+")


def visible(text: str) -> str:
    r"""Write control characters, terminal escapes and signs that reorder text as escapes that can be seen.

    >>> visible("a\x1b[31mb"), visible("4 × h100")
    ('a\\x1b[31mb', '4 × h100')
    """
    # Nearly every text passes here. What does not holds control characters, or signs that turn the direction of
    # writing round (Unicode Standard Annex 9), by which a name can be made to look like another.
    if text.isprintable() or _SPACES.sub("", text).isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in _ALLOWED_SPACES else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def shortened(text: str) -> str:
    """Return what an error says, long words and long sentences cut, with nothing that steers a terminal.

    >>> shortened("unknown " + "x" * 5000)[-20:]
    '… (5,000 characters)'
    """
    if len(text) > _LONGEST_WORD:  # what holds a long word is long itself: others are spared the search
        text = re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:60]}… ({len(word[0]):,} characters)", text)
    return visible(text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…")


def nearest(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names that look most like a name, the best first.

    >>> nearest("tensr", ["tensor", "pipeline"])
    ['tensor']
    """
    from difflib import get_close_matches  # only where a name is misspelt

    return get_close_matches(name, list(names), n=most, cutoff=cutoff)


class GpuCostError(Exception):
    """Base of every error that gpucost raises on purpose."""

    exit_code = 2
    change: Mapping[str, Any] = MappingProxyType({})  # arguments under which there would be an answer, where known
    nearest: Mapping[str, float] = MappingProxyType({})  # what that answer comes to: gpus, days, cost_usd

    def offering(self, **change: Any) -> Self:
        """Say which arguments would bring an answer."""
        self.change = change
        return self

    def reaching(self, **nearest: float) -> Self:
        """Say what the answer under these arguments comes to."""
        self.nearest = nearest
        return self

    def __str__(self) -> str:
        """Return the sentence, short enough to be read."""
        return shortened(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Be handed from a process to another as it stands, whatever its kind is made from."""
        # By default an exception is made anew from its sentence alone, and several of those below take more.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def changed(error: GpuCostError) -> str:
    """Return what an error offers as words.

    >>> changed(GpuCostError("too dear").offering(budget=1200))
    'budget=1200'
    """
    return ", ".join(f"{name}={value}" for name, value in error.change.items())


class UsageError(GpuCostError):
    """An argument, a name, a file or a statement that cannot be used."""


class DiskError(UsageError):
    """A file that cannot be written: the disk is full, or the folder takes none."""


class ContradictionError(UsageError):
    """Arguments that exclude each other, or one that means nothing beside the others; carries their names."""

    def __init__(self, message: str, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


class UnknownNameError(UsageError):
    """A name that resolves to nothing; carries the nearest names, which are looked for when they are read."""

    def __init__(
        self, kind: str, name: str, candidates: Sequence[str] | Callable[[], Sequence[str]] = (), hint: str = ""
    ) -> None:
        super().__init__(kind, name)
        self.kind, self.name, self.hint, self._candidates = kind, name, hint, candidates

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The nearest known names."""
        return tuple(self._candidates() if callable(self._candidates) else self._candidates)

    def __str__(self) -> str:
        """Return what is unknown, what may be meant, and where to look; or what was put around it."""
        if len(self.args) == 1:  # whoever caught it has put a sentence in place of kind and name
            return str(self.args[0])
        suggestion = f" Did you mean {' or '.join(map(repr, self.candidates[:3]))}?" if self.candidates else ""
        return shortened(f"unknown {self.kind} {self.name!r}.{suggestion} {self.hint}".strip())

    def __reduce__(self) -> tuple[Any, ...]:
        """Be handed from a process to another with the names found."""
        self._candidates = self.candidates  # a function of a catalog that is open here does not travel
        return super().__reduce__()


class AmbiguousNameError(UsageError):
    """A name that resolves to several things where one is required."""

    def __init__(self, kind: str, name: str, candidates: Sequence[str]) -> None:
        self.kind, self.name, self.candidates = kind, name, tuple(candidates)
        super().__init__(f"{kind} {name!r} is ambiguous: {', '.join(self.candidates)}. Name one of them.")


class DataError(UsageError):
    """A bad cell, row or file of data, located as file:row:column."""

    def __init__(self, reason: str, *, file: str, row: int | None = None, column: str | None = None) -> None:
        self.reason, self.file, self.row, self.column = reason, file, row, column
        location = ":".join(str(part) for part in (file, row, column) if part not in (None, ""))
        super().__init__(f"{location}: {reason}")


class OverBudgetError(GpuCostError):
    """The answer costs more than the budget given."""

    exit_code = 3


class PriceMissingError(GpuCostError):
    """No price, or only stale prices under --strict-prices."""

    exit_code = 4


class CheckFailedError(GpuCostError):
    """A check that was asked for did not pass."""

    exit_code = 5


class NothingFitsError(GpuCostError):
    """No system, layout or offer can do what was asked."""

    exit_code = 6
