"""What there is to rent and to buy: rents of the catalog, quotes that a person holds, servers."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.common import LayeredPrice, listed
from gpucost.arguments.kinds import DATE, QUOTES, USD_PER_GPU_HOUR, named, once, one_of, share, whole
from gpucost.catalog import Catalog
from gpucost.catalog.chips import is_sold
from gpucost.catalog.records import seen_in
from gpucost.errors import DataError, NothingFitsError, PriceMissingError, UsageError
from gpucost.gate import read_table, repeated
from gpucost.market.contract_ends import last_day, months_until
from gpucost.market.facts import market_of
from gpucost.market.hires import Rentable, in_order, offered
from gpucost.market.interruptions import InterruptionRates, held_ratio
from gpucost.options import OPTIONS, is_plain
from gpucost.ownership.plan import Assumption, Registry
from gpucost.schemas import typed
from gpucost.types import Accelerator, Offer, Status, System
from gpucost.units import GB, GIB, HOURS_PER_MONTH, MONTHS_PER_YEAR, parse_fraction, parse_usd

if TYPE_CHECKING:
    from pydantic import BaseModel


# --- What the catalog knows of GPU-hours to rent, and how each price was chosen.


class RentChoice(Struct, frozen=True):
    """A rental price and its terms, with where it comes from."""

    name: str
    usd_per_gpu_hour: float
    billing: str = "per_use"
    term_months: int = 0
    upfront_fraction: float = 0.0
    stretch_ratio: float = 1.0  # hours paid ÷ hours needed
    low: float | None = None
    high: float | None = None
    status: Status = "sourced"
    source_id: str = ""
    note: str = ""
    provider: str = ""
    option: str = "on_demand"
    offer_id: str = ""
    observed_on: str = ""
    age_days: int | None = None
    offer: Offer | None = None  # that the catalog holds
    until: date | None = None  # the last day of the price
    until_months: float = 0.0  # from the start of the comparison; 0 is no end
    after_usd_per_gpu_hour: float | None = None  # by use, once the price has ended
    after_note: str = ""

    def changes(self) -> dict[str, Any]:
        """Return the inputs that this choice sets."""
        return {
            "rent_usd_per_gpu_hour": self.usd_per_gpu_hour,
            "rent_billing": self.billing,
            "rent_term_months": float(self.term_months),
            "rent_upfront_fraction": self.upfront_fraction,
            "rent_stretch_ratio": self.stretch_ratio,
            "rent_until_months": self.until_months,
            "rent_after_usd_per_gpu_hour": self.after_usd_per_gpu_hour,
        }


class Renter(Struct, frozen=True, dict=True):
    """Who looks for GPU-hours: the catalog that is asked, the accelerator, how many, and how many a node holds."""

    catalog: Catalog
    gpu: Accelerator
    gpus: int
    node: int
    start: date

    @cached_property
    def lasting(self) -> Rentable | None:
        """The first offer by the hour whose price has no end: what follows a price that ends."""
        return self.first(lambda offer: _by_the_hour(offer) and last_day(self.catalog, offer) is None)

    @cached_property
    def rates(self) -> InterruptionRates:
        """How often offers are interrupted."""
        # Kept with the catalog: the table is read once for all questions of a process.
        if "interruptions" not in self.catalog.derived:
            self.catalog.derived["interruptions"] = InterruptionRates(self.catalog.rows("spot"))
        rates: InterruptionRates = self.catalog.derived["interruptions"]
        return rates

    def first(
        self,
        accepts: Callable[[Offer], bool] = lambda offer: True,
        prefers: Callable[[Offer], bool] = lambda offer: True,
        **filters: Any,
    ) -> Rentable | None:
        """Return the first offer in the order of every question; None without any.

        Whole nodes go before others where more than one is needed, then what is preferred.
        """
        market = market_of(self.catalog)
        offers = market.facts.offers
        places = [place for place in offered(self.catalog, self.gpu.id, **filters).tolist() if accepts(offers[place])]
        # Who needs a node or more rents machines of at least eight, or of a whole node, where there are any.
        if self.gpus >= self.node:
            places = [place for place in places if offers[place].gpus >= min(8, self.node)] or places
        places = [place for place in places if prefers(offers[place])] or places
        return next(iter(in_order(market, np.array(places, np.int64), self.gpus, 1)), None)

    def choice(self, entry: Rentable, name: str = "") -> RentChoice:
        """Return an offer as a choice to rent; work on all GPUs together is done again after an interruption."""
        offer, upfront = entry.offer, 0.0
        rate = self.rates.of_offer(offer)
        memory_gb = self.gpu.memory_gib * GIB / GB * self.node
        stretch = held_ratio(rate, max(1.0, self.gpus / self.node), memory_gb)
        if offer.upfront_usd and offer.term_months:
            upfront = min(1.0, offer.upfront_usd / (offer.usd_per_hour * HOURS_PER_MONTH * offer.term_months))
        region_text = f" in {offer.region}" if offer.region else ""
        rule = OPTIONS[offer.option]
        note = f"{offer.provider} {offer.instance_type}{region_text}, {rule.label}, {entry.price_text()}"
        if entry.paid_ratio > 1:
            note += f"; {entry.paid_ratio:.3g} accelerators are paid for each that is needed: machines are sold whole"
        if entry.refusal:
            note += f"; {entry.refusal}"
        if rule.interruptible:
            basis = "as measured" if rate.measured else "a prior"
            note += f"; hours × {stretch:.3g} for preemptions ({basis}), and it may not be there when needed"
        choice = RentChoice(
            name or f"{offer.option}_{offer.provider}",
            entry.usd_per_gpu_hour * entry.paid_ratio,
            offer.billing,
            offer.term_months,
            upfront,
            stretch,
            low=entry.low_usd_per_gpu_hour * entry.paid_ratio,
            high=entry.high_usd_per_gpu_hour * entry.paid_ratio,
            source_id=offer.source_id,
            note=note,
            provider=offer.provider,
            option=offer.option,
            offer_id=offer.offer_id,
            observed_on=str(offer.observed_on),
            age_days=offer.age_days,
            offer=offer,
        )
        return self.bounded(choice)

    def bounded(self, choice: "RentChoice") -> "RentChoice":
        """Return a choice that ends with its contract or discount, and what an hour costs after it."""
        offer = choice.offer
        until = None if offer is None else last_day(self.catalog, offer)
        if offer is None or until is None:
            return choice
        # A discount that ends leaves the price of its list; a contract without one leaves the market.
        after, note = offer.list_usd_per_gpu_hour, "the price of its list"
        if after is None and (lasting := self.lasting) is not None:
            after = lasting.usd_per_gpu_hour * lasting.paid_ratio
            note = f"the price on the market, of {lasting.offer.provider}"
        return replace(
            choice,
            until=until,
            until_months=months_until(until, self.start),
            after_usd_per_gpu_hour=after,
            after_note=note if after is not None else "the same price, as no other is known",
        )


def layered(
    offer: Offer | None, usd: float = 0.0, credits_usd: float = 0.0, expected: float | None = None
) -> LayeredPrice:
    """Return the layers behind an offer's price: list, contracted, and what of a bill in USD is left after credits.

    `expected` is the price that the bill is made of, where it is not the quote.
    """
    if offer is None:
        return {}
    price = expected or offer.usd_per_gpu_hour
    # What one's own book changed has the quote as its list price.
    quoted = offer.usd_per_gpu_hour if offer.book != "user" else offer.list_usd_per_gpu_hour
    listed_price = listed(quoted, credits_usd)
    layers = LayeredPrice(price_book=offer.book, price_kind=offer.price_kind)
    layers.update(cast(LayeredPrice, listed_price))
    layers["effective_usd_per_gpu_hour"] = price * (1 - credits_usd / usd) if usd > 0 else price
    if offer.price_kind == "contracted":
        layers["contracted_usd_per_gpu_hour"] = offer.usd_per_gpu_hour
    return layers


def rent_of_provider(renter: Renter, provider: str, region: str | None, option: str | None) -> RentChoice:
    """Return a provider's price: on demand unless an option is named, the first of its regions and tiers."""
    gpu = renter.gpu.id
    offer = renter.first(
        prefers=lambda offer: option is not None or is_plain(offer.option),
        provider=provider,
        region=region,
        option=option,
    )
    if offer is None:
        raise PriceMissingError(
            f"{provider} has no price of {gpu}{f' as {option}' if option else ''} in the catalog. "
            "Give one with --rent 2.35, or list what there is: gpucost prices --gpu " + gpu
        )
    choice = renter.choice(offer, "rent")
    if not np.isfinite(choice.stretch_ratio):
        raise NothingFitsError(
            f"{provider}'s {gpu} as {OPTIONS[choice.option].label} is interrupted so often that work on"
            f" {renter.gpus:,} of them would never end. Name another --option, or fewer --gpus."
        )
    return choice


