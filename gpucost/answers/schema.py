"""The JSON schema of a typed answer, from the types that a saved one is decoded by."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from gpucost.answers import KINDS, answer_type
from gpucost.units import unit_of

Schema = dict[str, Any]
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def answer_schema(kind: str, *, closed: bool = False) -> Schema:
    """Return the JSON schema of one kind of answer; a closed one refuses keys beside those of the type.

    >>> answer_schema("scenario")["properties"]["parts"]["items"]["required"]
    ['name', 'part', 'payload']
    """
    schema = _object(answer_type(kind), None, closed)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"gpucost {kind}", **schema}


def _object(kind: type, more: Any, closed: bool) -> Schema:
    """Return the schema of a typed dictionary; `more` is the type of what it may hold beside its keys."""
    hints = get_type_hints(kind, include_extras=True)
    properties = {}
    for name, hint in hints.items():
        unit = unit_of(name)
        # whether a key must be there stands in `required`, not in its type
        bare = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        properties[name] = {**_schema(bare, closed), **({"description": unit} if unit else {})}
    required = [name for name in hints if name in vars(kind)["__required_keys__"]]
    others_allowed = _schema(more, closed) if more is not None else not closed
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": others_allowed}


def _schema(hint: Any, closed: bool) -> Schema:
    if is_typeddict(hint):
        return _object(hint, None, closed)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:  # a row that holds further keys, each of that type
        return _object(inner[0], inner[1], closed)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(arm, closed) for arm in inner]}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(inner[0], closed)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(inner[1], closed)}
    return {"type": _NAMES[hint]} if hint in _NAMES else {}  # of Any nothing is said


__all__ = ["KINDS", "answer_schema"]
