"""The node that an accelerator or an offer is assumed to sit in when the tables name none."""

from collections.abc import Sequence
from dataclasses import replace

from gpucost.types import Accelerator, Offer, System
from gpucost.units import BITS_PER_BYTE

_KIND_ORDER = ("node", "baseboard", "rack", "cloud")

# Scale-out bandwidth per GPU of the usual server of its year, GB/s one direction: one 100, 200, 400 or 800 Gbit/s port
# for each board-mounted GPU; two shared 200 Gbit/s ports per 8 cards on PCIe.
_PORT_GB_PER_S = ((2025, 100.0), (2022, 50.0), (2020, 25.0), (0, 12.5))
_PCIE_PORT_GB_PER_S = 6.25
_PCIE_FORMS = ("pcie", "pcie lp")


def default_system(accelerator: Accelerator, systems: Sequence[System]) -> System:
    """Return the vendor's own node of this accelerator, 8 GPUs preferred, else a synthesised one.

    Where the node names no network between nodes, an assumed one is added and the node is marked as synthesised.
    """
    own = [system for system in systems if system.accelerator_id == accelerator.id]
    if not own:
        return synthesised_system(accelerator)
    best = min(own, key=_preference)
    if best.scaleout_gb_per_s is not None:
        return best
    port = _assumed_port(accelerator)
    return replace(best, scaleout_gb_per_s=port, fabric=_assumed_fabric(port), status="synthesised")


def _preference(system: System) -> tuple[object, ...]:
    kind = _KIND_ORDER.index(system.kind) if system.kind in _KIND_ORDER else len(_KIND_ORDER)
    return (kind == _KIND_ORDER.index("cloud"), abs(system.gpus - 8), system.scaleout_gb_per_s is None, kind, system.id)


def _assumed_port(accelerator: Accelerator) -> float:
    if accelerator.form_factor.lower() in _PCIE_FORMS:
        return _PCIE_PORT_GB_PER_S
    return next(rate for year, rate in _PORT_GB_PER_S if accelerator.year >= year)


def _assumed_fabric(port_gb_per_s: float) -> str:
    return f"assumed: {port_gb_per_s * BITS_PER_BYTE:g} Gbit/s per GPU, usual for its year and form"


def synthesised_system(accelerator: Accelerator) -> System:
    """Return a plausible 8-GPU server of the accelerator's year; its network is an assumption and is marked so."""
    port = _assumed_port(accelerator)
    return System(
        id=f"assumed-{accelerator.id}-8",
        name=f"assumed server with 8 {accelerator.name}",
        kind="synthesised",
        accelerator_id=accelerator.id,
        gpus=8,
        scaleup_gb_per_s=accelerator.scaleup_gb_per_s,
        scaleup_gpus=max(1, accelerator.scaleup_gpus),
        scaleout_gb_per_s=port,
        fabric=_assumed_fabric(port),
        max_power_kw=None,
        status="synthesised",
    )


def offer_system(offer: Offer, accelerator: Accelerator) -> System:
    """Return the node that an unlisted offer describes: its GPUs, their links, and no network between nodes."""
    linked = accelerator.scaleup_gb_per_s > 0 and offer.gpus > 1
    return System(
        id=f"{offer.provider}-{offer.instance_type}".lower().replace(" ", "-"),
        name=f"{offer.provider} {offer.instance_type}",
        kind="synthesised",
        accelerator_id=accelerator.id,
        gpus=offer.gpus,
        scaleup_gb_per_s=accelerator.scaleup_gb_per_s if linked else 0.0,
        scaleup_gpus=min(offer.gpus, max(1, accelerator.scaleup_gpus)) if linked else 1,
        scaleout_gb_per_s=None,
        fabric="not stated",
        provider=offer.provider,
        instance_type=offer.instance_type,
        status="synthesised",
        source_id=offer.source_id,
    )
