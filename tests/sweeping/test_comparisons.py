"""Sweeps of owning against renting: what is worked out together equals what is asked alone."""

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.sweeping.work import Owned, Singles

AXES = {
    "gpu": ["h100-sxm", "b200", "a100-80gb"],
    "gpus": [8, 64, 1000],
    "utilisation": [0.05, 0.2, 0.45, 0.7, 0.95, 1.0, 0.0],
    "years": [2, 4, 5],
    "wacc": [None, 0.0, 0.08, 0.15],
    "rent": [None, 1.5, 2.0, 3.1, 6.0],
    "financing": [None, "loan", "finance_lease"],
    "provider": [None, None, None, None, "lambda"],
    "lead_time": [None, "36w"],
}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_row_is_the_single_answer(seed):
    draw, catalog = np.random.default_rng(seed), open_catalog()
    codes = {name: draw.integers(0, len(values), 24) for name, values in AXES.items()}
    for name in ("gpu", "gpus", "years", "lead_time", "provider"):  # several cases of a kind
        codes[name] = np.repeat(codes[name][:4], 6)
    alone, together = Singles("tco", catalog).rows(AXES, codes), Owned("tco", catalog).rows(AXES, codes)
    assert alone.keys() == together.keys()
    for name, column in alone.items():
        if isinstance(column, tuple):
            assert column[1] == together[name][1], name
            assert np.array_equal(column[0], together[name][0]), name
        else:
            assert np.array_equal(column, together[name], equal_nan=True), name
    assert (alone["reason"][0] < 0).sum() > 5


def test_cases_that_differ_in_numbers_are_worked_out_together(monkeypatch):
    """No case is asked alone, and few are put together from their inputs."""
    monkeypatch.setattr(Owned, "_one", None)
    values = {"gpu": ["h100-sxm"], "gpus": [64], "utilisation": [0.1 + 0.01 * i for i in range(80)], "rent": [2.0, 3.0]}
    codes = {"gpu": np.zeros(160, int), "gpus": np.zeros(160, int), "utilisation": np.arange(160) % 80}
    columns = Owned("tco", open_catalog()).rows(values, {**codes, "rent": np.arange(160) // 80})
    dearer = columns["own_npv_usd"][:80] - columns["own_npv_usd"][80:]
    assert (columns["rent_npv_usd"][80:] > columns["rent_npv_usd"][:80]).all()
    assert np.abs(dearer).max() < 1e7
