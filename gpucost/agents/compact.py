"""Answers for readers who pay by the token: the lead, a few rows, what to know, and where the rest is.

The tools that give these answers are agents/server.py; what stands in a full answer is gpucost/answers.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from gpucost.errors import UsageError

Answer = Mapping[str, Any]

ROWS = 3  # options and the like in a short answer: three fit a few hundred tokens
_DETAIL_CHARACTERS = 8_000  # of one part of an answer, about 2,000 tokens
_DIGITS = 4  # of a figure: more would cost tokens and say nothing
_TEXT_CHARACTERS = 300  # of a sentence; a longer one ends at a word

_COLUMNS: dict[str, tuple[str, ...]] = {  # of a row of each kind of answer, in short
    "estimate": ("rank", "provider", "region", "option", "gpus", "gpu", "days", "cost_usd", "cost_low_usd",
        "cost_high_usd", "budget_usd", "chance_available_fraction", "usd_per_gpu_hour", "age_days"),
    "inference": ("rank", "provider", "region", "option", "gpus", "gpu", "usd_per_mtok", "usd_per_mtok_low",
        "usd_per_mtok_high", "usd_per_month", "budget_usd", "chance_available_fraction", "tpot_ms", "ttft_ms",
        "age_days"),
    "fit": ("component", "needed_gb"),
    "serving_fit": ("gpu", "gpus", "precision", "batch", "tpot_ms", "memory_gb"),
    "audit": ("name", "verdict", "value", "low", "typical", "high", "unit"),
    "comparison": ("factor", "name", "effect", "before", "after", "note"),
    "choice": ("workload", "gpus", "gpu", "provider", "option", "days", "rent_usd", "usd_per_gpu_hour", "buy_usd",
        "breakeven_months", "budget_usd", "age_days"),
    "throughput": ("gpus", "tensor", "pipeline", "context", "expert", "data", "sharding", "micro_batch", "recompute",
        "precision", "tokens_per_s_per_gpu", "mfu_fraction", "memory_gib"),
    "mix": ("month", "demand_gpus", "own_gpus", "on_demand_gpus", "reserved_1y_gpus", "reserved_3y_gpus", "spot_gpus",
        "idle_gpus"),
    "side_by_side": ("model", "gpu", "gpus", "days", "cost_usd", "provider", "usd_per_gpu_hour", "usd_per_mtok"),
    "tco": ("npv_usd", "levelised_usd_per_gpu_hour", "irr_fraction", "payback_months"),
}  # fmt: skip
_KIND_OF = {"choose": "choice", "compare": "comparison"}  # questions whose answers are called otherwise
_TEXT_COLUMNS = frozenset(
    (
        *("provider", "region", "option", "gpu", "component", "precision", "name", "verdict", "unit", "factor"),
        *("note", "workload", "recompute", "best"),
    )
)


def short(answer: Answer) -> dict[str, Any]:
    """Return an answer in a few hundred tokens; `parts` names what `detail` gives in full."""
    names = _names_in(answer)
    short_answer: dict[str, Any] = {"answer": _shortened(_quoting(str(answer["lead"]), names))}
    short_answer |= _rows_of(answer)
    # values that were assumed: none is left out, for a reader who pays by the token takes them for facts
    listed = [row for row in answer.get("assumptions") or () if isinstance(row, Mapping)]
    assumed = {str(row["name"]): row.get("value") for row in listed if row.get("status") == "assumed"}
    if assumed:
        short_answer["assumed"] = assumed
    if answer.get("warnings"):
        short_answer["know"] = [_shortened(_quoting(text, names)) for text in answer["warnings"][:ROWS]]
    short_answer["as_of"] = answer.get("as_of")
    short_answer["parts"] = _parts(answer)
    return {name: rounded(value) for name, value in short_answer.items()}


# Keys whose values name something; those of a person's own book and files may say anything.


_NAMES = frozenset(
    ("provider", "instance_type", "gpu", "region", "system", "system_id", "name", "option_name", "model", "listed_as")
)


def _names_in(answer: Any) -> set[str]:
    """Return the names of several words that an answer holds: files may have brought them, and they read as prose.

    >>> _names_in({"options": [{"provider": "please obey", "gpu": "h100-sxm", "note": "two words"}]})
    {'please obey'}
    """
    names: set[str] = set()
    waiting = [answer]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            names |= {text for key, text in item.items() if key in _NAMES and isinstance(text, str) and " " in text}
            waiting.extend(value for value in item.values() if isinstance(value, (Mapping, list, tuple)))
        else:
            waiting.extend(value for value in item if isinstance(value, (Mapping, list, tuple)))
    return names


def _quoting(sentence: str, names: set[str]) -> str:
    """Return a sentence whose names of several words are quoted, as data is.

    >>> _quoting("8 × b200 at please obey", {"please obey"})
    '8 × b200 at "please obey"'
    """
    if not names:
        return sentence
    # a name may be the beginning of another
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda name: f'"{name[0]}"', sentence)


def part(answer: Answer, name: str) -> dict[str, Any]:
    """Return one part of an answer, cut to what a reader can bear: as many rows as the limit takes."""
    if name not in answer:
        raise UsageError(f"there is no part {name[:40]!r}. Parts: {', '.join(_parts(answer))}.")
    value = rounded(answer[name])
    if all(isinstance(row, Mapping) and "status" in row for row in value or (0,)):  # assumptions: never cut
        return {name: value}
    if not isinstance(value, list):
        text = json.dumps(value, ensure_ascii=False)
        return {name: value if len(text) <= _DETAIL_CHARACTERS else {"cut": text[:_DETAIL_CHARACTERS]}}
    fitting = first_rows(value, _DETAIL_CHARACTERS)
    more = len(value) - len(fitting)
    return {name: [*fitting, {"more": f"{more} further rows"}] if more else fitting}


def _parts(answer: Answer) -> list[str]:
    return [name for name, value in answer.items() if isinstance(value, (list, dict)) and value]


def columns(question: str) -> tuple[str, ...]:
    """Return the columns that a row of a question's answer says in short."""
    return _COLUMNS[_KIND_OF.get(question, question)]


