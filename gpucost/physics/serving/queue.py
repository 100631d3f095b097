"""Waiting for a free place in a batch: the part of the time to the first token that is a queue and no physics.

These are textbook estimates for Poisson arrivals; real traffic is burstier, and waits far longer at the same load.
"""

import numpy as np

from gpucost.physics.columns import Floats


def waiting_s(load: Floats, places: Floats, service_s: Floats) -> Floats:
    """Return the mean wait for one of `places` at a load below one: Sakasegawa's approximation of M/M/c.

    W ≈ S · ρ^(√(2(c+1)) − 1) ÷ (c · (1 − ρ)): Sakasegawa 1977, "An approximation formula Lq ≃ αρ^β/(1−ρ)". With one
    place it is the M/M/1 wait, S·ρ/(1−ρ): 10 s at 50 % load wait 10 s.

    >>> waiting_s(np.array([0.5]), np.array([1.0]), np.array([10.0]))
    array([10.])
    """
    rho = np.clip(load, 0.0, 0.999)
    wait: Floats = service_s * rho ** (np.sqrt(2 * (places + 1)) - 1) / (places * (1 - rho))
    return wait


def prompt_wait_s(load: Floats, prompt_time_fraction: Floats, prompt_s: Floats) -> Floats:
    """Return the mean wait behind other prompts: Pollaczek-Khinchine with exponential lengths, ρ/(1−ρ) · S.

    ρ is the share of its time that a replica spends on prompts at this load.

    >>> prompt_wait_s(np.array([1.0]), np.array([0.5]), np.array([0.2]))
    array([0.2])
    """
    rho = np.clip(load * prompt_time_fraction, 0.0, 0.999)
    return rho / (1 - rho) * prompt_s
