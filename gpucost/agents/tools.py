"""The tools: what each is for, which arguments it takes, and how it answers; no protocol in here."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.agents import compact
from gpucost.arguments import Argument, read_list, read_stated
from gpucost.arguments.files import only_under
from gpucost.ask import QUESTIONS
from gpucost.errors import UsageError

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Arguments = Mapping[str, Any]
_MOST_ROWS, _MOST_SIGNS = 50, 100_000  # of an answer to SQL

_LISTED = {  # the arguments that a schema names; a question takes all of its others too
    "estimate": (
        "model",
        "tokens",
        "gpu",
        "gpus",
        "provider",
        "region",
        "option",
        "deadline",
        "budget",
        "method",
        "optimize",
        "mfu",
    ),
    "inference": (
        "model",
        "gpu",
        "provider",
        "region",
        "prompt_tokens",
        "output_tokens",
        "tokens_per_month",
        "requests_per_s",
        "tpot",
        "precision",
    ),
    "fit": ("model", "gpu", "gpus", "method", "sequence", "serving"),
    "tco": ("gpu", "gpus", "utilisation", "years", "rent", "provider", "model", "tokens_per_month"),
    "audit": ("model", "tokens", "gpu", "gpus", "days", "cost", "fits"),
}
_FOR = {
    "estimate": "What a training run costs, on real offers: cheapest first, with days, range and age of price.",
    "inference": "What serving a model costs per million tokens on real offers, beside hosted APIs.",
    "fit": "Whether training or serving a model fits a GPU, and on how many.",
    "tco": "Own a cluster or rent the same hours: present values and break-even.",
    "audit": "Whether a claim about days, cost or memory is possible; what would be true.",
}
_FILTERS = ("gpu", "provider", "region", "option")


class Tool(NamedTuple):
    """One tool: its description, the schema of its arguments, and the function that answers."""

    description: str
    schema: dict[str, Any]
    answer: Callable[[Arguments], Any]


@lru_cache(maxsize=1)
def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    question_tools = {name: Tool(text, _schema(name), _asker(name)) for name, text in _FOR.items()}
    return {
        **question_tools,
        "compare": Tool(
            "Split the difference between two training runs by cause.",
            {
                "type": "object",
                "properties": {"first": {"type": "object"}, "second": {"type": "object"}},
                "required": ["first", "second"],
                "description": "Arguments of estimate for each",
            },
            _compare,
        ),
        "prices": Tool(
            "GPU-hours that can be ordered, cheapest first, with the day each was seen.",
            _object([item for item in QUESTIONS["estimate"].arguments if item.name in (*_FILTERS, "as_of")]),
            _prices,
        ),
        "sql": Tool(
            "One read-only SELECT in DuckDB's SQL over the facts; begin with `show tables`.",
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            _sql,
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
    if name == "compare":
        arguments = {
            side: only_under(asked, folder) if isinstance(asked, Mapping) else asked
            for side, asked in arguments.items()
        }
    elif name in QUESTIONS:
        arguments = only_under(arguments, folder)
    return tools_[name].answer(arguments)


def _schema(question: str) -> dict[str, Any]:
    arguments = {item.name: item for item in QUESTIONS[question].arguments}
    return _object([arguments[name] for name in _LISTED[question]])


def _object(arguments: list[Argument]) -> dict[str, Any]:
    """Return a short schema of arguments; others of the question are read as well."""
    return {
        "type": "object",
        "properties": {item.name: _property(item) for item in arguments},
        "required": [item.name for item in arguments if item.required],
    }


def _property(item: Argument) -> dict[str, Any]:
    """Say an argument in few words: its choices, an example, or what it is; numbers may be text: types say little."""
    if 0 < len(item.kind.choices) <= 5 and not item.kind.open:
        return {"enum": list(item.kind.choices)}
    if item.kind.json == ("boolean",):
        return {"type": "boolean"}
    if item.example is not None:
        return {"examples": ["eu", item.example] if item.name == "region" else [item.example]}
    return {"description": item.help.partition(":")[0].partition(";")[0].partition(",")[0].rstrip(".")}


def _asker(question: str) -> Callable[[Arguments], Any]:
    def ask(arguments: Arguments) -> Any:
        from gpucost.ask.dispatch import answered

        arguments = dict(arguments)
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
