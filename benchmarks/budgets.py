"""A record of budgets: `python -m benchmarks.budgets [--write]` makes docs/budgets.md.

Twelve questions are asked on past days, each with what was known on its day. The budget that the first answer named is
held against what the same order came to:

    price          what the offer cost at the first look of its source 15 to 75 days later, a usual wait for an order;
                   where it was gone, the first offer behind it in the answer that was still there
    speed          predicted ÷ measured on the same accelerator, each measurement one way in which it may have gone: of
                   training those left out of the fit, of serving those of the fit
    outcome        cost × price then ÷ quote × predicted ÷ measured speed

An order whose source was never read again in that time is not judged, and counted.
"""

import argparse
import csv
import sys
from collections import defaultdict
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from gpucost import clock
from gpucost.calibration import serving
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.asof import load_history
from gpucost.catalog.calibrations import serving_calibration
from gpucost.errors import GpuCostError

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "budgets.md"
DAYS = tuple(date(2025, month, 1) for month in (3, 6, 9, 12)) + tuple(date(2026, month, 1) for month in (2, 4, 6, 8))
# as people ask: with a deadline, a chip, a method, or nothing but the model
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("estimate", {"model": "70b", "tokens": "2t", "deadline": "60d"}),
    ("estimate", {"model": "llama-3-8b", "tokens": "50m", "method": "lora", "gpus": 1}),
    ("estimate", {"model": "8b", "tokens": "100b"}),
    ("estimate", {"model": "8b", "tokens": "100b", "gpu": "h100-sxm"}),
    ("estimate", {"model": "8b", "tokens": "100b", "gpu": "a100-80gb"}),
    ("estimate", {"model": "70b", "tokens": "100m", "method": "qlora"}),
    ("estimate", {"model": "1b", "tokens": "20b"}),
    ("estimate", {"model": "70b", "tokens": "300b", "deadline": "60d"}),
    ("inference", {"model": "70b", "prompt_tokens": 1000, "output_tokens": 300, "requests_per_s": 5}),
    ("inference", {"model": "8b", "requests_per_s": 2}),
    ("inference", {"model": "8b", "gpu": "l4"}),
    ("inference", {"model": "70b", "precision": "fp8", "gpu": "h100-sxm"}),
)
FIRST_DAYS, LAST_DAYS = 15, 75  # between the answer and the look that says what it came to
FEWEST = 5  # measurements of an accelerator from which its errors are read; else those of all

# on which days each offer was seen, at what price: catalogues by their versions, dated rows by their publisher's days
_SIGHTS = """
CREATE OR REPLACE TABLE budget_sights AS
WITH versions AS (SELECT DISTINCT source_id AS book, observed_on AS day FROM price_history)
SELECT h.offer_id, h.provider, v.book, v.day, min(h.usd_per_gpu_hour) AS usd
FROM history_offers AS h JOIN versions AS v
    ON v.book = h.source_id AND v.day BETWEEN h.observed_on AND h.seen_until
WHERE NOT h.gone AND h.usd_per_hour > 0 GROUP BY ALL
UNION ALL BY NAME
SELECT o.offer_id, o.provider, coalesce(s.publisher, o.source_id) AS book, o.observed_on AS day,
    median(o.usd_per_gpu_hour) AS usd
FROM offers AS o LEFT JOIN price_sources AS s USING (source_id)
WHERE o.offer_kind = 'offer' AND o.usd_per_hour > 0 AND o.source_id NOT IN (SELECT book FROM versions) GROUP BY ALL"""
# the first look of an offer's own source in the days after the answer, and the offer's price then or at its next sight
_LOOK = """
WITH books AS (SELECT DISTINCT book, provider FROM budget_sights WHERE offer_id = $offer AND day <= $day)
SELECT min(s.day) AS look, (
    SELECT arg_min(usd, day) FROM budget_sights
    WHERE offer_id = $offer AND day >= min(s.day)
) AS usd
FROM budget_sights AS s JOIN books USING (book, provider) WHERE s.day BETWEEN $day + $first AND $day + $last"""


