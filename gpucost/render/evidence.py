"""What an auditor asks of a comparison: where its numbers come from, since when, who changed them, do they add up."""

import re
from collections.abc import Mapping
from typing import Any

from gpucost.answers.ownership import Tco
from gpucost.render.document import Fact, KeyFigures, Row, Section, amount, day_text, format_named, heading_of
from gpucost.units import counted

TITLE = "For an auditor"
_CENT = 0.01  # sums are of floats: what differs by less is rounding
_MOST = 3  # inputs that are named in a sentence
_PRICES = ("rent_usd_per_gpu_hour", "server_usd", "gpu_usd", "all_in_usd_per_gpu")


def section(answer: Tco, board: bool = False) -> Section:
    """Return the five questions with their answers."""
    facts = tuple(Fact(question, text) for question, text in answers(answer).items())
    return Section(TITLE, [KeyFigures(facts, style="questions")], board=board)


def answers(answer: Tco) -> dict[str, str]:
    """Return what an auditor asks, with the answers."""
    inputs: list[Row] = [dict(row) for row in answer["assumptions"] if row["counts"]]
    given = [_input_text(row) for row in inputs if row["status"] == "given"]
    changes = f"Whoever asked gave {', '.join(given)}" if given else "Whoever asked gave no input"
    issued = answer.get("issued")
    by = f" {issued['status'].capitalize()} by {issued['by'] or 'nobody named'} on {issued['on']}." if issued else ""
    # of the inputs without a source, those that move the answer most: the sensitivity has them in this order
    assumed = {row["name"]: row for row in inputs if row["status"] == "assumed"}
    without = len(assumed)
    moving = [row["name"] for row in answer["sensitivity"] if row["name"] in assumed][:_MOST]
    most = ", ".join(_input_text(assumed[name]) for name in moving)
    movers = f"those that move the answer most: {most}." if most else "none of them moves the answer much."
    # whether the lines, months and years add up
    gap, npv = gap_usd(answer), answer["npv_usd"]
    own, rent = (sum(row["side"] == side for row in answer["lines"]) for side in ("own", "rent"))
    sums = (
        f"the {counted(own, 'line')} of buying add up to ${npv['own']:,.0f}, the {counted(rent, 'line')} of renting to"
        f" ${npv['rent']:,.0f}, and the months to the years"
    )
    # what the inputs rest on; of each price the publisher, else what the row itself says of where it comes from
    count = {word: sum(row["status"] == word for row in inputs) for word in ("sourced", "given", "derived", "assumed")}
    prices = []
    for row in inputs:
        if row["name"] not in _PRICES or not isinstance(row["value"], (int, float)):
            continue
        source: Mapping[str, Any] = answer["sources"].get(row["source_id"] or "") or {}
        origin = source.get("publisher") or ("the question" if row["status"] == "given" else row["note"] or "no source")
        prices.append(f"{heading_of(row['name'])} of {amount(row['value'], row['unit'])} from {origin}")
    origins = (
        f"From {counted(len(inputs), 'input')}: {count['sourced']} have a source, {count['derived']} follow from"
        f" others, {count['given']} were given, {count['assumed']} are assumed. Prices: {'; '.join(prices) or 'none'}."
    )
    # how old the prices and the oldest figure are
    observed = {row["name"]: str(row["observed"]) for row in inputs if row.get("observed")}
    sightings = [f"{heading_of(name)} was seen on {observed[name]}" for name in _PRICES if name in observed]
    # some are dated by a day, some by a year or a span of years: the first year in the text is what all have
    years = {}
    for name, text in observed.items():
        if year := re.search(r"20\d\d", text):
            years[name] = year[0]
    oldest = min(years, key=lambda name: years[name], default=None)
    dates = [f"As of {day_text(answer['as_of'])}, catalog {answer['catalog_version']}."]
    dates += [f"The {' and the '.join(sightings)}."] if sightings else []
    dates += [f"The oldest figure is {heading_of(oldest)}, of {observed[oldest]}."] if oldest else []
    return {
        "Where does this number come from?": origins,
        "When was it true?": " ".join(dates),
        "Who changed it?": f"{changes}; all others are as shipped.{by}",
        "What is assumed?": f"{without} of {counted(len(inputs), 'input')} that count have no source; {movers}",
        "Does it add up?": f"Yes: {sums}, to the cent." if gap < _CENT else f"No: {sums}, but for ${gap:,.2f}.",
    }


def _input_text(row: Row) -> str:
    """Name an input with its value; a unit that is its name stands once."""
    text = row["value"] if isinstance(row["value"], str) else format_named(row["name"], row["value"])
    return text if text.endswith(f" {heading_of(row['name'])}") else f"{heading_of(row['name'])} {text}"


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
