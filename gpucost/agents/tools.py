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
_ROWS, _CHARACTERS = 20, 8_000  # of a list, about 2,000 tokens, unless `rows` asks for more
_MOST_ROWS, _MOST_CHARACTERS = 500, 100_000
_MOST_CASES = 500  # of a sweep: a client waits for the answer

# The arguments that a schema names; a question takes all of its others too.
_LISTED = {
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
# What a client reads when it chooses a tool.
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
_PRICE_COLUMNS = ("provider", "region", "option", "gpu", "gpus", "usd_per_gpu_hour", "observed_on", "age_days")
_BY = ("provider", "gpu", "region", "option")
_MOST_CHOICES = 8  # that a schema lists; of more the example says enough
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
    files_in: tuple[Argument, ...] = ()  # what may name a file, beside the arguments of its question


@lru_cache(maxsize=1)
def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    questions = {name: Tool(text, _schema(name), _asker(name), compact.schema(name)) for name, text in _FOR.items()}
    prices_schema = _object([item for item in QUESTIONS["estimate"].arguments if item.name in (*_FILTERS, "as_of")])
    prices_schema["properties"]["by"] = {
        "type": "string",
        "enum": list(_BY),
        "description": "A row for each of them, with its cheapest price by option.",
    }
    prices_schema["properties"]["rows"] = _MORE_ROWS
    return {
        **questions,
        "load": Tool(  # the same question as `inference`, for who knows the load and asks for machines
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
            prices_schema,
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
            _schema_of_name("GPU or family, such as h100; none: the newest."),
            _gpus,
            _listing("gpus", "of"),
        ),
        "models": Tool(
            "Model architectures with their parameter counts.",
            _schema_of_name("Model or family, such as llama-3.1 or 8b; none: the newest."),
            _models,
            _listing("models", "of"),
            files_in=(Argument("name", MODEL),),  # a path to config.json is a model, too
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
    # a copy: what a tool takes out of it stays in the client's call
    arguments = dict(arguments or {})
    with for_stranger(folder, arguments):
        return tools_[name].answer(_with_files(name, arguments, folder))


# The question whose arguments a tool takes, where it is called otherwise.
_QUESTION_OF = {
    "forward": "estimate",
    "load": "inference",
    "recipe": "throughput",
    "prices": "estimate",
}


def _with_files(tool: str, arguments: dict[str, Any], folder: Path | None) -> Arguments:
    """Return arguments whose files lie in the folder: those of the tool, and those of the questions within them."""
    from gpucost.ask.dispatch import kinds_of_every_question

    def placed(question: Any, stated: Any) -> Any:
        if not isinstance(stated, Mapping):
            return stated  # the tool itself refuses it
        is_known = isinstance(question, str) and question in QUESTIONS
        declared = QUESTIONS[question].arguments if is_known else ()
        return only_under(declared, stated, folder, kinds_of_every_question())

    if tool == "compare":
        sides = {side: placed("estimate", arguments[side]) for side in ("first", "second") if side in arguments}
        others = {name: value for name, value in arguments.items() if name not in sides}
        return {**placed("compare", others), **sides}
    if tool == "sweep":
        axes = arguments.get("arguments")
        if isinstance(axes, Mapping):
            axes = dict(axes)
            for name, axis in axes.items():
                # the list that a sweep reads in a text: each of its words may name a file
                words = axis.replace("|", ",") if isinstance(axis, str) else axis
                if isinstance(axis, str) and "," in axis:
                    words = [word.strip().replace("|", ",") for word in axis.split(",") if word.strip()]
                axes[name] = words
        return {**arguments, "arguments": placed(arguments.get("question"), axes)}
    if files_in := tools()[tool].files_in:
        return only_under(files_in, arguments, folder, {})
    question = _QUESTION_OF.get(tool, tool)
    return placed(question, arguments) if question in QUESTIONS else arguments


# --- Schemas: every argument with its type, and what it means in a sentence.


def _schema(question: str, required: Sequence[str] = ()) -> Schema:
    arguments = {item.name: item for item in QUESTIONS[question].arguments}
    schema = _object([arguments[name] for name in _LISTED[question].split()], required)
    # of each question: its short answer says which parts there are
    schema["properties"]["detail"] = {
        "type": "string",
        "description": "Part of the answer to get in full, as its `parts` names them.",
    }
    return schema


def _object(arguments: list[Argument], required: Sequence[str] = ()) -> Schema:
    """Return a short schema of arguments; others of the question are read as well."""
    properties: dict[str, Schema] = {}
    for item in arguments:
        types = item.kind.json
        schema: Schema = {"type": types[0] if len(types) == 1 else list(types)}
        # a client pays for each word: the first clause says what an argument is
        sentence = item.help.partition(": ")[0].rstrip(".") + "."
        schema["description"] = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), sentence)
        if 0 < len(item.kind.choices) <= _MOST_CHOICES and not item.kind.open:
            schema["enum"] = list(item.kind.choices)
        elif item.example is not None:
            # of a region the group is what agents forget that they may say
            schema["examples"] = ["eu", item.example] if item.name == "region" else [item.example]
        properties[item.name] = schema
    needed = [item.name for item in arguments if item.required or item.name in required]
    return {"type": "object", "properties": properties, "required": needed}


def _schema_of_name(text: str) -> Schema:
    name = {"type": "string", "description": text}
    return {"type": "object", "properties": {"name": name, "rows": _MORE_ROWS}, "required": []}


# Lists of facts have no `detail`: more rows are asked for by `rows`.
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
            arguments["with_facts"] = False  # an agent reruns nothing, so its answer need not embed the facts
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
    # models side by side, as the library compares them
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
        # each side may be of another day, so each has its own catalog
        payloads.append(answered("estimate", {**side_arguments, "with_facts": False}, _catalog(side_arguments)).payload)
    return compact.short(bridge(*payloads))


def _sweep(arguments: Arguments) -> Any:
    from gpucost.library.sweep import grid_asked, sweep

    if unknown := sorted(set(arguments) - {"question", "arguments", "rows"}):
        raise UsageError(f"sweep takes question and arguments, not {unknown[0][:40]!r}.")
    question, stated = arguments.get("question"), arguments.get("arguments")
    if question not in ("estimate", "inference", "tco") or not isinstance(stated, Mapping):
        raise UsageError("sweep takes question (estimate, inference or tco) and arguments, an object.")
    # counted before anything is worked out
    count = grid_asked(question, None, None, dict(stated)).count
    if count > _MOST_CASES:
        raise UsageError(f"sweep: {count:,} cases are more than {_MOST_CASES}. Shorten a list.")
    frame = sweep(question, **stated).to_frame()
    # what differs between the cases, then the figures that the question's short answer has
    axes = [name for name, value in stated.items() if isinstance(value, (list, tuple)) or name == "model"]
    columns = dict.fromkeys([*axes, *compact.columns(question), "reason"])
    records = frame[[name for name in columns if name in frame]].to_dict("records")
    # a cell that is not known is NaN, which is not equal to itself
    rows = [{name: value for name, value in row.items() if value is not None and value == value} for row in records]
    return {"rows": _first(rows, arguments), "of": len(rows)}


def _first(rows: Sequence[Any], arguments: Arguments) -> list[Any]:
    """Return the first rows of a list, as many as a reader bears or asks for."""
    count = arguments.get("rows")
    if count is None:
        return compact.first_rows(compact.rounded(rows[:_ROWS]), _CHARACTERS)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MOST_ROWS:
        raise UsageError(f"rows: {shown(count)} is not a number from 1 to {_MOST_ROWS}.")
    return compact.first_rows(compact.rounded(rows[:count]), _MOST_CHARACTERS)


def _prices(arguments: Arguments) -> Any:
    from gpucost.catalog.prices import by_column, current

    arguments = dict(arguments)
    by, rows_argument = arguments.pop("by", None), {"rows": arguments.pop("rows", None)}
    if by is not None and by not in _BY:
        raise UsageError(f"by: {shown(by)} is none of {', '.join(_BY)}.")
    names = (*_FILTERS, "as_of", "known_as_of", "max_age")
    if unknown := sorted(set(arguments) - set(names)):
        raise UsageError(f"prices takes {', '.join(names[:-1])} and {names[-1]}, not {unknown[0][:40]!r}.")
    values = read_stated(QUESTIONS["estimate"], **arguments)
    catalog = _catalog(values)
    offer_filter = catalog.offer_filter(*(values.get(name) for name in _FILTERS))
    offers, warnings = current(catalog, offer_filter, values.get("max_age"))
    rows = compact.rows(offers, _PRICE_COLUMNS, len(offers)) if by is None else by_column(offers, by)
    listed = _first(rows, rows_argument)
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
    allowed = catalog.offer_filter(values.get("gpu"), None, None, values.get("option"))
    options = allowed["option"]
    rows = [row for row in forward_prices(catalog, allowed["gpu"]) if options is None or row["option"] in options]
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
    rows = [row for row in catalog.rows("accelerators") if row["id"] in ids]
    rows.sort(key=lambda row: -(row.get("year") or 0))  # the newest first: of all chips the first twenty are shown
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
    # an empty list would say that nothing was found
    if answer.rows and not rows:
        raise UsageError(f"sql: the first row alone takes more than {_CHARACTERS:,} signs. Select fewer columns.")
    more = len(answer.rows) - len(rows)
    return {"rows": rows, **({"more": f"{more} further rows"} if more else {})}
