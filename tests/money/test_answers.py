"""Break-even, what flips the decision, grids, scenarios, Monte Carlo, options, views."""

import json
import re
from collections import UserString
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import pyxirr
from hypothesis import given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.answers.ownership import leading
from gpucost.errors import DataError, GpuCostError, UsageError
from gpucost.money import cashflow, montecarlo
from gpucost.render.document import heading_of
from gpucost.render.tco import _largest
from gpucost.units import about
from tests.money.plans import REFERENCE, catalog, compare, flows


def test_roots_are_really_zero():
    payload = compare(rent_decline_fraction=0.0)
    point = payload["breakeven"]
    scale = payload["npv_usd"]["rent"]
    for name, key in (("utilisation_fraction", "utilisation_fraction"), ("rent_usd_per_gpu_hour", "usd_per_gpu_hour")):
        at = compare(rent_decline_fraction=0.0, **{name: point[key]})
        assert abs(at["npv_usd"]["saving"]) < 1e-9 * scale


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.floats(1.5, 8.0), st.floats(0.1, 0.3))
def test_break_even_moves_as_it_must(rent, wacc):
    """A dearer rent lowers the break-even utilisation; a dearer capital raises the break-even price."""
    base = compare(rent_usd_per_gpu_hour=rent, wacc_fraction=wacc)["breakeven"]
    dearer = compare(rent_usd_per_gpu_hour=rent * 1.2, wacc_fraction=wacc)["breakeven"]
    capital = compare(rent_usd_per_gpu_hour=rent, wacc_fraction=wacc + 0.05)["breakeven"]
    assert capital["usd_per_gpu_hour"] > base["usd_per_gpu_hour"]
    if base["utilisation_fraction"] is not None:
        assert dearer["utilisation_fraction"] < base["utilisation_fraction"]


def test_break_even_months_is_the_first_comparison_that_owning_wins():
    payload = compare(rent_usd_per_gpu_hour=4.0, rent_decline_fraction=0.0)
    months = payload["breakeven"]["months"]
    assert 1 < months < 48
    before, at = (compare(rent_usd_per_gpu_hour=4.0, rent_decline_fraction=0.0, months=n) for n in (months - 1, months))
    assert before["npv_usd"]["saving"] < 0 <= at["npv_usd"]["saving"]


def test_break_even_gpus_is_the_first_size_that_owning_wins():
    changes = {
        "rent_usd_per_gpu_hour": 2.75,
        "rent_decline_fraction": 0.0,
        "network_basis": "none",
        "network_1tier_usd_per_gpu": None,
    }
    gpus = compare(**changes)["breakeven"]["gpus"]
    assert gpus > 8
    smaller, at = (compare(**changes, gpus=n)["npv_usd"]["saving"] for n in (gpus - 8, gpus))
    assert smaller < 0 <= at


def test_against_take_or_pay_the_answer_is_a_rate():
    point = compare(rent_billing="take_or_pay", rent_term_months=12)["breakeven"]
    assert point["utilisation_fraction"] is None
    assert "rate" in point["utilisation_fraction_reason"]
    assert point["usd_per_gpu_hour"] > 0


def test_owning_that_never_pays_is_said_so():
    for rent, words in ((1.5, "always wins"), (0.3, "every value")):
        point = compare(rent_usd_per_gpu_hour=rent)["breakeven"]
        assert point["utilisation_fraction"] is None
        assert words in point["utilisation_fraction_reason"]


def test_flip_values_are_where_the_decision_turns():
    payload = compare(
        wacc_fraction={"value": 0.1, "low": 0.02, "high": 0.3},
        rent_usd_per_gpu_hour=2.9,
        rent_decline_fraction=0.0,
        server_usd={"value": 280_000, "low": 150_000, "high": 420_000},
    )
    rows = {row["name"]: row for row in payload["sensitivity"]}
    assert set(rows) == {"wacc_fraction", "server_usd"}
    for name, row in rows.items():
        assert row["flips"]
        at = compare(rent_usd_per_gpu_hour=2.9, rent_decline_fraction=0.0, **{name: row["flip_value"]})
        assert abs(at["npv_usd"]["saving"]) < 1e-3
        assert row["saving_at_low_usd"] == pytest.approx(
            compare(rent_usd_per_gpu_hour=2.9, rent_decline_fraction=0.0, **{name: row["low"]})["npv_usd"]["saving"]
        )


def test_tornado_is_sorted_by_swing():
    rows = gpucost.tco("h100-sxm", 64, rent=2.35, catalog=catalog(), draws=0).payload["sensitivity"]
    swings = [row["swing_usd"] for row in rows]
    assert swings == sorted(swings, reverse=True)
    assert len(rows) > 20


def test_two_way_grid_equals_single_comparisons():
    grid = compare()["two_way"]
    x, y = grid["x_values"][2], grid["y_values"][5]
    single = compare(**{grid["x"]: x, grid["y"]: y})["npv_usd"]["saving"]
    assert grid["saving_usd"][2][5] == pytest.approx(single)


def test_scenarios_bracket_the_base_and_take_the_plans_own():
    payload = gpucost.tco(
        "h100-sxm",
        64,
        rent=2.35,
        catalog=catalog(),
        draws=0,
        plan={"scenarios": {"cheap power": {"electricity_usd_per_kwh": 0.03}}},
    ).payload
    rows = {row["name"]: row for row in payload["scenarios"]}
    prices = [rows[name]["levelised_usd_per_gpu_hour"] for name in ("favourable", "base", "adverse")]
    assert prices == sorted(prices)
    assert rows["cheap power"]["npv_own_usd"] < rows["base"]["npv_own_usd"]
    assert rows["rent declines"]["npv_rent_usd"] < rows["rent flat"]["npv_rent_usd"]


def test_the_observed_v_follows_the_sourced_prices():
    """8.00 in mid-2023, 2.99 in October 2024, 1.70 in October 2025, 2.35 in March and 2.65 in June 2026."""
    payload = compare(rent_path="observed_v", rent_decline_fraction=0.0)
    prices = np.array(flows(payload, "rent_compute_usd"))[1:]
    ratio = prices / prices[0]
    assert ratio[[16, 28, 33, 36, 47]] == pytest.approx([2.99 / 8, 1.70 / 8, 2.35 / 8, 2.65 / 8, 2.65 / 8])


