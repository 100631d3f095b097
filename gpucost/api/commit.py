"""`gpucost.commit(...)`: how much to commit for a history of use, and what one's agreements make of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost.api.asking import framed, opened
from gpucost.api.result import Result
from gpucost.errors import PriceMissingError, UsageError
from gpucost.options import OPTIONS, is_plain

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.types import Offer


@dataclass(frozen=True, slots=True, repr=False)
class CommitResult(Result):
    """How much to commit, its regret, the bill under one's agreements, and the ladder of commitments."""

    @property
    def gpus(self) -> float:
        """The GPUs to commit in all."""
        return float(self.payload["advised_gpus"])


def answer(given: Mapping[str, Any], catalog: "Catalog | None" = None) -> CommitResult:
    """Answer from arguments as they were given."""
    from gpucost.answers.common import cited
    from gpucost.invoices.commitment import Wanted, committed, read_agreements, refuse, usage_of

    values, catalog = opened("commit", given, catalog)
    usage, said = usage_of(values["usage"], catalog.as_of)
    prices, used = {"on_demand": values["on_demand"], "committed": values["committed"]}, []
    for name, price in prices.items():
        if price is None:
            offer = _cheapest(catalog, values, name)
            used.append(offer)
            prices[name] = offer.usd_per_gpu_hour
    said_of = [f"{offer.provider} {offer.instance_type} in {offer.region or offer.region_scope}, "
               f"{OPTIONS[offer.option].label}: {offer.usd_per_gpu_hour:,.4g} USD per GPU-hour, of {offer.observed_on}"
               for offer in used]  # fmt: skip
    sources = cited({offer.source_id: catalog.source(offer.source_id) for offer in used}, [o.source_id for o in used])
    wanted = Wanted(
        float(prices["on_demand"]), float(prices["committed"]), values["term"], float(values["step"]), values["rungs"],
        said_of, sources,
    )  # fmt: skip
    refuse(wanted)
    if not isinstance(values["usage"], str):
        values["usage"] = [float(value) for value in values["usage"]]
    held = read_agreements(values["agreements"])
    return CommitResult(committed(framed(catalog, values), usage, said, held, wanted))


def _cheapest(catalog: "Catalog", values: Mapping[str, Any], name: str) -> "Offer":
    """Return the cheapest offer on demand, or with a commitment of the term."""
    flag = f"--{name.replace('_', '-')}"
    if values["gpu"] is None:
        raise UsageError(f"{flag} is missing: say the price per GPU-hour, or --gpu (and --provider) to look it up.")
    term = values["term"] if name == "committed" else 0
    for offer in catalog.offers(values["gpu"], values["provider"], values["region"]):
        fits = is_plain(offer.option) if not term else OPTIONS[offer.option].family == "committed"
        if fits and offer.term_months == term:
            return offer
    what = f"a commitment of {term} months" if term else "an offer on demand"
    raise PriceMissingError(f"no price of {what} for {values['gpu']} is on record: say it with {flag}.")
