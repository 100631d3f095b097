"""Claims about single figures: peaks, bandwidth, memory, links, power, prices, energy; each against what is on record.

A figure is held against every variant that a name may mean; the one that suits it best speaks, and the answer names it.
What would be true under another convention (with sparsity, both directions of a link, another precision, a whole node
for one card) is looked for, so that the answer says where a wrong figure comes from.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.catalog.chips import is_sold
from gpucost.claims.audit import (
    IMPLAUSIBLE,
    IMPOSSIBLE,
    POSSIBLE,
    UNKNOWN,
    WHOLE_RUN_RATIO,
    Check,
    Claim,
    amount,
    best_count,
    deployment_of,
    faster_than_usual,
    implied_mfu,
    most_favourable,
    record_of,
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
_ABOUT = 0.10  # within which it is near, but not it
PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")


class Truth(NamedTuple):
    """A figure on record: of what, and whether the claim is right where it says so much."""

    value: float
    subject: str
    right: bool = True
    doubt: str = IMPOSSIBLE  # the verdict where it is what was said, but not what it was said to be


def hold(
    name: str,
    claimed: float,
    truths: Sequence[Truth],
    unit: str,
    slack: float = NEAR,
    about: float = _ABOUT,
    *,
    most: bool = False,
) -> Check:
    """Hold a figure against those on record: the right ones first, then what it may be instead.

    What a datasheet gives as the `most` cannot be exceeded, under no convention.

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
    on_record = f"On record: {amount(best.value, 4)} {unit}, {best.subject}."
    slack = max(slack, NEAR) if about else slack  # what is never near is exact: a number of cores
    if off(best) <= slack:
        return Check(name, POSSIBLE, claimed, low, best.value, high, unit, on_record)
    # What it is under another convention says more than how far off it is: that comes before "about right".
    for truth in sorted((truth for truth in truths if not truth.right), key=off):
        if off(truth) <= slack:
            reason = f"{amount(claimed, 4)} {unit} is {truth.subject}. {on_record}"
            return Check(name, truth.doubt, claimed, low, best.value, high, unit, reason)
    above = most and claimed > max(truth.value for truth in truths if truth.right or truth.doubt == IMPLAUSIBLE)
    if off(best) <= about and not above:
        reason = f"{on_record} The claim is {claimed / best.value - 1:+.0%} off."
        return Check(name, IMPLAUSIBLE, claimed, low, best.value, high, unit, reason)
    for truth in truths:
        if truth.doubt == IMPLAUSIBLE and off(truth) <= about * 1.2 and not above:
            reason = f"{amount(claimed, 4)} {unit} is near {truth.subject} ({amount(truth.value, 4)}). {on_record}"
            return Check(name, IMPLAUSIBLE, claimed, low, best.value, high, unit, reason)
    ratio = claimed / best.value if claimed > best.value else best.value / claimed
    reason = f"{on_record} The claim is {amount(ratio)}× too {'high' if claimed > best.value else 'low'}."
    return Check(name, IMPOSSIBLE, claimed, low, best.value, high, unit, reason)


# --- What a datasheet says of a chip.


def _check_peak(
    claimed_tflops: float,
    chips: Sequence[Accelerator],
    precision: str,
    *,
    sparse: bool = False,
    gpus: int = 1,
) -> Check:
    """Judge a claimed peak: dense unless it says "with sparsity"; of so many accelerators together."""
    truths = []
    for chip in chips:
        for name in PRECISIONS:
            dense = getattr(chip, f"{name}_tflops", None)
            if not dense:
                continue
            peak_name = f"the {name} peak of {_of(chip, gpus)}"
            same, together = name == precision, dense * gpus
            # One 16-bit format is the other's peak where only one of them is on record.
            both = {precision, name} == {"bf16", "fp16"}
            if not (both and getattr(chip, f"{precision}_tflops", None)):
                truths.append(Truth(together, f"{peak_name}, dense", (same or both) and not sparse))
            if chip.sparse_ratio > 1 and name not in ("fp64", "fp32"):  # sparsity is of matrix units, from TF32 down
                subject = f"{peak_name} with 2:4 sparsity; dense matrices reach half"
                truths.append(Truth(together * chip.sparse_ratio, subject, same and sparse, IMPLAUSIBLE))
            if gpus == 1 and same:
                truths.append(Truth(dense * 8, "that of 8 of them", False))
    if not any(truth.right for truth in truths):
        reason = f"{chips[0].id} has no {precision} units on record."
        return Check("peak", IMPOSSIBLE, claimed_tflops, None, None, None, "TFLOP/s", reason)
    return hold("peak", claimed_tflops, truths, "TFLOP/s", most=True)