def market_rent(renter: Renter) -> RentChoice:
    """Return what the market asks for so many accelerators on demand: the first offer that any question would name."""
    offer = renter.first(_by_the_hour)
    if offer is None:
        raise PriceMissingError(f"no rental price of {renter.gpu.id} in the catalog. Give one with --rent 2.35.")
    return renter.choice(offer, "rent")


def _by_the_hour(offer: Offer) -> bool:
    """Tell whether an offer is bought and paid by the hour."""
    return is_plain(offer.option) and offer.billing == "per_use"


def by_use(renter: Renter, provider: str | None) -> RentChoice | None:
    """Return what an hour costs without a commitment: of the provider, else of the market; None where nobody says."""
    try:
        # What a provider sells for a term alone is followed by the market.
        if provider:
            choice = rent_of_provider(renter, provider, None, None)
            if choice.billing == "per_use":
                return choice
        return market_rent(renter)
    except PriceMissingError:
        return None


_OTHER_TERMS: dict[str, Callable[[Offer], bool]] = {
    "reserved_1y": lambda offer: OPTIONS[offer.option].family == "committed" and offer.term_months == 12,
    "reserved_3y": lambda offer: OPTIONS[offer.option].family == "committed" and offer.term_months == 36,
    "spot": lambda offer: OPTIONS[offer.option].interruptible,
}


