"""Machines of providers that sell accelerators, processors, memory and disks apart: what one machine is made of."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


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
    text = (files("gpucost.importers") / "machines.csv").read_text("utf-8")
    return tuple(
        Machine(
            row["machine"], row["accelerators"], int(row["gpus"]), float(row["vcpus"]), float(row["memory_gib"]),
            float(row["local_ssd_gib"] or 0), row["accelerator_sku"], row["host_sku"], row["catalog_name"],
        )
        for row in csv.DictReader(text.splitlines())
        if row["provider"] == provider
    )  # fmt: skip
