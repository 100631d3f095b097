"""Claims about single figures: peaks, bandwidth, memory, links, power, prices, energy; each against what is on record.

A figure is held against every variant that a name may mean; the one that suits it best speaks, and the answer names it.
What would be true under another convention (with sparsity, both directions of a link, another precision, a whole node
for one card) is looked for, so that the answer says where a wrong figure comes from.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.claims.audit import (
    IMPLAUSIBLE,
    IMPOSSIBLE,
    POSSIBLE,
    UNKNOWN,
    WHOLE_RUN_RATIO,
    Check,
    Claim,
    amount,
    deployment_of,
    implied_mfu,
    most_favourable,
)
from gpucost.errors import UsageError
from gpucost.physics import collectives
from gpucost.physics.columns import PRECISIONS as TRAINED_IN
from gpucost.physics.hardware import cores_of
from gpucost.physics.training.layouts import latest_year
from gpucost.types import Accelerator, System
from gpucost.units import GB, GIB, HOURS_PER_DAY, HOURS_PER_MONTH
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import BEYOND_PEAK, Workload, make_workload, sizes

NEAR = 0.025  # within which a figure is the one on record, rounded
ABOUT = 0.10  # within which it is near, but not it
PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")


class Truth(NamedTuple):
    """A figure on record: of what, and whether the claim is right where it says so much."""

    value: float
    told: str
    right: bool = True
    doubt: str = IMPOSSIBLE  # the verdict where it is what was said, but not what it was said to be


def hold(
    name: str, claimed: float, truths: Sequence[Truth], unit: str, slack: float = NEAR, about: float = ABOUT
) -> Check:
    """Hold a figure against those on record: the right ones first, then what it may be instead.

    >>> truths = [Truth(989.4, "dense bf16 peak"), Truth(1978.8, "the bf16 peak with sparsity", False, IMPLAUSIBLE)]
    >>> hold("peak", 989, truths, "TFLOP/s").verdict, hold("peak", 1979, truths, "TFLOP/s").verdict
    ('possible', 'implausible')
    """

    def off(truth: Truth) -> float:
        return abs(claimed / truth.value - 1)

    right = [truth for truth in truths if truth.right]
    if not right:
        return Check(name, UNKNOWN, claimed, None, None, None, unit, f"No {name} is on record for it.")
    best = min(right, key=off)
    low, high = min(truth.value for truth in right), max(truth.value for truth in right)
    told = f"On record: {amount(best.value, 4)} {unit}, {best.told}."
    slack = max(slack, NEAR) if about else slack
    if off(best) <= slack:
        return Check(name, POSSIBLE, claimed, low, best.value, high, unit, told)
    for truth in sorted((truth for truth in truths if not truth.right), key=off):
        if off(truth) <= slack:
            reason = f"{amount(claimed, 4)} {unit} is {truth.told}. {told}"
            return Check(name, truth.doubt, claimed, low, best.value, high, unit, reason)
    if off(best) <= about:
        reason = f"{told} The claim is {claimed / best.value - 1:+.0%} off."
        return Check(name, IMPLAUSIBLE, claimed, low, best.value, high, unit, reason)
    for truth in (truth for truth in truths if truth.doubt == IMPLAUSIBLE and off(truth) <= about * 1.2):
        reason = f"{amount(claimed, 4)} {unit} is near {truth.told} ({amount(truth.value, 4)}). {told}"
        return Check(name, IMPLAUSIBLE, claimed, low, best.value, high, unit, reason)
    ratio = claimed / best.value if claimed > best.value else best.value / claimed
    reason = f"{told} The claim is {amount(ratio)}× too {'high' if claimed > best.value else 'low'}."
    return Check(name, IMPOSSIBLE, claimed, low, best.value, high, unit, reason)


# --- What a datasheet says of a chip.


def check_peak(
    claimed_tflops: float,
    chips: Sequence[Accelerator],
    precision: str,
    *,
    sparse: bool = False,
    gpus: int = 1,
    slack: float = NEAR,
) -> Check:
    """Judge a claimed peak: dense unless it says "with sparsity"; of so many accelerators together."""
    truths = []
    for chip in chips:
        for name in PRECISIONS:
            dense = getattr(chip, f"{name}_tflops", None)
            if not dense:
                continue
            said = f"the {name} peak of {_of(chip, gpus)}"
            same, together = name == precision, dense * gpus
            both = {precision, name} == {"bf16", "fp16"}
            if not (both and getattr(chip, f"{precision}_tflops", None)):
                truths.append(Truth(together, f"{said}, dense", (same or both) and not sparse))
            if chip.sparse_ratio > 1 and name not in ("fp64", "fp32"):
                told = f"{said} with 2:4 sparsity; dense matrices reach half"
                truths.append(Truth(together * chip.sparse_ratio, told, same and sparse, IMPLAUSIBLE))
            if gpus == 1 and same:
                truths += [Truth(dense * many, f"that of {many} of them", False) for many in (8,)]
    if not any(truth.right for truth in truths):
        reason = f"{chips[0].id} has no {precision} units on record."
        return Check("peak", IMPOSSIBLE, claimed_tflops, None, None, None, "TFLOP/s", reason)
    return hold("peak", claimed_tflops, truths, "TFLOP/s", slack)


def check_bandwidth(claimed_gb_per_s: float, chips: Sequence[Accelerator], gpus: int = 1, slack: float = NEAR) -> Check:
    """Judge a claimed memory bandwidth, of so many accelerators together."""
    truths = []
    for chip in chips:
        truths.append(Truth(chip.hbm_gb_per_s * gpus, f"the memory of {_of(chip, gpus)}"))
        truths.append(Truth(chip.hbm_gb_per_s * gpus * 1000, "that times a thousand: a slip of the unit", False))
        if chip.scaleup_gb_per_s:
            truths.append(Truth(2 * chip.scaleup_gb_per_s, "the link of one accelerator, both directions", False))
        if chip.pcie_gb_per_s:
            truths.append(Truth(chip.pcie_gb_per_s, "its PCIe link, not its memory", False))
    return hold("memory bandwidth", claimed_gb_per_s, truths, "GB/s", slack)


def check_memory(claimed_gb: float, chips: Sequence[Accelerator], gpus: int = 1, slack: float = NEAR) -> Check:
    """Judge a claimed size of memory; makers write GiB as GB, so that both are right."""
    truths = []
    for chip in chips:
        truths.append(Truth(chip.memory_gib * gpus, f"the memory of {_of(chip, gpus)}"))
        truths.append(Truth(chip.memory_gib * GIB / GB * gpus, f"the memory of {_of(chip, gpus)} in bytes of 10⁹"))
    return hold("memory", claimed_gb, truths, "GB", slack)


def check_cache(claimed_mb: float, chips: Sequence[Accelerator]) -> Check:
    """Judge a claimed size of the second-level cache."""
    truths = [Truth(chip.l2_mb, f"the L2 cache of {chip.id}") for chip in chips if chip.l2_mb]
    return hold("L2 cache", claimed_mb, truths, "MB", 0.05)


def check_link(
    claimed_gb_per_s: float,
    chips: Sequence[Accelerator],
    *,
    pcie: bool = False,
    one_way: bool = False,
    gpus: int = 1,
    slack: float = NEAR,
) -> Check:
    """Judge a claimed speed of the links of one accelerator: makers print the sum of both directions."""
    truths = []
    for chip in chips:
        rate = (chip.pcie_gb_per_s or 0.0) if pcie else chip.scaleup_gb_per_s
        if not rate:
            continue
        link = f"PCIe of {chip.id}" if pcie else f"{chip.scaleup_link} of {chip.id}"
        truths.append(Truth(rate * gpus, f"{link}, one direction"))
        truths.append(Truth(2 * rate * gpus, f"{link}, both directions together", not one_way, IMPLAUSIBLE))
    if not truths:
        said = "a PCIe link" if pcie else "links between accelerators"
        reason = f"No {said} of {chips[0].id} is on record."
        return Check("link", UNKNOWN if pcie else IMPOSSIBLE, claimed_gb_per_s, None, None, None, "GB/s", reason)
    return hold("link", claimed_gb_per_s, truths, "GB/s", max(slack, 0.03))


def check_cores(claimed: float, chips: Sequence[Accelerator]) -> Check:
    """Judge a claimed number of FP32 cores: multiprocessors × lanes of each."""
    counts = [(chip, cores_of(chip)) for chip in chips]
    truths = [
        Truth(count, f"{chip.multiprocessors} multiprocessors × {count // (chip.multiprocessors or 1)} of {chip.id}")
        for chip, count in counts
        if count
    ]
    return hold("FP32 cores", claimed, truths, "cores", 0.004, about=0)


def check_multiprocessors(claimed: float, chips: Sequence[Accelerator]) -> Check:
    """Judge a claimed number of multiprocessors or compute units."""
    truths = [Truth(chip.multiprocessors, f"of {chip.id} as sold") for chip in chips if chip.multiprocessors]
    return hold("multiprocessors", claimed, truths, "units", 0.004, about=0)


def check_power(
    claimed_w: float, chips: Sequence[Accelerator], systems: Sequence[System], gpus: int = 1, slack: float = NEAR
) -> Check:
    """Judge claimed watts: of accelerators alone, or of the whole server that holds them."""
    whole = [
        Truth((system.max_power_kw or 0) * 1000, f"the whole {system.name}")
        for system in systems
        if system.max_power_kw
    ]
    cards = [
        Truth(chip.tdp_w * gpus, f"the board power of {_of(chip, gpus)}", not whole, IMPLAUSIBLE)
        for chip in chips
        if chip.tdp_w
    ]
    return hold("power", claimed_w, [*whole, *cards], "W", slack)


def check_ridge(claimed: float, chips: Sequence[Accelerator], precision: str) -> Check:
    """Judge a claimed ridge point: dense peak ÷ memory bandwidth, in FLOP per byte."""
    truths = [
        Truth(dense * 1000 / chip.hbm_gb_per_s, f"dense {precision} peak ÷ memory bandwidth of {chip.id}")
        for chip in chips
        if (dense := getattr(chip, f"{precision}_tflops", None))
    ]
    return hold("ridge point", claimed, truths, "FLOP per byte", 0.05)


# --- What is more of what: ratios of two chips.

RATIOS = {"bandwidth": "memory bandwidth", "memory": "memory", "link": "link", "power": "power"}


def check_ratio(claimed: float, of: str, one: Sequence[Accelerator], other: Sequence[Accelerator]) -> Check:
    """Judge "so many times": the figure of one chip ÷ that of another, both dense; of sparse against dense, too."""

    def figure(chip: Accelerator) -> float | None:
        named = {
            "bandwidth": chip.hbm_gb_per_s,
            "memory": chip.memory_gib,
            "link": chip.scaleup_gb_per_s,
            "power": chip.tdp_w,
        }
        return named[of] if of in named else getattr(chip, f"{of}_tflops", None)

    truths = []
    for first in one:
        for second in other:
            above, below = figure(first), figure(second)
            if not above or not below:
                continue
            truths.append(Truth(above / below, f"{RATIOS.get(of, f'dense {of}')} of {first.id} ÷ {second.id}"))
            if of not in RATIOS and first.sparse_ratio > 1:
                told = f"the sparse {of} peak of {first.id} over the dense one of {second.id}"
                truths.append(Truth(above * first.sparse_ratio / below, told, False, IMPLAUSIBLE))
    return hold("ratio", claimed, truths, "×", 0.03)


def check_precisions(claimed: float, chips: Sequence[Accelerator], one: str, other: str) -> Check:
    """Judge "so many times" of two precisions of one chip: their dense peaks."""
    truths = [
        Truth(max(peaks) / min(peaks), f"dense {one} and {other} of {chip.id}")
        for chip in chips
        if all(peaks := [getattr(chip, f"{name}_tflops", None) or 0.0 for name in (one, other)])
    ]
    return hold("ratio", claimed, truths, "×", 0.03)


# --- What moves: all-reduce.


def check_all_reduce(
    claimed_s: float, payload_gb: float, gpus: int, catalog: Catalog, chip: Accelerator, *, pcie: bool = False
) -> Check:
    """Judge a claimed time of an all-reduce: 2(n−1)/n × bytes ÷ one direction of the link of each accelerator.

    The roof is the link's rate; measured rings reach 60 to 90 % of it. Within a node it is the node's own link.
    """
    key = key_of(catalog, chip.id)
    rate = (chip.pcie_gb_per_s or 0.0) if pcie else chip.scaleup_gb_per_s
    if not rate:
        reason = f"{chip.id} has no {'PCIe' if pcie else 'own'} link on record. Name the link's rate."
        return Check("all-reduce", UNKNOWN, claimed_s, None, None, None, "s", reason)
    wire, one = payload_gb / rate, np.ones(1)
    group = collectives.Tier(gpus * one, rate * one, rate * one, 0 * one)
    least = float(collectives.all_reduce_s(group, payload_gb * GB * one)[0])
    low, typical, high = least, least / 0.8, least / 0.5
    where = "PCIe" if pcie else key.system.id
    reason = (
        f"{payload_gb:g} GB over {gpus} × {chip.id} move 2({gpus}−1)/{gpus} × {payload_gb:g} GB through {rate:g} GB/s"
        f" of one direction ({where}): {amount(least)} s at least."
    )
    verdict = POSSIBLE
    if claimed_s < least * 0.97:
        verdict = IMPOSSIBLE
        if abs(claimed_s / wire - 1) < 0.05:
            reason += " The claim is one copy, not an all-reduce."
        elif abs(2 * claimed_s / least - 1) < 0.05:
            reason += " The claim takes both directions of the link for one."
    elif claimed_s > high * 3:
        verdict = IMPLAUSIBLE
        reason += " The claim is many times slower than the link needs."
    return Check("all-reduce", verdict, claimed_s, low, typical, high, "s", reason)


# --- How fast it trains.


def check_training_speed(
    claimed_tokens_per_s: float, catalog: Catalog, workload: Workload, chip: Accelerator, gpus: int
) -> Check:
    """Judge tokens per second of training, over all accelerators, by the peak and by the speed of other questions."""
    size, precision = sizes(workload), workload.precision_on(chip)
    implied = implied_mfu(size.model_flop_per_token * claimed_tokens_per_s, chip, precision, gpus, 1.0)
    unit = "tokens per second"
    if implied is None:
        reason = f"{chip.id} has no {precision} matrix units; name another --precision."
        return Check("training speed", IMPOSSIBLE, claimed_tokens_per_s, None, None, None, unit, reason)
    reason = (
        f"{amount(claimed_tokens_per_s, 4)} tokens/s of {workload.architecture.name} on {gpus} × {chip.id} need"
        f" {implied:.0%} of the dense {precision} peak."
    )
    found = deployment_of(catalog, workload, chip, gpus)
    if not found.fits:
        verdict = IMPOSSIBLE if implied > 1 else IMPLAUSIBLE
        reason += f" The run does not fit in the memory of {gpus} without offloading."
        return Check("training speed", verdict, claimed_tokens_per_s, None, None, None, unit, reason)
    low, typical, high = found.tokens_per_s_low, found.tokens_per_s, found.tokens_per_s_high
    verdict = POSSIBLE
    if implied > 1:
        verdict, reason = IMPOSSIBLE, f"{reason} {BEYOND_PEAK}"
    elif claimed_tokens_per_s > high:
        verdict, reason = IMPLAUSIBLE, f"{reason} No measured software comes near this."
    elif claimed_tokens_per_s < low / WHOLE_RUN_RATIO:
        verdict, reason = IMPLAUSIBLE, f"{reason} Usual software is faster."
    return Check("training speed", verdict, claimed_tokens_per_s, low, typical, high, unit, reason)


# --- What it costs.

_CHEAPEST, _DEAREST = 0.9, 1.1  # of the lowest and highest price on record


def rent_rows(
    catalog: Catalog, chips: Sequence[Accelerator], provider: str | None, instance: str | None, option: str | None
) -> list[dict[str, Any]]:
    """Return the prices that hold on the catalog's day and are for sale, of accelerators, a seller, a machine."""
    ids = {chip.id for chip in chips}
    return [
        row
        for row in catalog.price_rows
        if (not ids or row["gpu"] in ids)
        and not row["ended"]
        and not row["conflict"]
        and (provider is None or row["provider"] == provider)
        and (instance is None or str(row["instance_type"]).lower() == instance.lower())
        and (option is None or row["option"] == option)
    ]