def other_choices(renter: Renter, provider: str | None, rented: Offer | None = None) -> list[RentChoice]:
    """Return the first offer for one year, for three years and as spot, of one provider or of all.

    Terms on which the rent is asked for already are no other choice.
    """
    # Each term once, by the first offer that has it: a list of all offers is another question.
    choices = []
    for name, accepts in _OTHER_TERMS.items():
        if rented is not None and accepts(rented):
            continue
        if offer := renter.first(accepts, provider=provider):
            choices.append(renter.choice(offer, name))
    # work that would never end on it is no choice
    return [choice for choice in choices if np.isfinite(choice.stretch_ratio)]


def check_upfront(values: Mapping[str, Any], origin: str) -> None:
    """Refuse a share that is paid at the start of each term where there is no term: nothing would ever bill it."""
    share = values["rent_upfront_fraction"]
    if share and not values["rent_term_months"]:
        raise UsageError(
            f"{origin}: {100 * share:.3g}% is paid upfront, at the start of a term, and there is no term. Give one,"
            " such as 12 months (rent_term_months), or leave the upfront share out (rent_upfront_fraction)."
        )


# --- Quotes for renting that a person holds, in one line or as rows of a .csv or .xlsx file: options of a plan.

Rates = Callable[[str], float]  # from a currency to USD for one unit

_BILLINGS = {
    "take-or-pay": "take_or_pay",
    "take or pay": "take_or_pay",
    "take_or_pay": "take_or_pay",
    "per use": "per_use",
    "per-use": "per_use",
    "per_use": "per_use",
}
MOST = 1000  # quotes; each is a plan of its own, counted month by month in about 3 ms
HOW = (
    "Write it as 2.46/h, 12 months, take-or-pay, 20% upfront, until 2027-06-30, then 2.20/h; the price comes first,"
    " also as 1790/month or EUR 2.10/h. A hedge: 2.10/h, fixed, 50% of the hours; or floor 1.80/h, cap 2.60/h."
)

