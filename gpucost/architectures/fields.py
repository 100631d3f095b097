"""A configuration read key by key: every value is checked as it is taken, and what was never taken is known."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpucost.errors import DataError
from gpucost.gate import beside, read_json, shown

LARGEST = 10**15  # no dimension or count of a model is as large
MOST_LAYERS = 4096


# what configurations call each dimension, and the lists of words that their keys are looked through for: keys.csv
KEYS = {name: tuple(keys.split()) for name, keys, _ in beside(__file__, "keys")[1:]}


def _has(key: str, signs: tuple[str, ...]) -> bool:
    return any(sign in f"^{key}$" for sign in signs)


def load(file: Path) -> dict[str, Any]:
    """Read a file that should hold one JSON object of moderate size; Infinity is a word there, which no number is."""
    config = read_json(file, constant=str)
    if not isinstance(config, dict):
        raise DataError("is not a JSON object. Name a model's config.json.", file=str(file))
    return config


def layer_of(text: str) -> int:
    """Return the number of the layer that a text names, −1 where it names none.

    >>> layer_of("02"), layer_of("x"), layer_of("9" * 5000)
    (2, -1, -1)
    """
    return int(text) if text.isdecimal() and len(text) < 9 else -1


class Fields:
    """The keys of one configuration, or of a part of it, and which of them were taken."""

    def __init__(self, values: Mapping[str, Any], file: str, defaults: Mapping[str, Any] | None = None) -> None:
        self.values, self.file, self.defaults = values, file, defaults or {}
        self.taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None

    def raw(self, *names: str) -> Any:
        """Return the first of the named keys that the file sets, else that its class sets by default, else None."""
        given = (known.get(name) for known in self._known(names) for name in names)
        return next((value for value in given if value is not None), None)

    def _known(self, names: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
        """Return where to look: a key that the file sets, be it to null, leaves no room for the class's default."""
        self.taken.update(names)
        said = any(name in self.values for name in names)
        return (self.values,) if said else (self.values, self.defaults)

    def fail(self, problem: str) -> DataError:
        """Return the error that says what is wrong with this file."""
        return DataError(problem, file=self.file)

    def maybe(self, *names: str) -> int | None:
        """Return the first of the named keys that is set, as a whole number."""
        for known in self._known(names):
            for name in names:
                value = known.get(name)
                if isinstance(value, list) and value and all(item == value[0] for item in value):
                    value = value[0]
                if value is not None and not isinstance(value, list):
                    return self.whole(name, value)
        return None

    def number(self, *names: str, default: int = 0) -> int:
        """Return the first of the named keys that is set, as a whole number, else the default."""
        found = self.maybe(*names)
        return default if found is None else found

    def whole(self, name: str, value: Any) -> int:
        """Check one value: a whole number of zero or more and of sane size."""
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not 0 <= value <= LARGEST or value != int(value):
            raise self.fail(f"{name} must be a whole number of zero or more, found {shown(value)}")
        return int(value)

    def ratio(self, name: str, default: float) -> float:
        """Return a key that holds a number of zero or more, whole or not."""
        value = self.raw(name)
        if value is None:
            return default
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not 0 <= value <= LARGEST:
            raise self.fail(f"{name} must be a number of zero or more, found {shown(value)}")
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return the first of the named keys that is set, as a yes or no."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, (bool, int)):
            raise self.fail(f"{' or '.join(names)} must be true or false, found {shown(value)}")
        return bool(value)

    def word(self, name: str) -> str:
        """Return a key that holds a word, in lower case; empty where it holds none."""
        value = self.raw(name)
        return value.lower() if isinstance(value, str) else ""

    def words(self, *names: str) -> list[str] | None:
        """Return the first of the named keys that is a list of words, in lower case."""
        for name in names:
            value = self.raw(name)
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                return [item.lower() for item in self._bounded(name, value)]
        return None

    def numbers(self, *names: str) -> list[int] | None:
        """Return the first of the named keys that is a list of whole numbers; a missing entry counts as zero."""
        for name in names:
            value = self.raw(name)
            if isinstance(value, list) and value and all(isinstance(item, (int, float, type(None))) for item in value):
                return [
                    int(item) if isinstance(item, bool) else self.whole(name, item or 0)
                    for item in self._bounded(name, value)
                ]
        return None

    def _bounded(self, name: str, value: list[Any]) -> list[Any]:
        if len(value) > MOST_LAYERS:
            raise self.fail(f"{name} lists {len(value)} items; no model has as many")
        return value

    def part(self, name: str) -> "Fields | None":
        """Return a nested part; its keys are recorded under its name."""
        value = self.raw(name)
        return Fields(value, self.file) if isinstance(value, Mapping) and value else None

    def unused(self) -> Iterator[str]:
        """Yield the keys that look as if they shaped the model and were never taken."""
        for name, value in self.values.items():
            if name in self.taken or value in (None, False, 0, "", [], {}):
                continue
            if isinstance(value, float) and not value.is_integer():
                continue
            if not name.startswith("_") and _has(name, KEYS["structural"]) and not _has(name, KEYS["harmless"]):
                yield name