def check_rent(
    claimed_usd: float,
    catalog: Catalog,
    chips: Sequence[Accelerator],
    *,
    gpus: int | None = None,
    provider: str | None = None,
    instance: str | None = None,
    option: str | None = None,
) -> Check:
    """Judge a claimed price of an hour by the prices on record that day, and where none agrees by older ones."""
    unit = "USD per hour" if (gpus and gpus > 1) or instance else "USD per GPU-hour"
    rows = rent_rows(catalog, chips, provider, instance, option)
    ids = list(dict.fromkeys(str(row["gpu"]) for row in rows)) or [chip.id for chip in chips]
    machine = instance or (" or ".join(ids) if len(ids) < 4 else f"{len(ids)} variants")
    name = " ".join(filter(None, (provider, machine, option)))
    if not rows:
        return Check("rent", UNKNOWN, claimed_usd, None, None, None, unit, f"No price of {name} is on record that day.")
    per_hour = instance is not None

    def of(row: dict[str, Any]) -> float:
        return float(row["usd_per_hour"]) if per_hour else float(row["usd_per_gpu_hour"]) * (gpus or 1)

    values = sorted(of(row) for row in rows)
    low, high, middle = values[0], values[-1], float(np.median(values))
    days = {row["observed_on"] for row in rows}
    reason = (
        f"{len(rows):,} prices of {name}, seen {min(days)} to {max(days)}: {amount(low, 3)} to {amount(high, 3)},"
        f" median {amount(middle, 3)}."
    )
    slack = NEAR if per_hour else 1 - _CHEAPEST  # one machine of one seller has few prices
    if low * (1 - slack) <= claimed_usd <= high * (1 + slack):
        return Check("rent", POSSIBLE, claimed_usd, low, middle, high, unit, reason)
    if (when := _once(catalog, claimed_usd, chips, gpus, provider, instance, option)) is not None:
        reason += f" So much was a price until {when}; it is no more."
        return Check("rent", IMPLAUSIBLE, claimed_usd, low, middle, high, unit, reason)
    for factor, told in ((8.0, "a node of 8"), (1 / 8, "an eighth of it"), (HOURS_PER_MONTH, "a month")):
        if low * _CHEAPEST <= claimed_usd / factor <= high * _DEAREST and not (gpus and gpus > 1):
            reason += f" It may be the price of {told}."
            return Check("rent", IMPLAUSIBLE, claimed_usd, low, middle, high, unit, reason)
    verdict = IMPOSSIBLE if claimed_usd < low / 3 or claimed_usd > high * 3 else IMPLAUSIBLE
    return Check("rent", verdict, claimed_usd, low, middle, high, unit, reason)


