"""What an auditor asks of a comparison: where its numbers come from, since when, who changed them, do they add up."""

import re
from collections.abc import Mapping
from typing import Any

from gpucost.answers.ownership import Tco
from gpucost.render.document import Fact, KeyFigures, Row, Section, amount, day_text, format_named, heading_of
from gpucost.units import counted

TITLE = "For an auditor"
_CENT = 0.01
_MOST = 3  # inputs that are named in a sentence
_PRICES = ("rent_usd_per_gpu_hour", "server_usd", "gpu_usd", "all_in_usd_per_gpu")


def section(answer: Tco, board: bool = False) -> Section:
    """Return the five questions with their answers."""
    facts = tuple(Fact(question, said) for question, said in answers(answer).items())
    return Section(TITLE, [KeyFigures(facts, style="questions")], board=board)


def answers(answer: Tco) -> dict[str, str]:
    """Return what an auditor asks, with the answers."""
    inputs: list[Row] = [dict(row) for row in answer["assumptions"] if row["counts"]]
    return {
        "Where does this number come from?": _origin(answer, inputs),
        "When was it true?": _dates(answer, inputs),
        "Who changed it?": _changes(answer, inputs),
        "What is assumed?": _assumed(answer, inputs),
        "Does it add up?": _sums(answer),
    }


def _origin(answer: Tco, inputs: list[Row]) -> str:
    """Count the inputs by what they rest on, and name the source of each price."""
    count = {word: sum(row["status"] == word for row in inputs) for word in ("sourced", "given", "derived", "assumed")}
    named = [
        f"{heading_of(row['name'])} of {amount(row['value'], row['unit'])} from {_publisher(answer, row)}"
        for row in inputs
        if row["name"] in _PRICES and isinstance(row["value"], (int, float))
    ]
    return (
        f"From {counted(len(inputs), 'input')}: {count['sourced']} have a source, {count['derived']} follow from"
        f" others, {count['given']} were given, {count['assumed']} are assumed. Prices: {'; '.join(named) or 'none'}."
    )


def _publisher(answer: Tco, row: Row) -> str:
    source: Mapping[str, Any] = answer["sources"].get(row["source_id"] or "") or {}
    return str(source.get("publisher") or ("the question" if row["status"] == "given" else row["note"] or "no source"))


def _dates(answer: Tco, inputs: list[Row]) -> str:
    """Say of which day the answer is, and how old its prices and its oldest figure are."""
    dated = {row["name"]: str(row.get("observed") or "") for row in inputs if row.get("observed")}
    prices = [f"{heading_of(name)} was seen on {dated[name]}" for name in _PRICES if name in dated]
    years = {name: found[0] for name, text in dated.items() if (found := re.findall(r"20\d\d", text))}
    oldest = min(years, key=lambda name: years[name], default=None)
    told = [f"As of {day_text(answer['as_of'])}, catalog {answer['catalog_version']}."]
    told += [f"The {' and the '.join(prices)}."] if prices else []
    told += [f"The oldest figure is {heading_of(oldest)}, of {dated[oldest]}."] if oldest else []
    return " ".join(told)


def _changes(answer: Tco, inputs: list[Row]) -> str:
    """Name the inputs that whoever asked gave, and who issued the answer."""
    given = [_named(row) for row in inputs if row["status"] == "given"]
    asked = f"Whoever asked gave {', '.join(given)}" if given else "Whoever asked gave no input"
    issued = answer.get("issued")
    by = f" {issued['status'].capitalize()} by {issued['by'] or 'nobody named'} on {issued['on']}." if issued else ""
    return f"{asked}; all others are as shipped.{by}"


def _named(row: Row) -> str:
    """Name an input with its value; a unit that is its name stands once."""
    text = row["value"] if isinstance(row["value"], str) else format_named(row["name"], row["value"])
    return text if text.endswith(f" {heading_of(row['name'])}") else f"{heading_of(row['name'])} {text}"


def _assumed(answer: Tco, inputs: list[Row]) -> str:
    """Say how many inputs have no source, and which of them move the answer most."""
    without = {row["name"]: row for row in inputs if row["status"] == "assumed"}
    moving = [row["name"] for row in answer["sensitivity"] if row["name"] in without][:_MOST]
    most = ", ".join(_named(without[name]) for name in moving)
    text = f"{len(without)} of {counted(len(inputs), 'input')} that count have no source"
    return (
        f"{text}; those that move the answer most: {most}." if most else f"{text}; none of them moves the answer much."
    )


def gap_usd(answer: Tco) -> float:
    """Return the most by which sums of the answer differ: lines and present values, months, years and lines."""
    gaps = []
    for side in ("own", "rent"):
        rows = [row for row in answer["lines"] if row["side"] == side]
        gaps.append(sum(row["npv_usd"] for row in rows) - answer["npv_usd"][side])
        paid = sum(row[f"{side}_total_usd"] for row in answer["cash_flows"])  # type: ignore[literal-required]
        gaps.append(sum(row["total_usd"] for row in rows) - paid)
        gaps.append(sum(row[f"{side}_total_usd"] for row in answer["by_year"]) - paid)  # type: ignore[literal-required]
    return max(map(abs, gaps))


def _sums(answer: Tco) -> str:
    """Say whether the lines, months and years add up."""
    gap = gap_usd(answer)
    own, rent = (sum(row["side"] == side for row in answer["lines"]) for side in ("own", "rent"))
    npv = answer["npv_usd"]
    sums = (
        f"the {counted(own, 'line')} of buying add up to ${npv['own']:,.0f}, the {counted(rent, 'line')} of renting to"
        f" ${npv['rent']:,.0f}, and the months to the years"
    )
    return f"Yes: {sums}, to the cent." if gap < _CENT else f"No: {sums}, but for ${gap:,.2f}."
