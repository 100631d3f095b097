"""Speed of cases: physics once per distinct workload, physical key and count, spread over all cases that share them."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.market.supply import Key
from gpucost.physics.calibration import Calibration, interval
from gpucost.physics.columns import Flags, Floats, Integers, LayoutColumns
from gpucost.physics.hardware import peak_tflops
from gpucost.physics.training.calibration import ceiling, traits, unsaid_attention_low, unsaid_dispatcher_high
from gpucost.physics.training.cases import PARTS
from gpucost.physics.training.efficiency import dispatcher_code
from gpucost.physics.training.grid import make_grid
from gpucost.physics.training.layouts import (
    NO_MEMORY,
    Candidates,
    Keys,
    make_job,
    make_keys,
    reduce_best,
    search,
    year_of,
)
from gpucost.physics.training.memory import training_memory
from gpucost.physics.training.own_runs import Alike, corrected, narrowing
from gpucost.physics.training.recomputation import Job
from gpucost.units import GB
from gpucost.workloads.training import (
    Workload,
    adapted_share,
    class_of,
    ends,
    most_tokens_per_s,
    step_work,
)

# how far the physics of a family is held by measurements: many sources, some, or hardly any
_CONFIDENCE = dict.fromkeys(("ampere", "hopper"), "high")
_CONFIDENCE |= dict.fromkeys(("blackwell", "ada", "volta", "cdna3", "gaudi", "tpu"), "medium")
LOADING_WIDTH = 0.15  # assumed: half the logarithmic range of what storage and workers deliver against what is stated
_MEASURED = "own"  # confidence of a speed that was measured, not predicted
_COUNT_BITS = 1 << 21  # counts stay below this, so that a key and a count share one integer


class Speeds(NamedTuple):
    """Speed and layout of cases; `low` and `high` bound an 80 % range. NaN where nothing fits."""

    fits: Flags
    reason: Integers  # code into REASONS: why there is no layout
    tokens_per_s_per_gpu: Floats
    tokens_per_s_per_gpu_low: Floats
    tokens_per_s_per_gpu_high: Floats
    tokens_per_s_per_gpu_low_fused: Floats  # the low end once attention is said to be fused
    tokens_per_s_per_gpu_high_plain: Floats  # the high end once tokens are said to reach their experts by all-to-all
    mfu_fraction: Floats
    peak_tflops: Floats
    memory_gb: Floats
    confidence: NDArray[np.object_]  # of the physics: high | medium | low; or OWN
    parts_s: Floats  # cases × PARTS: seconds of one step
    layout: LayoutColumns

    def take(self, index: Any) -> "Speeds":
        """Return the cases at `index`."""
        columns: list[Any] = [
            column.take(index) if isinstance(column, LayoutColumns) else column[index] for column in self
        ]
        return Speeds(*columns)

    @classmethod
    def concatenate(cls, parts: Sequence["Speeds"]) -> "Speeds":
        """Join cases end to end."""
        columns = dict(zip(cls._fields, zip(*parts, strict=True), strict=True))
        layout = LayoutColumns.concatenate(columns.pop("layout"))
        return cls(layout=layout, **{name: np.concatenate(values) for name, values in columns.items()})


def speeds_of(
    workloads: Sequence[Workload],
    keys: Sequence[Key],
    calibration: Calibration,
    request: Integers,
    key: Integers,
    gpus: Integers,
) -> Speeds:
    """Return the speed of every case; equal (workload, key, count) are computed once in a process."""
    numbers: dict[Workload, int] = {}
    of_request = np.array([numbers.setdefault(workload, len(numbers)) for workload in workloads], np.int64)
    # workload, key and count of a case as one integer: equal ones are found by sorting, in that order
    code = (of_request[request] * len(keys) + key) * _COUNT_BITS + gpus
    distinct, inverse = np.unique(code, return_inverse=True)
    pair, count = distinct // _COUNT_BITS, distinct % _COUNT_BITS
    workload_number = pair // max(len(keys), 1)
    if not len(distinct):  # the columns of any case, none of its rows
        return search_layouts(workloads[0], keys[:1], np.ones(1, np.int64), calibration).take(inverse)
    parts = [
        _speed_table(workload, calibration).speeds(
            keys, pair[workload_number == number] % len(keys), count[workload_number == number]
        )
        for workload, number in numbers.items()
        if number in workload_number
    ]
    if len(parts) == 1:
        return parts[0].take(inverse)
    return Speeds.concatenate(parts).take(inverse)  # `distinct` is sorted by workload first, as the parts are


# --- What a process has timed: questions about one workload differ in offers, deadlines and tokens, not in its speeds.

_CELLS_KEPT = 1 << 17  # of all tables, at about half a kilobyte
_TABLES_KEPT = 512


class SpeedTable:
    """The speeds of one workload under one calibration: every pair of key and count that was asked for so far."""

    def __init__(self, workload: Workload, calibration: Calibration) -> None:
        self.workload, self.calibration = workload, calibration
        self._numbers: dict[tuple[int, int], int] = {}  # of the chip and the node of a key
        self._keys: list[Key] = []  # by number; held, so that no other object comes to have the id of one
        # sorted codes of key and count, and the row of each in `_speeds`, which only grows
        self._codes, self._rows = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._speeds: Speeds | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._codes)

    def speeds(self, keys: Sequence[Key], key: Integers, gpus: Integers) -> Speeds:
        """Return the speed of each pair of a key, as its place in `keys`, and a count; new ones are timed together."""
        with self._lock:
            used, inverse = np.unique(key, return_inverse=True)
            numbers = []
            for place in used:
                chip_in_node = keys[place]
                name = (id(chip_in_node.accelerator), id(chip_in_node.system))
                if name not in self._numbers:
                    self._numbers[name] = len(self._keys)
                    self._keys.append(chip_in_node)
                numbers.append(self._numbers[name])
            code = np.array(numbers, np.int64)[inverse] * _COUNT_BITS + gpus
            place = np.searchsorted(self._codes, code)
            known = np.zeros(len(code), bool)
            inside = place < len(self._codes)
            known[inside] = self._codes[place[inside]] == code[inside]
            if self._speeds is None or not known.all():
                codes = np.unique(code[~known], return_index=True)[0]  # with an index np.unique loads no numpy.ma
                new_keys = [self._keys[number] for number in codes // _COUNT_BITS]
                timed = search_layouts(self.workload, new_keys, codes % _COUNT_BITS, self.calibration)
                rows = np.arange(len(codes)) + len(self._rows)
                codes, rows = np.concatenate([self._codes, codes]), np.concatenate([self._rows, rows])
                order = np.argsort(codes)
                self._codes, self._rows = codes[order], rows[order]
                self._speeds = timed if self._speeds is None else Speeds.concatenate([self._speeds, timed])
                place = np.searchsorted(self._codes, code)
            return self._speeds.take(self._rows[place])


_tables: OrderedDict[tuple[Workload, int], SpeedTable] = OrderedDict()
_tables_lock = Lock()


def _speed_table(workload: Workload, calibration: Calibration) -> SpeedTable:
    """Return the speeds of a workload that this process knows; what was not asked for of late makes room."""
    name = (workload, id(calibration))  # a table holds its calibration, so that no other one takes its place
    with _tables_lock:
        table = _tables.pop(name, None)
        if table is None:
            table = SpeedTable(workload, calibration)
        _tables[name] = table
        while len(_tables) > _TABLES_KEPT or (sum(map(len, _tables.values())) > _CELLS_KEPT and len(_tables) > 1):
            _tables.popitem(last=False)
        return table


def search_layouts(workload: Workload, keys: Sequence[Key], gpus: Integers, calibration: Calibration) -> Speeds:
    """Return the best layout's speed per distinct case of one workload, on each chip in the precision it has there."""
    accelerators = [key.accelerator for key in keys]
    job = job_of(workload, calibration)
    layouts, pairs = timed_layouts(workload, job, keys, gpus)
    best = reduce_best(layouts, job, pairs)
    chips = pairs.hardware.take(pairs.pair)
    alike = Alike(job.shape, chips, best.layout, job.recipe, job.software)
    own_runs = calibration.runs_of(workload.software)
    step = corrected(best.step, own_runs, alike)
    doubts = traits(alike, step, stated_layout=True)  # the plan chooses its layout
    closer = narrowing(own_runs, alike)
    # The range of fused attention and of plain all-to-all; what nobody says of either widens one end below.
    fused, plain = interval(step.tokens_per_s_per_gpu, doubts, calibration.ranges, ceiling(step), closer)
    low, high, case = fused, plain, layouts.setting.case(best.layout, pairs.pair)
    with np.errstate(all="ignore"):  # rows without a layout
        if workload.flash is None:
            low = unsaid_attention_low(job.software, case, step, fused, closer)
        if workload.dispatcher is None:
            year = year_of(job, chips)
            high = unsaid_dispatcher_high(case, year, step.tokens_per_s_per_gpu, plain, closer)
    timed = Speeds(
        fits=best.fits,
        reason=best.reason,
        tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
        tokens_per_s_per_gpu_low=low,
        tokens_per_s_per_gpu_high=high,
        tokens_per_s_per_gpu_low_fused=fused,
        tokens_per_s_per_gpu_high_plain=plain,
        mfu_fraction=step.mfu_fraction,
        peak_tflops=peak_tflops(chips, pairs.precision[pairs.pair]),
        memory_gb=np.where(best.fits, memory_gb(job, best.layout), np.nan),
        confidence=np.array([_CONFIDENCE.get(chip.family, "low") for chip in accelerators], dtype=object),
        parts_s=np.stack([getattr(step, name) for name in PARTS], axis=1),
        layout=best.layout,
    )
    if workload.own_speed is not None:
        # at a measured speed layout and memory stay, and the parts of the step keep their shares
        work = step_work(workload)
        own_tokens_per_s = [
            workload.own_speed.tokens_per_s(chip, float(count), work)
            for chip, count in zip(accelerators, gpus, strict=True)
        ]
        speed = np.where(timed.fits, own_tokens_per_s, np.nan)
        low, high = ends(speed, np.array([most_tokens_per_s(chip, work) for chip in accelerators]))
        ratio = speed / timed.tokens_per_s_per_gpu
        timed = timed._replace(
            tokens_per_s_per_gpu=speed,
            tokens_per_s_per_gpu_low=low,
            tokens_per_s_per_gpu_high=high,
            mfu_fraction=timed.mfu_fraction * ratio,
            confidence=np.full(len(speed), _MEASURED, dtype=object),
            parts_s=timed.parts_s / ratio[:, None],
        )
    if workload.rollouts is not None:
        timed = _with_rollouts(timed, workload, keys, gpus, calibration)
    if workload.loading is None:
        return timed
    # No run trains faster than its data come; the parts of a step are those without waiting.
    most = workload.loading.tokens_per_s(gpus) / gpus
    names = ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high")
    limits = (most, most * np.exp(-LOADING_WIDTH), most * np.exp(LOADING_WIDTH))
    return timed._replace(
        **{name: np.minimum(getattr(timed, name), limit) for name, limit in zip(names, limits, strict=True)},
        mfu_fraction=timed.mfu_fraction * np.minimum(1.0, most / timed.tokens_per_s_per_gpu),
    )