def _once(
    catalog: Catalog,
    claimed: float,
    chips: Sequence[Accelerator],
    gpus: int | None,
    provider: str | None,
    instance: str | None,
    option: str | None,
) -> str | None:
    """Return the last day on which a price within 3 % of the claim was seen, of prices that hold no more."""
    catalog.prepare_prices(history=True)
    parameters: dict[str, Any] = {"claimed": claimed, "day": catalog.as_of, "gpus": float(gpus or 1)}
    sql = """SELECT max(coalesce(seen_until, observed_on)) AS last_on FROM book_offers
        WHERE observed_on <= $day AND offer_kind = 'offer' AND abs(
            CASE WHEN $whole THEN usd_per_hour ELSE usd_per_gpu_hour * $gpus END / $claimed - 1) <= 0.03"""
    parameters["whole"] = instance is not None
    for column, value in (("provider", provider), ("option", option)):
        if value is not None:
            sql += f" AND {column} = ${column}"
            parameters[column] = value
    if instance is not None:
        sql += " AND lower(instance_type) = $instance"
        parameters["instance"] = instance.lower()
    if chips:
        sql += " AND list_contains($chips, gpu)"
        parameters["chips"] = [chip.id for chip in chips]
    last = catalog.store.fetch(sql, parameters)[0]["last_on"]
    return None if last is None else str(last)


