"""Rows that state no layout: what they do state is held, and the rest is searched over the legal layouts that fit.

People run good layouts, not the very best of a model of them: the one taken is the median of those within a tenth of
the fastest.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpucost.physics.columns import RECOMPUTES
from gpucost.physics.training import layouts as search
from gpucost.physics.training.defaults import default_batch
from gpucost.physics.training.efficiency import DEFAULTS
from gpucost.physics.training.grid import make_grid
from gpucost.types import Accelerator, Architecture, Layout, System
from gpucost.validation import wording

GOOD_SHARE = 0.90  # of the fastest layout's speed
SHARDED_BY_HABIT = ("compiler", "sharded")


def is_open(row: Mapping[str, Any], software: str) -> bool:
    """Return whether a row leaves its layout open; fully sharded stacks have one by habit."""
    degrees = any(wording.count(row.get(name)) for name in ("tp", "pp", "dp"))
    return not degrees and software not in SHARDED_BY_HABIT and wording.sharding(row.get("zero_stage")) != 3


def searched(
    row: Mapping[str, Any],
    architecture: Architecture,
    accelerator: Accelerator,
    system: System,
    default: Layout,
    notes: list[str],
    *,
    sequence_tokens: float,
    method: str,
    software: str,
    software_year: float,
) -> Layout:
    """Return a good layout that agrees with a row that leaves it open, else the default; a note says which."""
    if not is_open(row, software):
        return default
    batch = wording.count(row.get("global_batch")) or default_batch(architecture, sequence_tokens, method)
    job = search.make_job(
        architecture, sequence_tokens=sequence_tokens, global_batch=batch, method=method, lora_rank=16,
        software=software, software_year=software_year, values=DEFAULTS,
    )  # fmt: skip
    stated = {"context": "cp", "expert": "ep", "micro_batch": "micro_batch"}
    fixed = {name: [value] for name, column in stated.items() if (value := wording.count(row.get(column)))}
    if (stage := wording.sharding(row.get("zero_stage"))) is not None:
        fixed["sharding"] = [stage]
    grid = make_grid(architecture, sequence_tokens, batch, wide=True, fixed=fixed)
    keys = search.make_keys([accelerator], [system], [float(default.gpus)], lambda _: default.precision)
    found = search.search(grid, job, keys)
    if recompute := wording.recompute(row.get("activation_recompute")):
        found = found.take(found.layout.recompute == RECOMPUTES.index(recompute))
    if not len(found.key):
        notes.append("no layout fits: data parallelism assumed")
        return default
    notes.append("layout searched")
    speed = found.tokens_per_s_per_gpu
    good = np.flatnonzero(speed >= GOOD_SHARE * np.max(speed))
    ranked = good[np.argsort(speed[good], kind="stable")]
    return found.layout.layout(int(ranked[len(ranked) // 2]))
