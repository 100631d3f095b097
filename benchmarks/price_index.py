"""The index of three standard jobs as table, picture and page, and the forecasts beside it.

Drawn by hand-written SVG, so that the same rows always give the same bytes.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from gpucost.catalog import open_catalog
from gpucost.library.price_index import FAULTS, JOBS, index_rows, yearly
from gpucost.market.forward import backtest_rows

TABLE = Path(__file__).resolve().parents[1] / "docs/price-index.csv"
WIDTH, HEIGHT, MARGIN, GAP = 900, 300, 46, 14
FIRST, LAST = date(2022, 1, 1), date(2027, 1, 1)
COLOURS = {"hyperscaler": "#1f77b4", "cloud": "#2ca02c", "marketplace": "#d62728"}
_BREAK_DAYS = 62  # a line is broken off where so many days have no price
_STYLE = "font-family:system-ui,sans-serif;font-size:11px;fill:#333"


def table() -> str:
    """Compute the index on the day of the newest facts."""
    catalog = open_catalog(open_catalog().dated)
    rows = index_rows(catalog)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{cell:.6g}" if isinstance(cell, float) else cell for name, cell in row.items()})
    return out.getvalue()


def read(text: str) -> list[dict[str, Any]]:
    """Read the table again, its months as days and its prices as numbers."""
    return [
        {**row, "month": date.fromisoformat(row["month"]), "usd": float(row["usd"])}
        for row in csv.DictReader(io.StringIO(text))
    ]


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """Draw the three jobs side by side: USD by month on a logarithmic axis, on demand in full, spot dashed."""
    width = (WIDTH - GAP * 2) / 3
    body = [part for number, job in enumerate(JOBS) for part in _panel(rows, job.id, job.title, number * (width + GAP))]
    legend = []
    for number, (kind, colour) in enumerate(COLOURS.items()):
        x = MARGIN + number * 130
        legend.append(f'<line x1="{x}" y1="14" x2="{x + 22}" y2="14" stroke="{colour}" stroke-width="2"/>')
        legend.append(f'<text x="{x + 28}" y="18" style="{_STYLE}">{kind}</text>')
    legend.append(f'<text x="{MARGIN + 400}" y="18" style="{_STYLE}">full: on demand, dashed: spot</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
            f' height="{HEIGHT}">',
            "<title>What three standard jobs cost in each month since 2022</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *legend,
            *body,
            "</svg>",
        ]
    )


def _panel(rows: Sequence[dict[str, Any]], job: str, title: str, left: float) -> list[str]:
    mine = [row for row in rows if row["job"] == job]
    width, top, bottom = (WIDTH - GAP * 2) / 3 - MARGIN, 52, HEIGHT - 26
    low = math.log10(min(row["usd"] for row in mine)) - 0.05
    high = math.log10(max(row["usd"] for row in mine)) + 0.05

    def place(day: date, usd: float) -> tuple[float, float]:
        x = left + MARGIN + width * (day - FIRST).days / (LAST - FIRST).days
        return round(x, 1), round(bottom - (bottom - top) * (math.log10(usd) - low) / (high - low), 1)

    drawn = [
        f'<text x="{left + MARGIN}" y="{top - 8}" style="{_STYLE};font-weight:600">{title}, USD</text>',
        f'<rect x="{left + MARGIN}" y="{top}" width="{width:.1f}" height="{bottom - top}" fill="none" stroke="#bbb"/>',
    ]
    for usd in _marks(low, high):
        _, y = place(FIRST, usd)
        drawn.append(f'<line x1="{left + MARGIN}" y1="{y}" x2="{left + MARGIN + width:.1f}" y2="{y}" stroke="#eee"/>')
        drawn.append(f'<text x="{left + MARGIN - 4}" y="{y + 4}" text-anchor="end" style="{_STYLE}">{usd:g}</text>')
    for year in range(FIRST.year, LAST.year):
        x, _ = place(date(year, 7, 1), 10**low)
        drawn.append(f'<text x="{x}" y="{bottom + 15}" text-anchor="middle" style="{_STYLE}">{year}</text>')
    for kind, colour in COLOURS.items():
        for option, dash in (("on_demand", ""), ("spot", ' stroke-dasharray="4 3"')):
            line = [row for row in mine if row["seller_kind"] == kind and row["option"] == option]
            for part in _unbroken(line):
                path = " ".join(f"{x},{y}" for x, y in (place(row["month"], row["usd"]) for row in part))
                drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
    return drawn


def _marks(low: float, high: float) -> list[float]:
    """Return round numbers between two powers of ten: 1, 2 and 5 of each decade."""
    found = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in (1, 2, 5)]
    return [usd for usd in found if low <= math.log10(usd) <= high]


def _unbroken(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Cut a line where months are missing."""
    parts: list[list[dict[str, Any]]] = []
    for row in sorted(rows, key=lambda row: row["month"]):
        if parts and (row["month"] - parts[-1][-1]["month"]).days <= _BREAK_DAYS:
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


