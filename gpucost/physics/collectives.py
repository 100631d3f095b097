"""Collectives over two tiers: how long a group of accelerators takes to exchange a message.

A group is described by its size and by how many of its ranks share a scale-up domain. Inside a domain the link
carries it; across domains a ring enters and leaves each domain once, so that all the network cards of the group's
ranks in the domain work together: bandwidth = card × ranks per domain, capped by the link (NCCL's ring and
tree algorithms; Patarasuk and Yuan 2009 for the volume bounds).
"""

import numpy as np

from gpucost.physics.columns import ColumnStruct, Floats
from gpucost.physics.hardware import HardwareColumns
from gpucost.units import GB, MICRO


class Tier(ColumnStruct, frozen=True):
    """What a group of ranks sees of the network: its size, bandwidths per rank and latency per hop."""

    ranks: Floats
    gb_per_s: Floats
    ring_gb_per_s: Floats  # of gathers and reduce-scatters
    latency_s: Floats


class Links(ColumnStruct, frozen=True):
    """Usable bandwidth per accelerator (one direction) and latency of the tiers."""

    scaleup_gb_per_s: Floats
    scaleup_gpus: Floats
    pcie_gb_per_s: Floats
    scaleout_gb_per_s: Floats
    node_gpus: Floats
    scaleup_latency_s: Floats
    scaleout_latency_s: Floats


def links(
    hardware: HardwareColumns,
    scaleup: Floats,
    scaleout: Floats,
    scaleup_latency_us: Floats,
    scaleout_latency_us: Floats,
) -> Links:
    """Return the links at the fractions of their nominal bandwidth that collectives reach."""
    return Links(
        # PCIe reaches the same fraction as the link that it stands in for
        scaleup_gb_per_s=hardware.scaleup_gb_per_s * scaleup,
        scaleup_gpus=hardware.scaleup_gpus,
        pcie_gb_per_s=hardware.pcie_gb_per_s * scaleup,
        scaleout_gb_per_s=hardware.scaleout_gb_per_s * scaleout,
        node_gpus=hardware.node_gpus,
        scaleup_latency_s=scaleup_latency_us * MICRO,
        scaleout_latency_s=scaleout_latency_us * MICRO,
    )


def tier(link: Links, ranks: Floats, stride: Floats) -> Tier:
    """Place a group whose ranks are `stride` accelerators apart on the tiers.

    Rings of few ranks keep fewer channels of a link busy, (1 − 1/n²) of it: gathers over 2, 4 and 8 of one node
    reached 272, 325 and 344 GB/s (models/measurements/collectives.csv); all-reduces 332, 355 and 360.

    Within the scale-up domain the link's bandwidth holds; within a node without a common link that of PCIe; across,
    card × ranks of the group per domain, at most the link's.
    """
    span = ranks * stride  # accelerators from the group's first rank to its last
    inside = span <= link.scaleup_gpus
    in_node = ~inside & (span <= link.node_gpus)
    domain = np.maximum(link.scaleup_gpus, link.node_gpus)
    # ranks of the group in one domain, whose cards work together; a link takes in no more than its own rate
    sharing = np.maximum(np.minimum(domain / stride, ranks), 1.0)
    across = np.minimum(link.scaleout_gb_per_s * sharing, link.scaleup_gb_per_s)
    # within a domain a ring passes every rank, beyond it the domains count: links inside them add little latency
    hops = np.where(inside | in_node, ranks - 1, np.maximum(ranks / sharing - 1, 1.0))
    latency = np.where(inside | in_node, link.scaleup_latency_s, link.scaleout_latency_s)
    gb_per_s = np.where(inside, link.scaleup_gb_per_s, np.where(in_node, link.pcie_gb_per_s, across))
    return Tier(
        ranks=ranks,
        gb_per_s=gb_per_s,
        ring_gb_per_s=gb_per_s * np.where(inside & (ranks > 1), 1 - 1 / np.maximum(ranks, 2.0) ** 2, 1.0),
        # libraries turn to trees where rings are long: latency grows with the logarithm of the hops
        latency_s=latency * np.log2(np.maximum(hops, 1.0) + 1.0),
    )


def ring_s(group: Tier, message_bytes: Floats) -> Floats:
    """Return the time of an all-gather or a reduce-scatter of a message: (n − 1)/n · bytes ÷ bandwidth + latency.

    One rank has nothing to exchange. 8 ranks, 1 GB at 100 GB/s, no latency, by hand: 7/8 · 1/100 s = 8.75 ms.

    >>> one = np.ones(1)
    >>> ring_s(Tier(8 * one, 100 * one, 100 * one, 0 * one), 1e9 * one)
    array([0.00875])
    """
    share = (group.ranks - 1) / group.ranks
    return np.where(group.ranks > 1, share * message_bytes / (group.ring_gb_per_s * GB) + group.latency_s, 0.0)


RING_FRACTION = 0.8  # of a link's rate that an all-reduce alone reaches: 332 to 360 of 450 GB/s were measured


def all_reduce_s(group: Tier, message_bytes: Floats) -> Floats:
    """Return the time of an all-reduce: 2·(n − 1)/n · bytes ÷ bandwidth and two latencies; it fills links by itself."""
    share = 2 * (group.ranks - 1) / group.ranks
    return np.where(group.ranks > 1, share * message_bytes / (group.gb_per_s * GB) + 2 * group.latency_s, 0.0)


def expert_exchange_s(group: Tier, row_bytes: Floats, copies: Floats, link: Links) -> Floats:
    """Return the time to send each token's row to the experts that it visits, `copies` of them over the group.

    A row leaves for each other domain that it visits once, not once per expert: of D domains, k random experts lie in
    D·(1 − (1 − 1/D)^k); inside the domain every copy travels over the link (arXiv:2412.19437, section 3.2.2).
    """
    ranks = np.maximum(group.ranks, 1.0)
    near = np.minimum(ranks, np.maximum(link.scaleup_gpus, 1.0))
    domains = ranks / near
    visited = domains * (1 - (1 - 1 / domains) ** np.maximum(copies, 1.0))
    # both ways work at once, so that the longer counts; 1/near and 1/domains of the copies stay where they are
    inside = row_bytes * copies * (near - 1) / near / (link.scaleup_gb_per_s * GB)
    outside = row_bytes * visited * (domains - 1) / domains / (link.scaleout_gb_per_s * GB)
    return np.where(group.ranks > 1, np.maximum(inside, outside) + group.latency_s, 0.0)


def point_to_point_s(group: Tier, message_bytes: Floats) -> Floats:
    """Return the time to hand a message to the next rank; nothing where there is only one."""
    return np.where(group.ranks > 1, message_bytes / (group.gb_per_s * GB) + group.latency_s, 0.0)
