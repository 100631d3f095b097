"""What a workload could run on: each question answered for every accelerator, one row for the cheapest of each."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.errors import UsageError
from gpucost.options import OPTIONS
from gpucost.units import DAYS_PER_MONTH, MONTHS_PER_YEAR, parse_count

if TYPE_CHECKING:
    from gpucost.answers.choice import Candidate
    from gpucost.catalog import Catalog

PURPOSES = ("training", "fine-tuning", "serving", "research", "desk")
USUAL_TOKENS = {"training": 100e9, "fine-tuning": 100e6, "serving": 1e9}  # of a run; of a month
_CONSUMER = ("GeForce", "Radeon RX")
_WORKSTATION = ("RTX", "Quadro", "Arc Pro", "Radeon PRO")
_DESK = ("consumer", "workstation", "computer")
_MOST_AT_A_DESK = 2
# What makers usually give, by kind of card: an assumption; a data-centre card is covered by the server's contract.
_WARRANTY = {"consumer": "3 y", "workstation": "3 y", "computer": "1 y", "data centre": "with its server"}


class Need(NamedTuple):
    """One workload: its name, what it is for, the model and how many tokens, or hours a month."""

    name: str
    purpose: str
    model: str
    tokens: float | None
    hours_per_month: float


def need_of(name: str, text: str, hours: float) -> Need:
    """Read a workload written PURPOSE MODEL [TOKENS].

    >>> need_of("chat", "serving 8b 5b", 176.0)
    Need(name='chat', purpose='serving', model='8b', tokens=5000000000.0, hours_per_month=176.0)
    """
    words = text.split()
    if len(words) not in (2, 3) or words[0] not in PURPOSES:
        raise UsageError(
            f"--workload: {text!r} is no workload. Write NAME='PURPOSE MODEL [TOKENS]' with a purpose of"
            f" {', '.join(PURPOSES)}, such as chat='serving 8b 5b'."
        )
    return Need(name, words[0], words[1], parse_count(words[2], "--workload") if len(words) > 2 else None, hours)


def candidates(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> "list[Candidate]":
    """Return a row per accelerator, the cheapest to rent first; what is only bought comes by its price."""
    facts = {row["id"]: row for row in catalog.rows("accelerators")}
    found = [_row(need, facts[row["gpu"]], row) for row in _first_of_each(_answers(catalog, need, filters))]
    if need.purpose == "desk":
        found = [row for row in found if row["card"] in _DESK and row["gpus"] <= _MOST_AT_A_DESK and row["buy_usd"]]
        return sorted(found, key=lambda row: (row["buy_usd"] or 0, row["gpu"]))
    return sorted(found, key=_rank)


def _rank(row: "Candidate") -> tuple[bool, bool, float, str]:
    return row["rent_usd"] is None, may_go(row), row["rent_usd"] or row["buy_usd"] or 0, row["gpu"]


def may_go(row: "Candidate") -> bool:
    """Tell whether a candidate serves on what may be taken away: what stays comes first, as in `inference`."""
    return row["purpose"] == "serving" and OPTIONS[row["option"] or "on_demand"].interruptible


def _answers(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Ask the question that a purpose means; yield gpu, gpus, seller, days and rent."""
    tokens = need.tokens or USUAL_TOKENS.get(need.purpose)
    given = {"model": need.model, **{name: value for name, value in filters.items() if value is not None}}
    if need.purpose in ("training", "fine-tuning"):
        from gpucost.api.estimate import answer as estimate

        method = {"method": "lora"} if need.purpose == "fine-tuning" else {}
        asked = {**given, **method, "tokens": tokens, "top": 0, "with_facts": False}
        return [{**row, "rent_usd": row["cost_usd"]} for row in estimate(asked, catalog).options]
    if need.purpose == "serving":
        from gpucost.api.inference import answer as inference

        options = inference({**given, "tokens_per_month": tokens, "top": 0}, catalog).options
        return [{**row, "days": None, "rent_usd": MONTHS_PER_YEAR * row["usd_per_month"]} for row in options]
    return _held(catalog, need, filters)


