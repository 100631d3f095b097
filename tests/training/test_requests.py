"""Bad input: one sentence that says what, why and what to try."""

from datetime import date

import pytest

import gpucost
from gpucost.ask import QUESTIONS
from gpucost.ask.estimate import request_of
from gpucost.errors import UsageError
from gpucost.training.request import from_dict

TODAY = date(2026, 6, 1)


def ask(**wanted):
    return request_of({"model": "8b", "tokens": "100b", **wanted}, TODAY)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"tokens": "100bb"}, "100b or 1.5T"),
        ({"tokens": "-5b"}, "tokens"),
        ({"tokens": 0}, "positive"),
        ({"tokens": float("nan")}, "finite"),
        ({"tokens": "1e30"}, "100,000,000,000,000,000"),
        ({"tokens": 0.5}, "less than 1."),
        ({"gpus": 0}, "positive"),
        ({"gpus": 2.5}, "whole number"),
        ({"gpus": 10**8}, "beyond"),
        ({"deadline": "2026-05-01"}, "not after 2026-06-01"),
        ({"deadline": "-3d"}, "30d"),
        ({"deadline": "soon"}, "30d, 36h"),
        ({"budget": "-1"}, "budget"),
        ({"sequence": 10**9}, "beyond"),
        ({"precision": "fp12"}, "bf16"),
        ({"method": "qlora2"}, "full, lora, qlora"),
        ({"lora_rank": 64}, "--method lora"),
        ({"optimize": "speed"}, "cost, time, pareto, carbon"),
        ({"top": -1}, "0 or more"),
        ({"epochs": "1e9"}, "beyond"),
        ({"overhead": "150%"}, "0 to 100"),
        ({"experiments": "lots"}, "50% or 0.5"),
        ({"as_of": "June"}, "YYYY-MM-DD"),
        ({"model": ""}, "model"),
        ({"commitment": "half"}, "full, used"),
    ],
)
def test_bad_input_says_what_would_work(wanted, words):
    with pytest.raises(UsageError) as caught:
        ask(**wanted)
    text = str(caught.value)
    assert words in text
    assert caught.value.exit_code == 2
    assert "\n" not in text


def test_software_that_nobody_knows_names_what_there_is():
    with pytest.raises(UsageError, match="typical") as caught:
        gpucost.estimate("8b", "100b", software="magic")
    assert caught.value.exit_code == 2


def test_a_deadline_may_be_a_day_a_duration_or_none():
    assert ask().deadline_days == 30
    assert not ask().deadline_given
    assert ask(deadline="36h").deadline_days == 1.5
    assert ask(deadline="2026-06-11").deadline_days == 10
    assert ask(deadline="none").deadline_days is None
    assert ask(gpus=8).deadline_days is None


def test_a_request_survives_being_saved():
    asked = ask(gpus=8, deadline="2w", method="lora", lora_rank=64, experiments="30%")
    assert from_dict({**asked.to_dict(), "of_another_version": 1}, QUESTIONS["estimate"]) == asked
