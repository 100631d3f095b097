"""Machines of providers that sell accelerators, processors, memory and disks apart: what one machine is made of."""

from functools import cache
from typing import NamedTuple

from gpucost.gate import beside


class Machine(NamedTuple):
    """One machine and the parts that its price is the sum of; a host without a name is part of its accelerator."""

    name: str
    accelerator: str
    gpus: int
    vcpus: float
    memory_gib: float
    local_ssd_gib: float
    accelerator_sku: str
    host_sku: str
    catalog_name: str


@cache
def machines(provider: str) -> tuple[Machine, ...]:
    """Return the machines of a provider."""
    return tuple(
        Machine(name, chip, int(gpus), float(vcpus or 0), float(memory or 0), float(ssd or 0), *skus)
        for seller, name, chip, gpus, vcpus, memory, ssd, *skus in beside(__file__, "machines")
        if seller == provider
    )
