"""Speeds and costs of one question as relations of SQL, beside the tables of the catalog.

`speeds` and `deployments` are physics alone and join any price of any day; `estimates` and `served` are priced as
`estimate` and `inference` price them, on the catalog's day.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpucost.arguments import read_list
from gpucost.arguments.signature import Argument, argument_of
from gpucost.arguments.vocabulary import RELATION_ARGUMENTS
from gpucost.catalog.names import listed
from gpucost.catalog.relations import Relation
from gpucost.errors import UsageError, nearest
from gpucost.gate import beside, shown
from gpucost.types import Accelerator
from gpucost.units import HOURS_PER_DAY, MS_PER_S, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.serving.request import InferenceRequest
    from gpucost.training.request import TrainingRequest

# What of a question the training relations take, and what those of serving do.
_TRAINING = [
    "model",
    "tokens",
    "gpus",
    "gpu",
    "method",
    "sequence",
    "global_batch",
    "precision",
    "software",
    "deadline",
]
_SERVING = [
    "model",
    "gpu",
    "prompt_tokens",
    "output_tokens",
    "requests_per_s",
    "tokens_per_month",
    "ttft",
    "tpot",
    "engine",
]

# Sizes whose speed `speeds` holds: those that machines have or had, then doublings of whole nodes.
_MACHINE_SIZES = (1, 2, 4, 5, 6, 8, 10, 12, 16)
_DOUBLINGS = 7  # of nodes of eight: 1,024 accelerators

_DEGREES = ("tensor", "pipeline", "context", "expert", "data")
# The columns of each relation with their types.
_COLUMNS: dict[str, dict[str, str]] = {}
for _relation_name, _column, _type in beside(__file__, "relations")[1:]:
    _COLUMNS.setdefault(_relation_name, {})[_column] = _type


def arguments() -> tuple[Argument, ...]:
    """Return what a question over relations takes."""
    return tuple(argument_of(name, annotation) for name, annotation in RELATION_ARGUMENTS.items())


def relations(catalog: "Catalog", names: Iterable[str], stated: Mapping[str, Any]) -> dict[str, Relation]:
    """Return the relations that a query names, filled for a question; the others are left out."""
    known = {argument.name for argument in arguments()}
    for name in stated:
        if name not in known:
            near = nearest(name, sorted(known), 2)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"It takes {', '.join(sorted(known))}."
            raise UsageError(f"a query takes no {shown(name)}. {hint}")
    values = read_list(arguments(), stated)
    queried = [name for name in _RELATIONS if name in set(names)]
    if queried and values["model"] is None:
        raise UsageError(
            f"{' and '.join(queried)}: of which model? Add --model, such as --model 8b --tokens 100b (in the library"
            " catalog.sql(query, model='8b', tokens='100b'))."
        )
    if "estimates" in queried and values["tokens"] is None:
        raise UsageError("estimates: of a run over how many tokens? Add --tokens, such as --tokens 100b.")
    return {name: _RELATIONS[name](catalog, values) for name in queried}


def _relation(types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Relation:
    def cell(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return "; ".join(map(str, value))
        if isinstance(value, np.generic):
            value = value.item()  # the database binds values of Python alone
        return None if isinstance(value, float) and not np.isfinite(value) else value  # not finite is not known

    return Relation(dict(types), [[cell(row.get(name)) for row in rows] for name in types])


# --- Training: speeds by accelerator and size, and what offers make of them.


def _training_request(values: Mapping[str, Any]) -> "TrainingRequest":
    from gpucost.ask.estimate import request_of

    stated = {name: values[name] for name in _TRAINING if values[name] is not None}
    # speeds need no tokens, which the request of a run does; all offers are wanted, not the first ten
    return request_of({"tokens": 1e12, **stated, "top": 0})


def _speeds(catalog: "Catalog", values: Mapping[str, Any]) -> Relation:
    """Return the speed of every accelerator at every size, on its usual node, each at its best layout."""
    from gpucost.physics.columns import PRECISIONS, RECOMPUTES
    from gpucost.physics.training.layouts import REASONS
    from gpucost.training.run import workload_of
    from gpucost.workloads.deployment import timed
    from gpucost.workloads.speeds import key_of

    request = _training_request(values)
    architecture = catalog.architecture(request.model)
    workload = workload_of(request, architecture, catalog.as_of)
    # every accelerator at every size in one call: the engine times columns, not cases
    keys, counts = [], []
    for chip in _chips(catalog, request.gpu):
        key = key_of(catalog, chip.id)
        for size in _sizes(key.system.gpus, key.system.scaleup_gpus, key.system.scaleout_gb_per_s, request.gpus):
            keys.append(key)
            counts.append(size)
    gpus = np.array(counts, np.int64)
    speeds = timed(catalog, workload, keys, counts)
    fits = speeds.fits
    tokens = values["tokens"] and request.trained_tokens  # the request's own stand for nothing where none are stated

    def hours(rate: Any) -> Any:
        """Return accelerator-hours of the run with its overhead: tokens ÷ (tokens/s of one) × (1 + overhead)."""
        if not tokens:
            return np.full(len(gpus), np.nan)
        return tokens / rate / SECONDS_PER_HOUR * (1 + request.evaluation_fraction)

    # the fewest hours at the highest speed
    typical, low, high = (
        hours(rate)
        for rate in (speeds.tokens_per_s_per_gpu, speeds.tokens_per_s_per_gpu_high, speeds.tokens_per_s_per_gpu_low)
    )
    rows, layout = [], speeds.layout
    for row, key in enumerate(keys):
        cells = {
            "model": architecture.name,
            "gpu": key.accelerator.id,
            "gpus": counts[row],
            "system": key.system.id,
            "node_gpus": key.system.gpus,
            "fits": bool(fits[row]),
            "reason": None if fits[row] else REASONS[int(speeds.reason[row])],
            "confidence": str(speeds.confidence[row]),
        }
        if fits[row]:  # else nothing more is known of it
            cells |= {
                "tokens_per_s": speeds.tokens_per_s_per_gpu[row] * counts[row],
                "tokens_per_s_per_gpu": speeds.tokens_per_s_per_gpu[row],
                "tokens_per_s_per_gpu_low": speeds.tokens_per_s_per_gpu_low[row],
                "tokens_per_s_per_gpu_high": speeds.tokens_per_s_per_gpu_high[row],
                "mfu_fraction": speeds.mfu_fraction[row],
                "peak_tflops": speeds.peak_tflops[row],
                "memory_gb": speeds.memory_gb[row],
                "days": typical[row] / counts[row] / HOURS_PER_DAY,
                "gpu_hours": typical[row],
                "gpu_hours_low": low[row],
                "gpu_hours_high": high[row],
                **{name: int(getattr(layout, name)[row]) for name in (*_DEGREES, "sharding", "micro_batch")},
                "global_batch": int(layout.global_batch[row]),
                "precision": PRECISIONS[int(layout.precision[row])],
                "recompute": RECOMPUTES[int(layout.recompute[row])],
            }
        rows.append(cells)
    return _relation(_COLUMNS["speeds"], rows)


def _chips(catalog: "Catalog", names: str | None) -> list[Accelerator]:
    if names is None:
        return catalog.accelerators()
    return list({chip.id: chip for name in listed(names) for chip in catalog.accelerators(name)}.values())


def _sizes(node: int, domain: int, network_gb_per_s: float | None, gpus_stated: int | None) -> list[int]:
    """Return the counts of an accelerator whose speed is of interest; beyond a node only where a network joins nodes.

    >>> _sizes(8, 8, None, None)
    [1, 2, 4, 5, 6, 8]
    """
    if gpus_stated is not None:
        return [gpus_stated]
    largest_joined = max(node, domain if domain else 1)  # a rack of linked nodes goes beyond one of them
    sizes = {size for size in _MACHINE_SIZES if size <= largest_joined}
    if network_gb_per_s:
        sizes |= {node * 2**step for step in range(_DOUBLINGS + 1)}
    return sorted(sizes | {node})


def _estimates(catalog: "Catalog", values: Mapping[str, Any]) -> Relation:
    """Return the table of `estimate`: every offer, with its rank, or without one and with the reason."""
    from gpucost.training.run import table_rows

    return _relation(
        _COLUMNS["estimates"], [{**row, **_inner(row)} for row in table_rows(_training_request(values), catalog)]
    )


def _inner(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the degrees of a row's layout; nothing where it has none."""
    # the row counts the GPUs of the whole offer, a layout those of one replica
    return {name: value for name, value in (row.get("layout") or {}).items() if name != "gpus"}