def _check_link(
    claimed_gb_per_s: float,
    chips: Sequence[Accelerator],
    *,
    pcie: bool = False,
    one_way: bool = False,
) -> Check:
    """Judge a claimed speed of the links of one accelerator: makers print the sum of both directions."""
    truths = []
    for chip in chips:
        rate = (chip.pcie_gb_per_s or 0.0) if pcie else chip.scaleup_gb_per_s
        if not rate:
            continue
        link = f"PCIe of {chip.id}" if pcie else f"{chip.scaleup_link} of {chip.id}"
        truths.append(Truth(rate, f"{link}, one direction"))
        # Unless one direction is named, the sum of both is right: makers print it.
        truths.append(Truth(2 * rate, f"{link}, both directions together", not one_way))
    if not truths:
        link = "a PCIe link" if pcie else "links between accelerators"
        reason = f"No {link} of {chips[0].id} is on record."
        return Check("link", UNKNOWN if pcie else IMPOSSIBLE, claimed_gb_per_s, None, None, None, "GB/s", reason)
    return hold("link", claimed_gb_per_s, truths, "GB/s", 0.03, most=True)  # 64 GB/s of PCIe are 63


def _check_power(claimed_w: float, chips: Sequence[Accelerator], systems: Sequence[System], gpus: int = 1) -> Check:
    """Judge claimed watts: of accelerators alone, or of the whole server that holds them."""
    whole = [
        Truth((system.max_power_kw or 0) * 1000, f"the whole {system.name}")
        for system in systems
        if system.max_power_kw
    ]
    # Where servers are known, the boards' power is what the claim may have meant, not what it says.
    cards = [
        Truth(chip.tdp_w * gpus, f"the board power of {_of(chip, gpus)}", not whole, IMPLAUSIBLE)
        for chip in chips
        if chip.tdp_w
    ]
    return hold("power", claimed_w, [*whole, *cards], "W")


# --- What moves: all-reduce.


def _check_all_reduce(
    claimed_s: float, payload_gb: float, gpus: int, catalog: Catalog, chip: Accelerator, *, pcie: bool = False
) -> Check:
    """Judge a claimed time of an all-reduce: 2(n−1)/n × bytes ÷ one direction of the link of each accelerator.

    The roof is the link's rate; measured rings reach 60 to 90 % of it. Within a node it is the node's own link.
    """
    rate = (chip.pcie_gb_per_s or 0.0) if pcie else chip.scaleup_gb_per_s
    if not rate:
        reason = f"{chip.id} has no {'PCIe' if pcie else 'own'} link on record. Name the link's rate."
        return Check("all-reduce", UNKNOWN, claimed_s, None, None, None, "s", reason)
    copy_s, scalar = payload_gb / rate, np.ones(1)
    group = collectives.Tier(gpus * scalar, rate * scalar, rate * scalar, 0 * scalar)
    least = float(collectives.all_reduce_s(group, payload_gb * GB * scalar)[0])
    low, typical, high = least, least / collectives.RING_FRACTION, least / 0.5
    link = "PCIe" if pcie else key_of(catalog, chip.id).system.id
    reason = (
        f"{payload_gb:g} GB over {gpus} × {chip.id} move 2({gpus}−1)/{gpus} × {payload_gb:g} GB through {rate:g} GB/s"
        f" of one direction ({link}): {amount(least)} s at least."
    )
    verdict = POSSIBLE
    if claimed_s < least * 0.97:  # rounding of the payload and of the rate
        verdict = IMPOSSIBLE
        if abs(claimed_s / copy_s - 1) < 0.05:
            reason += " The claim is one copy, not an all-reduce."
        elif abs(2 * claimed_s / least - 1) < 0.05:
            reason += " The claim takes both directions of the link for one."
    elif claimed_s > high * 3:
        verdict = IMPLAUSIBLE
        reason += " The claim is many times slower than the link needs."
    return Check("all-reduce", verdict, claimed_s, low, typical, high, "s", reason)


# --- How fast it trains.


