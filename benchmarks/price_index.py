"""The index of three standard jobs as table, picture and page, and the forecasts beside it."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import gallery
from gpucost.catalog import open_catalog
from gpucost.cli.index import charts
from gpucost.library.price_index import FAULTS, index_rows, yearly
from gpucost.market.forward import backtest_rows
from gpucost.render.vega import SCHEMA, specification

TABLE = Path(__file__).resolve().parents[1] / "docs/price-index.csv"


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


def picture(text: str) -> str:
    """Draw the three jobs side by side, as `gpucost prices index -o index.html` draws them below each other."""
    # each chart as a panel of one picture, which names its schema once
    panels = [{**specification(chart), "width": 240, "title": chart.title} for chart in charts(read(text))]
    for panel in panels:
        del panel["$schema"]
    return gallery.svg({"$schema": SCHEMA, "hconcat": panels})


def page(text: str) -> str:
    """Write the page of the index and of the forecasts."""
    rows = read(text)
    lines = yearly(rows)
    # a column for each year that the index holds, and the last month beside them
    years = [name for name in lines[0] if name.startswith("usd_2")]
    head = ["job", "seller", "option", *(name[4:] for name in years), f"{max(row['month'] for row in rows):%Y-%m}"]
    last = max(row["month"] for row in rows)
    body = []
    for line in lines:
        # a job that nobody sold in the last month has no price of it
        now = line["usd_last"] if line["last_month"] == last else None
        cells = [line["job"], line["seller_kind"], line["option"], *(_usd(line[name]) for name in years), _usd(now)]
        body.append(cells)
    # by horizon and kind of seller, and for a year ahead by generation of chips
    done = backtest_rows(open_catalog(open_catalog().dated))
    checks = [row for row in done if row["by"] != "generation"]
    generations = [row for row in done if row["by"] == "generation" and row["months"] == 12]
    faults = "\n".join(f"- {fault}" for fault in FAULTS)
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

{faults}

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

`gpucost prices used` says what a card may be sold for: its street price now times exp(−k ×
years), with the k of each other card whose launch price and dated street price are both known. These are few, each was
seen once, and memory is short in 2026; the range is wide for that.
"""


_CHECK_HEAD = ["months", "of", "forecasts", "cells", "inside P10 to P90", "below P10", "median miss of P50"]


def _check(row: dict[str, Any]) -> list[str]:
    shares = (f"{row[name]:.0%}" for name in ("inside_fraction", "below_fraction", "median_miss_fraction"))
    return [str(row["months"]), str(row["group"]), str(row["forecasts"]), str(row["cells"]), *shares]


def _usd(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
