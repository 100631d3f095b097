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

Given = Mapping[str, Any]
_MOST_ROWS, _MOST_SIGNS = 50, 100_000  # of an answer to SQL

_SHOWN = {  # the arguments that a schema names; a question takes all of its others too
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
    answer: Callable[[Given], Any]


@lru_cache(maxsize=1)
def tools() -> dict[str, Tool]:
    """Return the tools by name."""
    asked = {name: Tool(text, _schema(name), _asker(name)) for name, text in _FOR.items()}
    return {
        **asked,
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


def call(name: str, given: Given | None, folder: Path | None = None) -> Any:
    """Answer a call; what cannot be answered raises the sentence that a command would print.

    Files are read under one folder alone, and none without it.
    """
    known = tools()
    if name not in known:
        raise UsageError(f"there is no tool {str(name)[:40]!r}. Tools: {', '.join(known)}.")
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"{name} takes an object of arguments, not {type(given).__name__}.")
    given = dict(given or {})
    if name == "compare":
        given = {
            side: only_under(asked, folder) if isinstance(asked, Mapping) else asked for side, asked in given.items()
        }
    elif name in QUESTIONS:
        given = only_under(given, folder)
    return known[name].answer(given)


def _schema(question: str) -> dict[str, Any]:
    shown = {item.name: item for item in QUESTIONS[question].arguments}
    return _object([shown[name] for name in _SHOWN[question]])


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


def _asker(question: str) -> Callable[[Given], Any]:
    def ask(given: Given) -> Any:
        from gpucost.ask.dispatch import answered

        given = dict(given)
        detail = given.pop("detail", None)
        if question == "estimate":
            given["with_facts"] = False
        payload = answered(question, given, _catalog(given))[0].payload
        return compact.short(payload) if detail is None else compact.part(payload, str(detail))

    return ask


def _catalog(given: Given) -> "Catalog":
    """Return the catalog of the days asked for; that of today is kept."""
    from gpucost.ask.dispatch import DAYS

    return _opened(*read_list(DAYS, given).values())


@lru_cache(maxsize=2)
def _opened(as_of: str | None, known_as_of: str | None) -> "Catalog":
    from gpucost.catalog import open_catalog

    return open_catalog(as_of, known_as_of)


def _compare(given: Given) -> Any:
    from gpucost.ask.dispatch import answered
    from gpucost.bridges.compare import bridge

    if unknown := sorted(set(given) - {"first", "second"}):
        raise UsageError(f"compare takes first and second, not {unknown[0][:40]!r}.")
    found = []
    for side in ("first", "second"):
        asked = given.get(side)
        if not isinstance(asked, Mapping):
            raise UsageError(f"compare: {side} is no object of arguments of estimate, such as model and tokens.")
        found.append(answered("estimate", {**asked, "with_facts": False}, _catalog(asked))[0].payload)
    return compact.short(bridge(*found))


def _prices(given: Given) -> Any:
    from gpucost.catalog.prices import current

    takes = (*_FILTERS, "as_of", "known_as_of", "max_age")
    if unknown := sorted(set(given) - set(takes)):
        raise UsageError(f"prices takes {', '.join(takes[:-1])} and {takes[-1]}, not {unknown[0][:40]!r}.")
    asked = read_stated(QUESTIONS["estimate"], given)
    catalog = _catalog(asked)
    wanted = catalog.offer_filter(*(asked.get(name) for name in _FILTERS))
    found, warnings = current(catalog, wanted, asked.get("max_age"))
    names = ("provider", "region", "option", "gpu", "gpus", "usd_per_gpu_hour", "observed_on", "age_days")
    shown = compact.rows(found, names, 10)
    return compact.rounded({"prices": shown, "of": len(found), "know": warnings[:3], "as_of": catalog.as_of})


def _sql(given: Given) -> Any:
    query = given.get("query")
    if not isinstance(query, str) or len(given) != 1:
        raise UsageError('sql takes one argument, query: a SELECT such as "show tables".')
    answer = _opened(None, None).ask(query)
    shown = compact.first_rows(compact.rounded(answer.rows[:_MOST_ROWS]), _MOST_SIGNS)
    if answer.rows and not shown:
        raise UsageError(f"sql: the first row alone takes more than {_MOST_SIGNS:,} signs. Select fewer columns.")
    more = len(answer.rows) - len(shown)
    return {"rows": shown, **({"more": f"{more} further rows"} if more else {})}
