"""A row of a sweep is the first option of the single answer: the same search, the same bill, the same order."""

import copy
import math
from itertools import product

import numpy as np
import pytest

import gpucost
from gpucost.errors import GpuCostError, UsageError, changed
from gpucost.sweeping.work import asker_of

DAY = "2026-11-20"
SAME = ("provider", "instance_type", "region", "option", "gpu", "gpus", "nodes", "days", "days_low", "days_high",
        "cost_usd", "cost_low_usd", "cost_high_usd", "usd_per_mtok", "gpu_hours", "usd_per_gpu_hour", "kgco2e",
        "mfu_fraction", "tokens_per_s_per_gpu", "price_observed_on", "age_days")  # fmt: skip
NEAREST = ("nearest_change", "nearest_gpus", "nearest_days", "nearest_cost_usd")


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog(DAY)


def single(catalog, **asked):
    try:
        return dict(gpucost.estimate(**asked, catalog=catalog, with_facts=False).best)
    except GpuCostError as error:
        return error


def plain(value):
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


GRIDS = {
    "pinned": {"model": ["8b", "70b"], "gpu": ["h100", "mi300x,b200"], "gpus": [8, 64], "tokens": ["1b", "77b", "3t"]},
    "contracts": {"model": ["8b"], "option": ["reserved,on_demand", "spot"], "gpus": [16], "tokens": ["5b", "200b"],
                  "deadline": ["none", "20d"], "commitment": ["full", "used"]},
    "goals": {"model": ["8b"], "gpu": ["h100"], "gpus": [32], "tokens": ["100b"],
              "optimize": ["cost", "time", "carbon"], "overhead": ["0%", "20%"], "experiments": ["0%", "50%"]},
    "pocket money": {"model": ["0.5b"], "gpus": [1, 8], "tokens": ["10m", "60m", "2b"], "budget": [1, 3, 1e6]},
    "free sizes": {"model": ["8b", "70b"], "gpu": ["h100", "b200"], "tokens": ["9b", "90b"], "deadline": ["7d", "9d"]},
    "filters": {"model": ["8b"], "gpus": [8, 256], "tokens": ["10b", "500b"], "exclude_provider": [None, "lambda"],
                "rank_by": ["budget", "quoted"]},
    "owes more than the run": {"model": ["1b"], "provider": ["digitalocean"], "gpu": ["b300-sxm"], "gpus": [1],
                               "tokens": ["5b", "9t"], "deadline": ["none"], "rank_by": ["quoted"]},
    "own speed": {"model": ["8b"], "gpu": ["h100"], "gpus": [64], "tokens": ["100b"], "mfu": ["30%", "45%"]},
    "too few for the memory": {"model": ["70b", "405b"], "gpu": ["h100", "l40s", None], "gpus": [1, 8, 12, 24],
                               "tokens": ["1b", "500b"], "deadline": ["none", "5d", "50d"], "budget": [None, 10_000]},
    "too late or too dear": {"model": ["8b"], "gpu": ["h100", "a100,mi300x"], "gpus": [16, 128],
                             "tokens": ["50b", "200b"], "deadline": ["1d", "3d", "30d"],
                             "budget": [None, 100, 9_000, 30_000], "option": [None, "spot", "reserved,capacity_block"]},
    "more than is sold": {"model": ["8b"], "gpu": ["h100", "b200"], "gpus": [1, 4096, 100_000],
                          "tokens": ["100b"], "option": [None, "spot"], "global_batch": [None, 8]},
    "short of a batch": {"model": ["8b"], "gpu": ["h100"], "gpus": [8], "tokens": ["1m", "3m"], "global_batch": [64]},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", GRIDS)
def test_a_row_equals_the_single_estimate(catalog, name):
    values = GRIDS[name]
    every = list(product(*(range(len(listed)) for listed in values.values())))
    cases = [every[place] for place in sorted(np.random.default_rng(7).permutation(len(every))[:8])]
    codes = {name: np.array([case[place] for case in cases]) for place, name in enumerate(values)}
    found = asker_of("estimate", catalog).rows(values, codes)
    for row, case in enumerate(cases):
        asked = {name: values[name][code] for name, code in zip(values, case, strict=True)}
        best = single(catalog, **asked)
        columns = {key: column for key, column in found.items() if key in (*SAME, *NEAREST, "reason")}
        got = {
            key: (column[1][column[0][row]] if column[0][row] >= 0 else None)
            if isinstance(column, tuple)
            else plain(float(column[row]))
            for key, column in columns.items()
        }
        if isinstance(best, GpuCostError):
            assert got.pop("reason"), asked
            nearest = {name: best.nearest.get(name.removeprefix("nearest_")) for name in NEAREST}
            assert got == dict.fromkeys(SAME) | nearest | {"nearest_change": changed(best) or None}, asked
        else:
            assert got == {key: plain(best[key]) for key in SAME} | dict.fromkeys((*NEAREST, "reason")), asked


@pytest.mark.slow
def test_one_case_that_cannot_be_leaves_the_others_alone(catalog):
    found = gpucost.sweep(model="405b,8b", gpu="l4", gpus=8, tokens="1b", as_of=DAY).to_frame()
    assert found["reason"].isna().tolist() == [False, True]
    assert "llama-3.1-405b" in str(found["reason"][0])


@pytest.mark.slow
def test_two_sweeps_are_equal_where_their_answers_are():
    asked = {"gpu": "l4", "gpus": "8,16", "tokens": "1b", "as_of": DAY}
    found = gpucost.sweep(model="8b", **asked)
    assert found == gpucost.sweep(model="8b", **asked) == copy.deepcopy(found)
    assert found != gpucost.sweep(model="70b", **asked)


@pytest.mark.slow
def test_the_size_of_a_block_changes_nothing(catalog, monkeypatch):
    asked = {"model": "8b,70b", "gpus": "8:64:x2", "tokens": "1b:6b:1b", "gpu": "h100,b200", "as_of": DAY}
    whole = gpucost.sweep(**asked).to_frame()
    monkeypatch.setattr("gpucost.training.run._LINES_AT_ONCE", 7)
    monkeypatch.setattr("gpucost.sweeping.chunks.CASES", 9)
    parts = gpucost.sweep(**asked).to_frame()
    assert whole.astype(str).equals(parts.astype(str))


@pytest.mark.slow
def test_other_questions_give_the_figures_of_their_answers(catalog):
    served = gpucost.sweep("inference", model="8b", gpu="h100,l40s", tpot="50ms", as_of=DAY).to_frame()
    best = gpucost.inference(model="8b", gpu="h100", tpot="50ms", catalog=catalog).best
    assert served.loc[0, "usd_per_mtok"] == best["usd_per_mtok"]
    assert served.loc[0, "provider"] == best["provider"]
    owned = gpucost.sweep("tco", gpu="h100-sxm", gpus="8,64", rent=2.35, years="3,4", as_of=DAY).to_frame()
    answer = gpucost.tco(gpu="h100-sxm", gpus=64, rent=2.35, years=3, draws=0, as_of=DAY).payload
    row = owned[(owned["gpus"] == 64) & (owned["years"] == 3)].iloc[0]
    worth = answer["npv_usd"]
    assert [row["own_npv_usd"], row["rent_npv_usd"]] == pytest.approx([worth["own"], worth["rent"]], rel=1e-12)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "8b"}, "--tokens is missing"),
        ({"model": "8b", "tokens": "1b", "gpus": "8:512"}, "--gpus"),
        ({"model": "8b", "tokens": "1b", "gpus": "512:8:x2"}, "512:8:x2"),
        ({"model": "8b", "tokens": "1b", "gpus": "8:9:x1.01"}, "whole number"),
        ({"model": "8b", "tokens": "1b:9b:0.5"}, "more than 1,000,000 values"),
        ({"model": "8b", "tokens": "1b,banana"}, "banana"),
        ({"model": "8b", "tokens": "1b", "top": 3}, "first option"),
        ({"model": "8b", "tokens": "1b", "optimize": "pareto"}, "pareto"),
        ({"model": "8b", "tokens": "1b", "as_of": "2026-01-01,2026-02-01"}, "one day"),
        (
            {"model": "8b", "tokens": "1b:900b:1b", "gpus": "1:1000:1", "deadline": "1d:1000d:1d"},
            "more than 100,000,000",
        ),
        ({"model": "8b", "tokens": []}, "one value"),
        ({"model": "8b", "tokens": "1b", "gpuss": 8}, "takes no 'gpuss'"),
        ({"question": "mix", "constant": 3}, "inference, tco"),
    ],
)
def test_what_cannot_be_swept_is_said_before_work_starts(asked, said):
    with pytest.raises(UsageError, match=said):
        gpucost.sweep(**asked)


