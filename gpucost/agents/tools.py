"""The tools: what each is for, which arguments it takes, and how it answers; no protocol in here."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.agents import compact
from gpucost.arguments import Argument, read_list, read_stated
from gpucost.arguments.files import for_stranger, only_under
from gpucost.arguments.kinds import MODEL
from gpucost.ask import QUESTIONS
from gpucost.errors import UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Arguments = Mapping[str, Any]
Schema = dict[str, Any]
_ROWS, _SIGNS = 20, 8_000  # of a list, about 2,000 tokens, unless `rows` asks for more
_MOST_ROWS, _MOST_SIGNS, _MOST_CASES = 500, 100_000, 500

_LISTED = {  # the arguments that a schema names; a question takes all of its others too
    "estimate": "model tokens gpu gpus provider region option deadline budget method optimize mfu",
    "inference": "model gpu provider region prompt_tokens output_tokens tokens_per_month requests_per_s ttft tpot"
    " precision",
    "fit": "model gpu gpus method sequence precision serving",
    "tco": "gpu gpus utilisation years rent provider model tokens_per_month",
    "audit": "model tokens gpu gpus days cost fits",
    "choose": "model purpose budget tokens gpu provider region option",
    "mix": "constant growth months gpu rent budget",
    "throughput": "model gpu gpus sequence global_batch precision method",
}
_FOR = {
    "estimate": "What a training run costs, on real offers: cheapest first, with days, range and age of price.",
    "inference": "What serving a model costs per million tokens on real offers, beside hosted APIs.",
    "fit": "Whether training or serving a model fits a GPU, and on how many.",
    "tco": "Own a cluster or rent the same hours: present values and break-even.",
    "audit": "Whether one claim is possible, and what would be true. For a text: read it, then one call a claim.",
    "choose": "Which GPU to rent or buy for a purpose and a budget.",
    "mix": "Cheapest mix of owned, reserved, on-demand and spot GPUs for a demand: `constant`, with `growth` a year.",
}
_FILTERS = ("gpu", "provider", "region", "option")
_BY = ("provider", "gpu", "region", "option")
_BESIDE = ("model", "gpu", "tokens", "gpus", "speed")  # of a comparison without two runs
_MORE_ROWS = {"type": "integer", "description": f"Rows to list, at most {_MOST_ROWS}; {_ROWS} unless said."}
_CHIP = (
    *("id", "vendor", "year", "memory_gib", "hbm_gb_per_s", "bf16_tflops", "fp8_tflops", "fp4_tflops"),
    *("scaleup_gb_per_s", "scaleup_gpus", "tdp_w"),
)
_MODEL = (
    *("id", "family", "parameters", "active_parameters", "layers", "hidden", "heads", "kv_heads"),
    *("experts_per_token", "max_sequence_tokens"),
)


class Tool(NamedTuple):
    """One tool: its description, the schemas of its arguments and its answer, and the function that answers."""

    description: str
    schema: Schema
    answer: Callable[[Arguments], Any]
    answers: Schema
    takes: tuple[Argument, ...] = ()  # what may name a file, beside the arguments of its question


@lru_cache(maxsize=1)
def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    asked = {name: Tool(text, _schema(name), _asker(name), compact.schema(name)) for name, text in _FOR.items()}
    return {
        **asked,
        "load": Tool(
            "How many machines serve a load of requests within latency targets, and what they cost a month.",
            _schema("inference", required=("model", "requests_per_s")),
            _asker("inference", required=("model", "requests_per_s")),
            compact.schema("inference"),
        ),
        "recipe": Tool(
            "How to run a training job on GPUs: the fastest layouts, micro-batch, recompute, speed and memory.",
            _schema("throughput"),
            _asker("throughput"),
            compact.schema("throughput"),
        ),
        "sweep": Tool(
            f"One question over a grid of arguments, at most {_MOST_CASES} cases: the best option of each.",
            {
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "enum": ["estimate", "inference", "tco"],
                        "description": "What is asked of every case.",
                    },
                    "arguments": {
                        "type": "object",
                        "description": "Arguments of the question; a list is an axis, and every combination a case.",
                        "examples": [{"model": ["8b", "70b"], "tokens": "100b", "gpu": ["h100", "b200"]}],
                    },
                    "rows": _MORE_ROWS,
                },
                "required": ["question", "arguments"],
                "additionalProperties": False,
            },
            _sweep,
            _listing("rows", "of"),
        ),
        "compare": Tool(
            "Two training runs: `first` and `second` are split by cause. Or `model` by `gpu`, side by side.",
            {
                "type": "object",
                "properties": {
                    **{
                        side: {"type": "object", "description": f"Arguments of estimate for the {side} run."}
                        for side in ("first", "second")
                    },
                    **_object([item for item in QUESTIONS["compare"].arguments if item.name in _BESIDE])["properties"],
                },
                "additionalProperties": False,
            },
            _compare,
            compact.schema("compare"),
        ),
        "prices": Tool(
            "GPU-hours that can be ordered, cheapest first, with the day each was seen.",
            _prices_schema(),
            _prices,
            _listing("prices", "of", "know", "as_of"),
        ),
        "price_index": Tool(
            "USD of three standard jobs (8B trained, 70B tuned, 70B served) at the end of each year since 2022.",
            _object([]),
            _price_index,
            _listing("rows", "of", "know"),
        ),
        "forward": Tool(
            "What a GPU-hour may cost in 12, 24 and 36 months: P10, P50 and P90 by kind of seller.",
            _object([item for item in QUESTIONS["estimate"].arguments if item.name in ("gpu", "option")]),
            _forward,
            _listing("rows", "of"),
        ),
        "gpus": Tool(
            "Accelerators with memory, dense peaks, links and power.",
            _named("GPU or family, such as h100; none: the newest."),
            _gpus,
            _listing("gpus", "of"),
        ),
        "models": Tool(
            "Model architectures with their parameter counts.",
            _named("Model or family, such as llama-3.1 or 8b; none: the newest."),
            _models,
            _listing("models", "of"),
            takes=(Argument("name", MODEL),),  # a path to config.json is a model, too
        ),
        "sql": Tool(
            "One read-only SELECT in DuckDB's SQL over the facts; begin with `show tables`.",
            {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "A SELECT, or `show tables`, or `describe TABLE`.",
                        "examples": ["select provider, min(usd_per_gpu_hour) from offers group by all"],
                    },
                    "rows": _MORE_ROWS,
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            _sql,
            _listing("rows", "more"),
        ),
    }


def call(name: str, arguments: Arguments | None, folder: Path | None = None) -> Any:
    """Answer a call; what cannot be answered raises the sentence that a command would print.

    Files are read under one folder alone, and none without it.
    """
    tools_ = tools()
    if name not in tools_:
        raise UsageError(f"there is no tool {str(name)[:40]!r}. Tools: {', '.join(tools_)}.")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise UsageError(f"{name} takes an object of arguments, not {type(arguments).__name__}.")
    arguments = dict(arguments or {})
    with for_stranger(folder, arguments):
        return tools_[name].answer(_placed(name, arguments, folder))


_QUESTION_OF = {
    "forward": "estimate",
    "load": "inference",
    "recipe": "throughput",
    "prices": "estimate",
}  # of tools that are called otherwise


def _placed(tool: str, arguments: Arguments, folder: Path | None) -> Arguments:
    """Return arguments whose files lie in the folder: those of the tool, and those of the questions within them."""
    from gpucost.ask.dispatch import kinds_of_every_question

    def placed(question: Any, stated: Any) -> Any:
        if not isinstance(stated, Mapping):
            return stated
        known = isinstance(question, str) and question in QUESTIONS
        declared = QUESTIONS[question].arguments if known else ()
        return only_under(declared, stated, folder, kinds_of_every_question())

    if tool == "compare":
        sides = {side: placed("estimate", arguments[side]) for side in ("first", "second") if side in arguments}
        return {**placed("compare", {k: v for k, v in arguments.items() if k not in sides}), **sides}
    if tool == "sweep":
        axes = arguments.get("arguments")
        if isinstance(axes, Mapping):
            axes = {name: _split(value) for name, value in axes.items()}
        return {**arguments, "arguments": placed(arguments.get("question"), axes)}
    if takes := tools()[tool].takes:
        return only_under(takes, arguments, folder, {})
    return placed(_QUESTION_OF.get(tool, tool), arguments) if tool in _QUESTION_OF or tool in QUESTIONS else arguments


def _split(axis: Any) -> Any:
    """Return an axis as the list that a sweep reads in its text."""
    if not isinstance(axis, str) or "," not in axis:
        return axis.replace("|", ",") if isinstance(axis, str) else axis
    return [word.strip().replace("|", ",") for word in axis.split(",") if word.strip()]


# --- Schemas: every argument with its type, and what it means in a sentence.


def _schema(question: str, required: Sequence[str] = ()) -> Schema:
    arguments = {item.name: item for item in QUESTIONS[question].arguments}
    schema = _object([arguments[name] for name in _LISTED[question].split()], required)
    schema["properties"]["detail"] = {
        "type": "string",
        "description": "Part of the answer to get in full, as its `parts` names them.",
    }
    return schema


def _object(arguments: list[Argument], required: Sequence[str] = ()) -> Schema:
    """Return a short schema of arguments; others of the question are read as well."""
    return {
        "type": "object",
        "properties": {item.name: _property(item) for item in arguments},
        "required": [item.name for item in arguments if item.required or item.name in required],
    }


def _property(item: Argument) -> Schema:
    """Return the schema of an argument: its JSON types, what it means, and its choices or an example."""
    types = item.kind.json
    schema: Schema = {"type": types[0] if len(types) == 1 else list(types)}
    sentence = item.help.partition(": ")[0].rstrip(".") + "."
    schema["description"] = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), sentence)
    if 0 < len(item.kind.choices) <= 8 and not item.kind.open:
        schema["enum"] = list(item.kind.choices)
    elif item.example is not None:
        schema["examples"] = ["eu", item.example] if item.name == "region" else [item.example]
    return schema


def _named(text: str) -> Schema:
    name = {"type": "string", "description": text}
    return {"type": "object", "properties": {"name": name, "rows": _MORE_ROWS}, "required": []}


def _prices_schema() -> Schema:
    schema = _object([item for item in QUESTIONS["estimate"].arguments if item.name in (*_FILTERS, "as_of")])
    schema["properties"]["by"] = {
        "type": "string",
        "enum": list(_BY),
        "description": "A row for each of them, with its cheapest price by option.",
    }
    schema["properties"]["rows"] = _MORE_ROWS
    return schema


def _listing(rows: str, *others: str) -> Schema:
    """Return the schema of an answer that is a list of rows, with what stands beside it."""
    beside: dict[str, Schema] = {
        "of": {"type": "integer", "description": "Rows in all."},
        "more": {"type": "string"},
        "know": {"type": "array", "items": {"type": "string"}, "description": "What limits the answer."},
        "as_of": {"type": ["string", "null"], "description": "Day from which the facts are seen."},
    }
    listed: Schema = {"type": "array", "items": {"type": "object"}}
    return {
        "type": "object",
        "properties": {rows: listed, **{name: beside[name] for name in others}},
        "required": [rows],
    }


# --- Answers.


def _asker(question: str, required: Sequence[str] = ()) -> Callable[[Arguments], Any]:
    def ask(arguments: Arguments) -> Any:
        from gpucost.ask.dispatch import answered

        arguments = dict(arguments)
        for name in required:
            if arguments.get(name) is None:
                raise UsageError(f"{name} is missing.")
        detail = arguments.pop("detail", None)
        if question == "estimate":
            arguments["with_facts"] = False
        payload = answered(question, arguments, _catalog(arguments)).payload
        return compact.short(payload) if detail is None else compact.part(payload, str(detail))

    return ask


def _catalog(arguments: Arguments) -> "Catalog":
    """Return the catalog of the days asked for; that of today is kept."""
    from gpucost.ask.dispatch import DAYS

    return _opened(*read_list(DAYS, arguments).values())


def _opened(as_of: str | None, known_as_of: str | None) -> "Catalog":
    from gpucost.catalog.shared import shared_catalog

    return shared_catalog(as_of, known_as_of)


def _compare(arguments: Arguments) -> Any:
    from gpucost.ask.dispatch import answered
    from gpucost.bridges.compare import bridge

    if unknown := sorted(set(arguments) - {"first", "second", *_BESIDE}):
        raise UsageError(f"compare takes first and second, or {', '.join(_BESIDE)}, not {unknown[0][:40]!r}.")
    if not {"first", "second"} & set(arguments):
        return compact.short(answered("compare", dict(arguments), _opened(None, None)).payload)
    if beside := sorted(set(arguments) - {"first", "second"}):
        raise UsageError(f"compare: {beside[0]} stands in first and second, which hold the arguments of a run each.")
    payloads = []
    for side in ("first", "second"):
        side_arguments = arguments.get(side)
        if not isinstance(side_arguments, Mapping):
            raise UsageError(
                f"compare: {side} must be an object with the arguments of estimate, such as model and tokens."
            )
        payloads.append(answered("estimate", {**side_arguments, "with_facts": False}, _catalog(side_arguments)).payload)
    return compact.short(bridge(*payloads))


def _sweep(arguments: Arguments) -> Any:
    from gpucost.library.sweep import grid_asked, sweep

    if unknown := sorted(set(arguments) - {"question", "arguments", "rows"}):
        raise UsageError(f"sweep takes question and arguments, not {unknown[0][:40]!r}.")
    question, asked = arguments.get("question"), arguments.get("arguments")
    if question not in ("estimate", "inference", "tco") or not isinstance(asked, Mapping):
        raise UsageError("sweep takes question (estimate, inference or tco) and arguments, an object.")
    asked = dict(asked)
    count = grid_asked(question, None, None, dict(asked)).count
    if count > _MOST_CASES:
        raise UsageError(f"sweep: {count:,} cases are more than {_MOST_CASES}. Shorten a list.")
    frame = sweep(question, **asked).to_frame()
    axes = [name for name, value in asked.items() if isinstance(value, (list, tuple)) or name == "model"]
    columns = dict.fromkeys([*axes, *compact.columns(question), "reason"])
    kept = frame[[name for name in columns if name in frame]]
    rows = [{name: value for name, value in row.items() if not _missing(value)} for row in kept.to_dict("records")]
    return {"rows": _first(rows, arguments), "of": len(rows)}


def _first(rows: Sequence[Any], arguments: Arguments) -> list[Any]:
    """Return the first rows of a list, as many as a reader bears or asks for."""
    asked = arguments.get("rows")
    if asked is None:
        return compact.first_rows(compact.rounded(rows[:_ROWS]), _SIGNS)
    if isinstance(asked, bool) or not isinstance(asked, int) or not 0 < asked <= _MOST_ROWS:
        raise UsageError(f"rows: {shown(asked)} is not a number from 1 to {_MOST_ROWS}.")
    return compact.first_rows(compact.rounded(rows[:asked]), _MOST_SIGNS)


def _missing(value: Any) -> bool:
    return value is None or value != value


def _prices(arguments: Arguments) -> Any:
    from gpucost.catalog.prices import by_column, current

    arguments = dict(arguments)
    by, asked = arguments.pop("by", None), {"rows": arguments.pop("rows", None)}
    if by is not None and by not in _BY:
        raise UsageError(f"by: {shown(by)} is none of {', '.join(_BY)}.")
    takes = (*_FILTERS, "as_of", "known_as_of", "max_age")
    if unknown := sorted(set(arguments) - set(takes)):
        raise UsageError(f"prices takes {', '.join(takes[:-1])} and {takes[-1]}, not {unknown[0][:40]!r}.")
    values = read_stated(QUESTIONS["estimate"], **arguments)
    catalog = _catalog(values)
    offer_filter = catalog.offer_filter(*(values.get(name) for name in _FILTERS))
    offers, warnings = current(catalog, offer_filter, values.get("max_age"))
    names = ("provider", "region", "option", "gpu", "gpus", "usd_per_gpu_hour", "observed_on", "age_days")
    rows = compact.rows(offers, names, len(offers)) if by is None else by_column(offers, by)
    listed = _first(rows, asked)
    return compact.rounded({"prices": listed, "of": len(rows), "know": warnings[:3], "as_of": catalog.as_of})


def _price_index(arguments: Arguments) -> Any:
    from gpucost.library.price_index import FAULTS, index_rows, yearly

    if arguments:
        raise UsageError("price_index takes no arguments.")
    rows = yearly(index_rows(_opened(None, None)))
    return {"rows": _first(rows, {}), "of": len(rows), "know": list(FAULTS)}


def _forward(arguments: Arguments) -> Any:
    from gpucost.errors import PriceMissingError
    from gpucost.market.forward import forward_prices

    if unknown := sorted(set(arguments) - {"gpu", "option"}):
        raise UsageError(f"forward takes gpu and option, not {unknown[0][:40]!r}.")
    catalog = _opened(None, None)
    values = read_stated(QUESTIONS["estimate"], **arguments)
    chosen = catalog.offer_filter(values.get("gpu"), None, None, values.get("option"))
    options = chosen["option"]
    rows = [row for row in forward_prices(catalog, chosen["gpu"]) if options is None or row["option"] in options]
    if not rows:
        raise PriceMissingError("no chip that you named has a recent price. Name another.")
    return {"rows": _first(rows, {}), "of": len(rows)}


def _name_in(arguments: Arguments, tool: str) -> str | None:
    if unknown := sorted(set(arguments) - {"name", "rows"}):
        raise UsageError(f"{tool} takes name, not {unknown[0][:40]!r}.")
    name = arguments.get("name")
    if name is not None and not isinstance(name, str):
        raise UsageError(f"name: {shown(name)} is not a name.")
    return name or None


def _gpus(arguments: Arguments) -> Any:
    catalog = _opened(None, None)
    chips = catalog.accelerators(_name_in(arguments, "gpus"))
    ids = {chip.id for chip in chips}
    rows = sorted(
        (row for row in catalog.rows("accelerators") if row["id"] in ids), key=lambda row: -(row.get("year") or 0)
    )
    return compact.rounded({"gpus": _first(compact.rows(rows, _CHIP, len(rows)), arguments), "of": len(rows)})


def _models(arguments: Arguments) -> Any:
    from gpucost.catalog.models import model_rows

    catalog = _opened(None, None)
    rows = model_rows(catalog, catalog.architectures(_name_in(arguments, "models")))
    return compact.rounded({"models": _first(compact.rows(rows, _MODEL, len(rows)), arguments), "of": len(rows)})


def _sql(arguments: Arguments) -> Any:
    query = arguments.get("query")
    if not isinstance(query, str) or set(arguments) - {"query", "rows"}:
        raise UsageError('sql takes query, a SELECT such as "show tables", and rows.')
    answer = _opened(None, None).ask(query)
    rows = _first(answer.rows, arguments)
    if answer.rows and not rows:
        raise UsageError(f"sql: the first row alone takes more than {_SIGNS:,} signs. Select fewer columns.")
    more = len(answer.rows) - len(rows)
    return {"rows": rows, **({"more": f"{more} further rows"} if more else {})}