Entry = dict[str, Any]


def read_quotes(quotes: Any, rates: Rates) -> list[Entry]:
    """Return quotes by name, and those of files, as rent options of a plan, in USD."""
    entries: list[Entry] = []
    for name, terms in QUOTES.read(quotes, "quote").items():
        if not name.strip():
            raise UsageError(f"a quote needs a name before its terms, such as acme={terms}.")
        is_file = Path(name).suffix.lower() in (".csv", ".xlsx") and terms in (None, "")
        entries += read_file(Path(name), rates) if is_file else [_read_quote(name, str(terms), rates)]
    if len(entries) > MOST:
        raise UsageError(
            f"{len(entries):,} quotes are more than the {MOST:,} that are compared at once. Keep the best."
        )
    if twice := repeated([entry["name"] for entry in entries]):
        raise UsageError(f"quote {twice[0]!r} is given twice. Name each once.")
    return entries


def _read_quote(name: str, text: str, rates: Rates = lambda code: 1.0) -> Entry:
    """Read the terms of one quote.

    >>> _read_quote("acme", "$2.46/h, 1 year, take-or-pay, 20% upfront")["rent_term_months"]
    12.0
    >>> round(_read_quote("acme", "1460/month, until 2027-06-30, then 2.2/h")["rent_usd_per_gpu_hour"], 6)
    2.0
    """
    # Hedges are read last: they are ratios to the price, which the upfront part may still raise.
    price, *terms = (part.strip() for part in text.split(","))
    entry: Entry = {"name": name, "rent_usd_per_gpu_hour": _price(price, f"quote {name!r}", rates)}
    plain = {"rent_billing": "per_use", "rent_term_months": 0.0, "rent_upfront_fraction": 0.0}
    read = once([_term(name, term, rates) for term in terms if term], f"quote {name!r}")
    return _hedged(_with_upfront({**entry, **plain, **read}, f"quote {name!r}"), f"quote {name!r}")


_PER_MONTH = re.compile(r"(?<!\s)\s*(/|per)\s*(gpu[- ]?)?(month|mo)$", re.IGNORECASE)
_CURRENCY = re.compile(r"^([A-Z]{3})\s*(?=[\d.])|(?<=\d)\s*([A-Z]{3})$")


def _price(text: str, origin: str, rates: Rates) -> float:
    """Read a price per GPU, of an hour or a month, in USD or in another currency."""
    monthly = _PER_MONTH.search(text.strip())
    bare = _hourly(_PER_MONTH.sub("", text.strip())).replace("€", "EUR ").replace("£", "GBP ")
    # The currency may stand on either side of the number.
    code = _CURRENCY.search(bare)
    usd = parse_usd(_CURRENCY.sub("", bare), origin)
    if code:
        usd *= rates(str(code[1] or code[2]))
    return float(USD_PER_GPU_HOUR.read(usd / HOURS_PER_MONTH if monthly else usd, origin))


def _with_upfront(entry: Entry, origin: str) -> Entry:
    """Return an entry whose amount upfront per GPU is a part of its price: that part is paid at the start."""
    amount = entry.pop("upfront_usd_per_gpu", None)
    if amount is None:
        return entry
    if not entry["rent_term_months"]:
        raise UsageError(f"{origin}: {amount:g} is paid upfront, and there is no term. Give one, such as 12 months.")
    # the price that is stated is what recurs: the amount, spread over the term, comes on top of it
    hourly = amount / (entry["rent_term_months"] * HOURS_PER_MONTH)
    whole = entry["rent_usd_per_gpu_hour"] + hourly
    return {**entry, "rent_usd_per_gpu_hour": whole, "rent_upfront_fraction": hourly / whole}


