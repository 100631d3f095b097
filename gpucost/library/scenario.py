"""Scenario files: the workloads, supply and plans of a report, as TOML with comments."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.common import as_json
from gpucost.arguments import Argument, Question, flag_of, giving_way, known, read
from gpucost.arguments import kinds as k
from gpucost.arguments import vocabulary as v
from gpucost.arguments.files import files_beside, kinds_of
from gpucost.arguments.signature import argument_of
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import kinds_of_every_question
from gpucost.errors import UsageError, nearest
from gpucost.gate import read_toml, repeated
from gpucost.units import as_toml

NAME = Argument("name", k.named(), "What the report calls this part.", required=True)


class _PartKind(Struct, frozen=True):
    """A kind of part that a file may have."""

    question: str
    title: str
    example: str  # an example's name
    needed: tuple[str, ...] = ()  # what it must say though the question can do without
    shown: tuple[str, ...] = ()  # what an example says


# In the order in which a report shows them: a comparison or an invoice may name any part before it.
KINDS = {
    "training": _PartKind(
        "estimate",
        "Training runs: what they cost, on every offer.",
        "Pretrain 8B",
        shown=("model", "tokens", "gpu", "option", "deadline"),
    ),
    "serving": _PartKind(
        "inference",
        "Serving: cost per million tokens, and self-host against API.",
        "Chat assistant",
        shown=("model", "prompt_tokens", "output_tokens", "requests_per_s", "gpu"),
    ),
    "ownership": _PartKind(
        "tco",
        "Rent or buy: cash flows, NPV and break-even.",
        "64 H100",
        needed=("gpu", "gpus"),
        shown=("gpu", "gpus", "utilisation", "years", "wacc"),
    ),
    "mix": _PartKind("mix", "The cheapest mix of owned, reserved and rented capacity for a demand curve.", "Capacity"),
    "comparison": _PartKind(
        "compare",
        "Why two parts differ, by their names or files; or models on accelerators side by side.",
        "Why",
    ),
    "commitment": _PartKind("commit", "How much to commit for a history of use; ladder and expiry.", "Commitments"),
    "invoice": _PartKind("reconcile", "An invoice against a part of this file, a saved answer or a plan.", "November"),
}
ASKS = {kind: part.question for kind, part in KINDS.items()}
# What stands above all parts, and what holds for the offers of each.
TOP = (
    Argument("name", k.named(), "Title of the report.", example="Plan for the next year"),
    Argument("description", k.named(), "What the reader should know first.", example="Budget for the board."),
    Argument("as_of", k.DATE, "Day whose prices count, as a text or a date.", usual="today", example="2026-11-20"),
)
SUPPLY = (
    argument_of("gpu", v.Gpu),
    argument_of("provider", v.Provider),
    argument_of("region", v.Region),
    argument_of("option", v.Option),
    argument_of("max_age", v.MaxAge),
    argument_of("strict_prices", v.StrictPrices, False),
)


@cache
def parts() -> dict[str, tuple[Argument, ...]]:
    """Return what each kind of part takes: a name, and the arguments of the question that it asks."""
    return {
        kind: (NAME, *(item for item in QUESTIONS[question].arguments if not item.library_only))
        for kind, question in ASKS.items()
    }


class ScenarioQuestion(Struct, frozen=True):
    """One question of a scenario: its kind, its name, and the arguments of the function that answers it."""

    kind: str
    name: str
    arguments: Mapping[str, Any]

    def naming(self, parts: Mapping[str, Any], stated: Mapping[str, Any]) -> "ScenarioQuestion":
        """Return this part with what stands for each part that it names; a comparison and an invoice may name some."""
        if self.kind not in ("comparison", "invoice"):
            return self
        stated_names = {key: stated.get(key) for key in ("first", "second", "estimate")}
        arguments = {key: parts[name] for key, name in stated_names.items() if isinstance(name, str) and name in parts}
        return replace(self, arguments={**self.arguments, **arguments})


class Scenario(Struct, frozen=True):
    """A scenario that was read and checked."""

    name: str
    description: str
    parts: tuple[ScenarioQuestion, ...]
    request: Mapping[str, Any]  # the file's content, for the record


def read_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file; supply filters apply to every part that does not set its own."""
    file = Path(path)
    if not file.exists():
        raise UsageError(f"{file} does not exist. `gpucost init {file}` writes an example.")
    content = read_toml(file)
    return make_scenario(content, str(file), file.parent)


def make_scenario(content: Mapping[str, Any], place: str = "scenario", folder: Path | None = None) -> Scenario:
    """Check a scenario's content, every value of it; files that it names are looked for in `folder`."""
    plain = as_json(content)  # dates of TOML become texts, as a saved request has them
    try:
        parts_read = _parts(plain, folder)
    except UsageError as error:  # it says the key; here it learns of which file
        raise UsageError(f"{place}: {error}") from None
    name, text = str(plain.get("name") or "Scenario"), str(plain.get("description") or "")
    return Scenario(name, text, tuple(parts_read), plain)