def test_rent_has_no_direction_and_its_scenarios_fall_and_rise():
    """8.00 to 2.65 in three years is 30.8 % a year; an index rose by 13 % in the year to September 2026, H100 by 15."""
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload
    rows = {row["name"]: row for row in payload["scenarios"]}
    assert rows["rent declines"]["changes"]["rent_decline_fraction"] == pytest.approx(1 - (2.65 / 8) ** (1 / 3))
    assert rows["rent rises"]["changes"]["rent_decline_fraction"] == pytest.approx(-0.13)
    assert rows["rent rises"]["npv_rent_usd"] > rows["rent flat"]["npv_rent_usd"] == payload["npv_usd"]["rent"]
    plain = {
        row["name"]: row
        for row in gpucost.tco(gpus=8, rent=2.35, draws=0, catalog=catalog(), plan=_BARE).payload["assumptions"]
    }
    decline = plain["rent_decline_fraction"]
    assert (decline["value"], decline["status"]) == (0, "sourced")
    assert decline["low"] < -0.14 < 0.4 < decline["high"]
    asked = gpucost.tco("h100-sxm", 64, rent=2.35, rent_path="decline", draws=0, catalog=catalog()).payload
    assert asked["npv_usd"]["rent"] == pytest.approx(rows["rent declines"]["npv_rent_usd"])


_BARE = {"server_usd": 285_000, "server_max_kw": 10.2}


@pytest.mark.parametrize(("gpu", "months", "usd"), [("h100-sxm", 12, 2.65), ("b300", 36, 5.71)])
def test_contracts_that_others_signed_are_a_scenario_and_never_an_option(gpu, months, usd):
    """2.65 for a year of H100 (June 2026), 5.71 for B300 reserved (September 2026): take-or-pay, whatever is used."""
    payload = gpucost.tco(gpu, 8, years=3, draws=0, catalog=catalog()).payload
    (row,) = [row for row in payload["scenarios"] if row["name"] == f"contract of {months} months"]
    assert row["changes"]["rent_usd_per_gpu_hour"] == usd
    asked = gpucost.tco(gpu, 8, years=3, rent=f"acme={usd}/h, {months} months, take-or-pay", draws=0, catalog=catalog())
    (quote,) = [option for option in asked.payload["options"] if option["name"] == "acme"]
    assert row["npv_rent_usd"] == pytest.approx(quote["npv_usd"])
    assert row["name"] not in {option["name"] for option in payload["options"]}
    assert [fact["label"] for fact in payload["stated"]].count("Contracts") == 1


@pytest.mark.parametrize(("gpu", "low", "high"), [
    ("h100-sxm", 250_000, 320_000), ("b200", 400_000, 500_000), ("b300", 430_000, 750_000),
])  # fmt: skip
def test_a_server_costs_what_the_newest_quotes_say(gpu, low, high):
    payload = gpucost.tco(gpu, 8, draws=0, catalog=catalog()).payload
    server = next(row for row in payload["assumptions"] if row["name"] == "server_usd")
    assert (server["low"], server["value"], server["high"]) == (low, (low + high) / 2, high)


@pytest.mark.parametrize(("gpu", "gpus", "weeks"), [
    ("h100-sxm", 8, 6), ("h100-sxm", 64, 36), ("b200", 8, 12), ("b200", 1024, 44), ("rtx-4090", 2, None),
])  # fmt: skip
def test_one_server_comes_within_weeks_and_a_cluster_within_a_year(gpu, gpus, weeks):
    payload = gpucost.tco(gpu, gpus, rent=4.0, draws=0, catalog=catalog()).payload
    assert payload["confidence"]["wait_weeks"] == weeks


def test_stratified_draws_have_the_right_spread_and_correlation():
    ranges = {"a": (0.0, 2.0, 10.0), "b": (1.0, 2.0, 3.0)}
    sample = montecarlo.draw(ranges, 20_000, 3, {("a", "b"): -0.5})
    assert np.median(sample["a"]) == pytest.approx(2.0, abs=1e-3)
    # a triangle of height at typical: its mean lies a third of its width from there
    assert sample["a"].mean() == pytest.approx(0.5 * (2 - 2 / 3) + 0.5 * (2 + 8 / 3), rel=2e-3)
    assert np.corrcoef(sample["a"], sample["b"])[0, 1] == pytest.approx(-0.5, abs=0.04)


def test_monte_carlo_without_uncertainty_is_certain():
    payload = compare(draws=50)
    found = payload["monte_carlo"]
    assert found["saving_p10_usd"] == found["saving_p90_usd"] == pytest.approx(payload["npv_usd"]["saving"])
    assert payload["probability_buy_wins_fraction"] in (0.0, 1.0)


@pytest.mark.parametrize(
    ("gpu", "rent"), [("h100-sxm", 2.35), ("h200-sxm", 3.5), ("a100-80gb-sxm", 1.3), ("b200", 5.0)]
)
def test_a_range_contains_its_point(gpu, rent):
    payload = gpucost.tco(gpu, 64, rent=rent, catalog=catalog()).payload
    found = payload["monte_carlo"]
    for side in ("own", "rent", "saving"):
        assert found[f"{side}_p10_usd"] < payload["npv_usd"][side] < found[f"{side}_p90_usd"]


