"""Typed models of TOML, JSON and small CSV from outside: each value by its type and bounds, each fault by its key."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from gpucost.errors import DataError, UsageError
from gpucost.gate import Path_, in_small, read_table, shown
from gpucost.units import as_number, is_slip, unit_of

if TYPE_CHECKING:
    from pydantic import BaseModel

Strange = Literal["allow", "ignore", "forbid"]  # what becomes of keys that a type has not
_SHARES = ("fraction of one", unit_of("ratio"))
MOST = 1e18  # no count, size, rate or amount of a file is as large


@cache
def number(low: float = 0.0, high: float = MOST, *, above: bool = False, whole: bool = False) -> Any:
    """Return the type of a finite number within bounds, never a truth value or a text; `above` leaves `low` out."""
    from pydantic import BeforeValidator, Field

    ends: Any = {"gt" if above else "ge": low, "le": high, **({"multiple_of": 1} if whole else {})}
    return Annotated[float, Field(allow_inf_nan=False, **ends), BeforeValidator(_number)]


@cache
def text(most: int = 300, least: int = 0) -> Any:
    """Return the type of a text of bounded length."""
    from pydantic import StringConstraints

    return Annotated[str, StringConstraints(strict=True, min_length=least, max_length=most)]


def read_as(read: Callable[[Any, str], Any], what: str = "it") -> Any:
    """Return the type of what an argument reads, such as $1.9, 70% or 12; a value becomes what was meant by it."""
    from pydantic import BeforeValidator
    from pydantic_core import PydanticCustomError

    def meant(value: Any) -> Any:
        try:
            return read(value, what)
        except UsageError as error:
            raise PydanticCustomError("said", "{said}", {"said": str(error).removeprefix(f"{what}: ")}) from None

    return Annotated[Any, BeforeValidator(meant)]


def record(title: str, /, *, strange: Strange = "forbid", validators: Any = None, **fields: Any) -> Any:
    """Return the type of a table; a field is its type where the key may be left out, else (type, ...)."""
    from pydantic import ConfigDict, create_model

    create: Any = create_model
    config: Any = ConfigDict(extra=strange)
    known = {key: kind if isinstance(kind, tuple) else (kind | None, None) for key, kind in fields.items()}
    return create(title, __config__=config, __validators__=validators or {}, **known)


def several(kind: Any, most: int = 100_000, least: int = 0) -> Any:
    """Return the type of a list."""
    from pydantic import Field

    return Annotated[list[kind], Field(max_length=most, min_length=least)]


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    if is_slip(value):
        raise ValueError("a number that is not so near to 0")
    return value


def held(model: "type[BaseModel]", value: Any, file: str, row: int | None = None) -> dict[str, Any]:
    """Return a value as its model reads it; the first fault names file, key, what was found and what is expected."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DataError(_reason(first, value), file=file, row=row, column=_key(first["loc"])) from None


def table(path: Path_, columns: Mapping[str, Any], other: str = "") -> list[tuple[int, dict[str, Any]]]:
    """Read a small CSV file whose rows hold these columns, each of its type; a cell that says a number is one.

    A column that is not among them is left out; the only one stands for `other` where that is missing.
    """
    header, rows = read_table(path)
    strange = [name for name in header if name and name not in columns]
    renamed = {strange[0]: other} if other and other not in header and len(strange) == 1 else {}
    if renamed and _elsewise(strange[0], other):
        reason = f"is a column of another unit than {other}. Convert its values and name it {other}"
        raise DataError(reason, file=str(path), row=1, column=strange[0])
    filled(path, [renamed.get(name, name) for name in header], rows, columns)
    model = record("Row", strange="ignore", **{name: (kind, ...) for name, kind in columns.items()})
    found = [(line, {renamed.get(name, name): _cell(text) for name, text in row.items()}) for line, row in rows]
    for line, row in found:
        held(model, row, str(path), line)
    return found


def filled(path: Path_, header: Collection[str], rows: Collection[Any], needed: Collection[str]) -> None:
    """Refuse a table without a column that is needed, or without rows."""
    if missing := [name for name in needed if name not in header]:
        reason = f"has no column {missing[0]}; needed are {', '.join(needed)}{in_small(header, missing)}"
        raise DataError(reason, file=str(path), row=1)
    if not rows:
        raise DataError("has no rows below its header", file=str(path))


def _elsewise(name: str, wanted: str) -> bool:
    """Tell whether the name of a column carries another unit or currency than the one that is wanted.

    >>> _elsewise("eur_per_gpu_hour", "usd_per_gpu_hour"), _elsewise("price", "usd_per_gpu_hour")
    (True, False)
    """
    low = re.sub(r"\W+", "_", name.lower())
    unit, own = unit_of(low), unit_of(wanted)
    foreign = re.search(r"[€£¥₹]", name) or re.match(r"(eur|gbp|jpy|cny|chf|inr|cad|aud|sek|nok|dkk|krw)(_|$)", low)
    alike = ("", own, *(_SHARES if not own else own.split()[:1]))  # a share of nothing in particular, or plain USD
    return bool(foreign) or unit not in alike


def _cell(text: str) -> Any:
    try:
        return as_number(text)
    except ValueError:
        return text


def _key(place: tuple[Any, ...]) -> str | None:
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path[:120] or None


_PLAIN = {"a valid dictionary": "a table", "a valid list": "a list", "a valid string": "a text"}


def _reason(fault: Mapping[str, Any], value: Any) -> str:
    if fault["type"] == "missing":
        return "a value is required"
    if fault["type"] == "extra_forbidden":
        return "no such key is known here"
    if fault["type"] == "said":
        return str(fault["msg"])
    wanted = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    wanted = _PLAIN.get(wanted, wanted)
    return f"found {shown(fault.get('input', value))}, expected {wanted}"
