"""Layers of a price: the list, the contract and what is paid, and the check of a book."""

from datetime import date, datetime

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.datacheck import contract_terms
from gpucost.errors import DataError
from tests.catalog.world import offer, world

LISTED = [
    offer("acme/one", 4.0, "2025-05-01"),
    offer(
        "acme/term", 3.0, "2025-05-01", option="reserved", term_months=36, billing="take_or_pay", payment="no_upfront"
    ),
    offer(
        "acme/short", 3.5, "2025-05-01", option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront"
    ),
]


@pytest.fixture
def book(tmp_path):
    """Return a function that opens the small world under a book of the given text."""

    def opened(text, day="2025-06-30"):
        (tmp_path / "book.toml").write_text(text)
        return open_catalog(day, root=world(tmp_path / "world", LISTED), book=tmp_path / "book.toml", checked=False)

    return opened


def paid(catalog):
    return {
        item.offer_id: (item.list_usd_per_gpu_hour, item.usd_per_gpu_hour, item.price_kind) for item in catalog.offers()
    }


def test_a_contract_says_what_the_list_says(book):
    found = paid(
        book('[[offer]]\nlike = "acme/one"\nusd_per_hour = 3.2\nvalid_from = 2025-06-01\nvalid_until = 2025-12-31')
    )
    assert found["acme/one"] == (4.0, 3.2, "contracted")
    assert found["acme/term"] == (None, 3.0, "list")


def test_a_discount_of_a_commitment_leaves_others_alone(book):
    found = paid(book('[[discount]]\nprovider = "acme"\noption = "reserved"\nterm_months = 36\nfraction = 0.1'))
    assert found["acme/term"] == (3.0, pytest.approx(2.7), "effective")
    assert found["acme/short"] == (None, 3.5, "list")


def test_a_discount_never_goes_below_its_floor_nor_above_the_list(book):
    text = '[[discount]]\nprovider = "acme"\nfraction = 0.5\nfloor_usd_per_gpu_hour = {}'
    assert paid(book(text.format(2.5)))["acme/one"] == (4.0, 2.5, "effective")
    assert paid(book(text.format(9.0)))["acme/one"] == (None, 4.0, "list")


@pytest.mark.parametrize("value", ['"x"', "-1", "nan", "inf"])
def test_a_floor_that_is_no_price_is_refused(book, value):
    with pytest.raises(DataError, match="floor_usd_per_gpu_hour"):
        book(f'[[discount]]\nprovider = "acme"\nfraction = 0.5\nfloor_usd_per_gpu_hour = {value}').offers()


def test_the_check_says_what_ended_ends_soon_is_dear_or_idle(book):
    text = """
    [[offer]]
    like = "acme/one"
    usd_per_hour = 4.4
    valid_from = 2025-06-01
    valid_until = 2025-08-01
    [[offer]]
    like = "acme/short"
    usd_per_hour = 3.9
    valid_from = 2025-06-01
    [[offer]]
    like = "acme/term"
    usd_per_hour = 2.9
    valid_from = 2025-01-01
    valid_until = 2025-06-01
    [[discount]]
    provider = "other"
    fraction = 0.2
    """
    rows, _ = contract_terms(book(text.replace('"other"', '"acme"\n    option = "spot"')))
    remarks = {row["what"]: row["remark"] for row in rows}
    assert remarks["acme/one"] == "it ends on 2025-08-01, in 32 days"
    assert "3.5 USD" in remarks["acme/short"]
    assert "2025-06-01" in remarks["acme/term"]
    assert [row["remark"] for row in rows if row["layer"] == "discount"] == ["it matches no price"]
    one = next(row for row in rows if row["what"] == "acme/one")
    assert (one["list_usd_per_gpu_hour"], one["contracted_usd_per_gpu_hour"]) == (4.0, 4.4)
    assert one["valid_until"] == date(2025, 8, 1)


def test_saved_facts_keep_the_list_price():
    from gpucost.market.embedded import OFFER, pack, unpack
    from gpucost.types import Offer

    catalog = open_catalog("2026-11-22")
    first = catalog.offers()[0]
    assert unpack(Offer, pack([first], OFFER))[0].list_usd_per_gpu_hour is None