class Record(NamedTuple):
    """A first answer of a past day: what it named, and what the order came to, once for each measured speed."""

    day: date
    question: int
    best: dict[str, Any]
    cost: float
    low: float
    budget: float
    price_ratio: float | None  # None where nobody looked again
    is_gone: bool
    outcomes: tuple[float, ...]


@cache
def _speed_errors(whole: Catalog) -> dict[tuple[str, str], list[float]]:
    """Return predicted ÷ measured speed by kind of work and accelerator; "" is any accelerator.

    Of training those of measurements left out of the fit, of serving those of today's fit.
    """
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    # rows of training as docs/accuracy-rows.csv predicts them, without their source
    with (ROOT / "docs" / "accuracy-rows.csv").open(newline="", encoding="utf-8") as file:
        predicted = {row["id"]: float(row["predicted"]) / float(row["measured"]) for row in csv.DictReader(file)}
    items, _ = serving.predict(serving.gather(whole.rows("serving_measurements"), whole), serving_calibration(whole))
    served = {item.id: item.predicted / item.measured for item in items if item.metric == "output_tokens_per_s"}
    for kind, ratios in (("training", predicted), ("serving", served)):
        for row in whole.rows(f"{kind}_measurements"):
            if (ratio := ratios.get(row["id"])) is None:
                continue
            errors[kind, ""].append(ratio)
            with suppress(GpuCostError):
                errors[kind, _chip(whole, row.get("accelerator") or row["gpu"])].append(ratio)
    return dict(errors)


@cache
def _chip(whole: Catalog, name: str) -> str:
    return whole.accelerator(name).id


def later(whole: Catalog, offer_id: str, day: date) -> tuple[bool, float | None]:
    """Return whether a source was read again, and what the offer cost then; None where it was gone."""
    row = whole.laid.fetch(_LOOK, {"offer": offer_id, "day": day, "first": FIRST_DAYS, "last": LAST_DAYS})[0]
    return row["look"] is not None, row["usd"]


def record(whole: Catalog, day: date, number: int, options: list[dict[str, Any]]) -> Record:
    """Return what became of the first of some options."""
    kind, best = QUESTIONS[number][0], options[0]
    # a run has its own ends, a month of serving those of its tokens
    if kind == "estimate":
        total, low, high = "cost_usd", best["cost_low_usd"], best["cost_high_usd"]
    else:
        total = "usd_per_month"
        low, high = (best[total] * best[f"usd_per_mtok_{end}"] / best["usd_per_mtok"] for end in ("low", "high"))
    cost, budget = best[total], best.get("budget_usd") or float(high)
    looked, usd = later(whole, best["offer_id"], day)
    ratio = None if usd is None else usd / best["usd_per_gpu_hour"]
    if looked and usd is None:  # gone: one would have taken the next offer that was still there
        for other in options[1:]:
            seen, then = later(whole, other["offer_id"], day)
            if seen and then is not None:
                ratio = other[total] / cost * then / other["usd_per_gpu_hour"]
                break
    errors = _speed_errors(whole)
    work = ("training" if kind == "estimate" else "serving", best["gpu"])
    of_chip = errors.get(work, [])
    errors_of_work = of_chip if len(of_chip) >= FEWEST else errors.get((work[0], ""), [])
    # predicted ÷ measured: a run that is slower than predicted costs as much more
    outcomes = () if not looked or ratio is None else tuple(cost * ratio * error for error in errors_of_work)
    return Record(day, number, best, cost, float(low), budget, ratio if looked else None, usd is None, outcomes)


def records(last: date, days: tuple[date, ...] = DAYS) -> tuple[list[Record], int]:
    """Ask every question on every day; return what was judged, and how many first answers could not be."""
    from gpucost import estimate, inference

    whole = open_catalog(last)
    whole.laid.ensure("price_history", "offers", "providers", "price_sources")
    load_history(whole.laid)
    whole.laid.execute(_SIGHTS)
    answers, unjudged = [], 0
    for day in days:
        catalog = open_catalog(day, day)  # what was known then, not what was recorded of that day later
        for number, (kind, question) in enumerate(QUESTIONS):
            ask = estimate if kind == "estimate" else inference
            extra = {"with_facts": False} if kind == "estimate" else {}
            with suppress(GpuCostError):
                # many options: where the first is gone, the next one that was still there is looked for among them
                options = ask(**question, **extra, top=40, catalog=catalog).payload["options"]  # type: ignore[operator]
                answer = record(whole, day, number, options)
                answers.append(answer)
                unjudged += not answer.outcomes
        sys.stderr.write(f"{day}\n")
    return answers, unjudged


