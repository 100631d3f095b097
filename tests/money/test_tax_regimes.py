"""Losses carried forward and the tax law of countries, against a loop over the years written out by hand."""

import pytest

import gpucost
from gpucost.ownership.plan import use_by_month
from tests.money.plans import catalog, compare, flows


def tax_by_hand(deducted_by_year, income, rate, limit, allowance):
    """The tax of each year less that of the income alone, with losses carried forward."""
    left, due = 0.0, []
    for deducted in deducted_by_year:
        taxable = income - deducted
        used = min(left, min(taxable, allowance) + limit * max(taxable - allowance, 0)) if taxable > 0 else 0.0
        left += max(-taxable, 0) - used
        due.append(rate * (max(taxable, 0) - used - income))
    return due, left


@pytest.mark.parametrize(
    ("income", "limit", "allowance"), [(6e5, 0.8, 0.0), (6e5, 0.5, 1e5), (1e6, 1.0, 0.0), (0, 1, 0)]
)
def test_losses_are_carried_forward_within_their_limits(income, limit, allowance):
    terms = {"tax_basis": "after", "tax_rate_fraction": 0.25, "depreciation_by_year": [1.0]}
    at_once = compare(**terms)
    carried = compare(**terms, loss_basis="carried_forward", other_income_usd_per_year=income,
                      loss_limit_fraction=limit, loss_allowance_usd=allowance)  # fmt: skip
    for side in ("own", "rent"):
        by_month = [-value / 0.25 for value in flows(at_once, f"{side}_tax_usd")]
        by_year = [sum(by_month[12 * year + 1 : 12 * year + 13]) for year in range(4)]
        due, _ = tax_by_hand(by_year, income, 0.25, limit, allowance)
        found = flows(carried, f"{side}_tax_usd")
        assert [found[12 * year + 12] for year in range(4)] == pytest.approx(due, abs=1e-6)
        assert sum(map(abs, found)) == pytest.approx(sum(map(abs, due)), abs=1e-6)


def test_an_income_beyond_all_costs_makes_carried_losses_those_that_are_used_at_once_but_for_the_month():
    terms = {"tax_basis": "after", "tax_rate_fraction": 0.25, "wacc_fraction": 0.0}
    rich = compare(**terms, loss_basis="carried_forward", other_income_usd_per_year=1e9)
    assert rich["npv_usd"]["own"] == pytest.approx(compare(**terms)["npv_usd"]["own"])


def test_break_even_is_left_to_the_search_where_losses_bend_the_lines():
    payload = compare(tax_basis="after", loss_basis="carried_forward", other_income_usd_per_year=4e5)
    price = payload["breakeven"]["usd_per_gpu_hour"]
    answers = {row["name"]: row["value"] for row in payload["model"]["answers"]}
    assert answers["breakeven_usd_per_gpu_hour"] is None
    moved = compare(tax_basis="after", loss_basis="carried_forward", other_income_usd_per_year=4e5,
                    rent_usd_per_gpu_hour=price)  # fmt: skip
    assert moved["npv_usd"]["saving"] == pytest.approx(0, abs=1.0)


@pytest.mark.parametrize(
    ("regime", "rate", "shares", "limit"),
    [("us", 0.25, [1.0], 0.8), ("uk", 0.25, [1.0], 0.5), ("de", 0.30, [0.3, 0.21, 0.147, 0.1029], 0.7),
     ("ie", 0.125, [0.125] * 8, 1.0), ("sg", 0.17, [1.0], 1.0)],
)  # fmt: skip
def test_a_regime_sets_rate_depreciation_losses_and_purchase_tax_with_their_sources(regime, rate, shares, limit):
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, tax_regime=regime, catalog=catalog()).payload
    rows = {row["name"]: row for row in payload["assumptions"]}
    assert rows["tax_rate_fraction"]["value"] == rate
    assert rows["loss_limit_fraction"]["value"] == limit
    assert rows["tax_basis"]["value"] == "after"
    for name in ("tax_rate_fraction", "loss_limit_fraction", "loss_allowance_usd", "sales_tax_fraction"):
        assert rows[name]["source_id"] in payload["sources"]
        assert rows[name]["observed"]
    booked = payload["model"]["tables"]["depreciated_by_year"]
    assert booked[1 : len(shares) + 1] == pytest.approx([sum(shares[: n + 1]) for n in range(len(shares))], abs=1e-6)
    if regime == "uk":
        assert 5e6 < rows["loss_allowance_usd"]["value"] < 8e6  # 5 million GBP


