"""A price of one's own that ends is followed by one that does not, in every question that compares years."""

from datetime import date, timedelta

import pytest

import gpucost

OFFER = """[[offer]]
provider = "our-colo"
gpu = "h100-sxm"
gpus = 8
system = "dgx-h100"
usd_per_gpu_hour = 1.0
valid_from = 2026-01-01
valid_until = {end}
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Return a function that lays a book whose only offer, the cheapest of its chip, ends on a day."""

    def laid(end):
        file = tmp_path / "book.toml"
        file.write_text(OFFER.format(end=end))
        monkeypatch.setenv("GPUCOST_BOOK", str(file))

    return laid


@pytest.mark.parametrize("ends", ["2026-12-31", "2027-06-30", "2028-03-01"])
@pytest.mark.parametrize("day", ["2026-11-12", "2026-11-28"])
def test_a_comparison_prices_what_follows_a_contract_that_ends(book, day, ends):
    book(ends)
    answer = gpucost.tco("h100-sxm", 8, draws=0, as_of=day).payload
    [warning] = [text for text in answer["warnings"] if ends in text]
    inputs = {row["name"]: row["value"] for row in answer["assumptions"]}
    assert inputs["rent_usd_per_gpu_hour"] == 1.0
    months = (date.fromisoformat(ends) + timedelta(days=1) - date.fromisoformat(day)).days / 30.4375
    assert inputs["rent_until_months"] == pytest.approx(months, abs=0.1)
    after = inputs["rent_after_usd_per_gpu_hour"]
    assert after > 1.5  # no shipped offer by the hour is as cheap
    assert f"{after:.2f}" in warning


def test_a_mix_prices_what_follows_a_contract_that_ends(book):
    book("2027-06-30")
    answer = gpucost.mix(constant=8, months=24, gpu="h100-sxm", own=False).payload
    rent = 8 * 730 * (7 * 1.0 + 17 * 2.0)
    assert answer["cost_usd"] > rent
    assert any("2027-06-30" in text for text in answer["warnings"])
