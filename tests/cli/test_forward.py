"""`prices forward` and `index`, as a user meets them."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from gpucost.cli import cli
from gpucost.errors import PriceMissingError


def run(*words):
    result = CliRunner().invoke(cli, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_a_forecast_names_seller_terms_and_ranges():
    code, text = run("prices", "forward", "--gpu", "h100-sxm", "--as-of", "2026-11-09", "--format", "json")
    assert code == 0
    rows = json.loads(text)["rows"]
    assert {row["gpu"] for row in rows} == {"h100-sxm5-80gb"}
    (row,) = [row for row in rows if (row["seller_kind"], row["option"]) == ("hyperscaler", "on_demand")]
    low, high = (row[f"p{end}_in_24_months_usd_per_gpu_hour"] for end in (10, 90))
    assert row["range_in_24_months"] == f"{low:,.2f}–{high:,.2f}"
    assert row["p50_in_24_months_usd_per_gpu_hour"] == row["usd_per_gpu_hour"]


def test_an_option_narrows_a_forecast():
    words = ("prices", "forward", "--gpu", "h100-sxm", "--as-of", "2026-11-09", "--format", "json", "--option")
    assert {row["option"] for row in json.loads(run(*words, "spot")[1])["rows"]} == {"spot"}
    committed = {row["option"] for row in json.loads(run(*words, "reserved")[1])["rows"]}
    assert committed == {"committed_1_year", "committed_3_years"}


def test_a_chip_without_a_price_of_late_is_told_so():
    with pytest.raises(PriceMissingError, match="no chip that you named has a price of the last 93 days"):
        run("prices", "forward", "--gpu", "jetson-agx-orin")


def test_two_answers_at_once_are_refused():
    assert run("prices", "forward", "--backtest", "--gpu", "h100-sxm")[0] == 2


def test_the_index_is_the_cheapest_chip_of_each_month(monkeypatch):
    """With GPU-hours of three chips given: the cost is hours times price, and no chip of the month costs less."""
    from gpucost.catalog import open_catalog
    from gpucost.library import price_index

    hours = {"a100-sxm4-80gb": 10.0, "h100-sxm5-80gb": 4.0, "v100-sxm2-16gb": 50.0}
    monkeypatch.setattr(price_index, "gpu_hours", lambda job, chip: hours.get(chip))
    code, text = run("prices", "index", "--format", "csv", "--as-of", "2026-11-09")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(text)))
    prices = {
        (str(row["month"]), row["gpu"], row["seller_kind"], row["option"]): row["usd_per_gpu_hour"]
        for row in open_catalog("2026-11-09").rows("monthly_prices")
    }
    assert len({row["month"] for row in rows}) > 50
    for row in rows:
        options = {row["option"], "on_demand"}  # who can be interrupted may take either
        costs = {
            (gpu, option): count * usd
            for gpu, count in hours.items()
            for option in options
            if (usd := prices.get((row["month"], gpu, row["seller_kind"], option)))
        }
        assert float(row["usd"]) == pytest.approx(min(costs.values()))
        assert min(costs, key=costs.__getitem__)[0] == row["gpu"]


def test_the_index_of_a_past_day_ends_there(monkeypatch, tmp_path):
    from gpucost.library import price_index

    monkeypatch.setattr(price_index, "gpu_hours", lambda job, chip: 1.0)
    _, text = run("prices", "index", "--monthly", "--as-of", "2024-02-15", "--format", "json")
    assert max(row["month"] for row in json.loads(text)["rows"]) == "2024-01-31"
    assert run("prices", "index", "-o", str(tmp_path / "index.html"))[0] == 0
    assert "100B tokens" in (tmp_path / "index.html").read_text("utf-8")


def test_a_forecast_starts_from_what_is_asked_of_late():
    """Of the clouds' H100 prices those seen within two months count, not lists that stand since spring."""
    from statistics import median

    from gpucost.catalog import open_catalog
    from gpucost.market.forward import forward_prices

    catalog = open_catalog("2026-11-28")
    (row,) = (
        row
        for row in forward_prices(catalog, ["h100-sxm5-80gb"])
        if (row["seller_kind"], row["option"]) == ("cloud", "on_demand")
    )
    kinds = {one["provider"]: one["kind"] for one in catalog.rows("providers")}
    found = catalog.query(
        """SELECT provider, median(usd_per_gpu_hour) AS usd FROM prices_on($day, $day) WHERE gpu = 'h100-sxm5-80gb'
        AND option IN ('on_demand', 'secure', 'community') AND term_months = 0 AND ended IS NULL AND NOT conflict
        AND offer_kind = 'offer' AND observed_on > $day - 63 GROUP BY provider""",
        parameters={"day": catalog.as_of},
    )
    asked = [one["usd"] for one in found if kinds[one["provider"]] == "cloud"]
    assert len(asked) > 8
    assert row["usd_per_gpu_hour"] == pytest.approx(median(asked), rel=0.03)
    assert row["price_on"] == catalog.as_of