def _hedged(entry: Entry, origin: str) -> Entry:
    """Return an entry as inputs: a fixed price does not move, one with a floor or a cap moves between them.

    A share of the hours is a blend: the others are rented as asked for.
    """
    floor, cap = (entry.pop(f"{name}_usd_per_gpu_hour", None) for name in ("floor", "cap"))
    price = entry["rent_usd_per_gpu_hour"]
    if floor is not None and cap is not None and floor > cap:
        raise UsageError(f"{origin}: the floor of {floor:g} is above the cap of {cap:g}. Change one.")
    if entry.pop("fixed", False):
        if floor is not None or cap is not None:
            raise UsageError(f"{origin}: a fixed price has no floor and no cap. Leave one of the two out.")
        entry |= {"rent_path_basis": "flat", "rent_decline_fraction": 0.0}
    # Ratios, not prices: the price may be changed by a scenario, and its bounds move with it.
    if floor is not None:
        entry["rent_floor_ratio"] = floor / price
    if cap is not None:
        entry["rent_cap_ratio"] = cap / price
    share_fraction = entry.pop("share_fraction", None)
    if share_fraction is None or share_fraction == 1:
        return entry
    if not 0 < share_fraction < 1:
        raise UsageError(f"{origin}: {share_fraction:g} is no share of the hours. Write 50% of the hours.")
    if later := [name for name in ("valid_until", "renewal_usd_per_gpu_hour") if name in entry]:
        raise UsageError(f"{origin}: a share of the hours has no end of its own yet. Leave {later[0]} out.")
    part = {"share": share_fraction, **{key: value for key, value in entry.items() if key != "name"}}
    return {"name": entry["name"], "parts": [part, {"share": 1 - share_fraction}]}


def _hourly(text: str) -> str:
    return re.sub(r"(?<!\s)\s*(/|per)\s*(gpu[- ]?)?(h|hr|hour)$", "", text.strip(), flags=re.IGNORECASE)


def _months(name: str, text: str) -> float:
    return float(whole(0, 1200).read(text, f"quote {name!r}"))


def _term(name: str, text: str, rates: Rates) -> tuple[str, Any]:
    word = text.lower()
    if word in _BILLINGS:
        return "rent_billing", _BILLINGS[word]
    if months := re.fullmatch(r"(\d+)\s*(?:months?|mo)", word):
        return "rent_term_months", _months(name, months[1])
    if years := re.fullmatch(r"(\d+)\s*(?:years?|y)", word):
        return "rent_term_months", _months(name, years[1]) * MONTHS_PER_YEAR
    if upfront := re.fullmatch(r"(\d+(?:\.\d+)?%)\s*upfront", word):
        return "rent_upfront_fraction", parse_fraction(upfront[1], f"quote {name!r}")
    if amount := re.fullmatch(r"(\S.*)\supfront", text, re.IGNORECASE):
        return "upfront_usd_per_gpu", _price(amount[1], f"quote {name!r}", rates)
    if until := re.fullmatch(r"until\s+(\S+)", word):
        return "valid_until", str(DATE.read(until[1], f"quote {name!r}"))
    if bound := re.fullmatch(r"(floor|cap)\s+(\S.*)", text, re.IGNORECASE):
        return f"{bound[1].lower()}_usd_per_gpu_hour", _price(bound[2], f"quote {name!r}", rates)
    if word in ("fixed", "fixed price"):
        return "fixed", True
    if hedged := re.fullmatch(r"(\d+(?:\.\d+)?%)\s*of\s+(?:the\s+)?hours", word):
        return "share_fraction", parse_fraction(hedged[1], f"quote {name!r}")
    if renewal := re.fullmatch(r"then\s+(\S.*)", text, re.IGNORECASE):
        return "renewal_usd_per_gpu_hour", _price(renewal[1], f"quote {name!r}", rates)
    raise UsageError(f"quote {name!r}: cannot read {text!r}. {HOW}")


def read_file(path: Path, rates: Rates) -> list[Entry]:
    """Read one quote a row; the term, billing and upfront share may be missing: none, by use, nothing."""
    if path.suffix.lower() == ".xlsx":
        from gpucost.catalog.sheets import read_sheets

        tables: list[Any] = [
            (sheet.header, [(number, dict(zip(sheet.header, cells, strict=False))) for number, cells in sheet.rows])
            for sheet in read_sheets(path)
        ]
    else:
        tables = [read_table(path)]
    # Sheets without rows are passed over; where none has any, the first is told what it lacks.
    tables = [table for table in tables if table[1]] or tables[:1] or [([], [])]
    for header, rows in tables:
        stated = next((name for name in _PRICES if name in header), _PRICES[0])
        typed.refuse_incomplete(path, header, rows, ("name", stated))
    return [
        _quote_of_row(str(path), number, rates, {name: cell for name, cell in row.items() if cell not in (None, "")})
        for _, rows in tables
        for number, row in rows
    ]


