"""Break-even claims: what payback, utilisation, size and discounting make of "buying pays back in n months"."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpucost.money import cashflow
from gpucost.money.evaluate import payment
from gpucost.units import HOURS_PER_MONTH, MONTHS_PER_YEAR

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

BUSY_FRACTION = 0.8
PAYBACK_TOLERANCE = 0.10


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a claim implies: a figure, and whether it holds (right, wrong, or doubtful)."""

    name: str
    verdict: str
    value: float | None
    unit: str
    explanation: str


def owned_usd_per_gpu_month(
    all_in_usd_per_gpu: float,
    running_usd_per_gpu_month: float,
    years: float,
    resale_fraction: float,
    wacc_fraction: float,
    nominal: bool = False,
) -> float:
    """Return what an owned GPU costs a month: level payments on price less resale, plus running costs.

    (P − R·(1+i)^−n) · i ÷ (1 − (1+i)^−n) + running, the capital recovery factor of engineering economics.

    >>> round(owned_usd_per_gpu_month(35_000, 512.06, 4, 0.32, 0.10, nominal=True))
    1209
    """
    rate = cashflow.monthly_rate(np.array(wacc_fraction), nominal)
    price = np.array(all_in_usd_per_gpu)
    level = payment(rate, np.array(years * MONTHS_PER_YEAR), price, price * resale_fraction)
    return float(level) + running_usd_per_gpu_month


def break_even_hours_per_month(owned_usd_per_month: float, rent_usd_per_gpu_hour: float) -> float:
    """Return the hours of rent a month that cost as much as owning; above 730 owning never wins.

    >>> round(break_even_hours_per_month(1209.02, 2.35))
    514
    """
    return owned_usd_per_month / rent_usd_per_gpu_hour


def running_usd_per_gpu_month(
    catalog: "Catalog", gpus: float, price_usd: float, server_kw_per_gpu: float = 10.2 / 8
) -> float:
    """Return the running costs of an owned GPU a month from the sourced inputs: colocation, energy, support, people."""
    facts = {row["item"]: row["typical"] for row in (*catalog.rows("ownership"), *catalog.rows("energy"))}
    people = max(facts["sysadmin_fte.small_cluster_8_64gpu"], facts["sysadmin_fte.per_1000_gpu"] * gpus / 1000)
    energy = (
        server_kw_per_gpu * facts["tdp_fraction_gpu_server_training"] * facts["pue.neocloud_or_colo"] * HOURS_PER_MONTH
    )
    return float(
        server_kw_per_gpu * facts["colocation.us_wholesale_250_500kw"]
        + energy * facts["electricity.us_average"]
        + facts["support_contract_fraction"] * price_usd / MONTHS_PER_YEAR
        + people * facts["sysadmin_fte_cost"] / MONTHS_PER_YEAR / gpus
    )


def check_break_even_claim(
    *,
    buy_usd: float,
    rent_usd_per_month: float,
    own_usd_per_month: float = 0.0,
    gpus: float | None = None,
    gpu_hours_per_month: float | None = None,
    payback_months: float | None = None,
    months: int = 60,
    wacc_fraction: float = 0.10,
    resale_fraction: float = 0.0,
    nominal: bool = False,
    catalog: "Catalog | None" = None,
) -> dict[str, Any]:
    """Judge a claim that buying pays back, and return the figures behind each finding.

    Undiscounted payback, share of the owned hours that is used, GPUs that would do at 80 % use, present values of both
    sides over `months` with resale, and (with a catalog) whether the running costs are plausible.
    """
    flows = _flows(buy_usd, rent_usd_per_month, own_usd_per_month, months, resale_fraction)
    rate = float(cashflow.monthly_rate(np.array(wacc_fraction), nominal))
    worth = {side: cashflow.npv(rate, values) for side, values in flows.items()}
    saved = rent_usd_per_month - own_usd_per_month
    true = buy_usd / saved if saved > 0 else None
    findings = [_payback(true, payback_months, saved), _worth(worth, months, wacc_fraction)]
    used = enough = None
    if gpus and gpu_hours_per_month:
        used = gpu_hours_per_month / (gpus * HOURS_PER_MONTH)
        enough = max(1, round(gpu_hours_per_month / (HOURS_PER_MONTH * BUSY_FRACTION)))
        findings.append(_use(used, enough, gpus))
    if catalog is not None and gpus:
        findings.append(_running(catalog, own_usd_per_month, gpus, buy_usd / gpus))
    return {
        "payback_months": true,
        "utilisation_fraction": used,
        "gpus_at_80_percent": enough,
        "npv_own_usd": worth["own"],
        "npv_rent_usd": worth["rent"],
        "total_own_usd": float(flows["own"].sum()),
        "total_rent_usd": float(flows["rent"].sum()),
        "irr_fraction": cashflow.irr(flows["rent"] - flows["own"]),
        "verdict": _worst(findings),
        "findings": findings,
    }


def _flows(buy_usd: float, rent: float, own: float, months: int, resale: float) -> Mapping[str, Any]:
    owning = np.full(months + 1, own)
    owning[0] = buy_usd
    owning[-1] -= resale * buy_usd
    renting = np.full(months + 1, rent)
    renting[0] = 0.0
    return {"own": owning, "rent": renting}


def _payback(true: float | None, claimed: float | None, saved: float) -> Finding:
    if true is None:
        return Finding(
            "payback", "wrong", None, "months", "owning costs as much a month as renting: it never pays back"
        )
    text = f"price ÷ what owning saves a month (${saved:,.0f}) is {true:.1f} months"
    if claimed is None:
        return Finding("payback", "right", true, "months", text)
    right = abs(claimed / true - 1) <= PAYBACK_TOLERANCE
    return Finding("payback", "right" if right else "wrong", true, "months", f"{text}, the claim says {claimed:.1f}")


def _worth(worth: Mapping[str, float], months: int, wacc: float) -> Finding:
    wins = worth["own"] < worth["rent"]
    text = (
        f"at {wacc:.0%} a year over {months} months owning costs ${worth['own']:,.0f} today "
        f"and renting ${worth['rent']:,.0f}: {'owning' if wins else 'renting'} is cheaper"
    )
    return Finding("present value", "right" if wins else "wrong", worth["rent"] - worth["own"], "USD", text)


def _use(used: float, enough: int, gpus: float) -> Finding:
    text = f"{used:.0%} of the hours of {gpus:g} GPUs; at {BUSY_FRACTION:.0%} use {enough} GPUs do the same work"
    verdict = "wrong" if used > 1 else "right" if used >= BUSY_FRACTION / 2 else "doubtful"
    return Finding("utilisation", verdict, used, "fraction of one", text)


def _running(catalog: "Catalog", own: float, gpus: float, price: float) -> Finding:
    usual = running_usd_per_gpu_month(catalog, gpus, price) * gpus
    text = (
        f"colocation, energy, support and people for {gpus:g} GPUs usually cost about ${usual:,.0f} a month; "
        f"the claim takes ${own:,.0f}"
    )
    verdict = "right" if own >= usual / 2 else "doubtful" if own >= usual / 4 else "wrong"
    return Finding("running costs", verdict, usual, "USD per month", text)


def _worst(findings: list[Finding]) -> str:
    order = ("right", "doubtful", "wrong")
    return max((finding.verdict for finding in findings), key=order.index)