def check_purchase(claimed_usd: float, catalog: Catalog, chips: Sequence[Accelerator], gpus: int = 1) -> Check:
    """Judge a claimed price of buying accelerators by street and launch prices on record."""
    rows = {str(row["id"]): row for row in catalog.rows("accelerators")}
    lows, highs, told = [], [], []
    for chip in chips:
        row = rows[chip.id]
        prices = [row[name] for name in ("street_low_usd", "street_high_usd", "launch_usd") if row[name]]
        if prices:
            lows.append(min(prices) * gpus)
            highs.append(max(prices) * gpus)
            told.append(f"{chip.id} {amount(min(prices))} to {amount(max(prices))}")
    if not lows:
        reason = f"No price to buy {chips[0].id} is on record."
        return Check("purchase", UNKNOWN, claimed_usd, None, None, None, "USD", reason)
    low, high = min(lows), max(highs)
    reason = f"On record, street and launch, for one: {'; '.join(told)} USD."
    verdict = POSSIBLE if low * _CHEAPEST <= claimed_usd <= high * _DEAREST else IMPLAUSIBLE
    if claimed_usd < low / 3 or claimed_usd > high * 3:
        verdict = IMPOSSIBLE
    return Check("purchase", verdict, claimed_usd, low, None, high, "USD", reason)


