"""Saved answers are a stranger's files: what cannot be is refused, and what was changed is not called reproduced."""

import json

import pytest

from gpucost.answers.read import read_answer, read_estimate
from gpucost.errors import UsageError
from gpucost.render.json import dumps
from gpucost.training.rerun import rerun, verdict
from tests.training.market import CALIBRATION, answer, offer


@pytest.fixture
def saved(round_speeds):
    return json.loads(dumps(answer([offer(2.0), offer(1.1, "slow")])))


def written(tmp_path, payload):
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(payload))
    return path


def change_prices(payload, factor):
    """Multiply every price in the facts, consistently, as a forger would."""
    names = payload["facts"]["offers"][0].split(",")
    places = [names.index(name) for name in ("usd_per_hour", "usd_per_gpu_hour")]
    lines = [line.split(",") for line in payload["facts"]["offers"][1:]]
    for cells in lines:
        for place in places:
            cells[place] = str(float(cells[place]) * factor)
    payload["facts"]["offers"][1:] = [",".join(cells) for cells in lines]


def test_an_untouched_answer_is_reproduced(tmp_path, saved):
    read = read_estimate(written(tmp_path, saved))
    assert verdict(read, json.loads(dumps(rerun(read, CALIBRATION))))["equal"]


def test_negative_prices_in_the_facts_are_refused(tmp_path, saved):
    change_prices(saved, -1)
    read = read_estimate(written(tmp_path, saved))
    with pytest.raises(UsageError, match=r"usd_per_hour = -\d.*the file was changed"):
        rerun(read, CALIBRATION)


@pytest.mark.parametrize("value", [-2.0, -1e9])
def test_a_negative_price_in_an_option_is_refused(tmp_path, saved, value):
    saved["options"][0]["usd_per_gpu_hour"] = value
    with pytest.raises(UsageError, match=r"usd_per_gpu_hour .* cannot be negative"):
        read_answer(written(tmp_path, saved))


@pytest.mark.parametrize(
    ("key", "value"), [("as_of", "2024-01-01"), ("catalog_version", "2024-01-01+0123456789ab"), ("prices", 0.5)]
)
def test_a_forged_day_version_or_price_is_not_reproduced(tmp_path, saved, key, value):
    """Also where every figure was recomputed to agree with the forged facts."""
    if key == "prices":
        change_prices(saved, value)
    else:
        saved[key] = value
    seal = saved["facts"]["seal"]
    forged = json.loads(dumps(rerun(read_estimate(written(tmp_path, saved)), CALIBRATION)))
    forged["facts"]["seal"] = seal
    read = read_estimate(written(tmp_path, forged))
    found = verdict(read, json.loads(dumps(rerun(read, CALIBRATION))))
    assert not found["equal"]
    assert "changed by hand" in found["lead"]


@pytest.mark.parametrize("version", ["3", "99", "", None, 2, "x" * 9999])
def test_a_schema_version_that_is_not_known_is_refused(tmp_path, saved, version):
    saved["schema_version"] = version
    with pytest.raises(UsageError, match="schema version") as error:
        read_answer(written(tmp_path, saved))
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("day", ["soon", "2026-13-01", "9" * 9999])
def test_a_day_that_is_none_is_refused(tmp_path, saved, day):
    saved["as_of"] = day
    with pytest.raises(UsageError, match="no day"):
        read_answer(written(tmp_path, saved))
