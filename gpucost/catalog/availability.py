"""Which machine is sold in which region: what dated lists say of a priced offer.

A price list multiplies machines by regions and says little of where a machine stands. So lists of machines by zone or
region, and of chips by region, are held beside the prices, one row of `availability` per list, machine and region. A
list speaks of a machine where it names it somewhere, and of the regions that it names at all; one of chips speaks of
every region. Of what lists say of a machine in a region

    unlisted    a list of chips leaves the region out, or lists speak of the machine, a dated one among them, and none
                names it there
    listed      a list of machines of the last 400 days names it, or a list of chips alone
    priced      only price lists do, or the offer's own price was seen after every list: little is proven
    unknown     no list speaks of it; so it is with contracts of the user's own and with sellers without lists

Of one list (column `list`) only the newest version speaks that was known on the day. What is unlisted cannot be
ordered. Regions gain machines and rarely lose them: a day before the first list is answered by the first.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple

from gpucost.options import OPTIONS

_OLD_DAYS = 90  # after which lists of where machines are sold should be renewed
UNSOLD = "not sold there"  # why an offer cannot be ordered, beside the reasons for which prices end
_SPAN_DAYS = 400  # a list of machines speaks beside a newer one for so long
_LISTED, _PRICED, _UNLISTED, _UNKNOWN = "listed", "priced", "unlisted", "unknown"

Row = Mapping[str, Any]


class Sale(NamedTuple):
    """Whether a machine is sold in a region, by which list of which day, and in which zones."""

    status: str
    source_id: str | None = None
    listed_on: date | None = None
    zones: str | None = None


class _List:
    """One list of a provider: the regions that it names at all, and its rows by machine and region."""

    def __init__(self) -> None:
        self.evidence, self.name, self.version = "", "", ""
        self.day: date | None = None
        self.regions: set[str] = set()
        self.machines: dict[str, dict[str, Row]] = {}

    def add(self, row: Row) -> None:
        self.evidence, self.name, self.version = row["evidence"], row["list"], row["source_id"]
        if row["observed_on"]:
            self.day = max(self.day or row["observed_on"], row["observed_on"])
        self.regions.add(row["region"])
        self.machines.setdefault(row["machine"].lower(), {})[row["region"]] = row

    def regions_of(self, machine: str) -> dict[str, Row] | None:
        """Return the regions in which the list has a machine; None where it does not speak of it."""
        if self.evidence != "chips":
            return self.machines.get(machine)
        return next((regions for start, regions in self.machines.items() if machine.startswith(start)), None)


_SALE_UNKNOWN = Sale(_UNKNOWN)


class Availability:
    """What the lists of the table `availability` say until a day of knowledge."""

    def __init__(self, rows: Iterable[Row], known_on: date) -> None:
        versions: dict[str, dict[str, _List]] = {}
        rows = list(rows)
        known = {row["provider"] for row in rows if row["observed_on"] and row["observed_on"] <= known_on}
        for row in rows:
            # before a seller's first list all of its lists speak: regions gain machines and rarely lose them
            if row["provider"] not in known or not row["observed_on"] or row["observed_on"] <= known_on:
                version = f"{row['list']} {row['source_id']}"
                versions.setdefault(row["provider"], {}).setdefault(version, _List()).add(row)
        self._lists: dict[str, list[_List]] = {}
        for provider, lists in versions.items():
            newest: dict[str, _List] = {}  # version of each list; an undated one is older than all
            for list_ in lists.values():
                other = newest.get(list_.name)
                if other is None or (list_.day or date.min, list_.version) > (other.day or date.min, other.version):
                    newest[list_.name] = list_
            self._lists[provider] = list(newest.values())
        self._sales: dict[tuple[str, str, str, bool], Sale] = {}  # a price list asks of few machines many times

    @property
    def days(self) -> dict[str, date]:
        """Return the day of the newest dated list of each seller that proves more than a price; else of any."""
        newest_days = {}
        for provider, lists in self._lists.items():
            proving = [list_.day for list_ in lists if list_.day and list_.evidence != "prices"]
            if days := proving or [list_.day for list_ in lists if list_.day]:
                newest_days[provider] = max(days)
        return newest_days

    def summary(self, on: date, providers: Collection[str] | None = None) -> str:
        """Say how old the lists of each seller are, and how to renew them; nothing where there are none."""
        parts, oldest = [], 0
        for provider, day in sorted(self.days.items()):
            if providers is None or provider in providers:
                proving = any(list_.evidence != "prices" and list_.day for list_ in self._lists[provider])
                age = (on - day).days
                parts.append(f"{provider} by {'lists' if proving else 'price lists alone'} of {day} ({age} days)")
                oldest = max(oldest, age)
        if not parts:
            return ""
        renew = " `gpucost prices refresh` renews them." if oldest > _OLD_DAYS else ""
        return f"Where machines are sold is known for {'; '.join(parts)}.{renew}"

    @property
    def providers(self) -> list[str]:
        """Return the sellers of whom lists are known."""
        return sorted(self._lists)

    def of(self, offer: Any) -> Sale:
        """Return what the lists say of an offer, or of a row of prices."""
        if not isinstance(offer, Mapping) and offer.provider not in self._lists:
            return _SALE_UNKNOWN
        cell: Callable[[str], Any] = offer.get if isinstance(offer, Mapping) else partial(getattr, offer)
        if cell("provider") not in self._lists or not cell("region") or cell("price_kind") == "contracted":
            return _SALE_UNKNOWN
        machine = str(cell("instance_type")).partition(" (")[0].lower()  # what a name says in brackets is the offer's
        spot = OPTIONS[cell("option")].family == "preemptible"
        key = cell("provider"), machine, cell("region"), spot
        if key not in self._sales:
            self._sales[key] = self._sale(*key)
        sale = self._sales[key]
        if sale.status != _UNLISTED:
            return sale
        # a price that was seen after every list of its region is news, at a seller whose prices are a sign of a sale
        lists = [list_ for list_ in self._lists[key[0]] if key[2] in list_.regions]
        seen_on = cell("observed_on")
        priced = any(list_.evidence == "prices" for list_ in lists)
        if priced and seen_on and all(seen_on > list_.day for list_ in lists if list_.day):
            return Sale(_PRICED, cell("source_id"), seen_on)
        return _SALE_UNKNOWN if cell("book") == "user" else sale

    def _sale(self, provider: str, machine: str, region: str, spot: bool) -> Sale:
        speaking = []  # lists that say something of the machine in the region, each with its regions of the machine
        for list_ in self._lists[provider]:
            regions = list_.regions_of(machine)
            if regions is not None and (list_.evidence == "chips" or region in list_.regions):
                speaking.append((list_, regions))
        naming = [(list_, regions[region]) for list_, regions in speaking if region in regions]
        naming = [(list_, row) for list_, row in naming if row["spot" if spot else "on_demand"] is not False]
        days = [list_.day for list_, _ in speaking if list_.day and list_.evidence != "prices"]
        oldest = max(days) - timedelta(_SPAN_DAYS) if days else None
        refusing = [list_ for list_, regions in speaking if list_.evidence == "chips" and region not in regions]
        # a list of machines proves more than one of chips, which counts where it is alone
        by_machines = any(list_.evidence == "machines" for list_, _ in speaking)
        listed = [
            (list_, row)
            for list_, row in naming
            if (list_.evidence == "machines" and not (list_.day and oldest and list_.day < oldest))
            or (list_.evidence == "chips" and not by_machines)
        ]
        if not naming and not any(list_.day for list_, _ in speaking):  # an undated list adds and excludes nothing
            return _SALE_UNKNOWN
        if listed and not refusing:
            list_, row = max(listed, key=lambda pair: (pair[0].day or date.min, bool(pair[1]["zones"])))
            zones = row["zones"] or next((peer["zones"] for _, peer in listed if peer["zones"]), None)
            return Sale(_LISTED, row["source_id"], list_.day, zones)
        priced = [(list_, row) for list_, row in naming if list_.evidence == "prices"]
        if priced and not refusing:
            list_, row = max(priced, key=lambda pair: pair[0].day or date.min)
            return Sale(_PRICED, row["source_id"], list_.day)
        newest, regions = max(speaking, key=lambda pair: (pair[0] in refusing, pair[0].day or date.min))
        return Sale(_UNLISTED, next(iter(regions.values()))["source_id"], newest.day)