_SERVER_SLACK = 0.15  # beyond the prices on record, which are few


def check_server(claimed_usd: float, catalog: Catalog, chips: Sequence[Accelerator], gpus: int | None = None) -> Check:
    """Judge a claimed price of a whole server, or a rack of them, by the prices of such machines on record."""
    ids = {chip.id for chip in chips}
    rows = [row for row in catalog.rows("systems") if row["accelerator_id"] in ids and row["price_low_usd"]]
    of_size = [row for row in rows if gpus is None or row["gpus"] == gpus]
    if not of_size:
        held = f", of other sizes: {', '.join(str(row['id']) for row in rows)}" if rows else ""
        reason = f"No price of a server with {gpus or 'several'} × {chips[0].id} is on record{held}."
        return Check("server price", UNKNOWN, claimed_usd, None, None, None, "USD", reason)
    low = min(row["price_low_usd"] for row in of_size)
    high = max(row["price_high_usd"] or row["price_low_usd"] for row in of_size)
    told = "; ".join(
        f"{row['id']} {amount(row['price_low_usd'])} to {amount(row['price_high_usd'] or row['price_low_usd'])}"
        f" ({row['price_observed']})"
        for row in of_size
    )
    reason = f"On record, for a whole machine: {told} USD."
    verdict = POSSIBLE if low * (1 - _SERVER_SLACK) <= claimed_usd <= high * (1 + _SERVER_SLACK) else IMPLAUSIBLE
    if claimed_usd < low / 3 or claimed_usd > high * 3:
        verdict = IMPOSSIBLE
    return Check("server price", verdict, claimed_usd, low, (low + high) / 2, high, "USD", reason)