# --- Serving: replicas by accelerator and layout, and what offers make of them.


def _serving_request(catalog: "Catalog", values: Mapping[str, Any]) -> "InferenceRequest":
    from gpucost.ask.inference import request_of

    stated = {name: values[name] for name in _SERVING if values[name] is not None}
    # in SQL both training and serving have a precision, so that of serving is called weights
    if values["weights"] is not None:
        stated["precision"] = values["weights"]
    return request_of(catalog, **stated, top=0)


def _served(catalog: "Catalog", values: Mapping[str, Any]) -> Relation:
    """Return the table of `inference`: every offer, with its rank, or without one and with the reason."""
    from gpucost.serving.run import table_rows

    request = _serving_request(catalog, values)
    return _relation(_COLUMNS["served"], [{**row, **_inner(row)} for row in table_rows(request, catalog)])


def _deployments(catalog: "Catalog", values: Mapping[str, Any]) -> Relation:
    """Return every layout of a replica on every accelerator in its usual node, each at its best batch."""
    from gpucost.serving.run import REASONS_IN_WORDS
    from gpucost.workloads.deployment import served
    from gpucost.workloads.service import REASONS
    from gpucost.workloads.speeds import key_of

    request = _serving_request(catalog, values)
    architecture = catalog.architecture(request.model)
    keys = [key_of(catalog, chip.id) for chip in _chips(catalog, request.gpu)]
    plans = served(catalog, architecture, keys, request)
    rows = []
    for plan, replica in enumerate(plans.deployments):
        serves, wide = bool(plans.serves[plan]), float(np.exp(plans.width[plan]))  # a width is a logarithm
        # prompt and output together, as the load is stated
        both = float(plans.output_tokens_per_s[plan]) * request.tokens_per_request / request.output_tokens
        row = {
            "model": architecture.name,
            "gpu": replica.accelerator.id,
            "gpus": replica.gpus,
            "system": replica.system.id,
            "node_gpus": replica.system.gpus,
            "serves": serves,
            "reason": None if serves else REASONS_IN_WORDS[REASONS[int(plans.reason[plan])]],
            "precision": replica.format,
            "engine": replica.engine,
            "tensor": replica.tensor,
            "pipeline": replica.pipeline,
            "data": replica.data,
            "expert": replica.expert,
        }
        if serves:
            row |= {
                "output_tokens_per_s": float(plans.output_tokens_per_s[plan]),
                "tokens_per_s": both,
                "tokens_per_s_low": both / wide,
                "tokens_per_s_high": both * wide,
                "gpu_hours_per_mtok": replica.gpus * 1e6 / both / SECONDS_PER_HOUR,
                "ttft_ms": float(plans.ttft_s[plan]) * MS_PER_S,
                "tpot_ms": float(plans.tpot_s[plan]) * MS_PER_S,
                "batch": int(plans.sequences[plan]),
                "batch_that_fits": float(plans.capacity[plan]),
            }
        rows.append(row)
    return _relation(_COLUMNS["deployments"], rows)


_RELATIONS: dict[str, Callable[["Catalog", Mapping[str, Any]], Relation]] = {
    "speeds": _speeds,
    "estimates": _estimates,
    "served": _served,
    "deployments": _deployments,
}
