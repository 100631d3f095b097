"""What an answer of a day says of the days after: `python -m benchmarks.backtest [--write]` makes docs/backtest.md.

The first answer. On the first day of every other month, with what was known then, a dozen questions are asked; once
with the prices of that day, once with those that were known LAG_DAYS before, as a table is that nobody refreshed. The
moves behind expected prices are fitted anew from what was known. What the first answer quotes and expects is held
against the next sighting of the same offer: a dated row, or a version of a catalogue that was read anew.

    error = quoted or expected price / price of the next sighting - 1

The constants behind the moves (`gpucost.catalog.price_moves.MoveRule`) are chosen on the answers of all years but one,
and reported on that year, year by year: no answer is judged by constants that it took part in choosing. Those that ship
are chosen on all years. Chosen are, by the loss below, how often the cheapest counts; then by family of options the
share of moves beyond either end of its range.

    loss = |bias of the expected price| + mean over families of |share inside - 80 %|

Every price. A run is planned on day K with what was known on K, and bought on day K + h at what it cost then. Its
GPU-hours are the same on both days, so that the error of its cost is the error of the price:

    error = price on K + h / price on K as known on K - 1

for every offer that could be ordered on K, by quarter, over the horizons below.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any, NamedTuple, TextIO

import numpy as np

from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.asof import FOREVER
from gpucost.catalog.price_moves import RULE, USUAL_END, MoveRule, family_of, price_moves_by_end, sighted_pairs
from gpucost.catalog.prices import quarters
from gpucost.errors import GpuCostError
from gpucost.market.expected_price import expected_prices
from gpucost.market.supply import Providers
from gpucost.options import OPTIONS, counted_age_days

HORIZONS_DAYS = (30, 90, 180, 365)
NAMES = {"on demand": "on demand", "preemptible": "spot", "committed": "commitments"}
QUERY = """
SELECT p.offer_id, p.option, p.usd_per_gpu_hour AS planned, a.usd_per_gpu_hour AS paid
FROM prices_on($day, $day) AS p
LEFT JOIN (SELECT * FROM prices_on($later, $known) WHERE ended IS NULL) AS a USING (offer_id)
WHERE p.ended IS NULL AND NOT p.conflict"""

LAG_DAYS = (0, 120)
FIRST_DAY, STEP_MONTHS = date(2024, 1, 1), 2
WITHIN_DAYS = 150  # a later sighting says nothing of the day of the answer
TRAINED = (
    {"model": "8b", "tokens": "100b"},
    {"model": "8b", "tokens": "100b", "gpu": "h100"},
    {"model": "8b", "tokens": "100b", "option": "on_demand"},
    {"model": "8b", "tokens": "100b", "gpu": "a100-80gb"},
    {"model": "70b", "tokens": "300b", "deadline": "60d"},
    {"model": "1b", "tokens": "20b"},
    {"model": "8b", "tokens": "50m", "method": "lora", "gpus": 1},
    {"model": "8b", "tokens": "100b", "option": "spot"},
)
SERVED = (
    {"model": "8b"},
    {"model": "8b", "gpu": "l4"},
    {"model": "70b", "precision": "fp8", "gpu": "h100"},
    {"model": "70b", "precision": "int8", "gpu": "a100-80gb"},
)
_NEXT = """
SELECT number - $known AS days, usd FROM sightings
WHERE offer_id = $offer AND number > $known AND number >= $day AND number <= $day + $within
ORDER BY number LIMIT 1"""


RULES = [MoveRule(cheapest_weight=weight) for weight in (1.0, 20.0)]
SHARES = (0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2)  # of moves beyond either end of a range
INSIDE = 0.8
FEWEST = 30  # answers seen again, of a family whose ends are chosen


class Answered(NamedTuple):
    """A first answer, and what the same offer was next seen to cost."""

    day: date
    lag_days: int
    family: str
    tier: str  # what one can order, or not
    quoted: float
    expected: float
    ends: dict[float, tuple[float, float]]  # share of moves beyond either end -> low and high price
    seen: float | None  # None where it was not seen again

    def inside(self, share: float) -> bool:
        """Tell whether the next sighting lies in the range, prices being rounded."""
        low, high = self.ends[share]
        return self.seen is not None and low * (1 - NEAR) <= self.seen <= high * (1 + NEAR)


Judged = tuple[Answered, float]  # an answer, and the share of moves beyond either end that its range was chosen with


def first_answers(last: date, rule: MoveRule, out: TextIO, most: int | None = None) -> list[Answered]:
    """Ask every question on every day, or on `most` of them, and return what came of the first answers."""
    from gpucost import estimate, inference

    whole = open_catalog(last)
    pairs = sighted_pairs(whole)
    found = []
    days = months(FIRST_DAY, last)[::STEP_MONTHS]
    for day in days[:: -(-len(days) // most)] if most else days:
        for lag in LAG_DAYS:
            known = day - timedelta(days=lag)
            catalog = open_catalog(day, known)
            moves = price_moves_by_end(pairs, known, rule, SHARES)
            catalog.derived["price_moves"] = moves[USUAL_END]
            ranges = {share: _ranges(catalog, rows) for share, rows in moves.items()}
            trained: list[tuple[Callable[..., Any], dict[str, Any]]] = [
                (estimate, {**question, "with_facts": False}) for question in TRAINED
            ]
            for ask, question in (*trained, *((inference, question) for question in SERVED)):
                with suppress(GpuCostError):
                    best = ask(**question, top=1, catalog=catalog).payload["options"][0]
                    found.append(_answered(whole, day, lag, best, ranges))
            out.write(f"{day} {lag}\n")
            out.flush()
    return found


def months(first: date, last: date) -> list[date]:
    """Return the first day of each month, both ends included."""
    count = (last.year - first.year) * 12 + last.month - first.month + 1
    return [
        date(first.year + (first.month - 1 + step) // 12, (first.month - 1 + step) % 12 + 1, 1) for step in range(count)
    ]


def _ranges(catalog: Catalog, moves: list[dict[str, Any]]) -> dict[str, tuple[float, float] | None]:
    """Return the ends of each offer's price over the expected one under some moves; None where none are known."""
    offers, sellers = catalog.offers(), Providers(catalog.rows("providers"))
    ages = np.array([counted_age_days(offer.age_days, offer.price_kind) for offer in offers], np.float64)
    found = expected_prices(offers, ages, [sellers.kind(offer.provider) for offer in offers], moves)
    return {
        offer.offer_id: (float(low / ratio), float(high / ratio)) if (low < 1 or high > 1 or ratio != 1) else None
        for offer, low, ratio, high in zip(offers, found.low_ratio, found.ratio, found.high_ratio, strict=True)
    }