def _with_rollouts(
    speeds: Speeds, workload: Workload, keys: Sequence[Key], gpus: Integers, calibration: Calibration
) -> Speeds:
    """Return cases whose steps write answers, score them and train on them; the parts are those of the training.

    The ends of the range are those of steps in which every phase is slow, or every one fast.
    """
    from gpucost.workloads.rollouts import phases_of, writer_of  # the physics of serving: only where it is asked for

    parts, recompute = speeds.parts_s, speeds.layout.recompute
    writer = writer_of(workload, keys, gpus, calibration)
    tokens = float(workload.global_batch * workload.sequence_tokens) / gpus

    def speed(alone: Floats, end: int) -> Floats:
        step: Floats = tokens / phases_of(workload, writer, keys, gpus, tokens / alone, parts, recompute, end).total_s
        return step

    middle = speed(speeds.tokens_per_s_per_gpu, 0)
    fits = speeds.fits & (middle > 0)
    return speeds._replace(
        fits=fits,
        reason=np.where(speeds.fits & ~fits, NO_MEMORY, speeds.reason),
        tokens_per_s_per_gpu=np.where(fits, middle, np.nan),
        tokens_per_s_per_gpu_low=np.where(fits, speed(speeds.tokens_per_s_per_gpu_low, 1), np.nan),
        tokens_per_s_per_gpu_high=np.where(fits, speed(speeds.tokens_per_s_per_gpu_high, -1), np.nan),
        mfu_fraction=speeds.mfu_fraction * middle / speeds.tokens_per_s_per_gpu,
    )


