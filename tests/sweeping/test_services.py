"""Sweeps of services: what is kept between cases changes no row."""

import numpy as np

from gpucost.catalog import open_catalog
from gpucost.sweeping.work import Served, Singles

AXES = {
    "model": ["8b", "70b", "qwen3-embedding-8b", "no-such-model"],
    "gpu": [None, "h100", "l40s", "mi300x"],
    "prompt_tokens": [None, 256, 4096],
    "output_tokens": [None, 512],
    "tokens_per_month": [None, 1e8, 3e10],
    "tpot": [None, "20ms", "60ms"],
    "ttft": [None, "300ms"],
    "precision": [None, "fp8"],
    "option": [None, "spot", "reserved"],
    "budget": [None, 500_000, 100],
    "redundancy": [None, 1],
    "optimize": [None, "latency", "carbon"],
    "max_gpus": [None, 16],
}


def test_a_row_is_the_single_answer():
    draw, catalog = np.random.default_rng(5), open_catalog()
    codes = {name: draw.integers(0, len(values), 60) for name, values in AXES.items()}
    codes["model"] = draw.choice(4, 60, p=[0.5, 0.4, 0.05, 0.05])
    alone, kept = Singles("inference", catalog).rows(AXES, codes), Served("inference", catalog).rows(AXES, codes)
    assert alone.keys() == kept.keys()
    for name, column in alone.items():
        if isinstance(column, tuple):
            assert column[1] == kept[name][1], name
            assert np.array_equal(column[0], kept[name][0]), name
        else:
            assert np.array_equal(column, kept[name], equal_nan=True), name
    assert (alone["reason"][0] < 0).sum() > 15


def test_replicas_are_searched_once_for_loads_that_differ(monkeypatch):
    from gpucost.serving import run

    searched, search = [], run.plan_for
    monkeypatch.setattr(run, "plan_for", lambda *asked: (searched.append(asked), search(*asked))[1])
    loads = [1e9 * count for count in range(1, 21)]
    values, codes = {"model": ["8b"], "gpu": ["h100"], "tokens_per_month": loads}, np.zeros(20, int)
    columns = Served("inference", open_catalog()).rows(
        values, {"model": codes, "gpu": codes, "tokens_per_month": np.arange(20)}
    )
    assert len(searched) == 1
    assert (np.diff(columns["usd_per_month"]) >= -0.011).all()  # lines are rounded to cents