class TokenPrice(NamedTuple):
    """What a million tokens of a model cost: on machines that one can rent, full, or at hosts of the model."""

    low: float
    typical: float
    high: float
    where: str  # of the typical one


def check_token_price(claimed_usd: float, known: TokenPrice | None) -> Check:
    """Judge a claimed price of a million tokens by those that `inference` finds; half-empty machines cost more."""
    unit = "USD per million tokens"
    if known is None:
        return Check("token price", UNKNOWN, claimed_usd, None, None, None, unit, "No price of it is known.")
    low, typical, high, where = known
    reason = f"From {amount(low)} to {amount(high)} USD; {where}: {amount(typical)}."
    if claimed_usd < low * _CHEAPEST:
        reason += " Less is below the cheapest full machine."
        return Check(
            "token price", IMPOSSIBLE if claimed_usd < low / 3 else IMPLAUSIBLE, claimed_usd, *known[:3], unit, reason
        )
    if claimed_usd > high * _DEAREST:
        reason += f" So much is paid where machines are used {typical / claimed_usd:.0%} of the time."
        verdict = IMPLAUSIBLE if claimed_usd > high * 3 else POSSIBLE
        return Check("token price", verdict, claimed_usd, *known[:3], unit, reason)
    return Check("token price", POSSIBLE, claimed_usd, *known[:3], unit, reason)


def check_cheaper(claimed_fraction: float, dear: "SellerPrices", cheap: "SellerPrices") -> Check:
    """Judge by how much one price of an hour is said to lie below another: 1 − ratio at each seller that has both."""
    sellers = sorted(set(dear.usd_by_seller) & set(cheap.usd_by_seller))
    if not sellers:
        reason = f"Nobody on record sells both {cheap.name} and {dear.name}."
        return Check("saving", UNKNOWN, claimed_fraction, None, None, None, "fraction of one", reason)
    saved = {name: 1 - cheap.usd_by_seller[name] / dear.usd_by_seller[name] for name in sellers}
    low, high, middle = min(saved.values()), max(saved.values()), float(np.median(list(saved.values())))
    ends = sorted(sellers, key=saved.__getitem__)
    reason = (
        f"{cheap.name} against {dear.name}, each at its lowest price, of {len(sellers)} with both: median {middle:.0%}"
        f" less, from {low:.0%} ({ends[0]}) to {high:.0%} ({ends[-1]})."
    )
    verdict = POSSIBLE if low - 0.02 <= claimed_fraction <= high + 0.02 else IMPLAUSIBLE
    return Check("saving", verdict, claimed_fraction, low, middle, high, "fraction of one", reason)


