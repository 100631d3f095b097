"""Purchase options: one row each, from which everything that depends on how a price is bought derives.

A new option is one row of options.csv. What an offer states itself (its minimum, its term, its billing) goes before
what its option implies here.

A run longer than the longest single purchase: an interruptible one loses its capacity at that age and restarts, which
counts as one more interruption per node; any other must end within one purchase, so that a cluster is chosen which is
fast enough, or the offer is refused with the reason.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from gpucost.gate import beside

Family = Literal["on demand", "preemptible", "committed", "scheduled"]

MARKET_LIMIT_DAYS = 30  # assumed: prices on markets of third-party hosts move within weeks
MARKETS = ("marketplace", "community")
_UNLIMITED = float("inf")
EXPIRED = "too old"  # why a price of that age is no offer any more
MARKET_EXPIRY_DAYS = 180  # and are history after half a year


class OptionRule(Struct, frozen=True):
    """What a purchase option implies where the offer itself does not say."""

    label: str  # in sentences
    family: Family  # what it is compared with: list prices, prices below them, terms that are owed, booked windows
    kind: str  # in tables that show the best of each kind
    reference: str  # what sellers say of it
    minimum_hours: float = 0.0  # shortest purchase
    increment_hours: float = 0.0  # purchases are rounded up to this; 0 is by the second
    longest_hours: float = _UNLIMITED  # longest single purchase
    age_limit_days: int = 180  # older prices are marked and widen the range
    expires_days: int = 600  # older prices are history: what moves by the day ends first
    interruptible: bool = False  # the capacity may be taken away
    take_or_pay: bool = False  # the whole purchase is owed, used or not
    prepaid: bool = False  # and paid at its start
    by_spend: bool = False  # what is owed is a spend an hour, on whatever machines

    @property
    def limit_sentence(self) -> str:
        """Say how long one purchase may be."""
        return f"the longest purchase as {self.label} is {self.longest_hours / 24:g} days: {self.reference}"


# how the cells of options.csv are read; the columns that are not named here hold yes, or nothing
_CELLS = {
    "label": str,
    "family": str,
    "kind": str,
    "reference": str,
    "age_limit_days": int,
    "expires_days": int,
    "minimum_hours": float,
    "increment_hours": float,
    "longest_hours": float,
}
_YES: Callable[[str], Any] = "yes".__eq__
_NAMES, *_ROWS = beside(__file__, "options")
OPTIONS: dict[str, OptionRule] = {
    option: OptionRule(
        **{name: _CELLS.get(name, _YES)(cell) for name, cell in zip(_NAMES[1:], cells, strict=True) if cell}
    )
    for option, *cells in _ROWS
}


def is_plain(option: str) -> bool:
    """Tell whether an option is capacity at its list price, there until it is given back.

    >>> is_plain("secure"), is_plain("community"), is_plain("reserved")
    (True, False, False)
    """
    rule = OPTIONS[option]
    return rule.family == "on demand" and not rule.interruptible


def quote_family(option: str) -> str:
    """Return what a quote is compared with: the family of its option; hosts of third parties move by themselves."""
    return option if option == "community" else OPTIONS[option].family


def counted_age_days(age_days: float, price_kind: str) -> float:
    """Return the age that limits look at: a contract holds to its end, however long ago it was signed.

    >>> counted_age_days(325, "contracted"), counted_age_days(325, "list")
    (0, 325)
    """
    return 0 if price_kind == "contracted" else age_days


def age_limit_days(option: str, sellers: Iterable[str | None] = ()) -> int:
    """Return the age beyond which a price is old; `sellers` are the offer's tier and the kind of its provider.

    A price on a market of hosts is old after a month at most, whatever the option.

    >>> age_limit_days("spot"), age_limit_days("on_demand", ["marketplace"]), age_limit_days("on_demand")
    (7, 30, 180)
    """
    limit = OPTIONS[option].age_limit_days
    return min(limit, MARKET_LIMIT_DAYS) if any(seller in MARKETS for seller in sellers) else limit
