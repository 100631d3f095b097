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
    gpus, workload = _gpus(log, option), estimate["workload"]
    batch = log.said("global_batch") or float(option["layout"]["global_batch"])  # what runs, where the log says it
    sequence = log.said("sequence") or float(workload["sequence_tokens"])
    all_tokens = float(workload["trained_tokens"])
    speed = training_speed(log, gpus=gpus, sequence_tokens=int(sequence), global_batch=int(batch))
    _refuse_impossible(speed, option)
    samples = log.last("samples") or (log.last("step") or 0.0) * batch
    done = tokens_done if tokens_done is not None else log.last("tokens") or samples * sequence
    if not done:
        raise UsageError("the log does not say how many steps are done: give --tokens-done.")
    share = min(done / all_tokens, 1.0)
    step_days = all_tokens / (float(option["tokens_per_s_per_gpu"]) * gpus) / SECONDS_PER_HOUR / HOURS_PER_DAY
    overhead_fraction = max(float(option["days"]) / step_days - 1, 0.0)  # evaluation, restarts, start-up
    pure_days = all_tokens / (speed * gpus) / SECONDS_PER_HOUR / HOURS_PER_DAY

    def days(drift: float, beside_ratio: float) -> float:
        spent = pure_days * share * (1 + overhead_fraction)
        return spent + pure_days * (1 - share) * (1 + drift) * (1 + overhead_fraction * beside_ratio)

    spread = {"low": days(-_DRIFT_FRACTION, 0.5), "typical": days(0.0, 1.0), "high": days(_DRIFT_FRACTION, 1.5)}
    so_far = pure_days * share * (1 + overhead_fraction)
    usd = {end: _bill(option, spread[end]) for end in spread}
    spent_usd = usd["typical"] if share == 1 else _bill(option, so_far, egress_gb=0.0)  # the weights leave at the end
    return [
        _row("tokens", done, all_tokens, unit="tokens"),
        _row("progress", share, 1.0, unit="fraction of one"),
        _row("tok/s/GPU", speed, option["tokens_per_s_per_gpu"], unit="tokens per second per GPU"),
        _row("days so far", so_far, None, unit="days"),
        _row("days in all", spread["typical"], option["days"], spread["low"], spread["high"], unit="days"),
        _row("cost so far", spent_usd, None, unit="USD"),
        _row("cost in all", usd["typical"], option["cost_usd"], usd["low"], usd["high"], unit="USD"),
    ]


def _gpus(log: Log, option: Mapping[str, Any]) -> int:
    """Return the GPUs of the option that runs; a log of another number is of another run."""
    gpus, log_gpus = int(option["gpus"]), log.said("gpus")
    if log_gpus and log_gpus != gpus:
        raise UsageError(
            f"the log says {log_gpus:,.0f} GPUs (world size), and option {option['rank']} of the estimate has {gpus:,}."
            f" Give an estimate with --gpus {log_gpus:.0f}, or the option that runs by --rank."
        )
    return gpus


def _bill(option: Mapping[str, Any], days: float, **changes: float) -> float:
    """Return what an option costs where its run takes so many days: every hour of it stretches, the terms stay."""
    factors, longer_ratio = option["factors"], days / float(option["days"])
    speed, ramp_hours = factors["tokens_per_s_per_gpu"] / longer_ratio, factors["ramp_hours"] * longer_ratio
    return run_usd({**factors, "tokens_per_s_per_gpu": speed, "ramp_hours": ramp_hours, **changes})


def _refuse_impossible(speed: float, option: Mapping[str, Any]) -> None:
    """Refuse a speed that needs more than the peak by which the estimate's option has its MFU, or next to nothing."""
    mfu = float(option["mfu_fraction"] or 0.0) * speed / float(option["tokens_per_s_per_gpu"])
    if mfu > 1 or 0 < mfu < SLOWEST:
        share = f"{mfu:.0%}" if mfu > 1 else "less than a billionth"
        reading = f"the log says {speed:,.5g} tokens per second and GPU, {share} of the dense peak of {option['gpu']}"
        raise UsageError(f"{reading}. {f'{BEYOND_PEAK} ' * (mfu > 1)}Is it a log of this estimate's run?")


def _row(
    what: str, now: float, estimated: float | None, low: Any = None, high: Any = None, *, unit: str
) -> dict[str, Any]:
    ratio = now / float(estimated) if estimated and what in ("tok/s/GPU", "days in all", "cost in all") else None
    return {
        "what": what,
        "now": now,
        "low": low,
        "high": high,
        "estimated": estimated,
        "against_ratio": ratio,
        "unit": unit,
    }
