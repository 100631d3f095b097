"""The questions of guides: each fits one screen, and no old or absent price stands above a price of today."""

import json

import pytest

import gpucost
from tests.commands import in_process

COLUMNS, LINES = 80, 24
SCREENS = {
    "speed of serving at batches": "throughput --serving --model 8b --gpu h100-sxm,l40s --batch 1,8,64",
    "NVLink against PCIe": "compare --speed --model 8b --gpu h100-sxm --gpus 8",
    "cost of a wrong choice": "compare --model 13b --gpu h100-sxm,a100-80gb",
    "TPU and Trainium beside GPUs": "compare --model 8b --gpu h100-sxm,tpu-v5p,trainium2",
    "a row per cloud": "prices --gpu h100-sxm --by provider",
    "picks by budget": "choose --purpose desk --budget 2k",
    "switches": "gpus --switches h100-sxm",
    "whole systems": "gpus --systems",
    "used cards": "prices used",
}


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


@pytest.mark.parametrize("command", SCREENS.values(), ids=SCREENS)
def test_a_guides_question_is_answered_on_one_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(LINES))
    done = in_process(*command.split())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= LINES, done.stdout
    assert max(map(len, lines)) <= COLUMNS, done.stdout


def test_no_old_price_of_a_seller_stands_above_a_young_one():
    rows = json.loads(in_process("prices", "--gpu", "h100-sxm", "--by", "provider", "--format", "json").stdout)["rows"]
    assert [row["old"] for row in rows] == sorted(row["old"] for row in rows)
    assert all(row["machine"] and row["seen_since_on"] <= row["observed_on"] for row in rows)
    young = [row["on_demand_usd_per_gpu_hour"] for row in rows if not row["old"]]
    assert young == sorted(young, key=lambda usd: (usd is None, usd))


def test_what_nobody_sells_stands_last_with_its_last_price(catalog):
    asked = {"gpu": ["tpu-v5p", "h100-sxm", "trainium2"], "catalog": catalog}
    rows = gpucost.compare(model="8b", **asked).payload["rows"]
    assert rows[0]["gpu"] == "h100-sxm"
    for row in rows[1:]:
        known = [fact["observed_on"] for fact in catalog.price_rows if fact["gpu"] == row["gpu"]]
        assert row["last_price_on"] == str(max(known))
        assert row["cost_usd"] is None
        assert row["days"] > 0  # speed needs no price


def test_both_batches_of_a_link_stand_side_by_side(catalog):
    answer = gpucost.compare(speed=True, model="8b", gpu="h100-sxm", gpus=8, catalog=catalog).payload
    small, usual = answer["batches"]
    assert small["global_batch"] == 8 < usual["global_batch"]
    assert small["longer_fraction"] > usual["longer_fraction"] > 0
    for row in (small, usual):
        asked = {"model": "8b", "gpu": "h100-sxm", "gpus": 8, "global_batch": row["global_batch"], "catalog": catalog}
        own, pcie = (gpucost.throughput(**asked, links=links).tokens_per_s_per_gpu for links in ("own", "pcie"))
        assert row["longer_fraction"] == pytest.approx(own / pcie - 1)


def test_a_dated_price_to_buy_is_none(catalog):
    from gpucost.library.choose import purchase

    chips = {row["id"]: row for row in catalog.rows("accelerators")}
    year = catalog.as_of.year
    for street, launched, usd in ((None, year - 6, None), (None, year - 1, 900), (f"{year - 5}", year - 6, None)):
        chip = {**chips["rtx-4080"], "street_observed": street, "launch_usd": 900, "year": launched}
        chip |= {"street_low_usd": 900 if street else None, "street_high_usd": None}
        assert purchase(catalog, chip, 1).usd == usd


def test_a_desk_buys_the_fastest_card_that_its_budget_reaches(catalog):
    rows = gpucost.choose(purpose="desk", budget="2k", catalog=catalog).payload["rows"]
    bought = [row for row in rows if "buy" in row["within"]]
    assert rows[: len(bought)] == bought
    assert bought[0]["tokens_per_s"] == max(row["tokens_per_s"] for row in bought)
    assert any((row["gpu"], row["gpus"]) == ("rtx-4090", 1) for row in bought)


def test_a_run_that_may_pass_its_term_has_another_term_in_its_range(catalog):
    asked = {"gpu": "h100-sxm", "gpus": 8, "provider": "gcp", "option": "commitment", "deadline": "900d", "top": 0}

    def year(tokens):
        options = gpucost.estimate("8b", tokens, **asked, catalog=catalog, with_facts=False).options
        return next(row for row in options if row["term_months"] == 12)

    within, beyond = year("400b"), year("1.5t")
    assert within["days_high"] < 365 < beyond["days_high"]
    assert beyond["days"] < 365
    assert within["cost_high_usd"] == within["cost_usd"]
    assert beyond["cost_high_usd"] > 1.9 * beyond["cost_usd"]


def test_so_many_accelerators_serve_what_fit_says(catalog):
    asked = {"gpu": "h100-sxm", "gpus": 4, "catalog": catalog}
    served = gpucost.inference("8b", weights="fp8", top=1, **asked).best
    assert served["gpus"] == 4
    fits = gpucost.fit("8b", serving=True, precision="fp8", **asked).options[0]
    assert served["output_tokens_per_s"] * served["replicas"] == pytest.approx(fits["output_tokens_per_s"])
