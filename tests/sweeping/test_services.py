"""Sweeps of services: what is worked out together changes no row."""

import numpy as np
import pytest

import gpucost
from gpucost.ask.inference import request_of
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.errors import GpuCostError
from gpucost.physics.serving import steps as serving
from gpucost.serving.run import largest_jobs, lasting, looked_at
from gpucost.sweeping.columns import columns_of
from gpucost.sweeping.work import Served, refused
from gpucost.workloads import service
from gpucost.workloads.service import LADDER, climb, replica_layouts
from tests.sweeping.owned_questions import in_python

CATALOG = open_catalog()
AXES = {
    "model": ["8b", "70b", "mixtral-8x7b", "deepseek-v3", "qwen3-embedding-8b", "no-such-model"],
    "gpu": [None, "h100", "l40s", "mi300x", "a100,h200"],
    "prompt_tokens": [None, 256, 4096, "azure-conversation", 100_000],
    "output_tokens": [None, 512, 33],
    "lengths": [None, "azure-conversation"],
    "requests_per_s": [None, 0.3, 400],
    "tokens_per_month": [None, 1e8, 3e10, 5e12],
    "tpot": [None, "20ms", "60ms", 3],
    "ttft": [None, "300ms", "40ms"],
    "precision": [None, "fp8", "int4"],
    "engine": [None, "trtllm", "sglang"],
    "server": [None, "tuned", "offline"],
    "utilisation": [None, 0.5, "100%", 0],
    "profile": [None, "office", "consumer"],
    "autoscale": [None, True],
    "floor": [None, 0, 2],
    "replicas": [None, 1, 4],
    "redundancy": [None, 0, 2],
    "prefix_hit": [None, "40%"],
    "draft_tokens": [None, 3],
    "acceptance": [None, 0.7],
    "offload": [None, 0.3],
    "own_output_tokens_per_s": [None, 900],
    "own_tpot": [None, "30ms"],
    "own_concurrency": [None, 16],
    "replica_gpus": [None, 1, 3],
    "gpus": [None, 4],
    "weights": [None, "fp8"],
    "optimize": [None, "latency", "carbon"],
    "strict_prices": [None, True],
    "option": [None, "spot", "reserved", "capacity_block"],
    "provider": [None, "aws", "lambda"],
    "region": [None, "us"],
    "max_gpus": [None, 16],
    "rank_by": [None, "quoted"],
    "usd_per_gpu_hour": [None, 2.1],
    "budget": [None, 500_000, 5000, 0],
}


def assert_equal(one, other):
    assert list(one) == list(other)
    for name, column in one.items():
        if isinstance(column, tuple):
            assert column[1] == other[name][1], name
            assert np.array_equal(column[0], other[name][0]), name
        else:
            assert np.array_equal(column, other[name], equal_nan=True), name


def single(asked):
    """Return the first option of a question, or why there is none."""
    try:
        return dict(gpucost.inference(**asked, top=1, catalog=CATALOG).options[0])
    except GpuCostError as error:
        return refused(error)


def answered(values, codes):
    """Return the columns, after holding each row against the single answer."""
    columns = Served("inference", CATALOG).rows(values, codes)
    rows = range(len(next(iter(codes.values()))))
    asked = [{name: values[name][column[row]] for name, column in codes.items()} for row in rows]
    alone = [single({name: value for name, value in one.items() if value is not None}) for one in asked]
    expected = dict(columns_of(["inference"], alone, rows))
    assert spoken(expected.pop("reason")) == spoken(columns["reason"])
    assert_equal(expected, {name: column for name, column in columns.items() if name != "reason"})
    return columns


def spoken(column):
    """Return the refusals of a column row by row, as Python says them."""
    return [in_python(column[1][code], gpucost.inference) if code >= 0 else None for code in column[0]]


@pytest.mark.slow
def test_a_row_of_any_mix_of_arguments_is_the_single_answer():
    count, draw = 300, np.random.default_rng(5)
    codes = {name: np.zeros(count, int) for name in AXES}
    for row in range(count):
        for name in draw.choice(list(AXES)[2:], draw.integers(1, 8), replace=False):
            codes[name][row] = draw.integers(0, len(AXES[name]))
    codes["model"] = draw.choice(6, count, p=[0.4, 0.3, 0.1, 0.14, 0.03, 0.03])
    codes["gpu"] = draw.integers(0, 5, count)
    columns = answered(AXES, codes)
    assert (columns["reason"][0] < 0).sum() > 120
    assert len(columns["reason"][1]) > 25


MIXES = (
    {},
    {"profile": "office", "autoscale": True},
    {"profile": "consumer", "autoscale": True, "floor": 0},
    {"optimize": "carbon"},
    {"optimize": "latency", "max_gpus": 64},
    {"option": "spot", "server": "tuned"},
    {"replicas": 3, "option": "on_demand"},
    {"engine": "sglang", "rank_by": "quoted"},
)


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "-".join(map(str, mix.values())) or "plain")
def test_cases_that_differ_in_numbers_are_the_single_answers(mix):
    """Loads up to thousands of accelerators, where what nobody verified begins; budgets around what they cost."""
    count, draw = 70, np.random.default_rng(len(str(mix)))
    numbers = {
        "prompt_tokens": np.round(10 ** draw.uniform(1, 5, 8)),
        "output_tokens": np.round(10 ** draw.uniform(1, 3.5, 6)),
        "tokens_per_month": 10 ** draw.uniform(6, 14, 40),
        "ttft": 10 ** draw.uniform(2, 4, 4),
        "tpot": 10 ** draw.uniform(0.7, 2.5, 8),
        "utilisation": np.array([0.3, 0.7, 1.0]),
        "redundancy": np.array([0, 1]),
        "budget": 10 ** draw.uniform(2.5, 7, 30),
    }
    values = {"model": ["8b", "70b"], "gpu": ["h100", "l40s"]} | {name: [value] for name, value in mix.items()}
    values |= {name: [*column.tolist(), None] for name, column in numbers.items()}
    codes = {name: draw.integers(0, len(column), count) for name, column in values.items()}
    for name in ("prompt_tokens", "output_tokens", "tokens_per_month", "utilisation"):
        codes[name] = np.minimum(codes[name], len(values[name]) - 2)  # said in every case
    for name in ("ttft", "tpot", "budget"):
        codes[name][draw.random(count) < 0.6] = len(values[name]) - 1
    columns = answered(values, codes)
    assert (columns["reason"][0] < 0).sum() > 5
    assert len(columns["reason"][1]) > 2