def test_monte_carlo_is_repeatable_and_its_probability_fits_the_spread():
    one, same, other = (
        gpucost.tco("h100-sxm", 64, rent=2.9, catalog=catalog(), draws=4000, seed=seed).payload["monte_carlo"]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one["saving_p50_usd"] == pytest.approx(other["saving_p50_usd"], abs=0.03 * abs(one["saving_p10_usd"]))
    assert (one["saving_p50_usd"] > 0) == (one["probability_buy_wins_fraction"] > 0.5)


def test_one_uncertain_input_by_hand():
    """The saving is linear in the rental price: its percentiles are those of the price."""
    payload = compare(
        rent_usd_per_gpu_hour={"value": 3.0, "low": 2.0, "high": 4.0}, draws=4000, rent_decline_fraction=0.0
    )
    at = {
        price: compare(rent_usd_per_gpu_hour=price, rent_decline_fraction=0.0)["npv_usd"]["saving"]
        for price in (2.0, 4.0)
    }
    p10 = 2.0 + (2 * 0.1) ** 0.5  # of a triangle from 2 to 4 with its mode at 3
    expected = at[2.0] + (p10 - 2.0) / 2.0 * (at[4.0] - at[2.0])
    assert payload["monte_carlo"]["saving_p10_usd"] == pytest.approx(expected, rel=5e-3, abs=5e3)


def test_blends_and_terms_are_options_on_one_scope():
    options = {
        "rent_options": [
            {
                "name": "blend",
                "parts": [{"share": 0.25, "rent_usd_per_gpu_hour": 2.0}, {"share": 0.75, "rent_usd_per_gpu_hour": 3.0}],
            },
            {"name": "mean", "rent_usd_per_gpu_hour": 2.75},
        ]
    }
    worth = compare(**options)["npv_usd"]
    assert worth["blend"] == pytest.approx(worth["mean"], rel=1e-12)


@pytest.mark.parametrize("shared", [{}, {"parts": [{"share": 1.0}]}])
def test_a_quote_with_a_term_is_an_option_whose_terms_are_named(shared):
    quote = {"name": "acme", "rent_usd_per_gpu_hour": 2.46, "rent_term_months": 12, "rent_billing": "take_or_pay"}
    (row,) = [row for row in compare(rent_options=[{**quote, **shared}])["options"] if row["name"] == "acme"]
    assert row["terms"] == "take-or-pay, 12-month term"
    assert row["contract_exposure_usd"] == pytest.approx(64 * 730 * 12 * 2.46)


def test_quotes_are_read_from_one_line_a_csv_and_a_workbook(tmp_path):
    from openpyxl import Workbook

    table = [["name", "usd_per_gpu_hour", "term_months", "billing", "upfront_fraction"],
             ["acme", 2.46, 12, "take-or-pay", "20%"], ["beta", 3.1, None, None, None]]  # fmt: skip
    (tmp_path / "q.csv").write_text("\n".join(",".join(str(cell or "") for cell in row) for row in table))
    book = Workbook()
    for row in table:
        book.active.append(row)
    book.save(tmp_path / "q.xlsx")
    written = {"acme": "$2.46/GPU-hour, 1 year, take-or-pay, 20% upfront", "beta": "3.1/h"}
    found = [
        compare(quote=quote)["npv_usd"] for quote in (written, [str(tmp_path / "q.csv")], str(tmp_path / "q.xlsx"))
    ]
    assert found[0]["acme"] != found[0]["beta"] != found[0]["rent"]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "has no column name"),
        ([["foo", "bar"]], "has no column name; needed are name, usd_per_gpu_hour"),
        ([["name", "usd_per_gpu_hour"]], "no rows"),
        ([["NAME", "USD_PER_GPU_HOUR"], ["acme", 2]], "has no column name.*Write name for NAME"),
        ([["name"], ["acme"]], "has no column usd_per_gpu_hour"),
    ],
)
def test_a_file_without_quotes_is_refused(suffix, rows, said, tmp_path):
    from openpyxl import Workbook

    file, book = tmp_path / f"q{suffix}", Workbook()
    for row in rows:
        book.active.append(row)
    if suffix == ".csv":
        file.write_text("\n".join(",".join(str(cell) for cell in row) for row in rows))
    else:
        book.save(file)
    with pytest.raises(DataError, match=said):
        gpucost.tco("h100-sxm", 16, rent=str(file), catalog=catalog())


@pytest.mark.parametrize(
    "text",
    ["cheap", "2.46/h, forever", "2.46/h, 12 moons", "-1/h", "2/h, 12 months, 2 years", "2/h, take-or-pay, per use",
     "2/h, 1 year, 20% upfront, 30% upfront"],
)  # fmt: skip
def test_a_quote_that_cannot_be_read_is_refused_by_name(text):
    with pytest.raises(UsageError, match="acme"):
        compare(quote={"acme": text})


def test_a_reservation_that_does_not_divide_the_horizon_may_end_and_says_what_it_leaves_unused():
    """Three years within four: signed once and rent as asked for the last year, beside signing twice."""
    found = gpucost.tco(
        "h100-sxm", 64, provider="aws", years=4, draws=0, storage_basis="none", catalog=catalog()
    ).payload
    rows = {row["name"]: row for row in found["options"]}
    assert "24 months" in rows["reserved_3y"]["terms"]
    hours = rows["reserved_3y"]["usd_per_gpu_hour"] * 64 * 730
    assert rows["reserved_3y_then_rent"]["contract_exposure_usd"] == pytest.approx(36 * hours)
    assert rows["reserved_3y_then_rent"]["cash_usd"] < rows["reserved_3y"]["cash_usd"]
    assert "reserved_1y_then_rent" not in rows


def test_rent_takes_a_price_and_quotes_under_one_name(tmp_path):
    (tmp_path / "q.csv").write_text("name,usd_per_gpu_hour,term_months\nbeta,3.1,\n")
    asked = ["2.35", "coreweave-1y=2.46/h, 12 months, take-or-pay", str(tmp_path / "q.csv")]
    found = gpucost.tco("h100-sxm", 64, rent=asked, draws=0, catalog=catalog()).payload["options"]
    rows = {row["name"]: row for row in found}
    assert rows["rent"]["usd_per_gpu_hour"] == 2.35
    assert (rows["coreweave-1y"]["terms"], rows["beta"]["usd_per_gpu_hour"]) == ("take-or-pay, 12-month term", 3.1)
    lone = gpucost.tco("h100-sxm", 64, rent="acme=2.46/h", draws=0, catalog=catalog()).payload
    assert {"acme", "rent"} <= {row["name"] for row in lone["options"]}
    for twice in (["2.35", "2.40"], ["a=2/h", "a=3/h"]):
        with pytest.raises(UsageError, match="given twice"):
            gpucost.tco("h100-sxm", 64, rent=twice, catalog=catalog())


@pytest.mark.parametrize("share", [Fraction(7, 10), Decimal("0.7"), np.longdouble("0.7"), "70%"])
def test_what_was_asked_is_kept_as_it_was_read(share):
    asked = {"utilisation": share, "rent": [np.float64(2.35)], "rent_path": UserString("flat"), "draws": 0}
    kept = gpucost.tco("h100-sxm", 8, **asked, catalog=catalog())
    request = json.loads(kept.to_json())["request"]
    read = {"utilisation": 0.7, "rent": 2.35, "rent_path": "flat", "draws": 0}
    assert request == {"gpu": "h100-sxm", "gpus": 8, **read}
    within = {"utilisation": share, "rent_path": UserString("flat")}
    kept = gpucost.mix([8, 8], gpu="h100-sxm", plan={"use": within}, catalog=catalog())
    plan = json.loads(kept.to_json())["request"]["plan"]["use"]
    assert plan == {"utilisation": "70%" if share == "70%" else 0.7, "rent_path": "flat"}


