"""Types of values in TOML, JSON and small CSV files from outside: bounds of each value, each fault by its key.

Rows of the tables of the data dictionary are schemas/validation.py.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from gpucost.errors import DataError, UsageError
from gpucost.gate import Path_, in_small, read_table, shown
from gpucost.units import as_number, is_slip, unit_of

if TYPE_CHECKING:
    from pydantic import BaseModel

_UnknownKeys = Literal["allow", "ignore", "forbid"]  # what becomes of keys that a type does not have
_SHARES = ("fraction of one", unit_of("ratio"))
MOST = 1e18  # no count, size, rate or amount of a file is as large


@cache
def number(low: float = 0.0, high: float = MOST, *, above: bool = False, whole_number: bool = False) -> Any:
    """Return the type of a finite number within bounds, never a truth value or a text; `above` leaves `low` out."""
    from pydantic import BeforeValidator, Field

    ends: Any = {"gt" if above else "ge": low, "le": high, **({"multiple_of": 1} if whole_number else {})}
    return Annotated[float, Field(allow_inf_nan=False, **ends), BeforeValidator(_number)]


@cache
def text(most: int = 300, least: int = 0) -> Any:
    """Return the type of a text of bounded length."""
    from pydantic import StringConstraints

    return Annotated[str, StringConstraints(strict=True, min_length=least, max_length=most)]


def read_by(read: Callable[[Any, str], Any], label: str = "it") -> Any:
    """Return the type of what an argument reads, such as $1.9, 70% or 12; a value becomes what it reads."""
    from pydantic import BeforeValidator
    from pydantic_core import PydanticCustomError

    def parsed(value: Any) -> Any:
        try:
            return read(value, label)
        except UsageError as error:
            # pydantic keeps the text of an error of its own kind as it is
            raise PydanticCustomError(
                "argument", "{reason}", {"reason": str(error).removeprefix(f"{label}: ")}
            ) from None

    return Annotated[Any, BeforeValidator(parsed)]


def record(title: str, /, *, unknown: _UnknownKeys = "forbid", validators: Any = None, **fields: Any) -> Any:
    """Return the type of a table; a field is its type where the key may be left out, else (type, ...)."""
    from pydantic import ConfigDict, create_model

    create: Any = create_model
    config: Any = ConfigDict(extra=unknown)
    # a key that may be left out may be null too
    types = {key: kind if isinstance(kind, tuple) else (kind | None, None) for key, kind in fields.items()}
    return create(title, __config__=config, __validators__=validators or {}, **types)


def list_of(kind: Any, most: int = 100_000, least: int = 0) -> Any:
    """Return the type of a list."""
    from pydantic import Field

    return Annotated[list[kind], Field(max_length=most, min_length=least)]


def _number(value: Any) -> Any:
    # pydantic alone would read "12" and True as numbers
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    if is_slip(value):
        raise ValueError("a number that is not so close to 0")
    return value


_PLAIN_TYPES = {"a valid dictionary": "a table", "a valid list": "a list", "a valid string": "a text"}


def validated(model: "type[BaseModel]", value: Any, file: str, row: int | None = None) -> dict[str, Any]:
    """Return a value as its model reads it; the first fault names file, key, what was found and what is expected."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    # the place as one writes it in TOML or JSON: runs[2].gpus
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    if first["type"] == "missing":
        reason = "a value is required"
    elif first["type"] == "extra_forbidden":
        reason = "this key is unknown"
    elif first["type"] == "argument":
        reason = str(first["msg"])
    else:  # pydantic's own words, of which a reader of the file knows none but those for types
        expected = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
        reason = f"found {shown(first.get('input', value))}, expected {_PLAIN_TYPES.get(expected, expected)}"
    raise DataError(reason, file=file, row=row, column=key[:120] or None)


def table(path: Path_, columns: Mapping[str, Any], renamed_column: str = "") -> list[tuple[int, dict[str, Any]]]:
    """Read a small CSV file whose rows hold these columns, each of its type; a cell that says a number is one.

    A column that is not among them is left out; where there is one alone, it stands for a `renamed_column` that is
    missing; one whose name states another unit is refused.
    """
    header, rows = read_table(path)
    unknown = [name for name in header if name and name not in columns]
    # a file of a single measurement column says it in its own words, such as `tokens/s`
    is_renamed = renamed_column and renamed_column not in header and len(unknown) == 1
    renamed = {unknown[0]: renamed_column} if is_renamed else {}
    if renamed and _is_other_unit(unknown[0], renamed_column):
        reason = f"is a column of another unit than {renamed_column}. Convert its values and name it {renamed_column}"
        raise DataError(reason, file=str(path), row=1, column=unknown[0])
    refuse_incomplete(path, [renamed.get(name, name) for name in header], rows, columns)
    model = record("Row", unknown="ignore", **{name: (kind, ...) for name, kind in columns.items()})
    lines = []
    for line, texts in rows:
        row: dict[str, Any] = {}
        for name, cell in texts.items():
            column = renamed.get(name, name)
            try:
                row[column] = as_number(cell)
            except ValueError:
                row[column] = cell
        validated(model, row, str(path), line)
        lines.append((line, row))
    return lines


def refuse_incomplete(path: Path_, header: Collection[str], rows: Collection[Any], needed: Collection[str]) -> None:
    """Refuse a table without a column that is needed, or without rows."""
    if missing := [name for name in needed if name not in header]:
        reason = f"has no column {missing[0]}; needed are {', '.join(needed)}{in_small(header, missing)}"
        raise DataError(reason, file=str(path), row=1)
    if not rows:
        raise DataError("has no rows below its header", file=str(path))


def _is_other_unit(name: str, column: str) -> bool:
    """Tell whether the name of a column carries another unit or currency than the one that is wanted.

    >>> _is_other_unit("eur_per_gpu_hour", "usd_per_gpu_hour"), _is_other_unit("price", "usd_per_gpu_hour")
    (True, False)
    """
    # `EUR per GPU-hour` states its unit as eur_per_gpu_hour does
    low = re.sub(r"\W+", "_", name.lower())
    unit, needed_unit = unit_of(low), unit_of(column)
    foreign = re.search(r"[€£¥₹]", name) or re.match(r"(eur|gbp|jpy|cny|chf|inr|cad|aud|sek|nok|dkk|krw)(_|$)", low)
    # beside the unit itself: none, a share of nothing in particular, or plain USD
    alike = ("", needed_unit, *(_SHARES if not needed_unit else needed_unit.split()[:1]))
    return bool(foreign) or unit not in alike