@pytest.mark.slow
def test_the_best_cases_are_those_of_each_kind_of_work():
    swept = gpucost.sweep(model=["1b", "8b"], tokens=["1b", "2b"], gpu="h100-sxm", gpus=[8, 16, 32], best=2)
    frame = swept.to_frame()
    kinds = frame.groupby(["model", "asked_tokens" if "asked_tokens" in frame else "tokens"], observed=True)
    expected = [cost for _, part in kinds for cost in sorted(part["cost_usd"])[:2]]
    assert sorted(row["cost_usd"] for row in swept.payload["best_of_each"]) == pytest.approx(sorted(expected))
    assert swept.best is None  # cases of different work do not compete
    alike = gpucost.sweep(model="8b", tokens="1b", gpu="h100-sxm", gpus=[8, 16, 32])
    assert alike.best["cost_usd"] == alike.to_frame()["cost_usd"].min()


@pytest.mark.slow
def test_a_map_mixes_no_kinds_of_work():
    swept = gpucost.sweep(model=["1b", "8b"], tokens=["1b", "2b"], gpu=["h100-sxm", "b200"], gpus=8, epochs=[1, 2])
    assert swept.payload["heat"] is None
    swept = gpucost.sweep(model=["1b", "8b"], tokens="1b", gpu=["h100-sxm", "b200"], gpus=[8, 16, 32])
    assert "model" in (swept.payload["heat"]["x"], swept.payload["heat"]["y"])


