"""Monthly prices: medians over sellers of what was known at the end of each month."""

from datetime import date

import pytest

from gpucost.catalog import open_catalog
from tests.catalog.world import offer, world
from tools.derived import monthly_prices


@pytest.fixture
def months(tmp_path):
    """Return a function that gives the cells of a month in a world of some offers."""

    def asked(*offers, month=date(2025, 5, 31)):
        root = world(tmp_path / "world", list(offers))
        rows = monthly_prices(open_catalog("2025-06-30", root=root, checked=False))
        return {(row["seller_kind"], row["option"]): row for row in rows if row["month"] == month}

    return asked


def test_a_seller_counts_once_whatever_it_lists(months):
    """Three regions of one seller at 2, 3 and 4, and one price of another at 5: the median of 3 and 5."""
    rows = [offer(f"acme/{n}", usd, "2025-05-01", region=f"r{n}") for n, usd in enumerate((2.0, 3.0, 4.0))]
    found = months(*rows, offer("other/one", 5.0, "2025-05-01", provider="other"))
    (row,) = [row for (_, option), row in found.items() if option == "on_demand"]
    assert (row["sellers"], row["low_usd_per_gpu_hour"], row["usd_per_gpu_hour"], row["high_usd_per_gpu_hour"]) == (
        2,
        pytest.approx(3.0),
        pytest.approx(4.0),
        pytest.approx(5.0),
    )


@pytest.mark.slow
def test_a_month_knows_nothing_of_the_next(months):
    assert months(offer("acme/one", 2.0, "2025-06-02")) == {}
    found = months(offer("acme/one", 2.0, "2025-05-02"), offer("acme/one", 9.0, "2025-06-02"))
    assert [row["usd_per_gpu_hour"] for row in found.values()] == [2.0]


def test_spot_of_long_ago_is_no_price_of_the_month(months):
    found = months(offer("acme/a", 1.0, "2025-02-01", option="spot"), offer("acme/b", 2.0, "2025-02-01"))
    assert {option for _, option in found} == {"on_demand"}
