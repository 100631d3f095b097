"""What a price known on a day says of the days after: `python -m benchmarks.backtest [--write]` makes docs/backtest.md.

A run is planned on day K with what was known on K, and bought on day K + h at what it cost then. Its GPU-hours are the
same on both days, so that the error of its cost is the error of the price:

    error = price on K + h / price on K as known on K - 1

for every offer that could be ordered on K, by quarter, over the horizons below.
"""

import argparse
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from statistics import median, quantiles

from gpucost.catalog import open_catalog
from gpucost.catalog.asof import FOREVER
from gpucost.catalog.prices import quarters
from gpucost.options import OPTIONS

HORIZONS_DAYS = (30, 90, 180, 365)
NAMES = {"on demand": "on demand", "preemptible": "spot", "committed": "commitments"}
QUERY = """
SELECT p.offer_id, p.option, p.usd_per_gpu_hour AS planned, a.usd_per_gpu_hour AS paid
FROM prices_on($day, $day) AS p
LEFT JOIN (SELECT * FROM prices_on($later, $known) WHERE ended IS NULL) AS a USING (offer_id)
WHERE p.ended IS NULL AND NOT p.conflict"""

HEAD = """# What a price says of tomorrow

Made by `python -m benchmarks.backtest --write`. A run is planned on the first day of a quarter with what was known on
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
    given = parser.parse_args()
    last = open_catalog().dated
    text = "\n".join(table(errors(last, given.quarters)))
    print(text)
    if given.write:
        head = HEAD.format(quarters=given.quarters - 1, last=last)
        Path("docs/backtest.md").write_text(head + text + "\n", "utf-8")


if __name__ == "__main__":
    main()