def test_an_estimate_shows_list_and_paid_price_in_every_medium(tmp_path, monkeypatch):
    import openpyxl

    import gpucost

    (tmp_path / "book.toml").write_text('[[discount]]\nprovider = "crusoe"\nfraction = 0.25\n')
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book.toml"))
    found = gpucost.estimate(model="8b", tokens="1b", provider="crusoe", option="on_demand")
    option = found.to_dict()["options"][0]
    assert option["usd_per_gpu_hour"] == pytest.approx(0.75 * option["list_usd_per_gpu_hour"])
    assert (option["price_book"], option["price_kind"]) == ("user", "effective")
    assert "USD on the list (-25.0%)" in " ".join(found.explain().split())
    assert "list price" in found.written("table", None, details=True) or "list price" in found.written("md", None)
    found.to_excel(tmp_path / "book.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "book.xlsx")["Offers"]
    heads = next(row for row in sheet.iter_rows(values_only=True) if row[0] == "rank" or "provider" in row)
    assert any("list" in str(head) for head in heads), heads


CREDIT = """
[exchange_rates]
EUR = 1.5
[[credit]]
provider = "acme"
amount = 100
amount_per_month = 40
currency = "EUR"
valid_until = 2025-12-31
"""


def test_credits_of_a_book_are_read_with_their_currency_and_contract_terms(book):
    catalog = book(CREDIT + '[[credit]]\nusd = 7\noption = "spot"\nvalid_until = 2025-07-31')
    first, _ = catalog.credits
    assert (first["usd"], first["usd_per_month"], first["provider"]) == (150.0, 60.0, "acme")
    rows = [row for row in contract_terms(catalog)[0] if row["layer"] == "credit"]
    assert [row["remark"] for row in rows] == ["", "it matches no price"]
    assert rows[0]["what"] == "150 USD on provider acme, at most 60 a month (3 prices)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("usd = -1", "usd must be 0 or more"),
        ("provider = 'acme'", "usd must be a number"),
        ("usd = 5\ncurrency = 'XYZ'", "no exchange rate of XYZ"),
        ("usd = 5\nfraction = 0.1", "a credit knows no fraction"),
        ("usd = 5\nvalid_from = 2026-01-01\nvalid_until = 2025-01-01", "expire before it holds"),
        ("usd = inf", "usd"),
    ],
)
def test_a_credit_that_cannot_be_is_refused(book, text, reason):
    with pytest.raises(DataError, match=reason):
        _ = book(f"[[credit]]\n{text}").credits


@pytest.mark.parametrize(
    ("usd", "months", "paid"),
    [
        (50, 1, 50),  # the bill is smaller than the cap
        (90, 1, 60),  # the cap of one month
        (300, 2, 120),  # of two
        (900, 3, 150),  # the whole amount
        (1200, 12, 150),
    ],
)
def test_credits_pay_up_to_their_cap_and_amount(book, usd, months, paid):
    from gpucost.market.terms import credited

    catalog = book(CREDIT)
    offer = next(item for item in catalog.offers() if item.offer_id == "acme/one")
    assert credited(catalog.credits, offer, usd, months, catalog.as_of) == pytest.approx(paid)
    assert credited(catalog.credits, offer, usd, months, date(2026, 1, 1)) == 0, "it has expired"


def test_an_answer_says_what_credits_pay_and_runs_again_with_them(tmp_path, monkeypatch):
    import gpucost

    (tmp_path / "book.toml").write_text('[[credit]]\nprovider = "crusoe"\nusd = 1000\n')
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book.toml"))
    found = gpucost.estimate(model="8b", tokens="10b", provider="crusoe", option="on_demand", top=1)
    option = found.to_dict()["options"][0]
    assert option["credits_usd"] == 1000
    assert f"pay 1,000.00 USD of it; {option['cost_usd'] - 1000:,.2f} USD remain" in " ".join(option["notes"])
    served = gpucost.inference(model="8b", provider="crusoe", option="on_demand", top=1).to_dict()["options"][0]
    assert served["credits_usd"] == 1000


LAYERED = """
[[offer]]
like = "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"
usd_per_hour = 20
valid_from = 2026-07-01
[[discount]]
provider = "crusoe"
fraction = 0.2
[[discount]]
provider = "aws"
fraction = 0.5
[[credit]]
usd = 100_000
usd_per_month = 5000
valid_until = 2027-11-01
"""


@pytest.fixture
def layered(tmp_path, monkeypatch):
    (tmp_path / "book.toml").write_text(LAYERED)
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book.toml"))


