"""`gpucost.roofline(...)`: what bounds one operation or a whole step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpucost.api.asking import framed, opened
from gpucost.api.result import Result
from gpucost.api.throughput import wanted_of
from gpucost.catalog import Catalog
from gpucost.speed import roofline as roofs
from gpucost.workloads.training import too_long

OPERATIONS = ("matmul", "attention", "norm", "gelu", "copy", "all_reduce", "flash")


@dataclass(frozen=True, slots=True, repr=False)
class RooflineResult(Result):
    """An operation or a step under its roofs."""


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> RooflineResult:
    """Answer from arguments as they were given."""
    values, catalog = opened("roofline", given, catalog)
    if values["model"] is None:
        work = {name: values[name] for name in OPERATIONS}
        found = roofs.one_operation(
            catalog, values["gpu"], values["system"], values["gpus"], values["precision"], **work
        )
    else:
        found = roofs.whole_step(catalog, wanted_of(values))
    told = catalog.taken(values["gpu"])
    if values["model"]:
        architecture = catalog.architecture(values["model"])
        told += [*architecture.warnings, *too_long(architecture, values["sequence"] or 0)]
    return RooflineResult({"kind": "roofline", **framed(catalog, values), **found, "warnings": told, "sources": {}})
