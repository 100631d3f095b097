"""From a workload to utilisation and tokens per second: the one place where owning meets the physics."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpucost.arguments import flag_of
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import NothingFitsError, UsageError
from gpucost.ownership.assemble import registry_of
from gpucost.ownership.plan import Given, as_given
from gpucost.physics.training.layouts import latest_year
from gpucost.units import HOURS_PER_MONTH, HOURS_PER_YEAR, SECONDS_PER_HOUR, format_count, parse_count
from gpucost.workloads.own_speed import OwnSpeed, check, needs_gpus, own_speed
from gpucost.workloads.speeds import key_of, search_layouts
from gpucost.workloads.training import make_workload, step_work

USUAL_UTILISATION = 0.7  # what replicas are sized for where nothing is said
MOST_NODES = 128  # clusters that are tried where none is given


# from (catalog, what was asked) to tokens per second and GPU when serving, and GPUs per server
ServingSpeed = Callable[["Catalog", Mapping[str, Any]], tuple[Given, float]]


def inputs_of(
    catalog: Catalog, asked: Mapping[str, Any], given: Mapping[str, Any], serving_speed: ServingSpeed
) -> dict[str, Given]:
    """Turn a workload into inputs: runs of training (model, tokens, runs_per_year), or tokens to serve per month."""
    goodput = _value(catalog, given, "goodput_fraction")
    if goodput is None:
        goodput = float(registry_of(catalog).fact("goodput_fraction")["typical"])
    if _value(catalog, given, "utilisation_fraction") == 0:
        raise UsageError("utilisation is 0: a workload needs hours to run in. Give the share that it may use at most.")
    if asked.get("tokens_per_month") is not None:
        return _served(catalog, asked, given, goodput, serving_speed)
    if not asked.get("tokens"):
        raise UsageError("a training workload needs --tokens and --runs-per-year beside --model.")
    return _trained(catalog, asked, given, goodput)


def _value(catalog: Catalog, given: Mapping[str, Any], name: str) -> float | None:
    """Return an input that was given, read as the comparison reads it; None where it was not."""
    value = as_given(given.get(name)).value
    return None if value is None else float(registry_of(catalog).number(name, value, "workload"))


def _served(
    catalog: Catalog,
    asked: Mapping[str, Any],
    given: Mapping[str, Any],
    goodput: float,
    serving_speed: ServingSpeed,
) -> dict[str, Given]:
    """Serve so many tokens a month: at a stated speed per GPU, else at the one that `serving_speed` finds."""
    tokens = parse_count(asked["tokens_per_month"], "tokens_per_month")
    found: dict[str, Given] = {}
    step, speed = 1.0, _value(catalog, given, "tokens_per_s_per_gpu")
    if speed is None:
        found["tokens_per_s_per_gpu"], step = serving_speed(catalog, asked)
        speed = float(found["tokens_per_s_per_gpu"].value)
    elif idle := next((name for name in ("prompt_tokens", "output_tokens") if asked.get(name) is not None), None):
        raise UsageError(
            f"{flag_of(idle)}: tokens_per_s_per_gpu is given, the speed for prompt and reply. Leave one out."
        )
    busy = tokens / (speed * SECONDS_PER_HOUR) / goodput / HOURS_PER_MONTH  # GPUs that work all the time
    gpus, wanted = _value(catalog, given, "gpus"), _value(catalog, given, "utilisation_fraction")
    if gpus is None:
        most = wanted or USUAL_UTILISATION
        gpus = float(np.ceil(busy / most / step) * step)
        found["gpus"] = Given(gpus, source=f"whole servers of {step:g} GPUs, at most {most:.0%} used", status="derived")
    if busy / gpus > (most := wanted or 1.0):
        raise UsageError(
            f"the load needs {busy / gpus:.0%} of {gpus:g} GPUs (asked: at most {most:.0%}): give at least"
            f" {np.ceil(busy / most / step) * step:g}, or a higher --utilisation."
        )
    how = "tokens per month ÷ (tokens per second × goodput)"
    return {**found, "utilisation_fraction": Given(busy / gpus, source=how, status="derived")}


def _trained(catalog: Catalog, asked: Mapping[str, Any], given: Mapping[str, Any], goodput: float) -> dict[str, Given]:
    """Train so often a year: GPU-hours from the physics of the best layout, an open stack, end to end."""
    if not asked.get("gpu"):
        raise UsageError("a workload needs the accelerator: --gpu h100-sxm.")
    often = asked.get("runs_per_year")
    runs = 1.0 if often is None else float(often)
    if runs <= 0:
        raise UsageError(f"runs_per_year = {runs:g} must be positive. Leave it out for one run.")
    system = catalog.default_system(catalog.accelerator(str(asked["gpu"])).id)
    fixed = _value(catalog, given, "gpus")
    own = own_speed(asked.get("mfu"), _value(catalog, given, "tokens_per_s_per_gpu"), asked.get("step_time"))
    needs_gpus(own, fixed)
    tokens, wanted = parse_count(asked["tokens"], "--tokens"), _value(catalog, given, "utilisation_fraction") or 1.0
    hours = runs * tokens / SECONDS_PER_HOUR / goodput / HOURS_PER_YEAR  # times a speed per GPU

    def tried(counts: Any) -> tuple[Any, tuple[Any, Any, Any], Any]:
        speeds = _speeds(catalog, asked, counts.astype(np.int64), own)
        share = hours / (counts * speeds[0])
        return share, speeds, np.nonzero(np.isfinite(share) & (share <= wanted))[0]

    servers = system.gpus * np.arange(1.0, MOST_NODES + 1)
    counts = np.array([fixed]) if fixed else servers
    share, (typical, low, high), fitting = tried(counts)
    if not fitting.size:
        enough = servers[tried(servers)[2]] if fixed and own is None else servers[:0]
        raise _too_small(share, counts, wanted, enough)
    i = int(fitting[0])
    ends = sorted(min(float(share[i] * typical[i] / speed[i]), 1.0) for speed in (low, high))
    text = f"{runs:g} runs a year of {asked['model']} on {format_count(tokens)} tokens"
    text += "" if own is None else f", at your own speed ({own.flag})"
    return {
        "gpus": Given(float(counts[i]), source="given" if fixed else f"smallest cluster for {text}", status="derived"),
        "utilisation_fraction": Given(float(share[i]), ends[0], ends[1], text, "derived"),
        "tokens_per_s_per_gpu": Given(float(typical[i]), float(low[i]), float(high[i]), text, "derived"),
    }


def _speeds(catalog: Catalog, asked: Mapping[str, Any], counts: Any, own: OwnSpeed | None) -> tuple[Any, Any, Any]:
    key = key_of(catalog, str(asked["gpu"]))
    architecture, tokens = catalog.architecture(str(asked["model"])), parse_count(asked["tokens"], "--tokens")
    workload = make_workload(architecture, tokens=tokens, own_speed=own, latest_year=latest_year(catalog.as_of))
    if own is not None:
        check(own, [key.accelerator], float(counts[0]), step_work(workload))
    speeds = search_layouts(workload, [key] * counts.size, counts, training_calibration(catalog))
    return speeds.tokens_per_s_per_gpu, speeds.tokens_per_s_per_gpu_low, speeds.tokens_per_s_per_gpu_high


def _too_small(share: Any, counts: Any, wanted: float, enough: Any) -> Exception:
    """Say that the runs need more than they may use of every size tried; `enough` lists sizes that would do."""
    finite = np.nonzero(np.isfinite(share))[0]
    if not finite.size:
        return NothingFitsError(f"the model fits none of {counts[0]:g} to {counts[-1]:g} GPUs. Take a larger --gpus.")
    least, at = float(share[finite].min()), float(counts[finite[int(np.argmin(share[finite]))]])
    more = f"give at least {enough[0]:g}" if enough.size else "give more --gpus"
    subject = f"the runs need {least:.0%} of the hours of {at:g} GPUs"
    if counts.size > 1:
        subject = f"even {at:g} GPUs would be {least:.0%} used"
    return UsageError(f"{subject} (asked: at most {wanted:.0%}): {more}, fewer runs or a higher --utilisation.")