_PRICES = ("usd_per_gpu_hour", "usd_per_gpu_month", "price_per_gpu_hour", "price_per_gpu_month")


@cache
def _quote() -> "type[BaseModel]":
    def price(value: Any, label: str) -> float:
        return parse_usd(_hourly(str(value)), label)

    model: type[BaseModel] = typed.record(
        "Quote",
        name=(typed.read_by(lambda value, label: named().read(str(value).strip(), label)), ...),
        usd_per_gpu_hour=typed.read_by(price),
        **dict.fromkeys(
            (
                *_PRICES[1:],
                "upfront_per_gpu",
                "renewal_usd_per_gpu_hour",
                "floor_usd_per_gpu_hour",
                "cap_usd_per_gpu_hour",
            ),
            typed.read_by(price),
        ),
        price_basis=typed.read_by(
            lambda value, label: one_of("market", "fixed").read(str(value).strip().lower(), label)
        ),
        share_fraction=typed.read_by(share().read),
        currency=typed.read_by(lambda value, label: named().read(str(value).strip().upper(), label)),
        valid_until=typed.read_by(DATE.read),
        term_months=typed.read_by(whole(0, 1200).read),
        billing=typed.read_by(lambda value, label: one_of(*_BILLINGS).read(str(value).strip().lower(), label)),
        upfront_fraction=typed.read_by(share().read),
    )
    return model


def _quote_of_row(file: str, number: int, rates: Rates, row: Mapping[str, Any]) -> Entry:
    read = {name: value for name, value in typed.validated(_quote(), row, file, number).items() if value is not None}
    stated = [name for name in _PRICES if name in read]
    if len(stated) != 1:
        reason = f"one price is expected, of {', '.join(_PRICES)}; {len(stated) or 'none'} is given"
        raise DataError(reason, file=file, row=number, column=(stated or _PRICES)[0])
    rate = rates(read.get("currency", "USD"))
    price_rate = 1.0 if stated[0].startswith("usd") else rate  # the name of a column may state its currency
    usd = read[stated[0]] * price_rate
    entry: Entry = {
        "name": read["name"],
        "rent_usd_per_gpu_hour": usd / HOURS_PER_MONTH if stated[0].endswith("month") else usd,
        "rent_billing": _BILLINGS[read.get("billing") or "per use"],
        "rent_term_months": float(read.get("term_months") or 0),
        "rent_upfront_fraction": read.get("upfront_fraction") or 0.0,
    }
    if "upfront_per_gpu" in read:
        entry["upfront_usd_per_gpu"] = read["upfront_per_gpu"] * rate
    if "valid_until" in read:
        entry["valid_until"] = str(read["valid_until"])
    if "renewal_usd_per_gpu_hour" in read:
        entry["renewal_usd_per_gpu_hour"] = read["renewal_usd_per_gpu_hour"]
    # A floor and a cap are in the currency of the price beside them.
    for key in ("floor_usd_per_gpu_hour", "cap_usd_per_gpu_hour"):
        if key in read:
            entry[key] = read[key] * price_rate
    if "share_fraction" in read:
        entry["share_fraction"] = read["share_fraction"]
    if str(read.get("price_basis") or "market") == "fixed":
        entry["fixed"] = True
    return _hedged(_with_upfront(entry, f"{file}:{number}"), f"{file}:{number}")


