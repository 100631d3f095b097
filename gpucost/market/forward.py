"""What a GPU-hour, and a card, may cost in years to come: from what earlier chips did at their age.

    price in h months = price now x exp(q), q = the 10th and 90th percentile of ln(price after h / price before)

over every chip, kind of seller and option of the monthly prices that was seen h months apart (analogues). An analogue
counts more the likelier it is: a fifth where the kind of seller differs, a tenth where the option does, a third where
one chip has stacked memory (HBM) and the other has not, less by a factor e for every two years by which its chip was
older or younger, and each cell once, however many months it has. Few analogues widen the range by the root of
1 + 10 / n, n their effective number, and no range narrows with the years. The middle is the price of today: the median
of what sellers asked within `ASKED_DAYS`, that of the last month where few were seen. Over all sellers no median of
analogues did better in the backtest, by which it was chosen; for clouds half of it did, slightly.

A card is worth launch price x exp(-k x age), with the k of each card of which both prices are known and dated; the ends
are those of k. https://en.wikipedia.org/wiki/Effective_sample_size for n = (sum of weights)^2 / sum of their squares.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from math import exp, log, sqrt
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpucost.catalog.price_months import month_ends, prices_of_day
from gpucost.catalog.records import seen_in
from gpucost.physics.calibration import weighted_quantile

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

HORIZONS_MONTHS = (12, 24, 36)
OTHER_KIND, OTHER_OPTION, OTHER_MEMORY, AGE_YEARS = 0.2, 0.1, 1 / 3, 2.0
ENDS = (0.1, 0.9)
FEWEST = 2.0  # effective analogues, else nothing is said
STALE_DAYS = 93  # a cell whose last price is older than a quarter is no longer forecast
ASKED_DAYS, FEWEST_ASKED = 62, 3  # what is asked today: of so many sellers, seen within so many days
_YOUNGEST_CARD_YEARS = 1.0  # a younger card's street price says more of its scarcity than of its decay
_STARTS = (3, 6, 9, 12)  # months at whose ends analogues begin
_SPARSE = 10.0

Cell = tuple[str, str, str]  # chip, kind of seller, option


class Move(NamedTuple):
    """How far the price of a cell moved within a horizon."""

    cell: Cell
    months: int
    since: date
    until: date
    age_years: float  # of the chip when it began
    log_ratio: float


class ChipTraits(NamedTuple):
    """What of a chip tells which others are like it."""

    year: float
    has_hbm: bool


class Outlook(NamedTuple):
    """What a price may be multiplied by, and on how many analogues that rests."""

    low_ratio: float
    high_ratio: float
    analogues: float


def cells_of(rows: Iterable[Mapping[str, Any]]) -> dict[Cell, dict[date, float]]:
    """Return the monthly prices by cell."""
    prices_by_cell: dict[Cell, dict[date, float]] = {}
    for row in rows:
        cell = row["gpu"], row["seller_kind"], row["option"]
        prices_by_cell.setdefault(cell, {})[row["month"]] = row["usd_per_gpu_hour"]
    return prices_by_cell


def moves_of(
    cells: Mapping[Cell, Mapping[date, float]], chips: Mapping[str, ChipTraits], months: int, until: date
) -> list[Move]:
    """Return how the price of every cell moved within a horizon, as far as it was known on a day."""
    moves = []
    for cell, prices in cells.items():
        for since, usd in prices.items():
            later = _later(since, months)
            if since.month in _STARTS and later <= until and later in prices and cell[0] in chips:
                age = age_years(chips[cell[0]].year, since)
                moves.append(Move(cell, months, since, later, age, log(prices[later] / usd)))
    return moves


def age_years(year: float, day: date) -> float:
    """Return how old a chip of a year is on a day, as if it had come in the middle of its year.

    >>> age_years(2020, date(2024, 6, 30))
    4.0
    """
    return round(day.year + day.month / 12 - year - 1, 6) + 0.5


@cache
def _later(day: date, months: int) -> date:
    """Return the end of the month so many months after that of a day."""
    at = day.year * 12 + day.month - 1 + months
    first = date(at // 12, at % 12 + 1, 1)
    return next(month_ends(first, date(first.year + 1, 12, 31)))


def outlook(moves: Sequence[Move], chips: Mapping[str, ChipTraits], cell: Cell, age: float) -> Outlook | None:
    """Return what the price of a cell may be multiplied by after the moves' horizon; None of too few analogues."""
    counts = Counter(move.cell for move in moves)
    weights = [
        (1.0 if move.cell[1] == cell[1] else OTHER_KIND)
        * (1.0 if move.cell[2] == cell[2] else OTHER_OPTION)
        * (1.0 if chips[move.cell[0]].has_hbm == chips[cell[0]].has_hbm else OTHER_MEMORY)
        * exp(-abs(move.age_years - age) / AGE_YEARS)
        / counts[move.cell]
        for move in moves
    ]
    by_cell: dict[Cell, float] = {}
    for move, weight in zip(moves, weights, strict=True):
        by_cell[move.cell] = by_cell.get(move.cell, 0.0) + weight
    # n = (sum of weights)² ÷ sum of their squares, over cells: months of one cell move together
    squares = sum(weight * weight for weight in by_cell.values())
    number = sum(by_cell.values()) ** 2 / squares if squares else 0.0
    if number < FEWEST:
        return None
    log_ratios, weight_of_move = np.array([move.log_ratio for move in moves]), np.array(weights)
    widened = sqrt(1 + _SPARSE / number)
    # a range always holds the price of today, which is its middle
    low, high = (weighted_quantile(log_ratios, weight_of_move, share) * widened for share in ENDS)
    return Outlook(exp(min(low, 0.0)), exp(max(high, 0.0)), number)