def _answered(
    whole: Catalog,
    day: date,
    lag: int,
    best: Mapping[str, Any],
    ranges: Mapping[float, Mapping[str, tuple[float, float] | None]],
) -> Answered:
    number = day.toordinal() - date(1970, 1, 1).toordinal()
    asked = {"offer": best["offer_id"], "known": number - lag, "day": number + (lag == 0), "within": WITHIN_DAYS}
    rows = whole.store.fetch(_NEXT, asked)
    expected, factors = best["usd_per_gpu_hour"], best["factors"]
    return Answered(
        day,
        lag,
        family_of(best["option"]),
        "verified" if not best["missing"] else "unverified",
        best["quoted_usd_per_gpu_hour"],
        expected,
        {
            share: (expected * low, expected * high)
            for share, by_offer in ranges.items()
            for low, high in [by_offer[best["offer_id"]] or (factors["price_low_ratio"], factors["price_high_ratio"])]
        },
        rows[0]["usd"] if rows else None,
    )


def _bias(found: list[Answered], which: str) -> float:
    return mean(getattr(one, which) / one.seen - 1 for one in found if one.seen)


def _families(found: list[Answered]) -> list[str]:
    """Return the families of which enough answers were seen again."""
    counts = Counter(one.family for one in found if one.seen)
    return sorted(family for family, count in counts.items() if count >= FEWEST)


