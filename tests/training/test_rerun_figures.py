"""Saved answers: rerun to equal bytes, differences explained, comparisons that add up, sweeps equal to singles."""

import json

import numpy as np
import pytest

from gpucost.answers.saved import read_answer
from gpucost.ask.estimate import rerun
from gpucost.errors import DataError, UsageError
from gpucost.market.facts import make_market
from gpucost.render.json import dumps
from gpucost.training.cases import rank
from gpucost.training.rerun import differences, verdict
from gpucost.training.run import make_problem
from gpucost.training.run import option as option_row
from gpucost.training.search import search
from tests.training.market import BUCKET, CALIBRATION, MODEL, answer, ask, facts, offer

pytestmark = pytest.mark.usefixtures("round_speeds")

OFFERS = (
    offer(2.0),
    offer(1.1, "slow"),
    offer(0.9, option="spot"),
    offer(1.2, option="reserved", term_months=12, billing="take_or_pay", payment="partial_upfront"),
    offer(0.7, gpus=1, provider="pods"),
    offer(1.7, gpus=3, minimum_units=2, maximum_units=9, minimum_hours=5.5, billing_increment_hours=1.0),
)


def saved(**wanted):
    return json.loads(dumps(answer(list(OFFERS), spot=[BUCKET], **wanted)))


@pytest.mark.parametrize(
    "wanted",
    [{}, {"gpus": 24}, {"optimize": "pareto", "top": 0}, {"strict_prices": True, "tokens": "1.5t", "deadline": "none"}],
)
def test_a_rerun_gives_equal_bytes(wanted):
    first = saved(**wanted)
    assert dumps(rerun(first, CALIBRATION)) == dumps(first)
    assert verdict(first, json.loads(dumps(rerun(first, CALIBRATION))))["equal"]


def test_a_changed_price_in_the_facts_is_found_and_explained():
    first = saved()
    line = next(number for number, text in enumerate(first["facts"]["offers"]) if "acme/fast/8/on_demand/2.0" in text)
    first["facts"]["offers"][line] = (
        first["facts"]["offers"][line].replace(",2.0,", ",3.0,").replace(",16.0,", ",24.0,")
    )
    fresh = json.loads(dumps(rerun(first, CALIBRATION)))
    found = verdict(first, fresh)
    assert not found["equal"]
    assert found["reasons"]
    assert found["differences"]


def test_facts_that_no_price_table_would_take_are_refused():
    first = saved()
    names = first["facts"]["offers"][0].split(",")
    place = names.index("usd_per_hour")
    cells = first["facts"]["offers"][1].split(",")
    cells[place] = f"-{cells[place]}"
    first["facts"]["offers"][1] = ",".join(cells)
    with pytest.raises(UsageError, match=r"usd_per_hour = -\d"):
        rerun(first, CALIBRATION)


def test_a_request_changed_to_nonsense_is_refused_in_a_sentence():
    first = saved()
    first["request"]["tokens"] = "many"
    with pytest.raises(UsageError, match=r"request\.tokens: cannot read"):
        rerun(first, CALIBRATION)


def test_differences_name_the_place():
    assert differences({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == [{"where": "a[0].b", "saved": 1, "now": 2}]
    assert differences({"a": 1}, {"a": 1.0}) == [{"where": "a", "saved": 1, "now": 1.0}]
    assert differences({"a": [1]}, {"a": [1, 2]})[0]["where"] == "a[1]"


def test_files_that_are_no_answer_are_refused(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.json").write_text('{"kind": ')
    with pytest.raises(UsageError, match="`kind`"):
        read_answer(str(tmp_path / "list.json"))
    with pytest.raises(DataError, match="not valid JSON"):
        read_answer(str(tmp_path / "broken.json"))
    with pytest.raises(UsageError, match="cannot read"):
        read_answer(str(tmp_path / "missing.json"))
    with pytest.raises(UsageError, match="no facts"):
        rerun({"kind": "tco"}, CALIBRATION)


def test_a_row_of_a_sweep_equals_the_single_estimate_exactly():
    asked = [
        ask(tokens=tokens, gpus=gpus, precision=precision)
        for tokens in ("10b", "77b", "1t")
        for gpus in (None, 8, 64)
        for precision in ("bf16", "fp8")
    ]
    market = make_market(facts(list(OFFERS), spot=[BUCKET]))
    mask = np.ones(len(OFFERS), bool)

    def firsts(requests):
        problem = make_problem(tuple(requests), (MODEL,) * len(requests), market, (mask,) * len(requests), CALIBRATION)
        found, judged = search(problem)
        rows = []
        for number in range(len(requests)):
            order = rank(problem, found, number, judged[found.request[judged] == number])
            rows.append(option_row(problem, market.facts, found, int(order[0]), 1) if len(order) else None)
        return rows

    together = firsts(asked)
    for request, row in zip(asked, together, strict=True):
        assert row == firsts([request])[0]


def test_physics_runs_once_per_distinct_key(monkeypatch):
    from gpucost.workloads import speeds

    seen = []
    plain = speeds.search_layouts

    def counted(workload, keys, gpus, calibration):
        seen.extend((key.accelerator.id, int(count)) for key, count in zip(keys, gpus, strict=True))
        return plain(workload, keys, gpus, calibration)

    monkeypatch.setattr(speeds, "search_layouts", counted)
    market = make_market(facts([offer(price) for price in np.linspace(1, 3, 50)]))
    problem = make_problem((ask(gpus=8),), (MODEL,), market, (np.ones(50, bool),), CALIBRATION)
    found, _ = search(problem)
    assert len(found) == 50
    assert seen == [("fast", 8)]