def _held(catalog: "Catalog", need: Need, filters: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield what holds a model, at the cheapest offer of those asked for; without an offer, where any may be meant."""
    from gpucost.fitting.fit import everywhere
    from gpucost.market.facts import FILTERS, asked_for, cheapest, market_of, usual

    asked = {name: filters.get(name) for name in FILTERS}
    wanted, market = catalog.offer_filter(**asked), market_of(catalog)
    allowed = asked_for(market, catalog, SimpleNamespace(**asked))
    placed = any(wanted[name] is not None for name in ("provider", "region", "option"))
    if wanted["option"] is None:
        allowed &= ~market.terms.interruptible
    tried = [allowed & usual(market), allowed][: 1 + placed]  # an old price where what was asked for has no other
    hours = need.hours_per_month * MONTHS_PER_YEAR
    for row in everywhere(catalog, need.model, method="qlora" if need.purpose == "desk" else "lora")["rows"]:
        if wanted["gpu"] is not None and row["gpu"] not in wanted["gpu"]:
            continue
        found = (cheapest(market, row["gpu"], row["gpus"], offers) for offers in tried)
        hour, offer = next((one for one in found if one[1]), (None, None))
        if hour is not None and offer is not None:
            yield {**row, "provider": offer.provider, "option": offer.option, "days": None, "rent_usd": hour * hours}
        elif not placed or need.purpose == "desk":  # which may be bought where nobody rents it out
            sold = "" if placed else row["sold"]
            yield {**row, "provider": sold, "option": None, "days": None, "rent_usd": None}


def _first_of_each(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row["gpu"], row)
    return list(first.values())


def _row(need: Need, chip: Mapping[str, Any], row: Mapping[str, Any]) -> "Candidate":
    gpus, rent = int(row["gpus"]) * int(row.get("replicas") or 1), row["rent_usd"]
    street = [chip[f"street_{end}_usd"] for end in ("low", "high") if chip[f"street_{end}_usd"]]
    price = sum(street) / len(street) if street else chip["launch_usd"]
    buy = None if not price else price * gpus
    runs = need.purpose in ("training", "fine-tuning")
    months = row["days"] / DAYS_PER_MONTH if runs and row["days"] else MONTHS_PER_YEAR
    return {
        "workload": need.name,
        "purpose": need.purpose,
        "model": need.model,
        "gpu": chip["id"],
        "card": card_of(chip),
        "memory_gib": chip["memory_gib"],
        "ecc": None if chip["ecc"] is None else bool(chip["ecc"]),
        "link": link_of(chip),
        "warranty": _WARRANTY[card_of(chip)],
        "gpus": gpus,
        "provider": row["provider"],
        "option": row["option"],
        "days": row["days"],
        "rent_usd": rent,
        "buy_usd": buy,
        "breakeven_months": None if not rent or buy is None else buy / (rent / months),
        "within": "",
    }


def card_of(chip: Mapping[str, Any]) -> str:
    """Say for whom a card is made: consumer, workstation, data centre, or a computer of its own.

    >>> card_of({"name": "GeForce RTX 4090", "form_factor": "PCIe"}), card_of({"name": "H100", "form_factor": "SXM5"})
    ('consumer', 'data centre')
    """
    name, form = str(chip["name"]), str(chip["form_factor"])
    if name.startswith(_CONSUMER):
        return "consumer"
    if name.startswith(_WORKSTATION) and "Server" not in name:
        return "workstation"
    return "computer" if form == "SoC" else "data centre"


def link_of(chip: Mapping[str, Any]) -> str:
    """Return what connects accelerators: a link of their own, else PCIe, in GB/s per GPU and direction."""
    if chip["scaleup_gb_per_s"]:
        return f"{chip['scaleup_link']} {chip['scaleup_gb_per_s']:,.0f}"
    return f"PCIe {chip['pcie_gb_per_s']:,.0f}" if chip["pcie_gb_per_s"] else "none"
