"""What holds for every answer: sums, order of ranges, finite figures, and which way a change may move a cost."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpucost
from benchmarks.fuzz.meaning import faults_of
from gpucost.catalog import open_catalog
from gpucost.errors import GpuCostError

DAY = "2026-11-20"
FEW = settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
GPUS = st.sampled_from(["h100-sxm", "a100-80gb", "b200", "l40s", "mi300x"])


@pytest.fixture(scope="module")
def catalog():
    return open_catalog(DAY)


def sound(result):
    """Return an answer after holding it to what every answer keeps."""
    answer = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert list(faults_of(answer)) == []
    return answer


def options_of(catalog, **asked):
    try:
        answer = sound(gpucost.estimate(catalog=catalog, top=5, **asked))
    except GpuCostError:
        return {}
    for option in answer["options"]:
        assert math.isclose(sum(line["cost_usd"] for line in option["lines"]), option["cost_usd"], rel_tol=1e-9)
        assert option["cost_low_usd"] <= option["cost_usd"] <= option["cost_high_usd"]
        assert option["days_low"] <= option["days"] <= option["days_high"]
    return {option["offer_id"]: option["cost_usd"] for option in answer["options"]}


@FEW
@given(size=st.integers(1, 60), gpu=GPUS, tokens=st.floats(1e9, 1e12), gpus=st.sampled_from([64, 256]))
def test_a_bigger_model_never_gets_cheaper_on_the_same_offer(catalog, size, gpu, tokens, gpus):
    asked = {"tokens": tokens, "gpu": gpu, "gpus": gpus, "option": "on_demand"}
    small, big = (options_of(catalog, model=f"{one}b", **asked) for one in (size, 2 * size))
    assert all(big[offer] >= small[offer] for offer in small.keys() & big.keys())


@FEW
@given(days=st.floats(2, 200), more=st.floats(1, 5), gpu=GPUS)
def test_a_longer_deadline_never_costs_more(catalog, days, more, gpu):
    asked = {"model": "8b", "tokens": "50b", "gpu": gpu}
    short, long = (options_of(catalog, deadline=f"{one}d", **asked) for one in (days, days * more))
    assert not short or min(long.values()) <= min(short.values()) * (1 + 1e-9)


@FEW
@given(first=st.floats(0.01, 0.9), second=st.floats(0.01, 0.9))
def test_more_discount_never_costs_more(tmp_path_factory, monkeypatch, first, second):
    def cheapest(fraction):
        book = tmp_path_factory.mktemp("book") / "book.toml"
        book.write_text(f'[[discount]]\nprovider = "aws"\noption = "on_demand"\nfraction = {fraction:.6f}\n', "utf-8")
        monkeypatch.setenv("GPUCOST_BOOK", str(book))
        asked = {
            "model": "8b",
            "tokens": "50b",
            "gpu": "h100-sxm",
            "provider": "aws",
            "option": "on_demand",
            "gpus": 64,
        }
        return min(options_of(open_catalog(DAY), **asked).values())

    less, more = sorted((first, second))
    assert cheapest(more) <= cheapest(less) * (1 + 1e-9)


@FEW
@given(
    gpus=st.integers(1, 4096),
    utilisation=st.floats(0.01, 1),
    months=st.integers(1, 120),
    lead=st.floats(0, 150),
    gpu=GPUS,
)
def test_an_ownership_adds_up(catalog, gpus, utilisation, months, lead, gpu):
    asked = {"utilisation": utilisation, "months": months, "lead_time": lead, "draws": 20, "rent": 2.5}
    try:
        answer = sound(gpucost.tco(gpu=gpu, gpus=gpus, catalog=catalog, **asked))
    except GpuCostError:
        return
    own = {row["name"]: row["npv_usd"] for row in answer["options"]}["own"]
    lines = sum(line["npv_usd"] for line in answer["lines"] if line["side"] == "own")
    assert math.isclose(lines, own, rel_tol=1e-6, abs_tol=1)


@FEW
@given(model=st.sampled_from(["8b", "70b", "gpt-oss-120b"]), rate=st.floats(0.1, 50), gpu=GPUS)
def test_a_service_adds_up(catalog, model, rate, gpu):
    try:
        answer = sound(gpucost.inference(model, requests_per_s=rate, gpu=gpu, top=3, catalog=catalog))
    except GpuCostError:
        return
    assert answer["options"]


@FEW
@given(prompt=st.sampled_from([100, 10_000, 100_000]))
def test_a_bigger_model_is_never_cheaper_to_serve_on_the_same_offer(catalog, prompt):
    def price(model):
        asked = {"prompt_tokens": prompt, "output_tokens": 200, "gpu": "h100-sxm", "top": 20}
        rows = sound(gpucost.inference(model, catalog=catalog, **asked))["options"]
        return {(row["offer_id"], row["gpus"]): row["usd_per_mtok"] for row in rows}

    small, big = price("8b"), price("32b")
    assert small.keys() & big.keys()
    assert all(big[offer] >= small[offer] for offer in small.keys() & big.keys())