def test_a_quote_with_a_term_ends_and_falls_back_as_a_reservation_does():
    rows = {row["name"]: row for row in compare(quote={"acme": "2.00/h, 36 months, take-or-pay"})["options"]}
    assert "24 months" in rows["acme"]["terms"]
    hours = 64 * 730
    price = 2.35 * 0.9 ** ((np.arange(37, 49) - 1) / 12)
    beside = sum(flows(compare(), "rent_total_usd")) - sum(flows(compare(), "rent_compute_usd"))
    support = 0.03 * (sum(flows(compare(), "rent_compute_usd")) - 36 * hours * 2.0 - (hours * 0.7 * price).sum())
    expected = 36 * hours * 2.0 + (hours * 0.7 * price).sum() + beside - support
    assert rows["acme_then_rent"]["cash_usd"] == pytest.approx(expected, rel=1e-9)
    assert rows["acme_then_rent"]["usd_per_gpu_hour"] == 2.0


def test_what_was_asked_for_as_a_commitment_falls_back_to_the_price_by_use():
    wanted = {"rent": 1.8, "years": 4, "draws": 0, "catalog": catalog()}
    terms = {"rent_billing": "take_or_pay", "rent_term_months": 36}
    found = gpucost.tco("h100-sxm", 64, set=terms, **wanted).payload
    rows = {row["name"]: row for row in found["options"]}
    assert "then on demand at $" in rows["rent_then_rent"]["terms"]
    assert rows["rent_then_rent"]["contract_exposure_usd"] == pytest.approx(36 * 64 * 730 * 1.8)


def test_financing_is_told_apart_from_the_purchase():
    cash, loan = compare(), compare(financing="loan", loan_fraction=0.8, loan_rate_fraction=0.05)
    assert cash["financing"] is None
    assert not any("in cash" in text for text in cash["remarks"])
    (said,) = [text for text in loan["remarks"] if "in cash" in text]
    assert about(abs(cash["npv_usd"]["saving"])) in said
    assert "$-" not in said
    assert loan["financing"]["own_in_cash_usd"] == cash["npv_usd"]["own"]
    assert [row["name"] for row in loan["options"]].count("own_in_cash") == 1


@pytest.mark.parametrize("basis", ["before", "after"])
def test_a_loan_at_the_cost_of_debt_neither_betters_a_purchase_nor_its_return(basis):
    """Discounted at the WACC, four fifths at 7 % would make the same servers cheaper by what risk costs."""
    cash, loan = (
        compare(tax_basis=basis, financing=kind, rent_usd_per_gpu_hour=3.5, **changes)
        for kind, changes in (("cash", {}), ("loan", {"loan_rate_fraction": 0.07, "loan_fraction": 0.8}))
    )
    assert loan["npv_usd"] == pytest.approx({**cash["npv_usd"], "own_in_cash": cash["npv_usd"]["own"]}, rel=1e-12)
    for key in ("irr_fraction", "payback_months", "levelised_usd_per_gpu_hour"):
        assert loan[key] == pytest.approx(cash[key], rel=1e-9), key
    equity = flows(loan, "saving_usd")
    monthly = (1 + loan["financing"]["equity_irr_fraction"]) ** (1 / 12) - 1
    assert sum(flow / (1 + monthly) ** m for m, flow in enumerate(equity)) == pytest.approx(0, abs=1e-3)
    assert loan["financing"]["equity_irr_fraction"] > loan["irr_fraction"] + 0.05


def test_a_cheap_loan_adds_what_its_payments_save_at_the_cost_of_debt():
    wanted = {"loan_rate_fraction": 0.05, "debt_rate_fraction": 0.11, "loan_term_months": 36, "loan_fraction": 0.8}
    loan = compare(financing="loan", **wanted)
    borrowed = -flows(loan, "own_loan_drawn_usd")[0]
    paid = -pyxirr.pmt(0.05 / 12, 36, borrowed)
    worth = sum(paid / (1 + 0.11 / 12) ** m for m in range(1, 37))
    assert loan["financing"]["adds_usd"] == pytest.approx(borrowed - worth, rel=1e-9)


def test_a_lease_pays_back_no_sooner_than_the_same_purchase_in_cash():
    wanted = {"rent_usd_per_gpu_hour": 4.0}
    cash, lease = compare(**wanted), compare(financing="lease", **wanted)
    assert lease["payback_months"] == pytest.approx(cash["payback_months"], rel=1e-12)
    assert cash["payback_months"] > 12


def test_a_lease_with_a_buy_out_is_taxed_as_the_purchase_that_it_is():
    taxed = {"tax_basis": "after", "tax_rate_fraction": 0.25, "rent_usd_per_gpu_hour": 3.0}
    cash, lease = compare(**taxed), compare(financing="lease", lease_rate_fraction=0.096, **taxed)
    assert flows(lease, "own_tax_usd") == pytest.approx(flows(cash, "own_tax_usd"), rel=1e-12)
    price = -flows(lease, "own_lease_drawn_usd")[0]
    assert flows(lease, "own_financing_tax_usd")[1] == pytest.approx(-0.25 * price * 0.008, rel=1e-9)
    interest = sum(flows(lease, "own_lease_payment_usd")) + sum(flows(lease, "own_lease_settled_usd")) - price
    assert sum(flows(lease, "own_financing_tax_usd")) == pytest.approx(-0.25 * interest, rel=1e-9)


def test_an_operating_lease_deducts_its_payments_and_hands_the_hardware_back():
    taxed = {"tax_basis": "after", "tax_rate_fraction": 0.25, "lease_rate_fraction": 0.12, "debt_rate_fraction": 0.08}
    lease = compare(financing="operating_lease", lease_term_months=36, lease_buyout_fraction=0.2, **taxed)
    price = -flows(lease, "own_lease_drawn_usd")[0]
    level = -pyxirr.pmt(0.01, 36, price, -0.2 * price)
    assert flows(lease, "own_lease_payment_usd")[1:] == pytest.approx([level] * 48, rel=1e-9)  # goes on beyond its term
    assert flows(lease, "own_lease_returned_usd") == pytest.approx([-flow for flow in flows(lease, "own_resale_usd")])
    tax = [
        own + more
        for own, more in zip(*(flows(lease, f"own_{name}tax_usd") for name in ("", "financing_")), strict=True)
    ]
    not_spent = ("own_tax_usd", "own_financing_tax_usd", "own_total_usd")
    month = lease["cash_flows"][20].items()
    spent = sum(value for name, value in month if name.startswith("own_") and name not in not_spent)
    assert tax[20] == pytest.approx(-0.25 * spent, rel=1e-9)
    early = compare(financing="operating_lease", lease_term_months=60, lease_buyout_fraction=0.2, **taxed)
    paid = -pyxirr.pmt(0.01, 60, price, -0.2 * price)
    left = sum(paid / 1.01**m for m in range(1, 13))
    assert flows(early, "own_lease_settled_usd")[48] == pytest.approx(left, rel=1e-9)