def forward_prices(catalog: "Catalog", gpus: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return what a GPU-hour of some chips may cost in each horizon: by kind of seller and option."""
    cells, chips = _known(catalog)
    today = prices_of_day(catalog, catalog.as_of, ASKED_DAYS)
    prices_asked = cells_of(row for row in today if row["sellers"] >= FEWEST_ASKED)
    chosen = None if gpus is None else set(gpus)
    moves = {months: moves_of(cells, chips, months, catalog.as_of) for months in HORIZONS_MONTHS}
    rows = []
    for cell, prices in sorted(cells.items()):
        day, usd = max({**prices, **prices_asked.get(cell, {})}.items())
        if (chosen is not None and cell[0] not in chosen) or cell[0] not in chips:
            continue
        if (catalog.as_of - day).days > STALE_DAYS:
            continue
        age = age_years(chips[cell[0]].year, day)
        row: dict[str, Any] = {
            "gpu": cell[0],
            "seller_kind": cell[1],
            "option": cell[2],
            "terms": cell[2].replace("committed_", "").replace("_", " "),
            "price_on": day,
            "usd_per_gpu_hour": usd,
            "chip_age_years": age,
        }
        low = high = 1.0
        for months in HORIZONS_MONTHS:
            ahead = outlook(moves[months], chips, cell, age)
            if ahead is not None:
                low, high = min(low, ahead.low_ratio), max(high, ahead.high_ratio)
            text = None if ahead is None else f"{usd * low:,.2f}–{usd * high:,.2f}"
            row |= {
                f"range_in_{months}_months": text,
                f"p10_in_{months}_months_usd_per_gpu_hour": None if ahead is None else usd * low,
                f"p50_in_{months}_months_usd_per_gpu_hour": None if ahead is None else usd,
                f"p90_in_{months}_months_usd_per_gpu_hour": None if ahead is None else usd * high,
                f"analogues_of_{months}_months": None if ahead is None else round(ahead.analogues, 1),
            }
        if ahead is not None:  # as a plan takes it: the yearly fall that leads to the ends of the last horizon
            years = HORIZONS_MONTHS[-1] / 12
            row["p10_yearly_fall_fraction"], row["p90_yearly_fall_fraction"] = (
                1 - ratio ** (1 / years) for ratio in (low, high)
            )
        rows.append(row)
    return rows


def path_ends(
    catalog: "Catalog", gpu: str, kind: str = "cloud", option: str = "on_demand"
) -> list[tuple[float, float]]:
    """Return what a price may be multiplied by at each horizon, the 10th and 90th percentile; nothing where unknown.

    No range narrows with the years, as in `forward_prices`; a chip needs no price of its own, only its year and memory.
    What was found is kept with the catalog.
    """
    name = f"path_ends {gpu} {kind} {option}"
    if name not in catalog.derived:
        cells, chips = _known(catalog)
        path: list[tuple[float, float]] = []
        low, high = 1.0, 1.0
        horizons = HORIZONS_MONTHS if gpu in chips else ()
        for months in horizons:
            age = age_years(chips[gpu].year, catalog.as_of)
            ahead = outlook(moves_of(cells, chips, months, catalog.as_of), chips, (gpu, kind, option), age)
            if ahead is None:  # a path that ends early would be read as one that stays where it was
                path = []
                break
            low, high = min(low, ahead.low_ratio), max(high, ahead.high_ratio)
            path.append((low, high))
        catalog.derived[name] = path
    ends: list[tuple[float, float]] = catalog.derived[name]
    return ends


class PastForecast(NamedTuple):
    """What a forecast of the past said, and what came."""

    cell: Cell
    since: date
    until: date
    outlook: Outlook
    log_ratio: float

    @property
    def is_inside(self) -> bool:
        """Tell whether what came lies in the range."""
        return log(self.outlook.low_ratio) - 1e-9 <= self.log_ratio <= log(self.outlook.high_ratio) + 1e-9


def backtest(catalog: "Catalog", months: int) -> list[PastForecast]:
    """Forecast from the end of every quarter with what was known then, and return what came beside it."""
    cells, chips = _known(catalog)
    checks = []
    for since in sorted({day for prices in cells.values() for day in prices if day.month in _STARTS}):
        until = _later(since, months)
        # with what was known then: moves that had ended by that day
        moves = moves_of(cells, chips, months, since) if until <= catalog.as_of else []
        for cell, prices in cells.items() if moves else ():
            if since in prices and until in prices and cell[0] in chips:
                forecast = outlook(moves, chips, cell, age_years(chips[cell[0]].year, since))
                if forecast is not None:
                    checks.append(PastForecast(cell, since, until, forecast, log(prices[until] / prices[since])))
    return checks


def backtest_rows(catalog: "Catalog") -> list[dict[str, Any]]:
    """Return how the forecasts of the past did: by horizon, over all, by kind of seller, option and generation."""
    generations = {row["id"]: str(row["architecture"]).split()[0] for row in catalog.rows("accelerators")}
    rows = []
    for months in HORIZONS_MONTHS:
        groups: dict[tuple[str, str], list[PastForecast]] = {}
        for check in backtest(catalog, months):
            gpu, kind, option = check.cell
            # each forecast counts in the whole, and once by each of its traits
            of = ("all", "all"), ("seller", kind), ("option", option), ("generation", generations[gpu])
            for group in of:
                groups.setdefault(group, []).append(check)
        for (by, name), checks in sorted(groups.items()):
            rows.append(
                {
                    "months": months,
                    "by": by,
                    "group": name,
                    "forecasts": len(checks),
                    "cells": len({check.cell for check in checks}),
                    "inside_fraction": sum(check.is_inside for check in checks) / len(checks),
                    "below_fraction": sum(check.log_ratio < log(check.outlook.low_ratio) - 1e-9 for check in checks)
                    / len(checks),
                    "median_miss_fraction": median(abs(check.log_ratio) for check in checks),
                }
            )
    return rows


# --- Cards: what they are sold for as they grow old


class Card(NamedTuple):
    """A card of which the price at launch and a dated street price are known."""

    gpu: str
    launch_usd: float
    street_usd: float
    observed: str
    age_years: float

    @property
    def decay_per_year(self) -> float:
        """Return k of street = launch x exp(-k x age)."""
        return -log(self.street_usd / self.launch_usd) / self.age_years


def cards_of(rows: Iterable[Mapping[str, Any]]) -> list[Card]:
    """Return the cards with both prices, without those whose street price is somebody's estimate."""
    cards = []
    for row in rows:
        low, high, launch = (row[name] for name in ("street_low_usd", "street_high_usd", "launch_usd"))
        last_day = _day_of(str(row["street_observed"] or ""))
        if not (low and high and launch and last_day and row["year"]):
            continue
        age = age_years(float(row["year"]), last_day)
        if age >= _YOUNGEST_CARD_YEARS and not str(row["street_source"] or "").startswith("estimate"):
            cards.append(Card(row["id"], launch, sqrt(low * high), seen_in(row, "street_observed"), age))
    return cards


def resale(cards: Sequence[Card], card: Card, months: int) -> tuple[float, float, float]:
    """Return the 10th, 50th and 90th percentile of what a card is sold for in so many months, USD.

    It falls from its own street price; how fast, the other cards say.
    """
    decays = sorted(peer.decay_per_year for peer in cards if peer.gpu != card.gpu)
    tenths = quantiles(decays, n=10, method="inclusive")
    # the fastest decays make the low end: the ninth tenth of them, and the first the high one
    low, typical, high = (card.street_usd * exp(-decay * months / 12) for decay in (tenths[8], tenths[4], tenths[0]))
    return low, typical, high


def used_rows(catalog: "Catalog", gpus: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return what is left of the launch price of each card whose street price is dated, the youngest first.

    Left: street ÷ launch. Lost a year: 1 − left^(1 ÷ age). Then the middle of what it may sell for later.
    """
    cards = cards_of(catalog.rows("accelerators"))
    chosen = None if gpus is None else set(gpus)
    rows: list[dict[str, Any]] = []
    for card in cards:
        if chosen is None or card.gpu in chosen:
            left = card.street_usd / card.launch_usd
            rows.append(
                {
                    "gpu": card.gpu,
                    "card_age_years": card.age_years,
                    "launch_usd": card.launch_usd,
                    "street_usd": card.street_usd,
                    "observed": card.observed,
                    "left_fraction": left,
                    "loss_per_year_fraction": 1 - left ** (1 / card.age_years),
                    **{f"p50_usd_in_{months}_months": resale(cards, card, months)[1] for months in HORIZONS_MONTHS},
                }
            )
    return sorted(rows, key=lambda row: (row["card_age_years"], row["gpu"]))


def _day_of(observed: str) -> date | None:
    """Return a day late in the month that a table names, late in June where it names a year, None where neither.

    >>> _day_of("2026-05"), _day_of("2026"), _day_of("last summer")
    (datetime.date(2026, 5, 28), datetime.date(2026, 6, 28), None)
    """
    match = re.fullmatch(r"(\d{4})(?:-(0[1-9]|1[0-2]))?", observed)
    return date(int(match[1]), int(match[2] or 6), 28) if match else None


def _known(catalog: "Catalog") -> tuple[dict[Cell, dict[date, float]], dict[str, ChipTraits]]:
    rows = [row for row in catalog.rows("monthly_prices") if row["month"] <= catalog.as_of]
    chips = {
        row["id"]: ChipTraits(float(row["year"]), "HBM" in str(row["memory_type"]))
        for row in catalog.rows("accelerators")
        if row["year"]
    }
    return cells_of(rows), chips
