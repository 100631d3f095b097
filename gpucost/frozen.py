"""Frozen records: what a frozen dataclass does, without the code that each one has compiled at every start."""

from dataclasses import _FIELD, MISSING, Field, field  # type: ignore[attr-defined]
from typing import Any, ClassVar, dataclass_transform


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

    def __init_subclass__(cls, eq: bool = True, kw_only: bool = False) -> None:
        known = dict(cls.__dataclass_fields__)
        for name, kind in cls.__annotations__.items():
            known[name] = _described(name, kind, cls.__dict__.get(name, MISSING))
            if isinstance(cls.__dict__.get(name), Field):
                delattr(cls, name)
        cls.__dataclass_fields__, cls._names = known, tuple(known)
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        if not values and named.keys() == self.__dataclass_fields__.keys():
            self.__dict__.update(named)
            return
        if named or len(values) != len(self._names):
            values = self._complete(values, named)
        self.__dict__.update(zip(self._names, values, strict=True))

    def _complete(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return a value for every field: those given by place and by name, and defaults."""
        known = self.__dataclass_fields__
        if unknown := [name for name in named if name not in known or name in self._names[: len(values)]]:
            raise TypeError(f"{type(self).__name__} takes no {unknown[0]!r}, or it was given twice")
        for name in self._names[len(values) :]:
            if name not in named:
                made, make = known[name].default, known[name].default_factory
                if made is MISSING and make is MISSING:
                    raise TypeError(f"{type(self).__name__} lacks {name!r}")
                named[name] = made if make is MISSING else make()
        return (*values, *(named[name] for name in self._names[len(values) :]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: {type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(map(self.__dict__.__getitem__, self._names)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self._names)})"