def test_a_service_level_has_the_table_of_its_single_answer():
    """A row for each accelerator and its cells, of each case; a case that has no answer keeps its one row."""
    level = {"model": "8b", "gpu": "h100-sxm,l40s", "slo_ttft": "1s", "prompt_tokens": 500, "output_tokens": 100}
    result = gpucost.sweep(
        "inference", **{**level, "gpu": "h100-sxm|l40s"}, requests_per_s=[5, 20], tpot=["50ms", "1ms"]
    )
    frame = result.to_frame()
    for rate in (5, 20):
        alone = gpucost.inference(**level, tpot="50ms", requests_per_s=rate, catalog=CATALOG).payload
        rows = frame[(frame["requests_per_s"] == rate) & frame["reason"].isna()]
        assert list(rows["gpu"]) == [row["gpu"] for row in alone["levels"]]
        assert list(rows["place"]) == [1, 2]
        first = alone["options"][0]
        assert (rows["provider"].iloc[0], rows["usd_per_month"].iloc[0]) == (first["provider"], first["usd_per_month"])
        for name in (
            "held_requests_per_s",
            "replicas",
            "ttft_p99_ms",
            "tpot_p50_ms",
            "e2e_p95_s",
            "usd_per_1000_requests",
        ):
            assert list(rows[name]) == [row[name] for row in alone["levels"]], name
    refused_rows = frame[frame["reason"].notna()]
    assert list(refused_rows["requests_per_s"]) == [5, 20]
    assert (result.payload["cases"], result.payload["answered"]) == (4, 2)
    assert sum(row["cases"] for row in result.payload["reasons"]) == 2
    assert [row["place"] for row in result.payload["best_of_each"]] == [1, 1]


@pytest.mark.slow
def test_layouts_and_markets_are_made_once_for_cases_that_share_them(monkeypatch):
    made, build = [], service.build
    monkeypatch.setattr(service, "build", lambda *of: (made.append(len(of[0])), build(*of))[1])
    loads = [1e9 * count for count in range(1, 21)]
    values = {"model": ["8b"], "gpu": ["h100"], "tokens_per_month": loads, "tpot": [None, 30, 90], "budget": [1e6, 2e6]}
    values |= {"rank_by": ["quoted"]}  # the lowest budget of a larger load may be that of a lower quote
    rows = np.arange(120)
    codes = {"tokens_per_month": rows // 6, "tpot": rows // 2 % 3, "budget": rows % 2}
    catalog = open_catalog()
    columns = Served("inference", catalog).rows(values, {name: codes.get(name, 0 * rows) for name in values})
    assert len(made) == 1
    assert len(catalog.derived["served_markets"]) == 1
    months = columns["usd_per_month"].reshape(20, 6)
    assert (np.diff(months, axis=0) >= -0.011).all()  # lines are rounded to cents
    assert np.array_equal(months[:, ::2], months[:, 1::2])


def test_every_step_of_the_ladder_is_timed_at_its_batch():
    request = request_of(CATALOG, model="70b", gpu="a100,h100", prompt_tokens=9000, output_tokens=300)
    market, offers = looked_at(request, CATALOG)
    largest = largest_jobs(market, lasting(market, offers))
    values = serving_calibration(CATALOG).values
    case = replica_layouts(CATALOG.architecture("70b"), market.supply.keys, largest, request, values).case
    prompt, output = np.full(len(case), 9000.0), np.full(len(case), 300.0)
    ladder = climb(case, prompt, output)
    assert ladder.sequences.shape == (len(case), len(LADDER))
    assert (ladder.sequences[:, -1] < LADDER[-1]).any()  # memory cuts some
    for step in range(len(LADDER)):
        at = serving.steady(case, ladder.sequences[:, step], prompt, output)
        assert np.array_equal(ladder.tpot_s[:, step], at.tpot_s)
        assert np.array_equal(ladder.output_tokens_per_s[:, step], at.output_tokens_per_s)
        assert np.array_equal(ladder.prompt_time_fraction[:, step], at.prompt_time_fraction)
    assert np.array_equal(ladder.ttft_s, at.ttft_s)


def test_a_question_without_a_model_says_so():
    columns = Served("inference", CATALOG).rows({}, {})
    assert "--model is missing" in columns["reason"][1][0]


def test_a_sweep_without_cases_has_columns_without_rows():
    columns = Served("inference", CATALOG).rows({"model": ["8b"]}, {"model": np.zeros(0, int)})
    assert len(columns["gpus"]) == 0
    assert len(columns["reason"][0]) == 0