def figures(answers: list[Record]) -> dict[str, float]:
    """Return the coverage of budgets and ranges, and how wide budgets are; each first answer weighs the same."""
    ended = [answer for answer in answers if answer.outcomes]
    return {
        "first answers judged": len(ended),
        "share of outcomes below the budget": mean(mean(x <= a.budget for x in a.outcomes) for a in ended),
        "share inside the range": mean(mean(a.low <= x <= a.budget for x in a.outcomes) for a in ended),
        "median of budget ÷ outcome": median(a.budget / median(a.outcomes) for a in ended),
        "share still sold": mean(not a.is_gone for a in ended),
    }


def page(answers: list[Record], unjudged: int) -> str:
    """Return the page."""
    lines = ["# A record of budgets", "", "Made by `python -m benchmarks.budgets --write`.", ""]
    lines += [
        "Twelve questions, asked on past days with what was known then. The budget that the first answer named is held",
        f"against what the same order came to: its price at the next look of its source, {FIRST_DAYS} to {LAST_DAYS}",
        "days later, or that of the next offer in the answer where it was gone; and its speed, by the errors of",
        "predictions on measurements of the same accelerator that were left out of the fit. Goals: nine of ten below",
        "the budget, eight of ten within the range, and budget ÷ outcome at most 1.35 in the median. Chances are those",
        "of today's table of quotes, which knows what came after; prices, offers and lists are those of the day.",
        "",
        "| | |",
        "|---|--:|",
    ]
    for name, value in figures(answers).items():
        shown = f"{value:.0%}" if name.startswith("share") else f"{value:.3g}"
        lines.append(f"| {name} | {shown} |")
    lines += [f"| first answers whose source was not read again | {unjudged} |", ""]
    lines += ["| question | first answers | below budget | budget ÷ outcome | still sold |", "|---|--:|--:|--:|--:|"]
    for number, (kind, question) in enumerate(QUESTIONS):
        ended = [answer for answer in answers if answer.question == number and answer.outcomes]
        if ended:
            each = figures(ended)
            command = " ".join([kind, *(f"--{name.replace('_', '-')} {value}" for name, value in question.items())])
            lines.append(
                f"| `{command}` | {len(ended)} | {each['share of outcomes below the budget']:.0%} |"
                f" {each['median of budget ÷ outcome']:.2f} | {each['share still sold']:.0%} |"
            )
    lines += ["", "| day | question | first answer | cost | budget | price then ÷ quote | typical outcome |"]
    lines += ["|---|--:|---|--:|--:|--:|--:|"]
    for answer in answers:
        best = answer.best
        offer = f"{best['gpus']:,} × {best['gpu']} at {best['provider']}, {best['option'].replace('_', ' ')}"
        if not answer.outcomes:
            then, typical = "not read again", "–"
        else:
            then = "gone" if answer.is_gone else f"{answer.price_ratio:.2f}"
            typical = f"{median(answer.outcomes):,.0f}"
        lines.append(
            f"| {answer.day} | {answer.question + 1} | {offer} | {answer.cost:,.0f} | {answer.budget:,.0f} | {then} |"
            f" {typical} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as-of", type=date.fromisoformat, default=clock.today(), help="the day that looks back")
    parser.add_argument("--write", action="store_true", help="write docs/budgets.md")
    parser.add_argument("--days", type=int, default=len(DAYS), help="ask on the last so many days")
    options = parser.parse_args()
    if options.write and options.days < len(DAYS):
        parser.error("docs/budgets.md counts every day: leave out --days or --write.")
    text = page(*records(options.as_of, DAYS[-options.days :]))
    if options.write:
        PAGE.write_text(text, "utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