def page(text: str) -> str:
    """Write the page of the index and of the forecasts."""
    rows = read(text)
    lines = yearly(rows)
    years = [name for name in lines[0] if name.startswith("usd_2")]
    head = ["job", "seller", "option", *(name[4:] for name in years), f"{max(row['month'] for row in rows):%Y-%m}"]
    last = max(row["month"] for row in rows)
    body = []
    for line in lines:
        now = line["usd_last"] if line["last_month"] == last else None
        cells = [line["job"], line["seller_kind"], line["option"], *(_usd(line[name]) for name in years), _usd(now)]
        body.append(cells)
    done = backtest_rows(open_catalog(open_catalog().dated))
    checks = [row for row in done if row["by"] != "generation"]
    generations = [row for row in done if row["by"] == "generation" and row["months"] == 12]
    said = "\n".join(f"- {fault}" for fault in FAULTS)
    return f"""# What jobs cost since 2022, and what a GPU-hour may cost

Made by `python -m docs.generate price-index.md`.

## The index

![What three standard jobs cost in each month since 2022](price-index.svg)

`gpucost prices index` computes what three standard jobs cost in each month, each on the chip that was cheapest for it:
an 8B model on 100B tokens, LoRA of a 70B model on 100M tokens, and a million tokens of a 70B model served (a prompt of
the usual length with its output). `--format csv` and `-o index.html` hold every month; [the table](price-index.csv) is
in the repository.

    cost = least over chips of GPU-hours of the job on the chip × price of a GPU-hour of the chip in the month

GPU-hours come from today's models of speed, in every month, so that what moves is prices and the chips that could be
had. Prices are those of `pricing/monthly_prices.csv`: the median over a seller's regions and machines, then over the
sellers of a kind. Its sources are those of the dated prices ([sources](sources.md)): the histories of Cyclenerd,
Karpenter and the SkyPilot catalogue, price lists, and archived pages.

{_markdown(head, body)}

What to know before use:

{said}

## What a GPU-hour may cost in years to come

`gpucost prices forward --gpu h100-sxm` says what a GPU-hour may cost in 12, 24 and 36 months, by kind of seller and
option, as P10 to P90. It looks at every chip, kind of seller and option whose monthly price is on record so many months
apart, and takes the 10th and 90th percentile of how far those prices moved. A move counts more the likelier it is: a
fifth where the kind of seller differs, a tenth where the option does, a third where one chip has stacked memory and the
other has not, and less by a factor e for every two years by which that chip was older or younger. Few moves widen the
range by √(1 + 10 ÷ n), n their effective number; no range narrows with the years.

P50 is today's price. That looks too plain, and is what the history says: list prices hardly move while a machine is
sold, in 2026 many rose. The settings were chosen on this same backtest, so its shares are flattering; for clouds half
of the median of past moves came slightly nearer after a year.

Nothing else leans on it: a plan takes such a price only where you give it one. JSON and CSV carry the yearly fall that
leads to P10 and to P90 after 36 months (`p10_yearly_fall_fraction`, `p90_yearly_fall_fraction`), as `gpucost tco --set
rent_decline_fraction=0.18` takes it; `usd_per_gpu_hour` of a supply of `gpucost mix` takes a price. Without it a plan
moves rents as list prices of the chip's generation moved ([method](tco-method.md)).

### What came after

From the end of each quarter since 2023, with what was known on that day:

{_markdown(_CHECK_HEAD, [_check(row) for row in checks])}

Twelve months, by generation of the chip:

{_markdown(_CHECK_HEAD, [_check(row) for row in generations])}

80 % would lie inside by chance. Spot falls short: in 2025 it fell further than any move before. So do clouds over 24
months: few were on record in 2024, and those that came since are cheaper. No forecast over 36 months can be held to
account yet.

### Cards

`gpucost prices forward --gpu h100-sxm --resale` says what a card may be sold for: its street price now times exp(−k ×
years), with the k of each other card whose launch price and dated street price are both known. These are few, each was
seen once, and memory is short in 2026; the range is wide for that.
"""


_CHECK_HEAD = ["months", "of", "forecasts", "cells", "inside P10 to P90", "below P10", "median miss of P50"]


def _check(row: dict[str, Any]) -> list[str]:
    shares = (f"{row[name]:.0%}" for name in ("inside_fraction", "below_fraction", "median_miss_fraction"))
    return [str(row["months"]), str(row["group"]), str(row["forecasts"]), str(row["cells"]), *shares]


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
