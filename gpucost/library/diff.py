"""What a change does to a cost, as a comment on a pull request: what changed, of which kind, and ± USD and days."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from gpucost.answers.ownership import promised
from gpucost.errors import UsageError
from gpucost.library.compare import compare, load_answer
from gpucost.units import format_count, percent

_KINDS = ("workload", "model", "price", "catalogue", "assumption", "other")  # the order of a comment's rows
_OF_THE_MODEL = ("throughput", "speed", "time in use", "interruptions")
_HALF_A_CENT_USD, _HALF_A_HUNDREDTH_DAY = 0.005, 0.005  # smaller changes would be shown as 0.00
_LARGEST_IN_DIGITS = 1e5  # beyond it a number is shortened, such as 100B tokens


class CostChange(NamedTuple):
    """Two answers' figures, and what each cause does to them."""

    subject: str
    figure: str
    before: float
    after: float
    days: tuple[float, float] | None
    rows: tuple[tuple[str, str, str, str, float], ...]  # kind, cause, before, after, effect
    notes: tuple[str, ...]
    costs: tuple[tuple[str, float, float], ...] = ()  # where the figure is no cost: what is paid, the one judged first

    @property
    def change(self) -> float:
        """Return by how much the figure rose."""
        return self.after - self.before

    @property
    def paid(self) -> tuple[float, float]:
        """Return what is paid in both answers, which budgets are about."""
        return self.costs[0][1:] if self.costs else (self.before, self.after)


def difference(
    first: str | PathLike[str] | Mapping[str, Any], second: str | PathLike[str] | Mapping[str, Any]
) -> CostChange:
    """Return what parts two saved answers."""
    answers = [load_answer(source) for source in (first, second)]
    comparison = compare(*answers).payload
    if comparison["kind"] != "comparison":
        raise UsageError("diff takes two answers of one question; of reports give one part each, FILE#PART.")
    # what was asked otherwise, by its argument or by the name of an input
    request_changes = {
        str(row[key]) for row in comparison["request_changes"] for key in ("argument", "name") if key in row
    }
    rows = tuple(
        (
            _kind(row, request_changes),
            str(row["factor"]),
            _shown(row["before"]),
            _shown(row["after"]),
            float(row["effect"]),
        )
        for row in comparison["changes"]
        if abs(row["effect"]) >= _HALF_A_CENT_USD
    )
    ends = [comparison[side].get("days") for side in ("before", "after")]
    days = (float(ends[0]), float(ends[1])) if all(isinstance(end, (int, float)) for end in ends) else None
    costs: list[tuple[str, float, float]] = []
    if answers[0]["kind"] == answers[1]["kind"] == "tco":
        # the figure that is compared is a difference of two sides: what is paid is the cheapest way whose capacity is
        # promised, and each of the sides, as present values
        best = [promised(answer["options"])[0] for answer in answers]
        names = [str(row["name"]).replace("_", " ") for row in best]
        way = names[0] if names[0] == names[1] else f"{names[0]}, now {names[1]}"
        costs.append((f"cheapest: {way}", float(best[0]["npv_usd"]), float(best[1]["npv_usd"])))
        before, after = (answer["npv_usd"] for answer in answers)
        costs += [(f"{side}, present value", float(before[side]), float(after[side])) for side in ("own", "rent")]
    return CostChange(
        comparison["subject"],
        comparison["figure"],
        comparison["before_value"],
        comparison["after_value"],
        days,
        rows,
        tuple(str(text) for text in comparison["warnings"]),
        tuple(costs),
    )