def test_what_is_given_counts_before_the_regime_and_an_unknown_one_is_named():
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, tax_regime="de", tax="20%", catalog=catalog()).payload
    assert next(row for row in payload["assumptions"] if row["name"] == "tax_rate_fraction")["value"] == 0.2
    with pytest.raises(gpucost.GpuCostError, match=r"tax.regime"):
        gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, tax_regime="fr", catalog=catalog())


def test_a_site_sets_colocation_and_taxes_and_says_what_it_lacks():
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, site="us_virginia", catalog=catalog()).payload
    rows = {row["name"]: row for row in payload["assumptions"]}
    assert rows["colocation_usd_per_kw_month"]["value"] == 215
    assert rows["property_tax_fraction"]["value"] == 0.0415
    assert rows["sales_tax_fraction"]["status"] == "assumed"
    lacking = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, site="germany", catalog=catalog()).payload
    assert any("site germany: no colocation on record" in text for text in lacking["warnings"])
    with pytest.raises(gpucost.GpuCostError, match="us_virginia"):
        gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, site="us_virgina", catalog=catalog())


def test_use_follows_its_path_on_both_sides():
    even, moved = compare(), compare(use_path="ramp 50% over 6 months; from month 13: 80%")
    path = use_by_month("ramp 50% over 6 months; from month 13: 80%", 48)
    draw = [0.7 * share * 0.76 + (1 - 0.7 * share) * 0.2 for share in path]
    for month in (1, 4, 7, 13, 48):
        share = path[month - 1]
        assert flows(moved, "rent_compute_usd")[month] == pytest.approx(share * flows(even, "rent_compute_usd")[month])
        energy = flows(even, "own_energy_usd")[month] * draw[month - 1] / (0.7 * 0.76 + 0.3 * 0.2)
        assert flows(moved, "own_energy_usd")[month] == pytest.approx(energy)
    rate = 1.1 ** (1 / 12) - 1
    hours = sum(64 * 730 * 0.7 * share / (1 + rate) ** m for m, share in enumerate(path, 1))
    assert moved["levelised_usd_per_gpu_hour"] == pytest.approx(moved["npv_usd"]["own"] / hours, rel=1e-12)
    dear = compare(use_path="ramp 50% over 6 months; from month 13: 80%", rent_usd_per_gpu_hour=6)
    share = dear["breakeven"]["utilisation_fraction"]
    terms = {"rent_usd_per_gpu_hour": 6, "utilisation_fraction": share}
    at = compare(use_path="ramp 50% over 6 months; from month 13: 80%", **terms)
    assert at["npv_usd"]["saving"] == pytest.approx(0, abs=1e-2)
    found = {row["name"]: row["value"] for row in dear["model"]["answers"]}
    assert found["breakeven_utilisation_fraction"] == pytest.approx(share)


def test_seasons_return_every_year_and_a_file_may_hold_the_path(tmp_path):
    shares = " ".join(f"{90 + month}%" for month in range(12))
    path = use_by_month(f"seasons {shares}", 30)
    assert path[[0, 11, 12, 29]] == pytest.approx([0.90, 1.01, 0.90, 0.95])
    (tmp_path / "use.csv").write_text("month,use\n1,0.4\n2,0.8\n")
    assert use_by_month("use.csv", 4, tmp_path).tolist() == [0.4, 0.8, 0.8, 0.8]


@pytest.mark.parametrize(
    ("path", "words"),
    [("from month 3: 200%", "month 3"), ("seasons 1 2 3", "use_path"), ("ramp x over 3 months", "x"),
     ("rises", "cannot read"), (";", "cannot read ';'"), ("from month 0: 50%", "'0'"),
     ("ramp 20% over 0 months", "'0'"), ("from month 1: 0%", "48 months"),
     ("seasons" + " 0%" * 12, "48 months")],
)  # fmt: skip
def test_a_use_that_cannot_be_is_refused(path, words):
    with pytest.raises(gpucost.GpuCostError, match=words):
        compare(use_path=path)