def choose(answers: Mapping[MoveRule, list[Answered]], allowed: Callable[[Answered], bool]) -> MoveRule:
    """Return the rule with the least loss on the answers that may take part, its ends by family among it."""
    best: tuple[float, MoveRule] | None = None
    for rule, every in answers.items():
        seen = [one for one in every if one.seen and allowed(one)]
        ends, losses = {}, []
        for family in _families(seen):
            of = [one for one in seen if one.family == family]
            off = {share: abs(mean(one.inside(share) for one in of) - INSIDE) for share in SHARES}
            ends[family] = min(SHARES, key=lambda share: (round(off[share], 3), abs(share - USUAL_END)))
            losses.append(off[ends[family]])
        loss = abs(_bias(seen, "expected")) + (mean(losses) if losses else 0.0)
        if best is None or loss < best[0] - 1e-9:
            best = loss, rule._replace(ends=tuple(sorted(ends.items())))
    assert best is not None
    return best[1]


def nested(answers: Mapping[MoveRule, list[Answered]]) -> tuple[list[Judged], dict[int, MoveRule]]:
    """Return each answer as the constants chosen without its year judge it, and those constants by year."""
    years = sorted({one.day.year for every in answers.values() for one in every})
    rules = {year: choose(answers, lambda one, year=year: one.day.year != year) for year in years}  # type: ignore[misc]
    judged = [
        (one, rule.end(one.family))
        for year, rule in rules.items()
        for one in answers[rule._replace(ends=())]
        if one.day.year == year
    ]
    return judged, rules


