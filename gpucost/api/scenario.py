"""Scenario files: the workloads, supply and plans of a report, as TOML with comments.

One table of fields per part drives validation, the JSON schema, the commented example and the docs. Each part takes
what the command of the same question takes, with underscores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gpucost.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Kind = Literal["text", "quantity", "integer", "number", "flag", "table", "texts"]
FORMAT_VERSION = 1


class Field(NamedTuple):
    """One key of a part: what it takes, what it means, and an example; required keys come without a default."""

    name: str
    kind: Kind
    description: str
    example: Any = None
    required: bool = False


def _name(example: str) -> Field:
    return Field("name", "text", "What the report calls this part.", example, True)


_FILTERS = (
    Field("gpu", "text", "GPU or family, such as h100.", "h100"),
    Field("provider", "text", "Provider or comma-separated providers.", "lambda"),
    Field("region", "text", "Region.", "us-east"),
    Field("option", "text", "Purchase option, such as on_demand, spot, reserved.", "on_demand"),
    Field("max_age", "quantity", "Leave out prices older than this.", "180d"),
    Field("strict_prices", "flag", "Leave out prices that are old for their kind.", False),
)
TRAINING = (
    _name("Pretrain 8B"),
    Field("model", "text", "Preset, size such as 8b, or path to a config.json.", "8b", True),
    Field("tokens", "quantity", "Tokens of one epoch.", "100b", True),
    Field("epochs", "number", "Passes over the tokens.", 1),
    Field("gpus", "integer", "Take exactly this many accelerators.", 64),
    Field("deadline", "quantity", "Longest run, or none.", "30d"),
    Field("sequence", "quantity", "Tokens per sequence.", 8192),
    Field("global_batch", "integer", "Sequences per step.", 512),
    Field("precision", "text", "bf16, fp16, fp8 …", "bf16"),
    Field("method", "text", "full, lora or qlora.", "full"),
    Field("lora_rank", "integer", "Rank of the adapters.", 16),
    Field("evaluation", "quantity", "Hours beside the steps (evaluations, stalls), as a share of them.", "20%"),
    Field("experiments", "quantity", "Trial runs before the run, as a share of it.", "0%"),
    Field("optimize", "text", "What to rank by: cost, time, pareto, carbon.", "cost"),
    Field("commitment", "text", "full: a run pays for its whole term; used: for its hours.", "full"),
    Field("pool", "text", "TOML file with your own accelerators; they enter as offers.", "pool.toml"),
    Field("top", "integer", "Options to show; 0 shows all.", 20),
    *_FILTERS,
)
SERVING = (
    _name("Chat assistant"),
    Field("model", "text", "Preset, size such as 70b, or path to a config.json.", "70b", True),
    Field("prompt", "quantity", "Input tokens per request, a number or a named distribution.", 1000),
    Field("output", "quantity", "Output tokens per request.", 250),
    Field("requests_per_s", "number", "Mean load.", 5),
    Field("tokens_per_month", "quantity", "Mean load, in place of requests per second.", "5b"),
    Field("ttft", "quantity", "Target of the time to the first token.", "2s"),
    Field("tpot", "quantity", "Target of the time per output token.", "50ms"),
    Field("precision", "text", "bf16, fp8, int4 …", "fp8"),
    Field("utilisation", "quantity", "Mean share of the capacity that is used.", "60%"),
    Field("replicas", "integer", "Take exactly this many replicas.", 2),
    Field("top", "integer", "Options to show; 0 shows all.", 20),
    *_FILTERS,
)
OWNERSHIP = (
    _name("64 H100: rent or buy"),
    Field("gpu", "text", "GPU, named exactly.", "h100-sxm", True),
    Field("gpus", "integer", "GPUs in the cluster.", 64, True),
    Field("utilisation", "quantity", "Share of the owned hours that jobs hold.", "70%"),
    Field("years", "number", "Length of the comparison.", 4),
    Field("rent", "quantity", "Rental price per GPU-hour; else the market's.", 2.35),
    Field("provider", "text", "Provider whose price is compared.", "lambda"),
    Field("wacc", "quantity", "Cost of capital, effective, a year.", "10%"),
    Field("plan", "table", "Any input by name; `gpucost tco --explain` lists them.", {"electricity_usd_per_kwh": 0.08}),
)
MIX = (
    _name("Capacity 2027 to 2029"),
    Field("demand", "text", "CSV with month and gpus, beside the scenario.", "demand.csv", True),
    Field("gpu", "text", "GPU, named exactly.", "h100-sxm", True),
    Field("plan", "table", "Any input by name.", {}),
)
PARTS: dict[str, tuple[Field, ...]] = {"training": TRAINING, "serving": SERVING, "ownership": OWNERSHIP, "mix": MIX}
TITLES = {
    "training": "Training runs: what they cost, on every offer.",
    "serving": "Serving: cost per million tokens, and self-host against API.",
    "ownership": "Rent or buy: cash flows, NPV and break-even.",
    "mix": "The cheapest mix of owned, reserved and rented capacity for a demand curve.",
}
TOP = (
    Field("name", "text", "Title of the report.", "Plan for the next year"),
    Field("description", "text", "What the reader should know first.", "Budget for the board."),
    Field("as_of", "text", "Day whose prices count, as a text or a date; else today's.", "2026-11-20"),
)
SUPPLY = _FILTERS


@dataclass(frozen=True, slots=True)
class Part:
    """One question of a scenario: its kind, its name, and the arguments of the function that answers it."""

    kind: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that was read and checked."""

    name: str
    description: str
    parts: tuple[Part, ...]
    request: Mapping[str, Any]  # the file's content, for the record


