"""What first answers of typical questions rest on: a list of the last sixty days, or a sentence that none has it."""

import pytest

import gpucost
from benchmarks.first_answers import QUESTIONS, first_answers
from gpucost.catalog import open_catalog
from gpucost.market.budget import LIKELY


@pytest.mark.slow
def test_every_first_answer_is_in_a_list_of_the_last_sixty_days_or_says_that_it_is_in_none():
    answers = first_answers(open_catalog("2026-11-24"))
    assert len(answers) == len(QUESTIONS) == 20
    assert [one.question for one in answers if not one.is_consistent] == []
    assert {bool(one.lists) for one in answers} == {True, False}  # both happen, so that either can fail


@pytest.mark.slow
def test_no_first_answer_of_a_typical_question_lacks_what_an_order_needs():
    for one in first_answers(open_catalog("2026-11-24")):
        assert one.best["chance_available_fraction"] >= LIKELY, one.question
        assert one.best["term_months"] in (None, 0), one.question


def test_other_ways_to_buy_can_be_ordered_where_the_first_offer_can():
    """A quote that nobody verified would stand below the cost of the first offer."""
    answer = gpucost.estimate("8b", "100b", catalog=open_catalog("2026-11-24"), top=1).payload
    ways = {row["option"]: row["cost_usd"] for row in answer["alternatives"]}
    assert ways["on_demand"] == answer["options"][0]["cost_usd"]


def test_a_page_says_a_remark_once(tmp_path):
    gpucost.estimate("8b", "100b", catalog=open_catalog("2026-11-24"), top=1).to_html(str(tmp_path / "run.html"))
    assert (tmp_path / "run.html").read_text("utf-8").count("not used") == 1
