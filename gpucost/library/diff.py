"""What a change does to a cost, as a comment on a pull request: what changed, of which kind, and ± USD and days."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from gpucost.answers.ownership import promised
from gpucost.errors import UsageError
from gpucost.library.compare import compare, load_answer
from gpucost.units import format_count, percent

KINDS = ("workload", "model", "price", "catalogue", "assumption", "other")
_MODEL = ("throughput", "speed", "time in use", "interruptions")
_CENT, _MANY = 0.005, 1e5


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
    found = compare(*answers).payload
    if found["kind"] != "comparison":
        raise UsageError("diff takes two answers of one question; of reports give one part each, FILE#PART.")
    asked = {row["argument"] for row in found["request_changes"] if "argument" in row} | {
        str(value) for row in found["request_changes"] for key, value in row.items() if key == "name"
    }
    rows = tuple(
        (
            _kind(row, asked),
            str(row["factor"]),
            _shown(row["before"]),
            _shown(row["after"]),
            float(row["effect"]),
        )
        for row in found["changes"]
        if abs(row["effect"]) >= _CENT
    )
    ends = [found[side].get("days") for side in ("before", "after")]
    days = (float(ends[0]), float(ends[1])) if all(isinstance(end, (int, float)) for end in ends) else None
    notes = [str(text) for text in found["warnings"]]
    return CostChange(
        found["subject"],
        found["figure"],
        found["before_value"],
        found["after_value"],
        days,
        rows,
        tuple(notes),
        _of_owning(*answers) if answers[0]["kind"] == answers[1]["kind"] == "tco" else (),
    )


def _of_owning(*answers: Mapping[str, Any]) -> tuple[tuple[str, float, float], ...]:
    """Return what the cheapest way costs whose capacity is promised, and both sides, as present values."""
    best = [promised(answer["options"])[0] for answer in answers]
    names = [str(row["name"]).replace("_", " ") for row in best]
    called = names[0] if names[0] == names[1] else f"{names[0]}, now {names[1]}"
    before, after = (answer["npv_usd"] for answer in answers)
    sides = [(f"{side}, present value", float(before[side]), float(after[side])) for side in ("own", "rent")]
    cheapest = (f"cheapest: {called}", float(best[0]["npv_usd"]), float(best[1]["npv_usd"]))
    return (cheapest, *sides)


def _kind(row: Mapping[str, Any], asked: set[str]) -> str:
    """Tell whether a cause is what was asked, how fast the model takes it to be, a price, or an assumption."""
    factor, name = str(row["factor"]), str(row["name"])
    if factor == "tokens" or name in asked or factor in asked:
        return "workload"
    if factor in ("price", "terms") or "usd" in name:
        return "price"
    if factor in ("storage", "egress"):
        return "workload"
    if factor in _MODEL:
        return "model"
    return "other" if not name else "assumption"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format_count(value) if abs(value) >= _MANY else f"{value:,.4g}"
    return str(value)


def _money(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}${abs(value):,.2f}"


def as_markdown(found: CostChange, over: Sequence[str] = (), *, github: bool = False) -> str:
    """Write a comment for a pull request, in plain Markdown or with what GitHub's knows beside it."""
    was, now = found.paid
    share = f" ({(now - was) / was:+.1%})" if was > 0 else ""
    head = f"### GPU cost: {_money(now - was)}{share}" if abs(now - was) >= _CENT else "### GPU cost: unchanged"
    if found.days is not None and abs(found.days[1] - found.days[0]) >= 0.005:
        head += f", {found.days[1] - found.days[0]:+.2f} days"
    lines = [head, ""]
    lines += [f"> [!CAUTION]\n> {text}\n" if github else f"**{text}**\n" for text in over]
    lines += [
        "| | before | after | change |",
        "|---|--:|--:|--:|",
        *(
            f"| {_cell(label)} | ${before:,.2f} | ${after:,.2f} | {_money(after - before)} |"
            for label, before, after in found.costs
        ),
        f"| {found.subject}, {found.figure.replace('_', ' ')} | ${found.before:,.2f} | ${found.after:,.2f} |"
        f" {_money(found.change)} |",
    ]
    if found.days is not None:
        lines.append(f"| days | {found.days[0]:,.2f} | {found.days[1]:,.2f} | {found.days[1] - found.days[0]:+,.2f} |")
    if found.rows:
        lines += ["", "| kind | cause | before | after | effect |", "|---|---|--:|--:|--:|"]
        ordered = sorted(found.rows, key=lambda row: (KINDS.index(row[0]), -abs(row[4])))
        lines += [f"| {' | '.join(map(_cell, row[:4]))} | {_money(row[4])} |" for row in ordered]
    if found.notes:
        notes = [f"- {_cell(note)}" for note in found.notes]
        lines += ["", *(["<details><summary>Notes</summary>", "", *notes, "</details>"] if github else notes)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def as_text(found: CostChange, over: Sequence[str] = ()) -> str:
    """Write the same for a terminal."""
    share = f" ({found.change / found.before:+.1%})" if found.before > 0 else ""
    lines = [f"{label}: ${was:,.2f} to ${now:,.2f}, {_money(now - was)}" for label, was, now in found.costs]
    lines.append(f"{found.subject}: ${found.before:,.2f} to ${found.after:,.2f}, {_money(found.change)}{share}")
    if found.days is not None:
        lines.append(f"days: {found.days[0]:,.2f} to {found.days[1]:,.2f}, {found.days[1] - found.days[0]:+,.2f}")
    lines += [f"{row[0]:<10} {row[1]:<26} {row[2]:>12} {row[3]:>12} {_money(row[4]):>16}" for row in found.rows]
    return "\n".join([*lines, *over]) + "\n"


def beyond(found: CostChange, budget: float | None, most_rise: float | None) -> list[str]:
    """Say which limits the second answer breaks: a budget in USD, a share by which it may rise."""
    said = []
    was, now = found.paid
    if budget is not None and now > budget:
        said.append(f"${now:,.2f} is ${now - budget:,.2f} over the budget of ${budget:,.2f}.")
    if most_rise is not None and was > 0 and (now - was) / was > most_rise:
        said.append(f"The cost rises by {(now - was) / was:.1%}; at most {percent(most_rise)} is allowed.")
    return said
