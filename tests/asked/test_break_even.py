"""Own machines against an API: what the answer says of a month is true of the months on either side of it."""

import itertools
import math

import pytest

import gpucost
from gpucost.serving.costing import break_even
from gpucost.units import HOURS_PER_MONTH


def own_usd(volume, hourly, tokens_per_s, spare):
    groups = max(1, math.ceil(volume / (tokens_per_s * 3600 * HOURS_PER_MONTH) - 1e-9))
    return (groups * hourly + spare) * HOURS_PER_MONTH


@pytest.mark.parametrize(
    ("hourly", "spare", "usd_per_mtok"),
    list(itertools.product((5.0, 20.0, 34.0, 35.9), (0.0, 5.0, 40.0), (1.0, 1.1))),
)
def test_from_the_month_named_own_replicas_never_cost_more(hourly, spare, usd_per_mtok):
    speed = 10_000.0
    point = break_even(hourly, speed, spare, usd_per_mtok)
    first, always = point["tokens_per_month"], point["always_tokens_per_month"]
    assert first <= always * (1 + 1e-9)
    for share in (0.2, 0.6, 0.99):
        assert own_usd(share * first, hourly, speed, spare) > share * first / 1e6 * usd_per_mtok
    month = speed * 3600 * HOURS_PER_MONTH
    for step in range(400):
        volume = always * 1.0001 + step * month / 7
        assert own_usd(volume, hourly, speed, spare) <= volume / 1e6 * usd_per_mtok * (1 + 1e-9)
    if always > 1.01 * first:  # and not sooner
        assert own_usd((1 - 1e-6) * always, hourly, speed, spare) > (1 - 1e-6) * always / 1e6 * usd_per_mtok


def test_the_answer_agrees_with_the_month_that_it_names():
    asked = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "usd_per_gpu_hour": 0.2, "catalog": gpucost.open_catalog()}
    always = gpucost.inference(**asked, tokens_per_month="20b").payload["breakeven"]["always_tokens_per_month"]
    for share in (1.02, 1.7, 4.0):
        answer = gpucost.inference(**asked, tokens_per_month=share * always).payload
        api = answer["api"][0]["usd_per_mtok"] * share * always / 1e6
        assert answer["options"][0]["usd_per_month"] <= api
        assert not answer["lead"].startswith("Use an API")