def supplies_in_usd(entries: Sequence[Mapping[str, Any]], rates: Rates) -> list[dict[str, Any]]:
    """Return the supplies of a plan with one price, in USD per GPU-hour; an amount upfront is a part of it."""
    supplies = []
    for supply in entries:
        entry, origin = dict(supply), f"supply {supply.get('name') or supply['kind']!r}"
        stated = [name for name in _PRICES if entry.get(name) is not None]
        if len(stated) != 1:
            raise UsageError(
                f"{origin}: one price is expected, of {', '.join(_PRICES)}; {len(stated) or 'none'} is given."
            )
        rate, price = rates(str(entry.pop("currency", None) or "USD")), float(entry.pop(stated[0]))
        usd = price * (1.0 if stated[0].startswith("usd") else rate)
        entry["usd_per_gpu_hour"] = usd / HOURS_PER_MONTH if stated[0].endswith("month") else usd
        if (amount := entry.pop("upfront_per_gpu", None)) is not None:
            if entry.get("upfront_fraction"):
                raise UsageError(f"{origin}: upfront is stated as an amount and as a share. Keep one.")
            terms = {"rent_usd_per_gpu_hour": entry["usd_per_gpu_hour"], "upfront_usd_per_gpu": float(amount) * rate}
            read = _with_upfront({**terms, "rent_term_months": float(entry.get("term_months") or 0)}, origin)
            entry["usd_per_gpu_hour"] = read["rent_usd_per_gpu_hour"]
            entry["upfront_fraction"] = read["rent_upfront_fraction"]
        if "until" in entry and "valid_until" in entry:
            raise UsageError(f"{origin}: the end is given twice, as until and as valid_until. Keep one.")
        if "until" in entry:
            entry["valid_until"] = entry.pop("until")
        supplies.append(entry)
    return supplies


# --- What the catalog knows of servers to buy: price, size and power, each with its source.


def server_of(catalog: Catalog, accelerator: Accelerator) -> tuple[System, dict[str, Any] | None]:
    """Return the node that is priced and the row with its price: the newest quote, the cheaper one on a tie."""
    default = catalog.default_system(accelerator.id)
    rows = [row for row in catalog.rows("systems") if row["accelerator_id"] == accelerator.id and row["price_low_usd"]]
    if not rows:
        return default, None
    newest = max(str(row["price_observed"] or "") for row in rows)  # 2026-09 comes after a 2026 without its month
    recent = [row for row in rows if str(row["price_observed"] or "") == newest]
    return default, min(recent, key=lambda row: (row["price_low_usd"], row["id"]))


def server_inputs(catalog: Catalog, registry: Registry, accelerator: Accelerator) -> dict[str, Assumption]:
    """Return price, size and power of a server with this accelerator, each with its source; kept with the catalog."""
    key = f"server_inputs {accelerator.id}"
    if key in catalog.derived:
        return cast(dict[str, Assumption], catalog.derived[key])
    system, quote = server_of(catalog, accelerator)
    gpus = int(quote["gpus"] if quote else system.gpus)

    # The rated power of a whole server: the largest rating of a node, else TDP × the server's share. A rating that is
    # little above that of its chips is of a part of a server.
    chips_kw = gpus * (accelerator.tdp_w or 0.0) / 1000
    ratings = [
        (other.max_power_kw * gpus / other.gpus, other.source_id)
        for other in catalog.systems()
        if other.accelerator_id == accelerator.id and other.max_power_kw and other.kind in ("node", "rack", "baseboard")
    ]
    whole_servers = [rating for rating in ratings if rating[0] > 1.2 * chips_kw]
    power: dict[str, Any] = {"value": None, "status": "assumed"}
    if whole_servers:
        power_kw, source_id = max(whole_servers)
        power = {"value": power_kw, "status": "sourced", "source_id": source_id}
    elif chips_kw:
        ratio = float(registry.fact("server_to_chip_power_ratio.h100")["typical"])
        power = {"value": chips_kw * ratio, "status": "derived", "source_id": accelerator.source_id}
    inputs: dict[str, dict[str, Any]] = {
        "gpus_per_node": {
            "value": float(gpus),
            "source_id": system.source_id,
            "note": system.id,
            "status": "sourced" if system.status == "sourced" else "assumed",
        },
        "server_price_basis": {"value": "quote" if quote else "gpu_share", "status": "derived"},
        "server_max_kw": power,
    }
    if quote:
        low, high = quote["price_low_usd"], quote["price_high_usd"] or quote["price_low_usd"]
        seller, seen = quote["price_source"], seen_in(quote, "price_observed")
        inputs["server_usd"] = {
            "value": (low + high) / 2,
            "low": low,
            "high": high,
            "status": "derived" if seller else "assumed",
            "source_id": quote["second_source_id"] or "",
            "note": f"middle of {low:,.0f} to {high:,.0f} for {quote['id']}, seen {seen};"
            f" from {seller or 'no stated source'}",
            "observed": seen,
        }

    # What a chip costs on the street, else at its launch: its datasheet states no price.
    row = next(row for row in catalog.rows("accelerators") if row["id"] == accelerator.id)
    street = bool(row["street_low_usd"])
    low, high = (row[f"street_{end}_usd"] if street else row["launch_usd"] for end in ("low", "high"))
    if low and is_sold(row):
        seller = str(row["street_source" if street else "launch_source"] or "")
        inputs["gpu_usd"] = {
            "value": (low + (high or low)) / 2,
            "low": low,
            "high": high or low,
            "status": "derived" if seller and not seller.startswith("estimate") else "assumed",
            "note": f"{'street price' if street else 'price at launch'}; from {seller or 'no stated source'}",
            "observed": seen_in(row, "street_observed") if street else "",
        }
    blank: dict[str, Any] = {"low": None, "high": None, "source_id": "", "note": "", "observed": ""}
    server = {name: replace(registry.default(name), **{**blank, **entry}) for name, entry in inputs.items()}
    catalog.derived[key] = server
    return server


