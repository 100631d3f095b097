"""Bursts of requests whose outputs differ in length: they start together, and end one by one."""

import numpy as np

from gpucost.physics.columns import Floats
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.cases import ServingCase

_LONGEST_MEANS = 4.5  # mean outputs that the longest of many is long: an assumption, as ShareGPT's are
# Gauss-Legendre: exact for polynomials up to degree 11, and a step's time bends little over the drain.
_DRAIN_POINTS, _DRAIN_WEIGHTS = np.polynomial.legendre.leggauss(6)


def varied_burst(case: ServingCase, places: Floats, sent: Floats, prompt: Floats, output: Floats) -> Floats:
    """Return the output tokens per second of requests that are sent at once and end one by one.

    Places are refilled until all have started: (sent − places)·μ ÷ places steps at full places. Then outputs of
    lengths spread as an exponential with mean μ leave n·e^(−x/μ) running: μ·∫ step(n) d(ln n) until the longest ends.
    Prompts are read beside the steps of the first phase, those of the first places before it.
    """
    # while all places are taken
    full = serving.steady(case, places, prompt, output)
    refilled = np.maximum(sent - places, 0.0) * output / full.output_tokens_per_s
    first = serving.prompt_s(case, prompt, places)
    # n falls to one request after ln(n) mean outputs, the longest of n draws from an exponential
    end = np.minimum(np.log(np.maximum(places, 1.0)), _LONGEST_MEANS)
    drain = np.zeros_like(places)
    for point, weight in zip(_DRAIN_POINTS, _DRAIN_WEIGHTS, strict=True):
        fallen = end * (point + 1) / 2
        running = np.maximum(places * np.exp(-fallen), 1.0)
        # those still running wrote more than the mean: their context grows as their number falls
        step = serving.decode_step(case, running, prompt + output * (1 + fallen) / 2).total_s
        drain += weight / 2 * end * step
    drain = np.where(end > 0, output * drain, output * serving.decode_step(case, places, prompt + output / 2).total_s)
    return sent * output / (first + refilled + drain)
