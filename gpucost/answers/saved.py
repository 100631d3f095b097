"""Saved answers: JSON read back as a typed answer, and the seal by which a change after saving is known.

SECURITY.md says what is promised of such a file. It is data: nothing in it is executed or evaluated, and one typed
decoder holds it against the types of its kind before anything else reads it. Whether its figures are true is not
judged here: a seal that does not match its content says that they were changed, by slip or by hand. The seal is no
signature, because whoever changes a file can seal it anew.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from gpucost.answers import KINDS, SCHEMA_VERSION, answer_type
from gpucost.answers.training import Estimate
from gpucost.errors import UsageError
from gpucost.gate import once, parsed, read_text, shown

_AGAIN = "Ask again and save the answer with --format json -o FILE"
_CHANGED = "was changed after it was saved"


class BrokenAnswerError(UsageError):
    """An answer of the right shape whose content cannot be worked with."""


def read_answer(path: str | Path, accept_changed: bool = False) -> dict[str, Any]:
    """Read a saved answer of any kind.

    One that no longer matches its seal is refused, or accepted with a first warning that says so. An answer without
    a seal, such as a payload that a program wrote, is read as it stands.
    """
    text = read_text(path, "limit_answer_file_bytes")
    content = parsed(path, "JSON", _decoded, text)
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise UsageError(f"{str(path)!r} is not a saved answer: it has no `kind`. Save one with --format json -o FILE.")
    seal = content.pop("seal", None)
    # the types before the seal: a file that no version wrote is told so, whatever its seal says
    payload: dict[str, Any] = checked(content, str(path))
    if seal is None or seal == seal_of(text):
        return payload
    if not accept_changed:
        raise UsageError(
            f"{str(path)!r} {_CHANGED}: its seal does not match its content; ask again and save the answer, or go on"
            " with --accept-changed (rerun, compare, report)."
        )
    warning = f"{shown(Path(path).name)[1:-1]} {_CHANGED}: its seal does not match its content."
    return {**payload, "warnings": [warning, *payload["warnings"]]}


def read_estimate(path: str | Path, accept_changed: bool = False) -> Estimate:
    """Read a saved estimate."""
    payload = read_answer(path, accept_changed)
    if payload["kind"] != "estimate":
        raise UsageError(
            f"{str(path)!r} holds an answer of kind {payload['kind']}, not an estimate saved with --format json."
        )
    return cast(Estimate, payload)


def with_change_warnings(answer: Mapping[str, Any], *saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer whose warnings begin with those that name a changed one among the saved answers behind it."""
    warnings = [warning for saved in saved for warning in change_warnings(saved)]
    return {**answer, "warnings": list(dict.fromkeys([*warnings, *answer["warnings"]]))}