def test_what_is_leased_is_not_replaced():
    with pytest.raises(UsageError, match="lessor"):
        compare(financing="operating_lease", refresh_month=24)


BARE = {
    "storage_basis": "none", "storage_usd_per_gpu": None, "rent_support_fraction": 0.0, "rent_staff_ratio": 0.0,
    "rent_control_plane_usd_per_month": 0.0, "rent_egress_usd_per_gb": 0.0, "licence_usd_per_gpu_year": 0.0,
    "rent_decline_fraction": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("basis", ["before", "after"])
def test_a_price_per_hour_is_one_before_tax_so_that_it_meets_the_break_even(basis):
    """With nothing beside compute, renting costs its price, and owning the price at which both cost the same."""
    payload = compare(tax_basis=basis, tax_rate_fraction=0.25, tokens_per_s_per_gpu=2_000, api_usd_per_mtok=0.4, **BARE)
    assert payload["levelised_rent_usd_per_gpu_hour"] == pytest.approx(2.35, rel=1e-12)
    assert payload["levelised_usd_per_gpu_hour"] == pytest.approx(payload["breakeven"]["usd_per_gpu_hour"], rel=1e-9)
    own = [row["levelised_usd_per_gpu_hour"] for row in payload["lines"] if row["side"] == "own"]
    assert sum(own) == pytest.approx(payload["levelised_usd_per_gpu_hour"], rel=1e-12)
    (hosted,) = [row for row in payload["options"] if row["name"] == "api"]
    assert hosted["levelised_usd_per_gpu_hour"] == pytest.approx(0.9 * 2_000 * 3600 / 1e6 * 0.4, rel=1e-12)


@pytest.mark.parametrize("changes", [{}, {"financing": "loan"}, {"financing": "operating_lease"},
                                     {"financing": "lease", "tax_basis": "after"}, {"refresh_month": 24}])  # fmt: skip
def test_the_picture_of_costs_adds_up_to_the_present_values(changes):
    payload = compare(**changes)
    for side in ("own", "rent"):
        drawn = sum(row["npv_usd"] for row in _largest(payload["lines"]) if row["side"] == side)
        assert drawn == pytest.approx(payload["npv_usd"][side], rel=1e-9)


def test_a_pair_of_cards_stands_at_a_desk_and_says_so():
    found = gpucost.tco("rtx-4090", 2, rent=0.4, draws=0, catalog=catalog()).payload
    assert "Profile: desk" in found["conventions"]
    paid = {row["name"] for row in found["lines"]}
    assert not paid & {"own_colocation_usd", "own_staff_usd", "rent_staff_usd", "rent_control_plane_usd"}
    assert found["npv_usd"]["own"] < 30_000
    placed = gpucost.tco("rtx-4090", 2, rent=0.4, draws=0, profile="colocation", catalog=catalog()).payload
    assert {"own_colocation_usd", "own_staff_usd"} <= {row["name"] for row in placed["lines"]}
    given = gpucost.tco("rtx-4090", 2, rent=0.4, draws=0, staff_minimum_fte=0.2, catalog=catalog()).payload
    assert "own_staff_usd" in {row["name"] for row in given["lines"]}


def test_the_profile_follows_the_size_and_is_said():
    def said(gpu, gpus, **more):
        return gpucost.tco(gpu, gpus, rent=2.0, draws=0, catalog=catalog(), **more).payload["conventions"]

    assert "Profile: desk (" in said("rtx-4090", 2)
    assert "Profile: lab (" in said("rtx-4090", 8)
    assert "Profile: colocation (" in said("h100-sxm", 64)
    assert "Profile: own (" in said("h100-sxm", 32_768)
    assert "Profile: lab (" in said("h100-sxm", 8, profile="lab")
    assert "usual for 64 GPUs of this form" in said("h100-sxm", 64)
    assert "as requested" in said("h100-sxm", 64, profile="own")


def test_people_come_in_steps_and_a_rented_server_takes_nobody():
    def staff(gpus):
        found = gpucost.tco("h100-sxm", gpus, rent=2.0, draws=0, catalog=catalog()).payload
        people = next(row["value"] for row in found["model"]["derived"] if row["name"] == "staff_fte")
        return people, any(row["name"] == "rent_staff_usd" for row in found["lines"])

    assert [staff(gpus) for gpus in (8, 64, 128, 136, 248)] == [
        (0.25, False), (0.5, True), (0.75, True), (0.75, True), (1.0, True),
    ]  # fmt: skip
    assert flows(compare(), "own_staff_usd")[1] == 0.5 * 168_000 / 12


def test_only_what_a_source_states_is_sourced_and_what_was_seen_is_dated():
    rows = {}
    for gpu in ("h100-sxm", "rtx-4090"):
        rent = 0.4 if gpu == "rtx-4090" else None  # else the market's
        payload = gpucost.tco(gpu, 64, rent=rent, draws=0, catalog=catalog()).payload
        rows[gpu] = {row["name"]: row for row in payload["assumptions"]}
        sourced = {name: row for name, row in rows[gpu].items() if row["status"] == "sourced"}
        assert not [name for name, row in sourced.items() if "estimate" in (row["source_id"] or "estimate")[:16]]
        priced = ("server_usd", "gpu_usd", "all_in_usd_per_gpu")
        assert not [name for name in priced if "datasheet" in (rows[gpu][name]["source_id"] or "")]
        facts = [
            row
            for row in catalog().rows("plan_inputs")
            if row["item"] and rows[gpu][row["name"]]["status"] == "sourced"
        ]
        assert all(rows[gpu][row["name"]]["observed"] for row in facts)
        assert len(facts) > 20
    assert rows["h100-sxm"]["support_fraction"]["status"] == "assumed"
    assert rows["h100-sxm"]["server_usd"]["status"] == "derived"
    assert rows["h100-sxm"]["server_usd"]["observed"]
    assert rows["rtx-4090"]["gpu_usd"]["status"] in ("assumed", "derived")


def test_repairs_are_not_paid_by_support_and_by_spares():
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload
    paid = {row["name"] for row in payload["lines"]}
    assert "own_support_usd" in paid
    assert not paid & {"own_spares_usd", "own_repairs_usd"}
    assert not any("twice" in text for text in payload["warnings"])
    both = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, set={"hot_spares_fraction": 0.03}, catalog=catalog()).payload
    assert any("repairs" in text for text in both["warnings"])


