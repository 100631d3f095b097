"""The JSON schema of a typed answer, and where a value does not keep to one."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from gpucost.answers import KINDS, answer_type
from gpucost.frozen import Frozen
from gpucost.units import unit_of

Schema = dict[str, Any]
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_CLASSES: dict[str, tuple[type, ...]] = {name: (kind,) for kind, name in _NAMES.items()} | {"number": (int, float)}


def answer_schema(kind: str, *, closed: bool = False) -> Schema:
    """Return the JSON schema of one kind of answer; a closed one refuses keys beside those of the type.

    >>> answer_schema("scenario")["properties"]["parts"]["items"]["required"]
    ['name', 'part', 'payload']
    """
    schema = _object(answer_type(kind), None, closed)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"gpucost {kind}", **schema}


def misfits(value: Any, schema: Schema, place: str = "") -> Iterator[str]:
    """Yield where a value does not keep to a schema, in words; of alternatives the first that fits is enough.

    >>> list(misfits({"a": "1"}, {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a", "b"]}))
    ['b is missing', 'a is no number']
    """
    if "anyOf" in schema:
        if all(any(misfits(value, one)) for one in schema["anyOf"]):
            yield f"{place} is none of what it may be"
    elif "enum" in schema:
        if value not in schema["enum"]:
            yield f"{place} is {value!r}, not one of {', '.join(map(repr, schema['enum']))}"
    elif "type" in schema:
        yield from _misfits_of_type(value, schema, place)


def _misfits_of_type(value: Any, schema: Schema, place: str) -> Iterator[str]:
    kind = schema["type"]
    if kind == "object" and isinstance(value, Mapping):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        yield from (f"{_under(place, key)} is missing" for key in schema.get("required", ()) if key not in value)
        for key, item in value.items():
            inner = known.get(key, more)
            if inner is False:
                yield f"{_under(place, key)} is not known"
            elif isinstance(inner, dict):
                yield from misfits(item, inner, _under(place, key))
    elif kind == "array" and isinstance(value, list):
        for number, item in enumerate(value):
            yield from misfits(item, schema.get("items", {}), f"{place}[{number}]")
    elif not isinstance(value, _CLASSES.get(kind, ())) or isinstance(value, bool) != (kind == "boolean"):
        yield f"{place} is no {kind}"


def _under(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _object(kind: type, more: Any, closed: bool) -> Schema:
    """Return the schema of a typed dictionary; `more` is the type of what it may hold beside its keys."""
    hints = get_type_hints(kind, include_extras=True)
    properties = {}
    for name, hint in hints.items():
        unit = unit_of(name)
        bare = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        properties[name] = {**_schema(bare, closed), **({"description": unit} if unit else {})}
    required = [name for name in hints if name in vars(kind)["__required_keys__"]]
    beside = _schema(more, closed) if more is not None else not closed
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": beside}


def record_schema(kind: type) -> Schema:
    """Return the JSON schema of a record as `dataclasses.asdict` and JSON leave it."""
    properties = {name: _schema(hint, True) for name, hint in get_type_hints(kind).items() if name[0] != "_"}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _schema(hint: Any, closed: bool) -> Schema:
    if is_typeddict(hint):
        return _object(hint, None, closed)
    if isinstance(hint, type) and issubclass(hint, Frozen):
        return record_schema(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _object(inner[0], inner[1], closed)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one, closed) for one in inner]}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(inner[0], closed)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(inner[1], closed)}
    return {"type": _NAMES[hint]} if hint in _NAMES else {}


__all__ = ["KINDS", "answer_schema", "misfits", "record_schema"]
