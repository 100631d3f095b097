"""The tools: what each is for, which arguments it takes, and how it answers; no protocol in here."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.agents import compact
from gpucost.arguments import Argument, read_list, read_stated
from gpucost.arguments.files import only_under
from gpucost.ask import QUESTIONS
from gpucost.errors import UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Arguments = Mapping[str, Any]
Schema = dict[str, Any]
_MOST_ROWS, _MOST_SIGNS = 50, 100_000  # of an answer to SQL
_MOST_CASES, _MOST_LISTED = 500, 20  # of a sweep, and of a list of facts

_LISTED = {  # the arguments that a schema names; a question takes all of its others too
    "estimate": "model tokens gpu gpus provider region option deadline budget method optimize mfu",
    "inference": "model gpu provider region prompt_tokens output_tokens tokens_per_month requests_per_s ttft tpot"
    " precision",
    "fit": "model gpu gpus method sequence precision serving",
    "tco": "gpu gpus utilisation years rent provider model tokens_per_month",
    "audit": "model tokens gpu gpus days cost fits",
    "choose": "model purpose budget tokens gpu provider region option",
    "throughput": "model gpu gpus sequence global_batch precision method",
}
_FOR = {
    "estimate": "What a training run costs, on real offers: cheapest first, with days, range and age of price.",
    "inference": "What serving a model costs per million tokens on real offers, beside hosted APIs.",
    "fit": "Whether training or serving a model fits a GPU, and on how many.",
    "tco": "Own a cluster or rent the same hours: present values and break-even.",
    "audit": "Whether a claim about days, cost or memory is possible; what would be true.",
    "choose": "Which GPU to rent or buy for a purpose and a budget.",
}
_FILTERS = ("gpu", "provider", "region", "option")
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
                },
                "required": ["question", "arguments"],
                "additionalProperties": False,
            },
            _sweep,
            _listing("rows", "of"),
        ),
        "compare": Tool(
            "Split the difference between two training runs by cause.",
            {
                "type": "object",
                "properties": {
                    side: {"type": "object", "description": f"Arguments of estimate for the {side} run."}
                    for side in ("first", "second")
                },
                "required": ["first", "second"],
                "additionalProperties": False,
            },
            _compare,
            compact.schema("compare"),
        ),
        "prices": Tool(
            "GPU-hours that can be ordered, cheapest first, with the day each was seen.",
            _object([item for item in QUESTIONS["estimate"].arguments if item.name in (*_FILTERS, "as_of")]),
            _prices,
            _listing("prices", "of", "know", "as_of"),
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
                    }
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
    if name in ("compare", "sweep"):
        arguments = {
            part: only_under(asked, folder) if isinstance(asked, Mapping) else asked
            for part, asked in arguments.items()
        }
    else:
        arguments = only_under(arguments, folder)
    return tools_[name].answer(arguments)


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
    schema["description"] = item.help.partition(": ")[0].rstrip(".") + "."
    if 0 < len(item.kind.choices) <= 8 and not item.kind.open:
        schema["enum"] = list(item.kind.choices)
    elif item.example is not None:
        schema["examples"] = ["eu", item.example] if item.name == "region" else [item.example]
    return schema


def _named(text: str) -> Schema:
    return {"type": "object", "properties": {"name": {"type": "string", "description": text}}, "required": []}


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
        payload = answered(question, arguments, _catalog(arguments))[0].payload
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

    if unknown := sorted(set(arguments) - {"first", "second"}):
        raise UsageError(f"compare takes first and second, not {unknown[0][:40]!r}.")
    payloads = []
    for side in ("first", "second"):
        side_arguments = arguments.get(side)
        if not isinstance(side_arguments, Mapping):
            raise UsageError(
                f"compare: {side} must be an object with the arguments of estimate, such as model and tokens."
            )
        payloads.append(
            answered("estimate", {**side_arguments, "with_facts": False}, _catalog(side_arguments))[0].payload
        )
    return compact.short(bridge(*payloads))


def _sweep(arguments: Arguments) -> Any:
    from gpucost.library.sweep import grid_asked, sweep

    if unknown := sorted(set(arguments) - {"question", "arguments"}):
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
    listed = compact.first_rows(compact.rounded(rows), _MOST_SIGNS // 4)
    return {"rows": listed, "of": len(rows)}


def _missing(value: Any) -> bool:
    return value is None or value != value


def _prices(arguments: Arguments) -> Any:
    from gpucost.catalog.prices import current

    takes = (*_FILTERS, "as_of", "known_as_of", "max_age")
    if unknown := sorted(set(arguments) - set(takes)):
        raise UsageError(f"prices takes {', '.join(takes[:-1])} and {takes[-1]}, not {unknown[0][:40]!r}.")
    values = read_stated(QUESTIONS["estimate"], arguments)
    catalog = _catalog(values)
    offer_filter = catalog.offer_filter(*(values.get(name) for name in _FILTERS))
    offers, warnings = current(catalog, offer_filter, values.get("max_age"))
    names = ("provider", "region", "option", "gpu", "gpus", "usd_per_gpu_hour", "observed_on", "age_days")
    listed = compact.rows(offers, names, 10)
    return compact.rounded({"prices": listed, "of": len(offers), "know": warnings[:3], "as_of": catalog.as_of})


def _name_in(arguments: Arguments, tool: str) -> str | None:
    if unknown := sorted(set(arguments) - {"name"}):
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
    return compact.rounded({"gpus": compact.rows(rows, _CHIP, _MOST_LISTED), "of": len(rows)})


def _models(arguments: Arguments) -> Any:
    from gpucost.cli.lists import described

    catalog = _opened(None, None)
    rows = described(catalog, catalog.architectures(_name_in(arguments, "models")))
    return compact.rounded({"models": compact.rows(rows, _MODEL, _MOST_LISTED), "of": len(rows)})


def _sql(arguments: Arguments) -> Any:
    query = arguments.get("query")
    if not isinstance(query, str) or len(arguments) != 1:
        raise UsageError('sql takes one argument, query: a SELECT such as "show tables".')
    answer = _opened(None, None).ask(query)
    rows = compact.first_rows(compact.rounded(answer.rows[:_MOST_ROWS]), _MOST_SIGNS)
    if answer.rows and not rows:
        raise UsageError(f"sql: the first row alone takes more than {_MOST_SIGNS:,} signs. Select fewer columns.")
    more = len(answer.rows) - len(rows)
    return {"rows": rows, **({"more": f"{more} further rows"} if more else {})}