def _kind(row: Mapping[str, Any], request_changes: set[str]) -> str:
    """Tell whether a cause is what was asked, how fast the model takes it to be, a price, or an assumption."""
    factor, name = str(row["factor"]), str(row["name"])
    if factor == "tokens" or name in request_changes or factor in request_changes:
        return "workload"
    if factor in ("price", "terms") or "usd" in name:
        return "price"
    if factor in ("storage", "egress"):  # after prices: their price is one
        return "workload"
    if factor in _OF_THE_MODEL:
        return "model"
    return "other" if not name else "assumption"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format_count(value) if abs(value) >= _LARGEST_IN_DIGITS else f"{value:,.4g}"
    return str(value)


def _money(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}${abs(value):,.2f}"


def as_markdown(change: CostChange, over: Sequence[str] = (), *, github: bool = False) -> str:
    """Write a comment for a pull request, in plain Markdown or with what GitHub's knows beside it."""
    was, now = change.paid
    share = f" ({(now - was) / was:+.1%})" if was > 0 else ""
    is_changed = abs(now - was) >= _HALF_A_CENT_USD
    head = f"### GPU cost: {_money(now - was)}{share}" if is_changed else "### GPU cost: unchanged"
    more_days = 0.0 if change.days is None else change.days[1] - change.days[0]
    if abs(more_days) >= _HALF_A_HUNDREDTH_DAY:
        head += f", {more_days:+.2f} days"
    lines = [head, ""]
    lines += [f"> [!CAUTION]\n> {text}\n" if github else f"**{text}**\n" for text in over]
    lines += [
        "| | before | after | change |",
        "|---|--:|--:|--:|",
        *(
            f"| {_cell(label)} | ${before:,.2f} | ${after:,.2f} | {_money(after - before)} |"
            for label, before, after in change.costs
        ),
        f"| {change.subject}, {change.figure.replace('_', ' ')} | ${change.before:,.2f} | ${change.after:,.2f} |"
        f" {_money(change.change)} |",
    ]
    if change.days is not None:
        lines.append(f"| days | {change.days[0]:,.2f} | {change.days[1]:,.2f} | {more_days:+,.2f} |")
    if change.rows:
        lines += ["", "| kind | cause | before | after | effect |", "|---|---|--:|--:|--:|"]
        ordered = sorted(change.rows, key=lambda row: (_KINDS.index(row[0]), -abs(row[4])))
        lines += [f"| {' | '.join(map(_cell, row[:4]))} | {_money(row[4])} |" for row in ordered]
    if change.notes:
        notes = [f"- {_cell(note)}" for note in change.notes]
        lines += ["", *(["<details><summary>Notes</summary>", "", *notes, "</details>"] if github else notes)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # what would end a cell of a table, begin a tag, or end the row
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def as_text(change: CostChange, over: Sequence[str] = ()) -> str:
    """Write the same for a terminal."""
    share = f" ({change.change / change.before:+.1%})" if change.before > 0 else ""
    lines = [f"{label}: ${was:,.2f} to ${now:,.2f}, {_money(now - was)}" for label, was, now in change.costs]
    lines.append(f"{change.subject}: ${change.before:,.2f} to ${change.after:,.2f}, {_money(change.change)}{share}")
    if change.days is not None:
        lines.append(f"days: {change.days[0]:,.2f} to {change.days[1]:,.2f}, {change.days[1] - change.days[0]:+,.2f}")
    lines += [f"{row[0]:<10} {row[1]:<26} {row[2]:>12} {row[3]:>12} {_money(row[4]):>16}" for row in change.rows]
    return "\n".join([*lines, *over]) + "\n"


def beyond(change: CostChange, budget: float | None, most_rise: float | None) -> list[str]:
    """Say which limits the second answer breaks: a budget in USD, a share by which it may rise."""
    sentences = []
    was, now = change.paid
    if budget is not None and now > budget:
        sentences.append(f"${now:,.2f} is ${now - budget:,.2f} over the budget of ${budget:,.2f}.")
    if most_rise is not None and was > 0 and (now - was) / was > most_rise:
        sentences.append(f"The cost rises by {(now - was) / was:.1%}; at most {percent(most_rise)} is allowed.")
    return sentences