def answers_table(judged: list[Judged]) -> list[str]:
    """Return the table of the first answers: by age of the prices, family of options and year."""
    lines = [
        "| prices known | answers | seen again | bias of the quote | bias of the expected price | 80 % range holds |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    found = [one for one, _ in judged]
    groups: list[tuple[str, Callable[[Answered], bool]]] = [("all", lambda one: True)]
    for lag in LAG_DAYS:
        groups.append((f"{lag} days before" if lag else "on the day", lambda one, lag=lag: one.lag_days == lag))
    for family in sorted({one.family for one in found}):
        groups.append((family, lambda one, family=family: one.family == family))
    for year in sorted({one.day.year for one in found}):
        groups.append((f"in {year}", lambda one, year=year: one.day.year == year))
    for name, of in groups:
        again = [(one, share) for one, share in judged if one.seen and of(one)]
        if not again:
            continue
        quote, expected = (_bias([one for one, _ in again], which) for which in ("quoted", "expected"))
        inside = mean(one.inside(share) for one, share in again)
        few = "" if len(again) >= FEWEST else " (few)"
        asked = sum(of(one) for one in found)
        lines.append(f"| {name} | {asked} | {len(again)} | {quote:+.1%} | {expected:+.1%} | {inside:.0%}{few} |")
    return lines


def rules_table(rules: Mapping[Any, MoveRule]) -> list[str]:
    """Return the constants that were chosen, by the year that they are reported on."""
    families = sorted({family for rule in rules.values() for family, _ in rule.ends})
    lines = [
        f"| reported on | half-life | weight of the cheapest | {' | '.join(f'ends, {name}' for name in families)} |",
        f"|---|--:|--:|{'--:|' * len(families)}",
    ]
    for name, rule in rules.items():
        ends = " | ".join(f"{rule.end(family):.1%}" for family in families)
        lines.append(f"| {name} | {rule.half_life_days:g} days | {rule.cheapest_weight:g} | {ends} |")
    return lines


NEAR = 0.002  # rounding of prices

ANSWERS = """# What an answer says of tomorrow

Made by `python -m benchmarks.backtest --write`.

## The first answer

On the first day of every other month from {first} to {last}, with what was known then, a dozen typical questions are
asked: eight of training, four of serving. What the first answer quoted and what it expected is held against what the
same offer was next seen to cost, by a source that was read again. Half of the answers know the prices of that day; the
others know what was known {lag} days before, as a table does that nobody refreshed. The moves behind the expected
prices are fitted anew for each day from what was known. A bias below zero means that the offer cost more than was said.

The constants of the fit are chosen on the other years: no answer is judged by constants that it took part in choosing.

"""

CHOSEN = """
What was chosen. The ends are the share of past moves beyond either end of a range. A family without a column had too
few answers; a commitment costs what its list says, and its range is that price.

"""

HEAD = """
## Every price

A run is planned on the first day of a quarter with what was known on
that day, and bought some days later at what it cost then. Its GPU-hours are the same, so the error of its cost is that
of the price. Every offer that could be ordered on the first day counts once per quarter, over {quarters} quarters to
{last}; an error above zero means that the run cost more than planned. Where no source looked again, the price of the
last sight counts, so that prices seem steadier than they were; those of Google and AWS were looked at most often.

"""


def errors(last: date, count: int) -> dict[tuple[str, int], list[float | None]]:
    """Return the errors by family and horizon; None is an offer that was there no more."""
    catalog = open_catalog(last)
    catalog.prepare_prices(history=True)
    found: dict[tuple[str, int], list[float | None]] = defaultdict(list)
    for day in quarters(last, count)[:-1]:
        for days in HORIZONS_DAYS:
            later = day + timedelta(days=days)
            if later > last:
                continue
            for row in catalog.query(QUERY, parameters={"day": day, "later": later, "known": FOREVER}):
                family = NAMES.get(OPTIONS[row["option"]].family)
                if family:
                    found[family, days].append(None if row["paid"] is None else row["paid"] / row["planned"] - 1)
    return found


def table(found: dict[tuple[str, int], list[float | None]]) -> list[str]:
    lines = [
        "| bought as | days later | offers | within 5 % | median error | 5th to 95th percentile | there no more |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for family in NAMES.values():
        for days in HORIZONS_DAYS:
            every = found.get((family, days), [])
            known = [error for error in every if error is not None]
            if len(known) < 20:
                continue
            cuts = quantiles(known, n=20)
            close = sum(abs(error) <= 0.05 for error in known) / len(known)
            lines.append(
                f"| {family} | {days} | {len(every):,} | {close:.0%} | {median(known):+.1%} |"
                f" {cuts[0]:+.0%} to {cuts[-1]:+.0%} | {1 - len(known) / len(every):.0%} |"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/backtest.md")
    parser.add_argument("--quarters", type=int, default=17)
    parser.add_argument("--days", type=int, help="ask on so many days at most, and write nothing")
    parser.add_argument("--answers", metavar="FILE", help="write the first answers as JSON, one by one")
    given = parser.parse_args()
    if given.write and given.days:
        parser.error("docs/backtest.md counts every day: leave out --days or --write.")
    last = open_catalog().dated
    answers = {rule: first_answers(last, rule, sys.stderr, given.days) for rule in RULES}
    judged, rules = nested(answers)
    if given.answers:
        rows = [{**one._asdict(), "ends": {str(share): one.ends[share] for share in SHARES}, "chosen": share}
                for one, share in judged]  # fmt: skip
        Path(given.answers).write_text(json.dumps(rows, default=str), "utf-8")
    shipped = choose(answers, lambda one: True)
    first_text = ANSWERS.format(first=FIRST_DAY, last=last, lag=LAG_DAYS[-1]) + "\n".join(answers_table(judged)) + "\n"
    first_text += CHOSEN + "\n".join(rules_table({**rules, "what ships": shipped})) + "\n"
    print(first_text)
    if shipped != RULE:
        sys.stderr.write(f"gpucost.catalog.price_moves.RULE is {RULE}; chosen on all years: {shipped}\n")
    if given.write:
        text = "\n".join(table(errors(last, given.quarters)))
        head = HEAD.format(quarters=given.quarters - 1, last=last)
        Path("docs/backtest.md").write_text(first_text + head + text + "\n", "utf-8")


if __name__ == "__main__":
    main()