def test_cases_of_another_size_length_or_share_are_other_work():
    owned = gpucost.sweep("tco", gpu="h100-sxm", gpus="8,64", rent="2:3:0.5", years="3,4", as_of=DAY).payload
    assert owned["best"] is None
    assert {(row["gpus"], row["years"]) for row in owned["front"]} == {(8, 3), (8, 4), (64, 3), (64, 4)}
    trained = gpucost.sweep(model="8b", tokens="1b", gpu="h100-sxm", gpus=[8, 16], experiments=["0%", "50%"], as_of=DAY)
    assert trained.best is None
    assert "2 kinds" in trained.payload["lead"] or "Cheapest: " in trained.payload["lead"]
    assert {row["experiments"] for row in trained.payload["front"]} == {0, 0.5}


def test_a_refused_row_of_another_question_names_what_brings_an_answer():
    served = gpucost.sweep("inference", model="8b", gpu="h100", tpot=["50ms", "0.1ms"], as_of=DAY).to_frame()
    with pytest.raises(GpuCostError) as refused:
        gpucost.inference("8b", gpu="h100", tpot="0.1ms", as_of=DAY)
    assert served["nearest_change"].tolist()[1] == changed(refused.value) != ""
    assert served["nearest_change"].isna().tolist() == [True, False]
    served = gpucost.sweep(
        "inference", model="8b", gpu="h100", requests_per_s=5, budget=[10, 1e6], as_of=DAY
    ).to_frame()
    (budget,) = served["nearest_change"].dropna()
    assert gpucost.inference("8b", gpu="h100", requests_per_s=5, budget=budget.removeprefix("budget="), as_of=DAY).best


@pytest.mark.slow
def test_what_is_nearest_brings_an_answer():
    """A row that finds nothing names a change; with it the single estimate answers, and comes to what the row says."""
    asked = {"gpu": "h100", "tokens": "50b", "as_of": DAY}
    frame = gpucost.sweep(
        model="8b,70b", gpus=[None, 1, 8, 64], deadline=["1d", "20d"], budget=[500, 100_000], **asked
    ).to_frame()
    refused = frame[frame["reason"].notna()]
    assert set(refused["nearest_change"].str.partition("=")[0]) == {"deadline", "budget", "gpus"}
    answered, missed_next = 0, set()
    for row in refused.to_dict("records"):
        name, _, value = row["nearest_change"].partition("=")
        case = {"model": row["model"], "deadline": row["deadline"], "budget": row["budget"]}
        case |= {} if math.isnan(row["asked_gpus"]) else {"gpus": int(row["asked_gpus"])}
        try:
            best = gpucost.estimate(**asked | case | {name: value}).best
        except GpuCostError as error:
            missed_next.add((name, *error.change))
            continue
        answered += 1
        if name == "budget":  # of several that need as much another one may lead
            assert best["budget_usd"] <= float(value)
        else:
            assert best["days"] <= row["nearest_days"] * 1.2
    assert answered > 8
    assert missed_next <= {("deadline", "budget"), ("gpus", "deadline"), ("gpus", "budget")}  # said one at a time


@pytest.mark.slow
def test_of_equal_cases_the_one_that_asks_least_stands_in_the_front():
    asked = {"model": "8b,70b", "tokens": "1b", "gpu": "h100-sxm", "gpus": [8, 16], "as_of": DAY}
    swept = gpucost.sweep(**asked, deadline=["90d", "30d", "60d"], budget=["1m", "100k"], best=2)
    for row in [*swept.payload["front"], *swept.payload["best_of_each"][::2]]:
        assert (row["deadline"], row["budget"]) == (30, 100_000)