def change_warnings(answer: Mapping[str, Any]) -> list[str]:
    """Return the warnings of an answer that name a changed saved one."""
    return [warning for warning in answer.get("warnings") or () if _CHANGED in warning]


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Make a sentence of what breaks while a saved answer is worked with: its content contradicts itself."""
    try:
        yield
    except Exception as error:  # whatever an answer that contradicts itself brings about
        if isinstance(error, OSError) or hasattr(error, "exit_code"):  # a sentence already, ours or the command line's
            raise
        raise BrokenAnswerError(
            f"{shown(name)} is inconsistent ({type(error).__name__}): it was changed, saved by another version,"
            f" or this is a fault of ours, which --debug shows. {_AGAIN}."
        ) from error


def checked(payload: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return an answer that has the types of its kind; keys that are new since it was saved are None where they may be.

    Keys that this version does not know are kept: they are of a later one.
    """
    kind = str(payload["kind"])
    if kind not in KINDS:
        raise UsageError(f"{path!r} holds a {kind!r}, which is not an answer. Kinds: {', '.join(KINDS)}.")
    version = payload.get("schema_version")
    if version != SCHEMA_VERSION:
        stated = "no schema version" if version is None else f"the schema version {shown(version)}"
        raise UsageError(f"{path!r} has {stated}; this version reads {SCHEMA_VERSION}. {_AGAIN}.")
    answer: dict[str, Any] = dict(payload)
    if misfit := _misfit(answer, answer_type(kind)):  # only then: completing walks the whole answer
        answer = _completed(answer, answer_type(kind))
        misfit = _misfit(answer, answer_type(kind))
    if misfit:
        raise UsageError(
            f"{path!r} is no {kind} as this version writes it ({misfit}): it was saved by another version or changed."
            f" {_AGAIN}."
        )
    # the decoder knows this key as a text; everything that reads an answer takes it for a day
    try:
        date.fromisoformat(answer["as_of"])
    except ValueError:
        raise UsageError(
            f"{path!r}: as_of is {shown(answer['as_of'])}, not a day such as 2026-06-15: the file was changed."
        ) from None
    if answer.get("parts"):
        answer["parts"] = [  # each an answer of its own; one that names no kind is refused as one of the kind None
            {**part, "payload": checked({"kind": None, **part["payload"]}, path)}
            if isinstance(part.get("payload"), Mapping)
            else part
            for part in answer["parts"]
        ]
    return answer


def _decoded(text: str) -> Any:
    import msgspec

    try:
        decoded = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=once)  # msgspec lets a key stand twice
    return decoded


def _misfit(payload: Mapping[str, Any], kind: Any) -> str:
    """Return the first place where a payload does not have the types of its kind, and how; nothing where it has."""
    import msgspec

    try:
        msgspec.convert(payload, kind)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        reason = reason.replace("Object missing required field", "lacks").replace("`", "")
        path = path.removeprefix(".").removesuffix("`")
        return f"{path}: {reason}" if path else reason
    return ""


def _completed(value: Any, hint: Any) -> Any:
    """Return a value with None for each key that its type lets be None and that it lacks, at any depth."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Annotated, NotRequired):
        return _completed(value, inner[0])
    if origin in (Union, UnionType):
        # of `X | None` the arm X says what may be missing; of several arms none does, and the value stays
        typed = [arm for arm in inner if arm is not NoneType]
        return _completed(value, typed[0]) if len(typed) == 1 else value
    if isinstance(value, list):
        return [_completed(item, inner[0]) for item in value] if origin is list else value
    if not isinstance(value, dict):
        return value
    if is_typeddict(hint):
        # a key that must be there and must not be None is not made up: `_misfit` names it
        hints = get_type_hints(hint, include_extras=True)
        missing = {
            name: None
            for name in vars(hint)["__required_keys__"] - value.keys()
            if hints[name] is Any or NoneType in get_args(hints[name])
        }
        return {**{name: _completed(item, hints.get(name)) for name, item in value.items()}, **missing}
    return {name: _completed(item, inner[1]) for name, item in value.items()} if len(inner) == 2 else value


def sealed(text: str) -> str:
    """Return the JSON of an answer with its seal as the last key.

    >>> sealed('{"kind": "fit", "gpus": 8}') == sealed('{"kind": "fit", "gpus": 8.0}').replace("8.0", "8")
    True
    """
    # put in as text: to decode and encode again would write numbers otherwise than the program that made them
    return f'{text.rstrip().removesuffix("}").rstrip()},\n  "seal": "{seal_of(text)}"\n}}'


def seal_of(text: str) -> str:
    """Return the seal of an answer as JSON: a hash of its content, whatever the order of its keys and its spaces.

    >>> seal_of('{"kind": "fit", "fits": true}') == seal_of(sealed('{"fits":true, "kind":"fit"}'))
    True
    """
    content = json.loads(text, parse_int=_digits, parse_float=_digits)
    content.pop("seal", None)
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _digits(number: str) -> str:
    """Write a number as it is hashed: other programs write 1 for 1.0, and more digits."""
    return f"#{float(number):.12g}"
