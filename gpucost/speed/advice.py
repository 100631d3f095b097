"""What would make an operation or a step faster, each change computed: a larger batch, fusing, another precision."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpucost.answers.speed import Advice, UnderRoofs
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError
from gpucost.physics.columns import VALUE_BYTES
from gpucost.physics.hardware import peak
from gpucost.speed import operations, workload
from gpucost.speed.answer import single
from gpucost.types import Accelerator

WORTH = 1.01  # a smaller gain is no advice
LARGEST_ROWS = 65_536
LOWER = {"tf32": ("bf16",), "fp32": ("bf16",), "bf16": ("fp8", "fp4"), "fp16": ("fp8", "int8"), "fp8": ("fp4",)}

Timed = Callable[[operations.Named, str], float]  # seconds of an operation at a precision


def lower_precisions(chip: Accelerator, precision: str) -> list[str]:
    """Return the precisions of fewer bits for which a chip has faster units."""
    own = peak(chip, precision).tflops
    return [name for name in LOWER.get(precision, ()) if peak(chip, name).tflops > own]


def of_operation(
    wanted: Mapping[str, Any], chip: Accelerator, precision: str, gpus: float, bound: str, timed: Timed
) -> list[Advice]:
    """Return the changes that make an operation faster, the greatest gain first."""
    now = operations.operation(wanted, gpus, VALUE_BYTES[precision])
    now_s = timed(now, precision)
    found = [*_larger(wanted, now, precision, bound, timed), *_fused(wanted, now, precision, gpus, timed)]
    for name in lower_precisions(chip, precision):
        if now.kind in ("matmul", "attention"):
            other = operations.operation(wanted, gpus, VALUE_BYTES[name])
            found.append(advice(f"precision {name}", now_s, timed(other, name)))
    if now.kind == "all_reduce":
        half = operations.work(0.0, float(now.work.memory_bytes[0]) / 2, float(now.work.link_bytes[0]) / 2)
        found.append(
            advice("half the bytes: send 16 bits for 32, or 8 for 16", now_s, timed(now._replace(work=half), precision))
        )
    return ranked(found)


def _larger(
    wanted: Mapping[str, Any], now: operations.Named, precision: str, bound: str, timed: Timed
) -> Iterator[Advice]:
    """Raise the rows of a product that reads its weights for too few of them, up to the ridge."""
    if now.kind != "matmul" or bound == "compute":
        return
    m, n, k = operations.sizes(str(wanted["matmul"]), ("m", "n", "k"), "--matmul")
    now_s, rows, per_row = timed(now, precision), m, timed(now, precision) / m
    while rows < LARGEST_ROWS:
        more = operations.operation({"matmul": f"{2 * rows:.0f}x{n:.0f}x{k:.0f}"}, 1, VALUE_BYTES[precision])
        if timed(more, precision) / (2 * rows) > per_row / 1.1:  # another doubling brings less than a tenth
            break
        rows, per_row = 2 * rows, timed(more, precision) / (2 * rows)
    yield advice(f"batch of {rows:,.0f} rows, not {m:,.0f}", now_s / m, per_row, "time to a row")


def _fused(
    wanted: Mapping[str, Any], now: operations.Named, precision: str, gpus: float, timed: Timed
) -> Iterator[Advice]:
    """Leave out what a kernel of its own reads and writes."""
    if now.kind == "attention" and wanted.get("flash") is False:
        fused = operations.operation({**wanted, "flash": True}, gpus, VALUE_BYTES[precision])
        yield advice("a fused kernel (flash attention)", timed(now, precision), timed(fused, precision))
    if now.kind in ("norm", "gelu", "copy"):
        flop, moved = float(now.work.flop[0]), float(now.work.memory_bytes[0])
        pair = now._replace(work=operations.work(2 * flop, 2 * moved))
        both = now._replace(work=operations.work(2 * flop, moved))
        words = "fuse it with the pass before it: one read and one write for two"
        yield advice(words, timed(pair, precision), timed(both, precision), "both passes")


def of_step(catalog: Catalog, exact: workload.Wanted, chip: Accelerator, step_s: float) -> list[Advice]:
    """Return the changes of a layout that make its step faster, each timed; what does not fit is left out."""
    tried: list[tuple[str, dict[str, str | bool]]] = [
        (f"precision {name}", {"precision": name}) for name in lower_precisions(chip, str(exact.precision))
    ]
    micro, batch, data = (int(str(getattr(exact, name) or 1)) for name in ("micro_batch", "global_batch", "data"))
    if batch % (2 * micro * data) == 0:
        tried.append((f"micro-batch {2 * micro}, not {micro}", {"micro_batch": str(2 * micro)}))
    if batch % (micro * data) == 0:
        tried.append((f"global batch {2 * batch:,}, not {batch:,}", {"global_batch": str(2 * batch)}))
    if exact.recompute != "none":
        tried.append(("recompute nothing", {"recompute": "none"}))
    if not exact.flash:
        tried.append(("fused attention", {"flash": True}))
    found = []
    for words, change in tried:
        given: dict[str, Any] = {key: int(value) if str(value).isdigit() else value for key, value in change.items()}
        try:
            other = single(catalog, replace(exact, **given))
        except GpuCostError:
            continue
        if other["fits"]:
            scale = given.get("global_batch", batch) / batch  # a step of twice the batch does twice the work
            found.append(advice(words, step_s, other["step_s"] / scale))
    return ranked(found)


def advice(change: str, before_s: float, after_s: float, of_what: str = "") -> Advice:
    """Return a change and what it gains."""
    return {
        "change": change,
        "before_s": before_s,
        "after_s": after_s,
        "gain_ratio": before_s / after_s if after_s > 0 else 1.0,
        "note": of_what,
    }


def ranked(found: list[Advice]) -> list[Advice]:
    """Return what is worth it, the greatest gain first."""
    return sorted((row for row in found if row["gain_ratio"] >= WORTH), key=lambda row: -row["gain_ratio"])


def worded(answer: UnderRoofs) -> str:
    """Return the best advice in one sentence, or that nothing tried helps."""
    if not answer["advice"]:
        return "No change that was tried makes it faster."
    first = answer["advice"][0]
    return f"What helps most: {first['change']}, {first['gain_ratio']:.2g} × as fast."