def test_there_is_one_worst_case():
    """The adverse scenario is the worst corner of the ranges: no single input moved back makes it worse."""
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload
    rows = {row["name"]: row for row in payload["scenarios"]}
    worst = rows["adverse"]
    assert worst["saving_usd"] < min(
        min(row["saving_at_low_usd"], row["saving_at_high_usd"]) for row in payload["sensitivity"]
    )
    assert (
        rows["favourable"]["changes"].keys() == worst["changes"].keys() == {r["name"] for r in payload["sensitivity"]}
    )


def not_finite(value):
    """Return how many numbers of a payload are NaN or infinite."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return sum(map(not_finite, value))
    return int(isinstance(value, float) and not np.isfinite(value))


@pytest.mark.parametrize(
    ("years", "inputs", "plan", "share"),
    [
        (7, {"residual_fraction": 0.1}, {}, 0.1),
        (9, {"residual_fraction": 0.1}, {}, 0.1),
        (7, {"residual_fraction": 0.0}, {}, 0.0),
        (5, {"residual_fraction": 0.1}, {"residual_by_year": [0.5, 0.2]}, 0.1),
        (4, {"residual_fraction": 0.1, "residual_at_years": 8}, {}, 0.26),  # the shipped curve, times 0.1 ÷ 0.1
        (6, {"residual_fraction": 0.1, "residual_at_years": {"value": 6, "low": 5, "high": 9}}, {}, 0.1),
        (6, {"residual_fraction": 0.1}, {"scenarios": {"late": {"residual_at_years": 8}}}, 0.1),
    ],
)
def test_a_resale_value_may_be_stated_for_an_age_beyond_the_curve(years, inputs, plan, share):
    payload = gpucost.tco("h100-sxm", 8, years=years, set=inputs, plan=plan, draws=50, catalog=catalog()).payload
    worth = next(row for row in payload["model"]["monthly"] if row["name"] == "value_fraction")
    assert worth["values"][12 * years] == pytest.approx(share * 0.95)  # after the broker's 5 %
    assert not_finite(payload) == 0


@pytest.mark.parametrize(
    ("plan", "inputs", "said"),
    [
        ({"residual_by_year": [0.5, 0.2, 0.0]}, {"residual_fraction": 0.1}, "zero at 4 years.*residual_by_year"),
        ({"scenarios": {"s": {"residual_basis": "given", "residual_fraction": 0.1, "residual_at_years": 9}}}, {},
         "zero at 9 years"),
    ],
)  # fmt: skip
def test_what_gives_no_finite_cost_is_refused(plan, inputs, said):
    with pytest.raises(UsageError, match=said):
        gpucost.tco("h100-sxm", 8, years=4, plan=plan, set=inputs, draws=0, catalog=catalog())


def test_a_formula_that_makes_no_finite_number_leaves_no_answer(monkeypatch):
    worthless = np.zeros(21)
    monkeypatch.setattr("gpucost.ownership.plan.resale_by_year", lambda *given: worthless)
    with pytest.raises(UsageError, match="residual_scale is not a finite number"):
        gpucost.tco("h100-sxm", 8, years=4, set={"residual_fraction": 0.1}, draws=0, catalog=catalog())


@pytest.mark.parametrize("tokens", [8192, "10k", "100k"])  # 8,192 are one sequence
def test_a_workload_may_be_small(tokens):
    found = gpucost.tco("h100-sxm", 8, model="8b", tokens=tokens, draws=0, catalog=catalog()).payload
    row = next(row for row in found["assumptions"] if row["name"] == "utilisation_fraction")
    assert 0 < row["low"] <= row["value"] <= row["high"] < 1e-6


@pytest.mark.parametrize(
    ("gpus", "months", "said"),
    [
        (1, 1, "over 1 month than .*, 1 GPU, 70% allocated"),
        (1_000_000, 12, "over 1 year than .*, 1,000,000 GPUs, 70% allocated"),
        (8, 42, "over 3.5 years than .*, 8 GPUs, 70% allocated"),
    ],
)
def test_the_lead_counts_as_people_do(gpus, months, said):
    lead = gpucost.tco("h100-sxm", gpus, months=months, utilisation=0.7, draws=0, catalog=catalog()).payload["lead"]
    assert re.search(said, lead), lead
    some = gpucost.tco("h100-sxm", 8, utilisation="0.01%", draws=0, catalog=catalog()).payload["lead"]
    assert "0.01% allocated" in some


def test_a_workload_of_nothing_asks_for_more_tokens():
    with pytest.raises(UsageError, match="one step"):
        gpucost.tco("h100-sxm", 8, model="8b", tokens=1, draws=0, catalog=catalog())


def test_waiting_for_the_cluster_is_no_victory_of_owning():
    """Both sides rent until it arrives: that tie is no break-even."""
    months = compare(lead_time_months=6, residual_fraction=0.1, rent_usd_per_gpu_hour=1.2)["breakeven"]["months"]
    assert months is None or months > 6
    assert compare(lead_time_months=6, rent_usd_per_gpu_hour=40.0)["breakeven"]["months"] > 6


@pytest.mark.parametrize(
    "changes",
    [{}, {"tax_basis": "after", "tax_rate_fraction": 0.25}, {"rent_billing": "take_or_pay"},
     {"lead_time_months": 5, "financing": "loan"}],
)  # fmt: skip
def test_the_curve_of_utilisation_passes_through_the_break_even_and_through_the_present_values(changes):
    payload = compare(**changes)
    rows = payload["by_utilisation"]
    at = {(row["side"], row["utilisation_fraction"]): row for row in rows}
    used = next(row["value"] for row in payload["assumptions"] if row["name"] == "utilisation_fraction")
    for side, level in (("own", "levelised"), ("rent", "levelised_rent")):
        owned = payload[f"{level}_usd_per_gpu_hour_owned"]
        assert at[side, used]["usd_per_gpu_month"] == pytest.approx(owned * 730, rel=1e-9)
    crossing = payload["breakeven"]["utilisation_fraction"]
    if crossing is not None:
        own, rent = (at[side, crossing]["usd_per_gpu_month"] for side in ("own", "rent"))
        assert own == pytest.approx(rent, rel=1e-6)
    if changes.get("rent_billing") == "take_or_pay":
        assert len({round(row["usd_per_gpu_month"], 6) for row in rows if row["side"] == "rent"}) == 1
    price = next(row["value"] for row in payload["assumptions"] if row["name"] == "rent_usd_per_gpu_hour")
    dearer = compare(**changes, rent_usd_per_gpu_hour=price + 2.0)
    for side, level in (("own", "levelised"), ("rent", "levelised_rent")):
        moved = at[side, used]["usd_per_gpu_month"] + 2.0 * at[side, used]["more_per_rent_usd"]
        assert moved == pytest.approx(dearer[f"{level}_usd_per_gpu_hour_owned"] * 730, rel=1e-9)


def test_a_hosted_api_is_priced_for_the_same_tokens():
    payload = compare(tokens_per_s_per_gpu=2_000, api_usd_per_mtok=0.4, wacc_fraction=0.0)
    mtok = 64 * 730 * 48 * 0.7 * 0.9 * 2_000 * 3600 / 1e6
    assert payload["npv_usd"]["api"] == pytest.approx(mtok * 0.4)
    assert payload["levelised_usd_per_mtok"] == pytest.approx(payload["npv_usd"]["own"] / mtok)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"utilisation": 0}, "utilisation is 0"),
        ({"plan": {"utilisation_fraction": {"value": 0.7, "low": 0, "high": 1}}}, "low end"),
        ({"utilisation": 0, "model": "8b", "tokens": "1t"}, "utilisation is 0"),
        ({"months": 1, "use_path": "ramp 0% over 1 month"}, "use_path: .*1 month"),
        (
            {"use_path": "ramp 0% over 9 months", "plan": {"scenarios": {"s": {"months": 1}}}},
            "scenario s: .*hour in use",
        ),
        ({"plan": {"scenarios": {"s": {"utilisation": 0}}}}, "scenario s: it gives no finite costs"),
    ],
)
def test_an_ownership_of_nothing_is_refused(asked, said):
    with pytest.raises(UsageError, match=said):
        gpucost.tco("h100-sxm", 8, **asked, catalog=catalog())


def test_a_wait_of_no_weeks_is_none():
    found = gpucost.tco("h100-sxm", 8, rent=2, lead_time="0w", draws=0, catalog=catalog()).payload["assumptions"]
    assert next(row["value"] for row in found if row["name"] == "lead_time_months") == 0


def test_tokens_without_a_model_are_refused():
    with pytest.raises(UsageError, match=r"(--model|model=)"):
        gpucost.tco("h100-sxm", 8, tokens="100b", catalog=catalog())


def test_the_title_names_the_gpus_that_were_compared():
    assert "Rent or buy 8 × H100, 4 years to " in gpucost.tco("h100-sxm", catalog=catalog()).to_text()


def test_owning_what_is_never_sold_is_called_hypothetical():
    def said(gpu, **inputs):
        warnings = gpucost.tco(gpu, 64, rent=4.2, draws=0, set=inputs, catalog=catalog()).payload["warnings"]
        return any("hypothetical" in text for text in warnings)

    with pytest.raises(GpuCostError, match="gpu_usd is not known"):
        said("tpu-v5p")
    assert said("tpu-v5p", gpu_usd=10_000)
    assert not said("h100-sxm")


def test_the_usual_wait_for_delivery_is_priced_beside_the_answer():
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload
    later = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, lead_time=36, catalog=catalog()).payload
    best, second = leading(payload["options"])
    moved = later["npv_usd"]["own"] - payload["npv_usd"]["own"]
    then = second["npv_usd"] - best["npv_usd"] + (moved if second["name"] == "own" else -moved)
    sure = payload["confidence"]
    assert (sure["wait_weeks"], sure["saving_after_wait_usd"]) == (36, pytest.approx(then))
    assert about(abs(then)) in payload["lead"]
    assert later["confidence"]["wait_weeks"] is None


def test_a_lead_within_the_noise_is_a_toss_up():
    """At the break-even price nobody wins; at half of it, and at twice, somebody does, and says in how many futures."""
    even = gpucost.tco("h100-sxm", 64, draws=0, lead_time="0w", rent=3, catalog=catalog()).payload["breakeven"]
    price = even["usd_per_gpu_hour"]
    asked = {"lead_time": "0w", "draws": 200, "catalog": catalog()}
    tie = gpucost.tco("h100-sxm", 64, rent=price * 1.0001, **asked).payload
    assert tie["confidence"]["toss_up"]
    assert tie["lead"].startswith("Toss-up")
    for ratio in (0.4, 1.2):
        clear = gpucost.tco("h100-sxm", 64, rent=price * ratio, **asked).payload
        best = leading(clear["options"])[0]
        chance = best["rival"]["probability_wins_fraction"]
        assert clear["confidence"]["toss_up"] == (chance < 0.6), ratio
        assert clear["confidence"]["wins_of_ten"] == round(10 * chance)
    far = gpucost.tco("h100-sxm", 64, rent=price * 0.3, **asked).payload
    assert not far["confidence"]["toss_up"]
    assert not far["lead"].startswith("Toss-up")


def test_a_lead_that_the_usual_wait_takes_away_is_a_toss_up():
    """Owning saves a little if servers work at once; waiting 36 weeks, bridged by renting, costs more than that."""
    asked = {"draws": 0, "catalog": catalog()}
    price = gpucost.tco("h100-sxm", 64, rent=3, lead_time="0w", **asked).payload["breakeven"]["usd_per_gpu_hour"]
    sure = gpucost.tco("h100-sxm", 64, rent=price * 1.05, **asked).payload["confidence"]
    assert sure["saving_after_wait_usd"] < 0
    assert sure["toss_up"]


def test_unequal_scope_is_flagged():
    payload = compare(storage_basis="none", storage_usd_per_gpu=None)
    assert not any("storage" in text for text in payload["warnings"])
    payload = compare(rent_staff_ratio=0.0)
    assert any("only one side pays for operations staff" in text for text in payload["warnings"])


def test_sunk_capacity_is_cheaper_the_narrower_the_view():
    views = compare()["sunk"]
    assert (
        0
        < views["incremental_usd_per_gpu_hour"]
        < views["avoidable_usd_per_gpu_hour"]
        < views["loaded_usd_per_gpu_hour"]
    )
    kw = 10.2 * 1.06 / 8
    assert views["incremental_usd_per_gpu_hour"] == pytest.approx(kw * (0.76 - 0.2) * 1.3 * 0.085)


def test_carbon_by_hand():
    payload = compare(
        grid_kgco2e_per_kwh=0.4, carbon_free_fraction=0.25, embodied_kgco2e_per_node=4_000, embodied_life_years=5
    )
    kwh = 8 * 10.2 * 1.06 * (0.7 * 0.76 + 0.3 * 0.2) * 1.3 * 730 * 48
    found = payload["carbon"]
    assert found["energy_kwh"] == pytest.approx(kwh)
    assert found["operational_location_kgco2e"] == pytest.approx(0.4 * kwh)
    assert found["operational_market_kgco2e"] == pytest.approx(0.3 * kwh)
    assert found["embodied_kgco2e"] == pytest.approx(8 * 4_000 * 4 / 5)


def forward_curve(folder):
    curve = folder / "eur.csv"
    curve.write_text("month,usd_per_unit\n" + "".join(f"{m},{1.08 + 0.001 * m}\n" for m in range(1, 49)))
    return {"currency": "EUR", "usd_per_unit": 1.08, "usd_per_unit_on": "2026-11-20", "currency_curve": str(curve)}


def test_another_currency_uses_spot_then_forward_rates_and_its_own_cost_of_capital(tmp_path):
    payload = compare(**forward_curve(tmp_path), currency_wacc_fraction=0.07)
    own = flows(payload, "own_total_usd")
    rate = 1.07 ** (1 / 12)
    expected = own[0] / 1.08 + sum(flow / (1.08 + 0.001 * m) / rate**m for m, flow in enumerate(own) if m)
    assert payload["currency"]["npv_own"] == pytest.approx(expected)
    assert payload["currency"]["wacc_fraction"] == 0.07
    by_year = payload["currency"]["by_year"]
    assert sum(row["own"] for row in by_year) == pytest.approx(sum(payload["currency"]["cash_own"]))


@pytest.mark.parametrize("changes", [{}, {"financing": "loan", "debt_rate_fraction": 0.06}])
def test_without_one_of_its_own_a_present_value_is_the_same_money_in_either_currency(tmp_path, changes):
    """A currency that gains 2 % a year is discounted at a rate lower by as much."""
    payload = compare(**forward_curve(tmp_path), **changes)
    for side in ("own", "rent"):
        assert payload["currency"][f"npv_{side}"] == pytest.approx(payload["npv_usd"][side] / 1.08, rel=1e-12)
    gained = (1.128 / 1.08) ** (1 / 4)
    assert payload["currency"]["wacc_fraction"] == pytest.approx(1.1 / gained - 1, rel=1e-9)


def test_the_currency_asked_for_is_shown_with_a_rate_of_this_autumn_and_its_discount_rate():
    made = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog(), plan={"currency": "EUR"})
    text, money = made.to_text(), made.payload["currency"]
    assert money["usd_per_unit_on"] == "2026-10-30"
    assert f"{money['npv_own']:,.0f} EUR" in text
    assert not any("days old" in warning for warning in made.payload["warnings"])
    page = made.written("md", None)
    assert "In EUR" in page
    assert "discounted at 10.00% a year" in page
    assert f"{money['by_year'][1]['rent']:,.0f}" in page


def test_a_power_cap_lowers_the_draw():
    base, capped = compare()["carbon"]["energy_kwh"], compare(power_cap_fraction=0.6)["carbon"]["energy_kwh"]
    assert capped / base == pytest.approx((0.7 * 0.6 + 0.3 * 0.2) / (0.7 * 0.76 + 0.3 * 0.2))


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=5))
def test_root_finder_finds_each_root(targets):
    wanted = np.array(targets)
    found = cashflow.roots(
        lambda x: np.tanh(x / 40) - np.tanh(wanted / 40), np.full(wanted.size, -60.0), np.full(wanted.size, 75.0)
    )
    assert found == pytest.approx(wanted, abs=1e-6)


def test_root_finder_places_a_jump_and_refuses_one_sign():
    found = cashflow.roots(lambda x: np.where(x < np.array([3.3, 99.0]), -1.0, 2.0), np.zeros(2), np.full(2, 10.0))
    assert found[0] == pytest.approx(3.3, abs=1e-4)
    assert np.isnan(found[1])


def test_the_reference_has_no_shipped_default_in_it():
    payload = compare()
    counted = {
        entry["name"]
        for entry in payload["assumptions"]
        if entry["counts"] and entry["value"] is not None and entry["status"] != "given"
    }
    neutral = {
        "hours_per_month",
        "months_per_year",
        "staff_step_fte",
        "lead_time_months",
        "refresh_month",
        "refresh_price_ratio",
        "rent_cap_ratio",
        "rent_floor_ratio",
        "power_cap_fraction",
        "gpus_per_node",
        "residual_at_years",
        "depreciation_years",
        "book_life_years",
        "book_residual_fraction",
        "network_1tier_limit_gpus",
        "network_2tier_limit_gpus",
        "network_2tier_usd_per_gpu",
        "network_3tier_usd_per_gpu",
        "rent_term_months",
        "rent_upfront_fraction",
        "rent_stretch_ratio",
        "grid_kgco2e_per_kwh",
        "carbon_free_fraction",
        "embodied_kgco2e_per_node",
        "embodied_life_years",
        "sunk_age_months",
        "import_tariff_fraction",
        *("deposit_fraction", "retention_fraction", "retention_months"),  # all is paid on arrival
        *("loss_allowance_usd", "loss_limit_fraction", "other_income_usd_per_year"),  # losses are used at once
        *("refresh_speed_ratio", "refresh_power_ratio"),  # nothing is replaced
        *("order_month", "service_limit_months", "server_decline_fraction"),  # ordered at once, kept to the end
        *("rent_from_month", "rent_until_months"),  # no contract that ends
    }
    words = {name for name in counted if registry_choice(name)}
    assert counted - words <= neutral
    assert set(REFERENCE) <= {entry["name"] for entry in payload["assumptions"]}


def registry_choice(name):
    return any(row["name"] == name for row in catalog().rows("plan_choices"))


def test_no_two_inputs_have_one_heading():
    named = [heading_of(row["name"]) for row in catalog().rows("plan_inputs")]
    assert len(named) == len(set(named))