class SellerPrices(NamedTuple):
    """The lowest price of an accelerator-hour at each seller."""

    name: str
    usd_by_seller: dict[str, float]


def seller_prices(
    catalog: Catalog, name: str, chips: Sequence[Accelerator], provider: str | None, option: str
) -> SellerPrices:
    """Return the lowest price on record that day at each seller of some accelerators."""
    lowest: dict[str, float] = {}
    for row in rent_rows(catalog, chips, provider, None, option):
        seller, price = str(row["provider"]), float(row["usd_per_gpu_hour"])
        lowest[seller] = min(price, lowest.get(seller, price))
    return SellerPrices(f"{name} {option.replace('_', ' ')}", lowest)


# --- Energy and carbon of a run.


def check_energy(claimed_kwh: float, chips: Sequence[Accelerator], gpus: int, hours: float) -> Check:
    """Judge claimed energy: accelerators × hours × watts; at least half the board power, at most a server's overhead.

    A server draws about 1.45 times what its boards do (DGX H100: 10.2 kW for 8 × 700 W), a good hall 1.1 to 1.3 on top.
    """
    powered = [chip for chip in chips if chip.tdp_w]
    if not powered:
        return Check("energy", UNKNOWN, claimed_kwh, None, None, None, "kWh", "Its board power is not on record.")
    board = [(chip.tdp_w or 0) / 1000 * gpus * hours for chip in powered]
    low, typical, high = min(board) * 0.5, max(board) * 1.45 * 1.2 * 0.8, max(board) * 1.82 * 1.54
    reason = f"{gpus} × {powered[0].id} for {hours:,.0f} h at board power are {max(board):,.0f} kWh, before the server."
    verdict = POSSIBLE if low <= claimed_kwh <= high else IMPOSSIBLE if claimed_kwh < low / 2 else IMPLAUSIBLE
    return Check("energy", verdict, claimed_kwh, low, typical, high, "kWh", reason)


