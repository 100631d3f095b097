"""Frozen records: what a frozen dataclass does, without the code that each one has compiled at every start."""

from collections.abc import Sequence
from dataclasses import _FIELD, MISSING, Field, field  # type: ignore[attr-defined]
from typing import Any, ClassVar, Self, dataclass_transform


def _described(name: str, kind: Any, default: Any) -> Field[Any]:
    """Return a field as the functions of `dataclasses` expect it."""
    made: Field[Any] = default if isinstance(default, Field) else field(default=default)
    made.name, made.type = name, kind
    made._field_type = _FIELD  # type: ignore[attr-defined]
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """A record whose fields are set once, by place or by name; `dataclasses.replace`, `fields` and `asdict` know it.

    >>> class Point(Frozen):
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(x=1.0, y=0.0), {Point(2.0)} == {Point(2.0)}
    (Point(x=1.0, y=0.0), True, True)
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = {}
    _names: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, eq: bool = True, kw_only: bool = False) -> None:
        known = dict(cls.__dataclass_fields__)
        for name, kind in cls.__annotations__.items():
            known[name] = _described(name, kind, cls.__dict__.get(name, MISSING))
            if isinstance(cls.__dict__.get(name), Field):
                delattr(cls, name)
        cls.__dataclass_fields__, cls._names = known, tuple(known)
        cls._defaults = {name: one.default for name, one in known.items() if one.default is not MISSING}
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        placed = dict(zip(self._names, values, strict=False))
        if len(placed) < len(self._names):
            if placed.keys() & named.keys():
                raise TypeError(f"{type(self).__name__} got {min(placed.keys() & named.keys())!r} twice")
            placed = {**self._defaults, **placed, **named}
            if placed.keys() != self.__dataclass_fields__.keys():
                self._complete(placed)
        elif named or len(values) > len(placed):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._names)} and no more")
        self.__dict__.update(placed)

    @classmethod
    def of_columns(cls, columns: Sequence[Sequence[Any]]) -> list[Self]:
        """Make many records at once, from one column for each field.

        >>> class Point(Frozen):
        ...     x: float
        ...     y: float
        >>> Point.of_columns([[1.0, 2.0], [3.0, 4.0]])
        [Point(x=1.0, y=3.0), Point(x=2.0, y=4.0)]
        """
        if len(columns) != len(cls._names):
            raise TypeError(f"{cls.__name__} has {len(cls._names)} fields, not {len(columns)}")
        made = []
        for values in zip(*columns, strict=True):
            one = cls.__new__(cls)
            one.__dict__.update(zip(cls._names, values, strict=True))
            made.append(one)
        return made

    def _complete(self, filled: dict[str, Any]) -> None:
        """Add what factories make for fields that are not filled; refuse an unknown field, and one left empty."""
        known = self.__dataclass_fields__
        for name in filled.keys() - known.keys():
            raise TypeError(f"{type(self).__name__} has no field {name!r}")
        for name in known.keys() - filled.keys():
            if (make := known[name].default_factory) is MISSING:
                raise TypeError(f"{type(self).__name__} lacks {name!r}")
            filled[name] = make()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: {type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(map(self.__dict__.__getitem__, self._names)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self._names)})"