def job_of(workload: Workload, calibration: Calibration) -> Job:
    """Return a workload as the search over layouts takes it."""
    return make_job(
        workload.architecture,
        sequence_tokens=float(workload.sequence_tokens),
        global_batch=workload.global_batch,
        method=workload.method,
        lora_rank=workload.lora_rank,
        adapter_share=adapted_share(workload),
        software=class_of(workload.software, calibration.stacks),
        software_year=workload.software_year,
        latest_year=workload.latest_year,
        document_tokens=workload.document_tokens,
        offload=workload.offload,
        flash=workload.flash,
        dispatcher=dispatcher_code(workload.dispatcher),
        values=calibration.values,
    )


def memory_gb(job: Job, layout: LayoutColumns) -> Floats:
    """Return the peak memory of layouts; the search itself counts some of them with fewer ranks than they have."""
    with np.errstate(all="ignore"):  # rows without a layout
        return training_memory(job.shape, layout, job.memory).total_bytes / GB


def timed_layouts(
    workload: Workload, job: Job, keys: Sequence[Key], gpus: Integers | Floats
) -> tuple[Candidates, Keys]:
    """Time the layouts in common use that fit, on each key and count; what every question takes its fastest from."""
    grid = make_grid(workload.architecture, float(workload.sequence_tokens), job.global_batch, wide=False)
    accelerators, systems = [key.accelerator for key in keys], [key.system for key in keys]
    pairs = make_keys(accelerators, systems, list(gpus), workload.precision_on)
    return search(grid, job, pairs), pairs


def over_pcie(key: Key) -> Key:
    """Return an accelerator in its node as if PCIe alone joined those of a node; the network stays."""
    return Key(key.accelerator, replace(key.system, id=f"{key.system.id} over PCIe", scaleup_gb_per_s=0.0))


def key_of(catalog: Catalog, gpu: str | None, system: str | None = None) -> Key:
    """Return the one accelerator that a name means, in the node named, else in the machine's or its usual one."""
    if system is None:
        if gpu is None:
            raise UsageError("--gpu is missing: name one accelerator, such as h100-sxm. `gpucost gpus` lists them.")
        if (machine := catalog.machine(gpu)) and machine.id:
            return key_of(catalog, None, machine.id)
        accelerator = catalog.accelerator(gpu)
        return Key(accelerator, catalog.default_system(accelerator.id))
    node = catalog.system(system)
    accelerator = catalog.accelerator(gpu or node.accelerator_id)
    if node.accelerator_id != accelerator.id:
        raise UsageError(f"system {node.id} has {node.accelerator_id}, not {accelerator.id}. Leave one of them out.")
    return Key(accelerator, node)