def read_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file; supply filters apply to every part that does not set its own."""
    import tomllib

    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{file} does not exist. `gpucost init {file}` writes an example.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}.") from None
    return make_scenario(content, str(file), file.parent)


def make_scenario(content: Mapping[str, Any], where: str = "scenario", folder: Path | None = None) -> Scenario:
    """Check a scenario's content; files that it names are looked for in `folder`."""
    from pydantic import ValidationError

    plain = _plain(content)
    try:
        model().model_validate(plain)
    except ValidationError as error:
        raise UsageError(f"{where}: {_sentence(error)}") from None
    supply = dict(plain.get("supply", {}))
    as_of = {"as_of": plain["as_of"]} if plain.get("as_of") else {}
    parts = []
    for kind, fields in PARTS.items():
        known = {field.name for field in fields}
        for entry in plain.get(kind, ()):
            arguments = {**as_of, **{key: value for key, value in supply.items() if key in known}, **entry}
            arguments.pop("name")
            parts.append(Part(kind, entry["name"], _with_paths(arguments, folder)))
    if not parts:
        raise UsageError(f"{where}: nothing to answer. Add a part: {', '.join(f'[[{kind}]]' for kind in PARTS)}.")
    twice = {part.name for part in parts if [other.name for other in parts].count(part.name) > 1}
    if twice:
        raise UsageError(f"{where}: two parts are called {sorted(twice)[0]!r}. Give each its own name.")
    return Scenario(str(plain.get("name") or "Scenario"), str(plain.get("description") or ""), tuple(parts), plain)


def _plain(value: Any) -> Any:
    """Turn TOML dates into text, so that a file and a mapping read alike."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _with_paths(arguments: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """Let file names be relative to the scenario."""
    for key in ("model", "pool", "demand"):
        value = arguments.get(key)
        if folder is not None and isinstance(value, str) and value.endswith((".json", ".toml", ".csv")):
            arguments[key] = str(folder / value)
    return arguments


@cache
def model() -> "type[BaseModel]":
    """Build the pydantic model of a scenario file."""
    from pydantic import ConfigDict, create_model
    from pydantic import Field as pydantic_field

    config = ConfigDict(extra="forbid", strict=True)
    parts: dict[str, Any] = {}
    for kind, fields in {**PARTS, "supply": SUPPLY}.items():
        part = create_model(
            f"{kind.capitalize()}",
            __config__=config,
            __doc__=TITLES.get(kind, "Filters for every part."),
            **_fields(fields),
        )
        if kind == "supply":
            parts[kind] = (
                part | None,
                pydantic_field(None, description="Filters for every part that does not set its own."),
            )
        else:
            parts[kind] = (list[part], pydantic_field(default_factory=list, description=TITLES[kind]))  # type: ignore[valid-type]
    made: type[BaseModel] = create_model("Scenario", __config__=config, **_fields(TOP), **parts)
    return made


def _fields(fields: Sequence[Field]) -> dict[str, Any]:
    from pydantic import Field as pydantic_field

    kinds: dict[str, Any] = {
        "text": str,
        "quantity": str | int | float,
        "integer": int,
        "number": int | float,
        "flag": bool,
        "table": dict[str, Any],
        "texts": list[str],
    }
    made = {}
    for field in fields:
        kind = kinds[field.kind] if field.required else kinds[field.kind] | None
        default = ... if field.required else None
        made[field.name] = (kind, pydantic_field(default, description=field.description, examples=[field.example]))
    return made


def _sentence(error: "ValidationError") -> str:
    """Say what the first error is, where, and what would do."""
    import difflib

    first = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")  # a misspelt key explains more
    place = [str(part) if isinstance(part, str) else f"[{part + 1}]" for part in first["loc"]]
    where = ".".join(place).replace(".[", "[")
    more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        kind = place[0] if len(place) > 1 else ""
        known = [field.name for field in ({**PARTS, "supply": SUPPLY}.get(kind) or TOP)]
        known += [] if kind else [*PARTS, "supply"]
        near = difflib.get_close_matches(place[-1], known, n=2, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Keys: {', '.join(known)}."
        return f"{where}: no such key. {hint}{more}"
    if first["type"] == "missing":
        return f"{where}: this key is required.{more}"
    return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}, found {first['input']!r}.{more}"


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model().model_json_schema()}


_SHOWN = {
    "training": {"model", "tokens", "deadline", "gpu", "option"},
    "serving": {"model", "prompt", "output", "requests_per_s", "gpu"},
    "ownership": {"gpu", "gpus", "utilisation", "years", "wacc"},
}


def example() -> str:
    """Write a commented scenario: the usual keys are set, every other key stands in a comment."""
    lines = [
        "# A gpucost scenario. Build a report from it:",
        "#   gpucost report scenario.toml -o report.xlsx      (or .html, .md, .json)",
        "# `gpucost schema scenario` prints the JSON schema that editors use.",
        "",
    ]
    lines += [line for field in TOP for line in _key(field, field.name == "name")]
    lines += ["", "# Filters for every part that does not set its own.", "[supply]"]
    lines += [line for field in SUPPLY for line in _key(field, False)]
    for kind, fields in PARTS.items():
        shown = _SHOWN.get(kind)
        lines += ["", f"# {TITLES[kind]} Repeat the block for more.", f"{'' if shown else '# '}[[{kind}]]"]
        lines += [
            line for field in fields for line in _key(field, bool(shown) and field.name in {"name", *(shown or ())})
        ]
    return "\n".join(lines) + "\n"


def _key(field: Field, shown: bool) -> list[str]:
    text = f"{field.name} = {_toml(field.example)}"
    return [f"{'' if shown else '# '}{text:<40}  # {field.description}"]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }" if value else "{}"
    return f'"{value}"' if isinstance(value, str) else str(value)
