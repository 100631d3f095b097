"""A running job against its estimate: how far it is, what it has cost, when it ends and what it will cost then."""

from collections.abc import Mapping
from typing import Any

from gpucost.answers.training import Estimate
from gpucost.bench.logs import Log, training_speed
from gpucost.bridges.compare import run_usd
from gpucost.errors import UsageError
from gpucost.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from gpucost.workloads.training import BEYOND_PEAK, SLOWEST

_DRIFT_FRACTION = 0.05  # by which the speed of the rest of a run differs from that of its steps so far, 80 % range


def forecast(log: Log, estimate: Estimate, rank: int = 1, *, tokens_done: float | None = None) -> list[dict[str, Any]]:
    """Return rows of label, measured and estimated figures: progress, speed, days and cost with their ranges.

    What is done is known; of what remains, the speed is that of the log (± 5 %) and the time beside the steps that of
    the estimate (± half of it), so that the range narrows to nothing as the job ends. Days count every hour that the
    job holds its accelerators. Costs are bills of the estimate's own terms over those days: what a contract or a
    shortest purchase obliges to pay is owed from the first hour.
    """
    if log.format.phase != "training":
        raise UsageError(f"this is a log of {log.format.name}, a serving log: watch follows a training run.")
    option = next((row for row in estimate["options"] if row["rank"] == rank), None)
    if option is None:
        raise UsageError(f"the estimate has no option of rank {rank}: it shows {len(estimate['options'])}.")
    gpus, log_gpus = int(option["gpus"]), log.stated("gpus")
    if log_gpus and log_gpus != gpus:  # the log is of another run
        raise UsageError(
            f"the log says {log_gpus:,.0f} GPUs (world size), and option {option['rank']} of the estimate has {gpus:,}."
            f" Give an estimate with --gpus {log_gpus:.0f}, or the option that runs by --rank."
        )
    # what runs goes before what was planned
    batch = log.stated("global_batch") or float(option["layout"]["global_batch"])
    sequence = log.stated("sequence") or float(estimate["workload"]["sequence_tokens"])
    all_tokens = float(estimate["workload"]["trained_tokens"])
    speed = training_speed(log, gpus=gpus, sequence_tokens=int(sequence), global_batch=int(batch))
    # the option's MFU scales with the speed: beyond the peak, or next to nothing, the log is of another model or GPU
    mfu = float(option["mfu_fraction"] or 0.0) * speed / float(option["tokens_per_s_per_gpu"])
    if mfu > 1 or 0 < mfu < SLOWEST:
        share = f"{mfu:.0%}" if mfu > 1 else "less than a billionth"
        reading = f"the log says {speed:,.5g} tokens per second and GPU, {share} of the dense peak of {option['gpu']}"
        raise UsageError(f"{reading}. {f'{BEYOND_PEAK} ' * (mfu > 1)}Is it a log of this estimate's run?")
    samples = log.last("samples") or (log.last("step") or 0.0) * batch
    done = tokens_done if tokens_done is not None else log.last("tokens") or samples * sequence
    if not done:
        raise UsageError("the log does not say how many steps are done: give --tokens-done.")
    done_fraction = min(done / all_tokens, 1.0)
    step_days = all_tokens / (float(option["tokens_per_s_per_gpu"]) * gpus) / SECONDS_PER_HOUR / HOURS_PER_DAY
    overhead_fraction = max(float(option["days"]) / step_days - 1, 0.0)  # evaluation, restarts, start-up
    pure_days = all_tokens / (speed * gpus) / SECONDS_PER_HOUR / HOURS_PER_DAY

    so_far = pure_days * done_fraction * (1 + overhead_fraction)

    def days(drift: float, beside_ratio: float) -> float:
        remaining = pure_days * (1 - done_fraction) * (1 + drift) * (1 + overhead_fraction * beside_ratio)
        return so_far + remaining

    spread = {"low": days(-_DRIFT_FRACTION, 0.5), "typical": days(0.0, 1.0), "high": days(_DRIFT_FRACTION, 1.5)}
    usd = {end: _bill(option, spread[end]) for end in spread}
    # the weights leave at the end: until then nothing is owed for their way out
    spent_usd = usd["typical"] if done_fraction == 1 else _bill(option, so_far, egress_gb=0.0)
    return [
        _row("tokens", done, all_tokens, unit="tokens"),
        _row("progress", done_fraction, 1.0, unit="fraction of one"),
        _row("tok/s/GPU", speed, option["tokens_per_s_per_gpu"], unit="tokens per second per GPU"),
        _row("days so far", so_far, None, unit="days"),
        _row("days in all", spread["typical"], option["days"], spread["low"], spread["high"], unit="days"),
        _row("cost so far", spent_usd, None, unit="USD"),
        _row("cost in all", usd["typical"], option["cost_usd"], usd["low"], usd["high"], unit="USD"),
    ]


def _bill(option: Mapping[str, Any], days: float, **changes: float) -> float:
    """Return what an option costs where its run takes so many days: every hour of it stretches, the terms stay."""
    factors, longer_ratio = option["factors"], days / float(option["days"])
    speed, ramp_hours = factors["tokens_per_s_per_gpu"] / longer_ratio, factors["ramp_hours"] * longer_ratio
    return run_usd({**factors, "tokens_per_s_per_gpu": speed, "ramp_hours": ramp_hours, **changes})


def _row(
    label: str, now: float, estimated: float | None, low: Any = None, high: Any = None, *, unit: str
) -> dict[str, Any]:
    # of what still grows, such as the days so far, a ratio to the estimate would say how far, not how well
    ratio = now / float(estimated) if estimated and label in ("tok/s/GPU", "days in all", "cost in all") else None
    return {
        "what": label,
        "now": now,
        "low": low,
        "high": high,
        "estimated": estimated,
        "against_ratio": ratio,
        "unit": unit,
    }