def check_carbon(claimed_kg: float, kwh: float, grids: Iterable[tuple[str, float]]) -> Check:
    """Judge claimed carbon by the energy and the grids on record: kWh × kg a kWh, from the cleanest to the dirtiest."""
    known = sorted(grids, key=lambda grid: grid[1])
    low, high = known[0][1] * kwh, known[-1][1] * kwh
    middle = known[len(known) // 2][1] * kwh
    reason = f"{kwh:,.0f} kWh are {amount(low)} kg in {known[0][0]} and {amount(high)} kg in {known[-1][0]}."
    verdict = POSSIBLE if low * 0.9 <= claimed_kg <= high * 1.1 else IMPOSSIBLE
    return Check("carbon", verdict, claimed_kg, low, middle, high, "kgCO2e", reason)


def grids(catalog: Catalog) -> list[tuple[str, float]]:
    """Return the kg of CO2e of a kWh of each grid on record."""
    return [
        (str(row["item"]).removeprefix("grid_carbon."), float(row["typical"]))
        for row in catalog.rows("energy")
        if str(row["item"]).startswith("grid_carbon.") and row["typical"]
    ]


def _of(chip: Accelerator, gpus: int) -> str:
    return chip.id if gpus == 1 else f"{gpus} × {chip.id}"


# --- Figures stated one by one, each with what it is of.


class Stated(NamedTuple):
    """Figures that a claim states; None is not said."""

    tflops: float | None = None
    sparse: bool = False
    bandwidth_gb_per_s: float | None = None
    memory_gb: float | None = None
    link_gb_per_s: float | None = None
    one_way: bool = False
    over_pcie: bool = False
    power_w: float | None = None
    cores: float | None = None
    rent_usd_per_gpu_hour: float | None = None
    purchase_usd: float | None = None
    all_reduce_s: float | None = None
    payload_gb: float | None = None
    training_tokens_per_s: float | None = None
    energy_kwh: float | None = None
    kgco2e: float | None = None
    provider: str | None = None
    option: str | None = None


def check_stated(stated: Stated, claim: Claim, catalog: Catalog, notes: list[str]) -> list[Check]:
    """Judge each figure that is stated; what it needs beside it is asked back."""
    checks: list[Check] = []
    claimed = {name for name, value in stated._asdict().items() if value not in (None, False)}
    if not claimed:
        return checks
    chips = catalog.accelerators(claim.gpu) if claim.gpu else []
    if not chips and claimed - {"kgco2e", "energy_kwh", "provider", "option", "payload_gb"}:
        raise UsageError("of which accelerator? Add --gpu, such as --gpu h100-sxm.")
    gpus = claim.gpus or 1
    if stated.tflops is not None:
        if claim.precision is None:
            raise UsageError("--tflops: at which precision? Add --precision, such as bf16; peaks differ by it.")
        checks.append(check_peak(stated.tflops, chips, claim.precision, sparse=stated.sparse, gpus=gpus))
    if stated.bandwidth_gb_per_s is not None:
        checks.append(check_bandwidth(stated.bandwidth_gb_per_s, chips, gpus))
    if stated.memory_gb is not None:
        checks.append(check_memory(stated.memory_gb, chips, gpus))
    if stated.link_gb_per_s is not None:
        rate = stated.link_gb_per_s
        checks.append(check_link(rate, chips, pcie=stated.over_pcie, one_way=stated.one_way))
    if stated.power_w is not None:
        held = [one for one in catalog.systems() if one.accelerator_id in {chip.id for chip in chips}]
        servers = [one for one in held if one.gpus == gpus] if gpus > 1 else []
        checks.append(check_power(stated.power_w, chips, servers, gpus))
    if stated.cores is not None:
        checks.append(check_cores(stated.cores, chips))
    if stated.rent_usd_per_gpu_hour is not None:
        price = stated.rent_usd_per_gpu_hour
        checks.append(check_rent(price, catalog, chips, provider=stated.provider, option=stated.option))
    if stated.purchase_usd is not None:
        checks.append(check_purchase(stated.purchase_usd, catalog, chips, gpus))
    if stated.all_reduce_s is not None:
        if stated.payload_gb is None or claim.gpus is None:
            raise UsageError("--all-reduce: of how much over how many? Add --payload, such as 14, and --gpus.")
        if gpus < 2:
            raise UsageError("--all-reduce: one accelerator has nothing to exchange. Give --gpus 2 or more.")
        chip = most_favourable(chips, claim.precision)
        over_pcie = stated.over_pcie
        checks.append(check_all_reduce(stated.all_reduce_s, stated.payload_gb, gpus, catalog, chip, pcie=over_pcie))
    if stated.training_tokens_per_s is not None:
        if claim.model is None:
            raise UsageError("--train-tokens-per-s: of which model? Add --model, such as --model 8b.")
        workload = make_workload(
            catalog.architecture(claim.model),
            sequence_tokens=claim.sequence_tokens,
            method=claim.method,
            latest_year=latest_year(catalog.as_of),
        )
        chip = most_favourable(chips, claim.precision)
        workload = replace(workload, precision=claim.precision if claim.precision in TRAINED_IN else None)
        checks.append(check_training_speed(stated.training_tokens_per_s, catalog, workload, chip, gpus))
    if stated.energy_kwh is not None:
        hours = claim.gpu_hours or (claim.days and claim.days * HOURS_PER_DAY * gpus)
        if hours:
            checks.append(check_energy(stated.energy_kwh, chips, 1, hours))
        elif stated.kgco2e is None:
            raise UsageError("--energy: over how long? Add --gpu-hours, or --hours or --days with --gpus.")
    if stated.kgco2e is not None:
        if stated.energy_kwh is None:
            raise UsageError("--carbon: from how many kWh? Add --energy, such as --energy 50000.")
        checks.append(check_carbon(stated.kgco2e, stated.energy_kwh, grids(catalog)))
    if len(chips) > 1:
        meant = ", ".join(chip.id for chip in chips)
        notes.append(f"{claim.gpu} may mean {meant}: each figure is held against the one that suits it best.")
    return checks
