"""What a GPU-hour cost month by month since 2022: by chip, kind of seller and kind of option, over all dated prices.

    price of a seller = median over its regions and machines of what was listed within the age that the option allows
    price of a cell   = median over its sellers

Each seller counts once, however many regions it lists. Of list prices, what was last seen half a year before still
counts, as in every view of the past; of spot what was seen within `SPOT_DAYS`.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from statistics import median
from typing import TYPE_CHECKING, Any

from gpucost.catalog.asof import FOREVER
from gpucost.options import OPTIONS

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

LIST_DAYS, SPOT_DAYS = 180, 62
KINDS = ("hyperscaler", "cloud", "marketplace")
OF_OPTION = {"on demand": "on_demand", "preemptible": "spot"}  # family of an option -> what a month calls it
SPOT = OF_OPTION["preemptible"]
COMMITTED = {12: "committed_1_year", 36: "committed_3_years"}  # months -> likewise
_QUERY = """SELECT provider, gpu, option, term_months, usd_per_gpu_hour AS usd,
    date_diff('day', observed_on, $day) AS age FROM prices_on($day, $known)
    WHERE ended IS NULL AND NOT conflict AND NOT gpu_ambiguous AND NOT contains(gpu, '|')
    AND offer_kind = 'offer' AND book <> 'user' AND observed_on IS NOT NULL"""


def month_ends(first: date, last: date) -> Iterator[date]:
    """Yield the last day of each month from one to another, that of the last month only where it has ended.

    >>> [str(day) for day in month_ends(date(2024, 1, 31), date(2024, 4, 29))]
    ['2024-01-31', '2024-02-29', '2024-03-31']
    """
    year, month = first.year, first.month
    while (day := date(year, month, monthrange(year, month)[1])) <= last:
        yield day
        year, month = year + month // 12, month % 12 + 1


def prices_of_day(catalog: "Catalog", day: date, list_days: int = LIST_DAYS) -> list[dict[str, Any]]:
    """Return the price of each cell on a day, of list prices what was seen within so many days before."""
    catalog.prepare_prices(history=True)
    kinds = {row["provider"]: row["kind"] for row in catalog.rows("providers")}
    sellers: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row in catalog.query(_QUERY, parameters={"day": day, "known": catalog.known_as_of or FOREVER}):
        kind, family = kinds.get(row["provider"]), OPTIONS[row["option"]].family
        if family == "committed":
            option = COMMITTED.get(row["term_months"])
        else:  # a term without a commitment, such as a block of days, is a price of its own kind
            option = OF_OPTION.get(family) if not row["term_months"] else None
        most = SPOT_DAYS if option == SPOT else list_days
        if option is not None and kind in KINDS and row["age"] <= most:
            sellers[row["gpu"], kind, option, row["provider"]].append(row["usd"])
    # each seller once: the median over its regions and machines, then that over sellers
    cells: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (*cell, _), prices in sellers.items():
        cells[cell[0], cell[1], cell[2]].append(median(prices))
    return [
        {
            "month": day,
            "gpu": gpu,
            "seller_kind": kind,
            "option": option,
            "sellers": len(prices),
            "low_usd_per_gpu_hour": min(prices),
            "usd_per_gpu_hour": median(prices),
            "high_usd_per_gpu_hour": max(prices),
        }
        for (gpu, kind, option), prices in sorted(cells.items())
    ]
