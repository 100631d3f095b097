"""A question's speeds and costs as relations of SQL: the figures of every other face, beside the catalog's tables."""

import re
from datetime import date
from pathlib import Path

import pytest

import gpucost
from gpucost.errors import UsageError
from gpucost.physics.training.layouts import NO_MEMORY, REASONS
from tests.commands import in_process
from tests.docs.blocks import blocks_of

DAY = date(2026, 11, 20)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
QUERIES = [block for block in blocks_of(PAGE) if block.language == "sh"]


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog(DAY)


@pytest.mark.slow
@pytest.mark.parametrize("block", QUERIES, ids=lambda block: str(block.line))
def test_each_question_of_the_page_has_an_answer(block):
    command = re.fullmatch(r"gpucost sql (?P<options>[^\"]*)\"(?P<query>.*)\"\s*", block.text, re.DOTALL)
    assert command, block.text
    ran = in_process("sql", *command["options"].split(), "--as-of", str(DAY), "--format", "csv", command["query"])
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) > 2
    assert " join " in command["query"] or "from estimates as o" in command["query"] or ", own " in command["query"]


def test_there_are_ten_questions():
    assert len(QUERIES) == 10


def test_speeds_are_those_of_throughput_and_hours_follow_from_them(catalog):
    rows = catalog.sql(
        "select * from speeds where gpu = 'h100-sxm5-80gb' and gpus = 8", model="llama-3.1-8b", tokens="100b"
    ).to_dict("records")
    asked = gpucost.throughput(model="llama-3.1-8b", gpu="h100-sxm", gpus=8, catalog=catalog)
    assert len(rows) == 1
    assert rows[0]["tokens_per_s"] == pytest.approx(asked.payload["tokens_per_s"], rel=1e-9)
    assert rows[0]["days"] * 86_400 * rows[0]["tokens_per_s"] == pytest.approx(1.2 * 100e9, rel=1e-9)
    assert rows[0]["gpu_hours"] == pytest.approx(rows[0]["days"] * 24 * 8, rel=1e-9)


@pytest.mark.slow
def test_estimates_are_those_of_estimate(catalog):
    rows = catalog.sql(
        "select offer_id, gpus, cost_usd, days from estimates where gpu = 'h100-sxm5-80gb'",
        model="llama-3.1-8b", tokens="100b",
    )  # fmt: skip
    costs = {(row.offer_id, row.gpus): (row.cost_usd, row.days) for row in rows.itertuples()}
    asked = gpucost.estimate("llama-3.1-8b", "100b", gpu="h100-sxm", top=0, catalog=catalog, with_facts=False)
    for option in asked.options:
        assert costs[option["offer_id"], option["gpus"]] == pytest.approx((option["cost_usd"], option["days"]))


@pytest.mark.slow
def test_served_are_those_of_inference_and_deployments_hold_their_replicas(catalog):
    served = catalog.sql("from served where gpu = 'h100-sxm5-80gb'", model="llama-3.1-8b").to_dict("records")
    costs = {row["offer_id"]: row for row in served}
    asked = gpucost.inference("llama-3.1-8b", gpu="h100-sxm", top=0, catalog=catalog)
    assert {option["offer_id"] for option in asked.options} <= set(costs)
    for option in asked.options:
        assert costs[option["offer_id"]]["usd_per_mtok"] == pytest.approx(option["usd_per_mtok"])
    replicas = catalog.sql("from deployments where gpu = 'h100-sxm5-80gb' and gpus = 1", model="llama-3.1-8b")
    single = next(option for option in asked.options if option["layout"]["gpus"] == 1)
    assert set(replicas["tokens_per_s"].round(3)) == {round(single["tokens_per_s_per_gpu"], 3)}


@pytest.mark.slow
def test_a_speed_joins_the_price_of_a_day_in_the_past_as_that_day_had_it(catalog):
    """p5.48xlarge cost 98.32 USD an hour on demand in us-east-1 until June 2025, when AWS announced 44 % less."""
    query = """select p.usd_per_gpu_hour, p.usd_per_gpu_hour * s.gpu_hours as usd, s.gpu_hours
        from speeds as s join prices_on('2025-03-01') as p using (gpu, gpus)
        where p.instance_type = 'p5.48xlarge' and p.option = 'on_demand' and p.region = 'us-east-1'"""
    rows = catalog.sql(query, model="llama-3.1-8b", tokens="100b").to_dict("records")
    assert len(rows) == 1
    assert rows[0]["usd_per_gpu_hour"] * 8 == pytest.approx(98.32, abs=0.01)
    assert rows[0]["usd"] == pytest.approx(98.32 / 8 * rows[0]["gpu_hours"], rel=1e-3)


def test_what_does_not_fit_says_why_and_has_no_figure(catalog):
    rows = catalog.sql("from speeds where gpu = 'rtx-4090' and gpus = 1", model="llama-3.1-70b", tokens="1b").to_dict(
        "records"
    )
    assert rows[0]["reason"] == REASONS[NO_MEMORY]
    assert not rows[0]["fits"]
    assert rows[0]["gpu_hours"] is None  # not known, never zero


@pytest.mark.slow
def test_a_relation_without_a_question_says_what_fills_it(catalog):
    for query in ("from speeds", "from served join prices using (gpu)"):
        with pytest.raises(UsageError, match=r"add (--model|model=)"):
            catalog.sql(query)
    with pytest.raises(UsageError, match=r"(--tokens|tokens=)"):
        catalog.sql("from estimates", model="8b")
    with pytest.raises(UsageError, match="Did you mean tokens"):
        catalog.sql("from speeds", model="8b", token="1b")


@pytest.mark.slow
def test_a_question_opens_no_door_in_the_sandbox(catalog):
    for query in ("from read_text('/etc/passwd'), speeds", "drop table speeds", "copy speeds to '/tmp/x.csv'"):
        with pytest.raises(UsageError):
            catalog.sql(query, model="8b", tokens="1b")
    listed = catalog.sql("show tables", model="8b", tokens="1b")["name"]
    assert {"speeds", "estimates", "served", "deployments", "offers"} <= set(listed)