def newer_chip(
    catalog: Catalog,
    registry: Registry,
    defaults: dict[str, Assumption],
    accelerator: Accelerator,
    refresh_gpu: str | None,
    inputs: Mapping[str, Any],
) -> None:
    """Let a replacement be a newer chip: its price, speed and power against those of the first servers.

    Its speed is taken between the ratio of memory bandwidth and that of dense 16-bit peaks, which bound decoding and
    training; the middle of the two, in proportion, where nothing better is given.
    """
    if refresh_gpu is None:
        return
    if not inputs.get("refresh_month"):
        raise UsageError(f"refresh_gpu = {refresh_gpu!r}: say when, such as --set refresh_month=24.")
    newer = catalog.accelerator(refresh_gpu)
    first, then = defaults, {**defaults, **server_inputs(catalog, registry, newer)}
    # Speeds and prices are those of servers, whose numbers of chips may differ.
    nodes = _number(then, "gpus_per_node") / _number(first, "gpus_per_node")
    rows = {row["id"]: row for row in catalog.rows("accelerators")}
    ends = sorted(
        nodes * rows[newer.id][key] / rows[accelerator.id][key]
        for key in ("bf16_tflops", "hbm_gb_per_s")
        if rows[newer.id][key] and rows[accelerator.id][key]
    )
    if not ends:
        raise UsageError(
            f"refresh_gpu = {refresh_gpu!r}: its speed is not on record; give refresh_speed_ratio instead."
        )
    source = f"a server of {newer.id} ÷ one of {accelerator.id}"
    ratios = {
        "refresh_speed_ratio": ((ends[0] * ends[-1]) ** 0.5, ends[0], ends[-1]),
        "refresh_price_ratio": (_server_usd(then) / _server_usd(first), None, None),
        "refresh_power_ratio": (_number(then, "server_max_kw") / _number(first, "server_max_kw"), None, None),
    }
    for name, (value, low, high) in ratios.items():
        defaults[name] = replace(defaults[name], value=value, low=low, high=high, status="derived", note=source)


def _number(entries: Mapping[str, Assumption], name: str) -> float:
    value = entries[name].value
    if not isinstance(value, (int, float)):
        raise UsageError(f"refresh_gpu: {name} of one of the servers is not on record; give refresh_price_ratio.")
    return float(value)


def _server_usd(entries: Mapping[str, Assumption]) -> float:
    if entries["server_price_basis"].value == "quote":
        return _number(entries, "server_usd")
    return _number(entries, "gpu_usd") * _number(entries, "gpus_per_node") * _number(entries, "server_overhead_ratio")