def _check_training_speed(
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
    deployment = deployment_of(catalog, workload, chip, gpus)
    if not deployment.fits:
        verdict = IMPOSSIBLE if implied > 1 else IMPLAUSIBLE
        reason += f" The run does not fit in the memory of {gpus} without offloading."
        return Check("training speed", verdict, claimed_tokens_per_s, None, None, None, unit, reason)
    low, typical, high = deployment.tokens_per_s_low, deployment.tokens_per_s, deployment.tokens_per_s_high
    verdict = POSSIBLE
    if implied > 1:
        verdict, reason = IMPOSSIBLE, f"{reason} {BEYOND_PEAK}"
    elif claimed_tokens_per_s > high:
        record = record_of(catalog, workload.architecture, chip, precision, stated=workload.precision is not None)
        verdict, reason = faster_than_usual(implied, record, reason)
    elif claimed_tokens_per_s < low / WHOLE_RUN_RATIO:
        verdict, reason = IMPLAUSIBLE, f"{reason} Usual software is faster."
    return Check("training speed", verdict, claimed_tokens_per_s, low, typical, high, unit, reason)


def _check_mfu(
    claimed_fraction: float, catalog: Catalog, workload: Workload, chip: Accelerator, gpus: int | None
) -> Check:
    """Judge a claimed share of the dense peak, MFU, as the tokens per second that it means."""
    precision = workload.precision_on(chip)
    count = gpus or best_count(catalog, workload, chip)
    of_peak = implied_mfu(sizes(workload).model_flop_per_token, chip, precision, count, 1.0)  # of one token a second
    if of_peak is None:
        reason = f"{chip.id} has no {precision} matrix units; name another --precision."
        return Check("MFU", IMPOSSIBLE, claimed_fraction, None, None, None, "fraction of one", reason)
    of_speed = _check_training_speed(claimed_fraction / of_peak, catalog, workload, chip, count)
    low, typical, high = (
        None if end is None else end * of_peak for end in (of_speed.low, of_speed.typical, of_speed.high)
    )
    return Check("MFU", of_speed.verdict, claimed_fraction, low, typical, high, "fraction of one", of_speed.explanation)


# --- What it costs.

_CHEAPEST, _DEAREST = 0.9, 1.1  # of the lowest and highest price on record: claims are rounded


def _check_rent(
    claimed_usd: float,
    catalog: Catalog,
    chips: Sequence[Accelerator],
    *,
    provider: str | None = None,
    option: str | None = None,
) -> Check:
    """Judge a claimed price of an hour by the prices on record that day, and where none agrees by older ones."""
    unit = "USD per GPU-hour"
    chip_ids = {chip.id for chip in chips}
    rows = [
        row
        for row in catalog.price_rows
        if (not chip_ids or row["gpu"] in chip_ids)
        and not row["ended"]
        and not row["conflict"]
        and provider in (None, row["provider"])
        and option in (None, row["option"])
    ]
    # Variants that are priced name the claim; those without a price say nothing.
    ids = list(dict.fromkeys(str(row["gpu"]) for row in rows)) or [chip.id for chip in chips]
    machine = " or ".join(ids) if len(ids) < 4 else f"{len(ids)} variants"
    name = " ".join(filter(None, (provider, machine, option)))
    if not rows:
        return Check("rent", UNKNOWN, claimed_usd, None, None, None, unit, f"No price of {name} is on record that day.")
    values = sorted(float(row["usd_per_gpu_hour"]) for row in rows)
    low, high, middle = values[0], values[-1], float(np.median(values))
    days = {row["observed_on"] for row in rows}
    reason = (
        f"{len(rows):,} prices of {name}, seen {min(days)} to {max(days)}: {amount(low, 3)} to {amount(high, 3)},"
        f" median {amount(middle, 3)}."
    )
    if low * _CHEAPEST <= claimed_usd <= high * _DEAREST:
        return Check("rent", POSSIBLE, claimed_usd, low, middle, high, unit, reason)
    # The last day on which a price within 3 % of the claim was seen, of prices that hold no more. Only a claim that no
    # price of the day supports asks for the whole history.
    catalog.prepare_prices(history=True)
    parameters: dict[str, Any] = {"claimed": claimed_usd, "day": catalog.as_of}
    sql = """SELECT max(coalesce(seen_until, observed_on)) AS last_on FROM book_offers
        WHERE observed_on <= $day AND offer_kind = 'offer' AND abs(usd_per_gpu_hour / $claimed - 1) <= 0.03"""
    for column, value in (("provider", provider), ("option", option)):
        if value is not None:
            sql += f" AND {column} = ${column}"
            parameters[column] = value
    if chips:
        sql += " AND list_contains($chips, gpu)"
        parameters["chips"] = [chip.id for chip in chips]
    last_day = catalog.store.fetch(sql, parameters)[0]["last_on"]
    if last_day is not None:
        reason += f" So much was a price until {last_day}; it is no more."
        return Check("rent", IMPLAUSIBLE, claimed_usd, low, middle, high, unit, reason)
    for factor, unit_text in ((8.0, "a node of 8"), (1 / 8, "an eighth of it"), (HOURS_PER_MONTH, "a month")):
        if low * _CHEAPEST <= claimed_usd / factor <= high * _DEAREST:
            reason += f" It may be the price of {unit_text}."
            return Check("rent", IMPLAUSIBLE, claimed_usd, low, middle, high, unit, reason)
    # Three times beyond all prices of a chip no contract is known.
    verdict = IMPOSSIBLE if claimed_usd < low / 3 or claimed_usd > high * 3 else IMPLAUSIBLE
    return Check("rent", verdict, claimed_usd, low, middle, high, unit, reason)


def _check_purchase(claimed_usd: float, catalog: Catalog, chips: Sequence[Accelerator], gpus: int = 1) -> Check:
    """Judge a claimed price of buying accelerators by street and launch prices on record."""
    rows = {str(row["id"]): row for row in catalog.rows("accelerators")}
    lows, highs, ranges = [], [], []
    for chip in chips:
        row = rows[chip.id]
        prices = [row[name] for name in ("street_low_usd", "street_high_usd", "launch_usd") if row[name]]
        if prices and is_sold(row):
            lows.append(min(prices) * gpus)
            highs.append(max(prices) * gpus)
            ranges.append(f"{chip.id} {amount(min(prices))} to {amount(max(prices))}")
    if not lows:
        reason = f"No price to buy {chips[0].id} is on record, or it is for rent only."
        return Check("purchase", UNKNOWN, claimed_usd, None, None, None, "USD", reason)
    low, high = min(lows), max(highs)
    reason = f"On record, street and launch, for one: {'; '.join(ranges)} USD."
    verdict = POSSIBLE if low * _CHEAPEST <= claimed_usd <= high * _DEAREST else IMPLAUSIBLE
    if claimed_usd < low / 3 or claimed_usd > high * 3:
        verdict = IMPOSSIBLE
    return Check("purchase", verdict, claimed_usd, low, None, high, "USD", reason)


# --- Energy and carbon of a run.


def _check_energy(claimed_kwh: float, chips: Sequence[Accelerator], gpus: int, hours: float) -> Check:
    """Judge claimed energy: accelerators × hours × watts; at least half the board power, at most a server's overhead.

    A server draws about 1.45 times what its boards do (DGX H100: 10.2 kW for 8 × 700 W), a good hall 1.1 to 1.3 on top.
    """
    powered = [chip for chip in chips if chip.tdp_w]
    if not powered:
        return Check("energy", UNKNOWN, claimed_kwh, None, None, None, "kWh", "Its board power is not on record.")
    board = [(chip.tdp_w or 0) / 1000 * gpus * hours for chip in powered]
    # Typical: the server's 1.45, a hall's 1.2, and 80 % of the rating drawn. High: a server's whole rating (1.82, that
    # of the DGX H100) in a hall with an overhead of 1.54 (about the average that the Uptime Institute reports).
    low, typical, high = min(board) * 0.5, max(board) * 1.45 * 1.2 * 0.8, max(board) * 1.82 * 1.54
    reason = f"{gpus} × {powered[0].id} for {hours:,.0f} h at board power are {max(board):,.0f} kWh, before the server."
    verdict = POSSIBLE if low <= claimed_kwh <= high else IMPLAUSIBLE
    if claimed_kwh < low / 2:
        verdict = IMPOSSIBLE
    return Check("energy", verdict, claimed_kwh, low, typical, high, "kWh", reason)


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
    mfu_fraction: float | None = None
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
        checks.append(_check_peak(stated.tflops, chips, claim.precision, sparse=stated.sparse, gpus=gpus))
    if stated.bandwidth_gb_per_s is not None:
        truths = []
        for chip in chips:
            truths.append(Truth(chip.hbm_gb_per_s * gpus, f"the memory of {_of(chip, gpus)}"))
            truths.append(Truth(chip.hbm_gb_per_s * gpus * 1000, "that times a thousand: a slip of the unit", False))
            if chip.scaleup_gb_per_s:
                truths.append(Truth(2 * chip.scaleup_gb_per_s, "the link of one accelerator, both directions", False))
            if chip.pcie_gb_per_s:
                truths.append(Truth(chip.pcie_gb_per_s, "its PCIe link, not its memory", False))
        checks.append(hold("memory bandwidth", stated.bandwidth_gb_per_s, truths, "GB/s", most=True))
    if stated.memory_gb is not None:
        truths = []
        for chip in chips:  # makers write GiB as GB, so that both are right
            memory_name = f"the memory of {_of(chip, gpus)}"
            truths.append(Truth(chip.memory_gib * gpus, memory_name))
            truths.append(Truth(chip.memory_gib * GIB / GB * gpus, f"{memory_name} in bytes of 10⁹"))
        checks.append(hold("memory", stated.memory_gb, truths, "GB", most=True))
    if stated.link_gb_per_s is not None:
        rate = stated.link_gb_per_s
        checks.append(_check_link(rate, chips, pcie=stated.over_pcie, one_way=stated.one_way))
    if stated.power_w is not None:
        # of one accelerator the board alone is meant, of several also the server that holds as many
        ids = {chip.id for chip in chips}
        servers = [system for system in catalog.systems() if system.accelerator_id in ids and system.gpus == gpus > 1]
        checks.append(_check_power(stated.power_w, chips, servers, gpus))
    if stated.cores is not None:
        truths = []
        for chip in chips:  # multiprocessors × lanes of each
            if count := cores_of(chip):
                lanes = count // (chip.multiprocessors or 1)
                truths.append(Truth(count, f"{chip.multiprocessors} multiprocessors × {lanes} of {chip.id}"))
        # a count, rounded to three digits at most
        checks.append(hold("FP32 cores", stated.cores, truths, "cores", 0.004, about=0))
    if stated.rent_usd_per_gpu_hour is not None:
        price = stated.rent_usd_per_gpu_hour
        checks.append(_check_rent(price, catalog, chips, provider=stated.provider, option=stated.option))
    if stated.purchase_usd is not None:
        checks.append(_check_purchase(stated.purchase_usd, catalog, chips, gpus))
    if stated.all_reduce_s is not None:
        if stated.payload_gb is None or claim.gpus is None:
            raise UsageError("--all-reduce: of how much over how many? Add --payload, such as 14, and --gpus.")
        if gpus < 2:
            raise UsageError("--all-reduce: one accelerator has nothing to exchange. Give --gpus 2 or more.")
        chip = most_favourable(chips, claim.precision)
        over_pcie = stated.over_pcie
        checks.append(_check_all_reduce(stated.all_reduce_s, stated.payload_gb, gpus, catalog, chip, pcie=over_pcie))
    if stated.training_tokens_per_s is not None or stated.mfu_fraction is not None:
        if claim.model is None:
            flag = "--mfu" if stated.training_tokens_per_s is None else "--train-tokens-per-s"
            raise UsageError(f"{flag}: of which model? Add --model, such as --model 8b.")
        workload = make_workload(
            catalog.architecture(claim.model),
            sequence_tokens=claim.sequence_tokens,
            method=claim.method,
            latest_year=latest_year(catalog.as_of),
        )
        chip = most_favourable(chips, claim.precision)
        workload = replace(workload, precision=claim.precision if claim.precision in TRAINED_IN else None)
        if stated.training_tokens_per_s is not None:
            checks.append(_check_training_speed(stated.training_tokens_per_s, catalog, workload, chip, gpus))
        if stated.mfu_fraction is not None:
            checks.append(_check_mfu(stated.mfu_fraction, catalog, workload, chip, claim.gpus))
    if stated.energy_kwh is not None:
        hours = claim.gpu_hours or (claim.days and claim.days * HOURS_PER_DAY * gpus)
        if hours:
            checks.append(_check_energy(stated.energy_kwh, chips, 1, hours))  # hours of all accelerators
        elif stated.kgco2e is None:
            raise UsageError("--energy: over how long? Add --gpu-hours, or --hours or --days with --gpus.")
    if stated.kgco2e is not None:
        if stated.energy_kwh is None:
            raise UsageError("--carbon: from how many kWh? Add --energy, such as --energy 50000.")
        # kWh × kg a kWh of the grids on record, from the cleanest to the dirtiest
        grids = [
            (float(row["typical"]), str(row["item"]).removeprefix("grid_carbon."))
            for row in catalog.rows("energy")
            if str(row["item"]).startswith("grid_carbon.") and row["typical"]
        ]
        grids.sort(key=lambda grid: grid[0])
        kwh = stated.energy_kwh
        low, middle, high = (grids[at][0] * kwh for at in (0, len(grids) // 2, -1))
        reason = f"{kwh:,.0f} kWh are {amount(low)} kg in {grids[0][1]} and {amount(high)} kg in {grids[-1][1]}."
        verdict = POSSIBLE if low * 0.9 <= stated.kgco2e <= high * 1.1 else IMPOSSIBLE
        checks.append(Check("carbon", verdict, stated.kgco2e, low, middle, high, "kgCO2e", reason))
    if len(chips) > 1:
        chip_ids = ", ".join(chip.id for chip in chips)
        notes.append(f"{claim.gpu} may mean {chip_ids}: each figure is held against the one that suits it best.")
    return checks