def test_tco_shows_every_layer_of_a_rent_and_what_credits_pay_of_it(layered):
    import gpucost

    asked = {"gpu": "h100-sxm", "gpus": 16, "draws": 0, "as_of": "2026-11-20"}
    found = gpucost.tco(provider="crusoe", **asked)
    rent = next(row for row in found.payload["options"] if row["name"] == "rent")
    listed = rent["list_usd_per_gpu_hour"]
    assert (rent["price_book"], rent["price_kind"]) == ("user", "effective")
    assert rent["usd_per_gpu_hour"] == pytest.approx(0.8 * listed)
    assert rent["credits_usd"] == 60_000  # 5,000 in each of the twelve months that begin before they expire
    bill = next(row["total_usd"] for row in found.payload["lines"] if row["name"] == "rent_compute_usd")
    assert rent["effective_usd_per_gpu_hour"] == pytest.approx(0.8 * listed * (1 - 60_000 / bill))
    assert "60,000 USD of rent" in " ".join(found.to_text(details=True).split())
    contract = next(
        row for row in gpucost.tco(provider="aws", **asked).payload["options"] if row["name"] == "rent"
    )  # replaces the discount and the credits
    assert contract["contracted_usd_per_gpu_hour"] == contract["effective_usd_per_gpu_hour"] == 2.5
    assert contract["list_usd_per_gpu_hour"] > 2.5
    assert "credits_usd" not in contract


def test_credits_pay_on_after_a_term_has_ended(tmp_path, monkeypatch):
    import gpucost

    (tmp_path / "book.toml").write_text('[[credit]]\nprovider = "aws"\nusd = 1_000_000\nusd_per_month = 5000\n')
    monkeypatch.setenv("GPUCOST_BOOK", str(tmp_path / "book.toml"))
    found = gpucost.tco(provider="aws", gpu="h100-sxm", gpus=16, years=4, draws=0, as_of="2026-11-20").payload
    paid = {row["name"]: row.get("credits_usd") for row in found["options"]}
    assert paid["rent"] == 48 * 5000
    assert paid["reserved_3y_then_rent"] == 48 * 5000  # 36 months of the term and 12 by use


def test_a_mix_draws_a_credit_once_for_all_that_it_rents(layered):
    import gpucost

    asked = {"gpu": "h100-sxm", "provider": "crusoe", "own": False, "as_of": "2026-11-20"}
    found = gpucost.mix(constant=16, months=12, **asked).payload
    rows = {row["name"]: row for row in found["supplies"]}
    assert rows["on_demand"]["usd_per_gpu_hour"] == pytest.approx(0.8 * rows["on_demand"]["list_usd_per_gpu_hour"])
    assert sum(row.get("credits_usd", 0) for row in rows.values()) == 60_000
    assert any("60,000 USD of on demand" in text for text in found["warnings"])


def test_a_book_and_the_agreements_of_commit_charge_one_price_in_one_order(book):
    """The same contract, percentages and credit, as a book and as agreements, for 30 days of one GPU."""
    import numpy as np

    from gpucost.market.terms import credited
    from gpucost.money.commitments import Agreement, Usage, stacked

    text = '[[discount]]\nprovider = "acme"\nfraction = 0.1\n[[discount]]\nprovider = "acme"\nfraction = 0.3\n'
    text += "[[credit]]\nusd = 90\nusd_per_month = 70\n"
    own = '[[offer]]\nlike = "acme/one"\nusd_per_hour = 1.5\nvalid_from = 2025-01-01\n'
    start, end = datetime(2025, 6, 1), datetime(2026, 6, 1)
    held = [
        Agreement("p", "private", start, end, fraction=0.1), Agreement("q", "private", start, end, fraction=0.3),
        Agreement("c", "credit", start, end, usd=90, usd_per_month=70),
    ]  # fmt: skip
    month = Usage(np.datetime64("2025-06-01", "s") + np.arange(30) * np.timedelta64(1, "D"), 24.0, np.ones(30))
    for more, agreements in (("", held), (own, [*held, Agreement("k", "contract", start, end, usd_per_gpu_hour=1.5)])):
        catalog = book(text + more)
        offer = next(item for item in catalog.offers() if item.offer_id == "acme/one")
        bill = offer.usd_per_gpu_hour * 720
        listed = offer.list_usd_per_gpu_hour
        paid = bill - credited(catalog.credits, offer, bill, 720 / 730, date(2025, 6, 1))
        assert paid == pytest.approx(stacked(month, listed, agreements)["total"], abs=0.01)