def test_a_purchase_is_paid_by_milestones():
    payload = compare(lead_time_months=4, deposit_fraction=0.3, retention_fraction=0.1, retention_months=3)
    servers = 8 * 280_000
    paid = {month: value for month, value in enumerate(flows(payload, "own_servers_usd")) if value}
    assert paid == pytest.approx({0: 0.3 * servers, 4: 0.6 * servers, 7: 0.1 * servers})
    late = compare(lead_time_months=4, deposit_fraction=0.3, retention_fraction=0.1, retention_months=90)
    assert flows(late, "own_servers_usd")[48] == pytest.approx(0.1 * servers)
    with pytest.raises(gpucost.GpuCostError, match="deposit_fraction"):
        compare(deposit_fraction=0.8, retention_fraction=0.3)


def test_a_faster_replacement_is_bought_in_whole_servers_that_do_the_same_work():
    payload = compare(refresh_month=24, refresh_speed_ratio=2.5, refresh_price_ratio=1.5, refresh_power_ratio=1.4)
    servers, size = 8 * 280_000 * 1.025, 4 / 8  # 3.2 servers are four
    assert flows(payload, "own_refresh_usd")[24] == pytest.approx(servers * 1.5 * size * 1.10)
    energy = flows(payload, "own_energy_usd")
    assert energy[25] / energy[24] == pytest.approx(1.4 * size * 1.02)  # and the tariff rises
    assert compare(refresh_month=24)["npv_usd"] == compare(refresh_month=24, refresh_power_ratio=1.0)["npv_usd"]


def test_a_newer_chip_brings_its_price_its_speed_with_a_range_and_its_power():
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, refresh_gpu="b200", set={"refresh_month": 24},
                          catalog=catalog()).payload  # fmt: skip
    rows = {row["name"]: row for row in payload["assumptions"]}
    speed = rows["refresh_speed_ratio"]
    assert 1.5 < speed["low"] <= speed["value"] <= speed["high"] < 4
    assert speed["status"] == "derived"
    assert rows["refresh_price_ratio"]["value"] > 1
    with pytest.raises(gpucost.GpuCostError, match="refresh_month"):
        gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, refresh_gpu="b200", catalog=catalog())


def test_the_rent_moves_within_the_forward_curve_of_the_chip_and_says_so():
    for gpu in ("h100-sxm", "a100-sxm-80gb"):
        payload = gpucost.tco(gpu, 64, rent=2.35, draws=0, catalog=catalog()).payload
        rows = {row["name"]: row for row in payload["assumptions"]}
        assert rows["rent_path_basis"]["value"] == "forward"
        assert rows["rent_decline_fraction"]["value"] == 0
        assert [rows["rent_outlook_ratio"][end] for end in ("low", "value", "high")] == [-1, 0, 1]
        assert any("forward curve" in text for text in payload["remarks"])
    given = gpucost.tco(
        "h100-sxm", 64, rent=2.35, draws=0, set={"rent_decline_fraction": 0.1}, catalog=catalog()
    ).payload
    assert not any("forward curve" in text for text in given["warnings"])


def test_without_a_forward_curve_the_rent_moves_as_list_prices_of_the_generation_did(monkeypatch):
    monkeypatch.setattr("gpucost.ownership.assemble.path_ends", lambda *_: [])
    history = {row["generation"]: row for row in catalog().rows("list_declines")}
    payload = gpucost.tco("h100-sxm", 64, rent=2.35, draws=0, catalog=catalog()).payload
    row = next(row for row in payload["assumptions"] if row["name"] == "rent_decline_fraction")
    assert row["value"] == 1 - history["Hopper"]["typical_ratio"]
    assert row["low"] <= 1 - history["Hopper"]["high_ratio"]
    assert any("Hopper" in text for text in payload["warnings"])