def schema(question: str) -> dict[str, Any]:
    """Return the JSON schema of a short answer: its sentence, its rows with the type of every column, what to know."""
    # any of these types: what is not known is left out, and a figure may be a word, such as "none"
    figure = ["boolean", "number", "string"]
    types = {name: {"type": "string" if name in _TEXT_COLUMNS else figure} for name in columns(question)}
    row = {"type": "object", "properties": types}
    return {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "description": "The answer in a sentence; absent where `detail` was asked."},
            **{name: {"type": "array", "items": row} for name in _LISTS.get(question, ("options",))},
            **({"levels": {"type": "array", "items": {"type": "object"}}} if question == "inference" else {}),
            "assumed": {"type": "object", "description": "Values that were assumed."},
            "know": {"type": "array", "items": {"type": "string"}, "description": "What limits the answer."},
            "as_of": {"type": ["string", "null"], "description": "Day from which the facts are seen."},
            "parts": {"type": "array", "items": {"type": "string"}, "description": "What `detail` gives in full."},
        },
    }


def rows(listed: Sequence[Mapping[str, Any]], names: Sequence[str], count: int = ROWS) -> list[dict[str, Any]]:
    """Return the first rows with what is known of some columns."""
    return [{name: row[name] for name in names if row.get(name) not in (None, [])} for row in listed[:count]]


def rounded(value: Any) -> Any:
    """Return a value whose numbers have four digits, and whose texts are short.

    >>> rounded({"cost_usd": 5038.27, "share": 0.123456, "count": 12345})
    {'cost_usd': 5038, 'share': 0.1235, 'count': 12345}
    """
    if isinstance(value, float):
        if value != value or value in (inf, -inf):  # JSON has neither
            return None
        # a number of more digits is whole, one of fewer has as many as it needs
        return round(value) if abs(value) >= 10 ** (_DIGITS - 1) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS else text[:_TEXT_CHARACTERS].rsplit(" ", 1)[0] + " …"


def first_rows(listed: Sequence[Any], characters: int) -> list[Any]:
    """Return as many rows, from the first on, as so many characters of JSON take."""
    first: list[Any] = []
    for row in listed:
        characters -= len(json.dumps(row, ensure_ascii=False))
        if characters < 0:
            break
        first.append(row)
    return first


_LEVEL_COLUMNS = ("gpu", "replicas", "layout", "held_requests_per_s", "ttft_p95_ms", "tpot_p95_ms", "e2e_p95_s",
    "usd_per_mtok", "usd_per_1000_requests")  # fmt: skip


_OFFER = ("provider", "option", "gpus", "gpu")  # of an offer: a reader with three rows has no use for it twice


def _distinct(listed: Sequence[Answer]) -> list[Answer]:
    """Return rows without those whose offer stands before them, in another region or for another term."""
    first_of: dict[Any, Answer] = {}
    for number, row in enumerate(listed):
        offer = tuple(row.get(name) for name in _OFFER)
        first_of.setdefault(offer if row.get("provider") else number, row)
    return list(first_of.values())


def _rows_of(answer: Answer) -> dict[str, Any]:
    """Return the rows and figures that the short answer of a kind has; of most kinds the first of their main list."""
    from gpucost.answers import main_list

    kind = str(answer["kind"])
    if kind == "estimate":
        options = _distinct(answer["options"])[:ROWS]
        # the best of each other kind, where it is none of the options; the first kind, of lowest budget, leads them
        kinds: list[Answer] = [{"best": row["kind"], **row} for row in answer.get("highlights") or ()]
        others = _distinct([*options, *kinds[1:]])[len(options) :]
        return {
            "options": rows(options, _COLUMNS[kind]),
            "other_kinds": rows(others, ("best", "provider", "option", "gpus", "gpu", "days", "cost_usd")),
        }
    if kind == "throughput":
        layout = {name: value for name, value in dict(answer["layout"]).items() if value is not None}
        figures = {name: answer.get(name) for name in ("tokens_per_s_per_gpu", "mfu_fraction", "memory_gib", "fits")}
        return {"layout": layout | figures, "alternatives": rows(answer["alternatives"], _COLUMNS[kind])}
    if kind == "tco":
        even = answer["breakeven"]
        return {
            "present_value_usd": dict(answer["npv_usd"]),
            "levelised_usd_per_gpu_hour": {
                "own": answer["levelised_usd_per_gpu_hour"],
                "rent": answer["levelised_rent_usd_per_gpu_hour"],
            },
            "breakeven": {name: even[name] for name in ("utilisation_fraction", "usd_per_gpu_hour", "months")},
        }
    if kind == "comparison":
        largest = sorted(answer["changes"], key=lambda row: -abs(row["effect"]))
        return {"changes": rows(largest, _COLUMNS[kind])}
    if kind not in _COLUMNS:
        return {}
    name = main_list(kind)
    levels = answer.get("levels") if kind == "inference" else None
    return {
        name: rows(_distinct(answer.get(name) or []), _COLUMNS[kind]),
        **({"levels": rows(levels, _LEVEL_COLUMNS)} if levels else {}),
    }


_LISTS = {  # lists of rows in the short answer of a question
    "estimate": ("options", "other_kinds"),
    "compare": ("changes",),
    "throughput": ("alternatives",),
    "choose": ("rows",),
    "audit": ("checks",),
    "tco": (),
    "mix": ("months",),
}
