"""What holds for every answer: sums, order of ranges, finite figures, and which way a change may move a cost."""

import json
import math
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpucost
from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.effects import effect
from benchmarks.fuzz.judge import folder, verdict_of
from benchmarks.fuzz.meaning import faults_of
from benchmarks.fuzz.orders import order
from benchmarks.fuzz.surfaces import case
from gpucost.catalog import open_catalog
from gpucost.errors import GpuCostError, UsageError

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


@pytest.mark.parametrize("number", range(30))
def test_what_asks_for_less_or_leaves_more_choice_never_costs_more(number):
    """More time, discount or choice, fewer tokens, a smaller model: pairs of questions of the fuzzer."""
    with folder():
        verdict = verdict_of(case("orders", number))
    assert verdict.kind in ("answered", "refused"), verdict


def test_an_order_that_does_not_hold_is_told(monkeypatch):
    def inverse(model, tokens, **asked):
        if asked["deadline"] == "none":
            raise UsageError("no")
        return SimpleNamespace(to_dict=lambda: {"request": {}, "options": [{"budget_usd": float(asked["deadline"])}]})

    monkeypatch.setattr(gpucost, "estimate", inverse)
    plain = {"model": "8b", "tokens": 1e9}
    for less, more in (("2", "1"), ("none", "1")):
        with pytest.raises(InternalError, match="more time"):
            order(Case(["estimate", "more time"], inputs=(plain | {"deadline": less}, plain | {"deadline": more})))
    order(Case(["estimate", "more time"], inputs=(plain | {"deadline": "1"}, plain | {"deadline": "2"})))


def test_an_argument_that_does_nothing_is_told(monkeypatch):
    answer = {"options": [{"cost_usd": 2.0}]}
    monkeypatch.setattr(gpucost, "fit", lambda **asked: SimpleNamespace(to_dict=lambda: answer | {"request": asked}))
    with pytest.raises(InternalError, match="gpus=8 is ignored"):
        effect(Case(["fit", "gpus"], inputs=({"model": "8b"}, 8)))
    monkeypatch.setattr(gpucost, "fit", lambda **asked: SimpleNamespace(to_dict=lambda: {"gb": len(asked)}))
    effect(Case(["fit", "gpus"], inputs=({"model": "8b"}, 8)))


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
        asked = {
            "prompt_tokens": prompt,
            "output_tokens": 200,
            "gpu": "h100-sxm",
            "top": 20,
            "tpot": "none",
            "ttft": "none",
        }
        rows = sound(gpucost.inference(model, catalog=catalog, **asked))["options"]
        return {(row["offer_id"], row["gpus"]): row["usd_per_mtok"] for row in rows}

    small, big = price("8b"), price("32b")
    assert small.keys() & big.keys()
    assert all(big[offer] >= small[offer] for offer in small.keys() & big.keys())