def _parts(plain: Mapping[str, Any], folder: Path | None) -> list[ScenarioQuestion]:
    # every key above the parts, and every value there
    _refuse_unknown("", plain, [*(item.name for item in TOP), *ASKS, "supply"])
    _values("", {name: plain[name] for name in plain if name not in (*ASKS, "supply")}, TOP)
    supply = plain.get("supply", {})
    if not isinstance(supply, Mapping):
        raise UsageError("supply: write [supply], and what holds for every part below it.")
    _refuse_unknown("supply", supply, [item.name for item in SUPPLY])
    _values("supply", supply, SUPPLY)
    dated = {"as_of": plain["as_of"]} if plain.get("as_of") else {}
    parts_read: list[ScenarioQuestion] = []
    for kind, arguments in parts().items():
        entries = plain.get(kind, [])
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise UsageError(f"{kind}: write [[{kind}]], once for each part.")
        question, argument_names = QUESTIONS[ASKS[kind]], [item.name for item in arguments]
        for number, entry in enumerate(entries, 1):
            place = f"{kind}[{number}]"
            _refuse_unknown(place, entry, argument_names)
            # the filters of the supply hold for a part whose question takes them; two answers that are compared hold
            # their own prices
            takes_supply = "first" not in entry
            shared = {**dated, **{key: supply[key] for key in supply if takes_supply and key in argument_names}}
            stated = known(question, {key: value for key, value in entry.items() if key != "name"})
            for item in arguments:
                is_needed = item.required or item.name in KINDS[kind].needed
                if is_needed and {**shared, **stated, **entry}.get(item.name) is None:
                    raise UsageError(f"{place}.{item.name}: this key is required. {item.help}")
            name = _values(place, {"name": entry["name"]}, arguments)["name"]
            part = ScenarioQuestion(kind, name, _checked(question, place, shared, stated, folder))
            # names of earlier parts stand for them, where files would be meant otherwise
            parts_read.append(part.naming({earlier.name: earlier.name for earlier in parts_read}, entry))
    if not parts_read:
        raise UsageError(f"nothing to answer. Add a part: {', '.join(f'[[{kind}]]' for kind in ASKS)}.")
    if twice := repeated(part.name for part in parts_read):
        raise UsageError(f"two parts are called {twice[0]!r}. Give each its own name.")
    return parts_read


def _checked(
    question: Question, place: str, shared: Mapping[str, Any], stated: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    """Return the arguments of a part, each value read as its question reads it and refused in the same sentence."""

    def checked(arguments: dict[str, Any]) -> dict[str, Any]:
        read(question, **arguments)
        return arguments  # as they were written: the question reads them again

    try:
        # what all parts share gives way where a part says otherwise
        arguments = giving_way(checked, {**shared, **stated}, lambda name: name not in stated)
    except UsageError as error:
        # a sentence about an option begins with it; here it begins with the key of the file
        key = next((f"{name}: " for name in stated if f"{error}".startswith(f"{flag_of(name)}:")), "")
        raise UsageError(f"{place}.{key}{error}") from None
    if folder is None:
        return arguments
    return files_beside(arguments, folder, kinds_of(question.arguments), kinds_of_every_question())


def _refuse_unknown(place: str, entry: Mapping[str, Any], names: Sequence[str]) -> None:
    for key in entry:
        if key not in names:
            near = nearest(key, names, 2, 0.5)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Keys: {', '.join(names)}."
            raise UsageError(f"{f'{place}.' if place else ''}{key}: no such key. {hint}")


def _values(place: str, entry: Mapping[str, Any], arguments: Sequence[Argument]) -> dict[str, Any]:
    kinds = {item.name: item.kind for item in arguments}
    return {key: kinds[key].read(value, f"{f'{place}.' if place else ''}{key}") for key, value in entry.items()}


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario file, for editors."""
    tables = {
        kind: {"type": "array", "description": KINDS[kind].title, "items": _object(arguments, KINDS[kind].needed)}
        for kind, arguments in parts().items()
    }
    supply = {**_object(SUPPLY), "description": "Filters for every part that does not set its own."}
    top = _object(TOP)
    top["properties"] |= {"supply": supply, **tables}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Scenario", **top}


def _object(arguments: Sequence[Argument], needed: Sequence[str] = ()) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for item in arguments:
        types = list(item.kind.json)
        schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types, "description": item.help}
        if item.kind.choices and not item.kind.open:
            schema["enum"] = list(item.kind.choices)
        if item.default is not None:
            schema["default"] = item.default
        if item.example is not None:
            schema["examples"] = [item.example]
        properties[item.name] = schema
    required = [item.name for item in arguments if item.required or item.name in needed]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def example() -> str:
    """Write a commented scenario: the usual keys are set, every other key stands in a comment."""
    lines = [
        "# A gpucost scenario. Build a report from it:",
        "#   gpucost report scenario.toml -o report.xlsx      (or .html, .md, .json)",
        "# `gpucost data schema scenario` prints the JSON schema that editors use.",
        "",
    ]
    lines += [line for item in TOP for line in _key(item, item.name == "name")]
    lines += ["", "# Filters for every part that does not set its own.", "[supply]"]
    lines += [line for item in SUPPLY for line in _key(item, False)]
    for kind, arguments in parts().items():
        keys = KINDS[kind].shown
        # a part without keys that an example says stands whole in comments
        lines += ["", f"# {KINDS[kind].title} Repeat the block for more.", f"{'' if keys else '# '}[[{kind}]]"]
        arguments = (arguments[0]._replace(example=KINDS[kind].example), *arguments[1:])
        lines += [line for item in arguments for line in _key(item, bool(keys) and item.name in ("name", *keys))]
    return "\n".join(lines) + "\n"


def _key(item: Argument, is_set: bool) -> list[str]:
    value = item.example if item.example is not None else item.default
    if value is None and (item.kind is k.FLAG or item.kind.choices):  # then any value shows the form
        value = item.kind.choices[0] if item.kind.choices else True
    meaning = item.help + (f" One of {', '.join(item.kind.choices)}." if item.kind.choices else "")
    text = f"{item.name} = {as_toml('' if value is None else value)}"
    return [f"{'' if is_set else '# '}{text:<40}  # {meaning}"]
