"""What the catalog knows and importers lean on, and the accelerator that a source means.

An accelerator is told by the source's own words, its memory, what the product's name says, what its seller has. A name
that leaves several open is narrowed in this order and no further: form factor in the name of the product, then the only
one of them that the seller sells anyway, which is an assumption and marked as one.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from gpucost.catalog.names import accelerator_tokens

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog
    from gpucost.catalog.names import NameIndex

_MOST_CANDIDATES = 4  # chips that one name may mean; beyond that it means none
_MEMORY_NEAR = 0.08  # of two variants the one whose memory is as near
_MEMORY_FAR = 0.20  # a chip with so much less or more memory is a slice of it, or another
# "1H100.80S.32V": eighty gigabytes, SXM
FORM_SQL = """CASE
    WHEN regexp_matches(lower(instance_type), '(^|[^a-z])sxm|^[0-9]+[a-z]+[0-9]+[.][0-9]+s[.]') THEN 'sxm'
    WHEN regexp_matches(lower(instance_type), '(^|[^a-z])pcie') THEN 'pcie'
    WHEN regexp_matches(lower(instance_type), '(^|[^a-z])nvl([^a-z]|$)') THEN 'nvl' END"""
_COUNT = re.compile(r"^\d+ ?x ")
_SLICE = re.compile(r"\b(mig|vgpu|laptop|mobile|\d+g\.\d+gb)\b|\b1/\d")
# words of the trade that tell no variant apart
_IDLE = re.compile(r"\b(ac|bare ?metal|instinct|geforce|tesla|oam|blackwell edition|edition)\b")
_TRADE = {  # what the trade calls an edition, as names here have it
    "server edition": "server",
    "max q workstation edition": "max-q",
    "max-q workstation edition": "max-q",
    "workstation edition": "ws",
}


class Known(Struct):
    """What the catalog knows and importers lean on; gathered once, before the sources are asked side by side."""

    chips: "NameIndex"
    memory_gb: Mapping[str, float]
    products: Sequence[tuple[str, str, str, int, str | None]]  # provider, product in lower case, chip, count, node
    reference: Sequence[tuple[Any, ...]]  # the offers that hold today: see REFERENCE
    models: "NameIndex"
    regions: frozenset[tuple[str, str]] = field(default_factory=frozenset)  # provider and region
    sold: frozenset[tuple[str, str]] = field(default_factory=frozenset)  # provider and product in lower case
    sales: Sequence[Mapping[str, Any]] = ()  # what lists say of where machines are sold


REFERENCE = {
    "offer_id": "VARCHAR",
    "provider": "VARCHAR",
    "instance_type": "VARCHAR",
    "gpu": "VARCHAR",
    "gpus": "INTEGER",
    "region": "VARCHAR",
    "option": "VARCHAR",
    "tier": "VARCHAR",
    "term_months": "INTEGER",
    "usd_per_hour": "DOUBLE",
    "usd_per_gpu_hour": "DOUBLE",
    "observed_on": "DATE",
}


def known_of(catalog: "Catalog") -> Known:
    """Gather what importers need of a catalog."""
    # products of the large clouds have one chip and one count, which their own lists often leave out
    sql = """SELECT provider, lower(instance_type), min(gpu), min(gpus), min(system_id) FROM offers
        WHERE NOT contains(gpu, '|') AND NOT gpu_assumed AND provider IN ('aws', 'azure', 'gcp', 'lambda', 'oci')
        GROUP BY 1, 2 HAVING min(gpu) = max(gpu) AND min(gpus) = max(gpus)"""
    catalog.laid.ensure("offers")
    products = {(row[0], row[1]): tuple(row) for row in catalog.store.execute(sql).fetchall()}
    for system in catalog.systems():
        if system.provider and system.instance_type:
            key = (system.provider, system.instance_type.lower())
            products[key] = (*key, system.accelerator_id, system.gpus, system.id)
    # a price of the user's own is no measure of what a seller asks
    reference = [
        tuple(getattr(offer, name) for name in REFERENCE) for offer in catalog.offers() if offer.book != "user"
    ]
    memory = {row["id"]: row["memory_marketed_gb"] or row["memory_gib"] for row in catalog.rows("accelerators")}
    regions = frozenset((str(row["provider"]), str(row["region"])) for row in catalog.rows("cloud_regions"))
    names = catalog.store.execute("SELECT DISTINCT provider, lower(instance_type) FROM offers").fetchall()
    priced = frozenset((str(provider), str(name).partition(" (")[0]) for provider, name in names)
    return Known(
        chips=catalog.accelerator_names,
        memory_gb=memory,
        products=list(products.values()),
        reference=reference,
        models=catalog.model_names,
        regions=regions,
        sold=priced | products.keys(),
        sales=catalog.rows("availability"),
    )


def chip_of(known: Known, name: str, memory_gib: float | None) -> str | None:
    """Return the accelerator that a source's name means, several joined by | where it says no more, or None."""
    return chip_and_grounds(known, name, memory_gib)[0]


def chip_and_grounds(
    known: Known, name: str, memory_gib: float | None, form: str | None = None, sold: Collection[str] = ()
) -> tuple[str | None, bool]:
    """Return the accelerator and whether its variant is assumed from what the seller sells anyway."""
    text = " ".join(name.replace("_", " ").split())
    if _SLICE.search(text.lower()):  # a part of a chip has no price of a chip
        return None, False
    # as the name is written, else without the words of the trade
    chips = known.chips.matches(text)
    if not chips:
        plain = _COUNT.sub("", text.lower())
        for theirs, ours in _TRADE.items():
            plain = plain.replace(theirs, ours)
        plain = " ".join(re.sub(r"[()]", " ", _IDLE.sub(" ", plain)).split())
        chips = known.chips.matches(plain) if plain and plain != text.lower() else []
    if memory_gib:  # of the same size before about the same: GB and GiB differ by 7 %
        near = [chip for chip in chips if abs(known.memory_gb[chip] / memory_gib - 1) < _MEMORY_NEAR]
        chips = near or [chip for chip in chips if abs(known.memory_gb[chip] / memory_gib - 1) < _MEMORY_FAR]
    if len(chips) > 1 and form:
        chips = [chip for chip in chips if form in accelerator_tokens(known.chips.rows[chip])] or chips
    if len(chips) > 1 and len(only := [chip for chip in chips if chip in sold]) == 1:
        return only[0], True
    return ("|".join(sorted(chips)) if 0 < len(chips) <= _MOST_CANDIDATES else None), False


def sold_by(known: Known) -> Mapping[str, frozenset[str]]:
    """Return the accelerators of each provider's offers that hold today."""
    sold = defaultdict(set)
    provider, gpu = list(REFERENCE).index("provider"), list(REFERENCE).index("gpu")
    for row in known.reference:
        sold[row[provider]].add(row[gpu])
    return {seller: frozenset(chips) for seller, chips in sold.items()}
