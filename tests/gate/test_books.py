"""Books from anybody: prices that contradict each other or cannot be are refused, in TOML, CSV and Parquet alike."""

import json

import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import DataError, UsageError

OFFER = '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\ngpus = 8\nobserved_on = 2026-01-01\n'


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    from benchmarks.catalog import write_book

    folder = tmp_path_factory.mktemp("made")
    write_book(folder, 20, 5)
    return folder / "offers.parquet"


def test_two_prices_of_which_one_must_be_wrong_are_refused(tmp_path):
    book = tmp_path / "book.toml"
    book.write_text(OFFER + "usd_per_gpu_hour = 0.1\nusd_per_hour = 80\n")
    with pytest.raises(DataError, match="contradict"):
        open_catalog(book=book).offers()
    book.write_text(OFFER + "usd_per_gpu_hour = 10\nusd_per_hour = 80\n")
    assert open_catalog(book=book).offers(provider="ours")[0].usd_per_hour == 80


YEAR = OFFER + 'option = "reserved"\nterm_months = 12\n'
RATE = "[exchange_rates]\nEUR = 1.1\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OFFER + 'usd_per_gpu_hour = 1.75\ncurrency = "EUR"\n', "usd_per_gpu_hour is in USD: .* write per_gpu_hour"),
        (YEAR + 'upfront_usd = 87600\ncurrency = "EUR"\n', "is in USD"),
        (YEAR + 'currency = "EUR"\n', "there is not an amount in EUR: .* write per_gpu_hour or per_hour"),
        (YEAR + 'upfront_usd = 9\ncurrency = "EUR"\n', "upfront_usd is in USD: .* write per_gpu_hour or per_hour"),
        (YEAR + 'upfront = 9\ncurrency = "EUR"\n', "upfront: table offers has no such column; .* upfront_usd"),
        (YEAR + 'usd_per_gpu_hour = 2\n"" = 9\n', r"\[offer\]:1: a column has no name: give it one"),
        (YEAR + "upfront = 87600\n", "upfront: table offers has no such column; .* upfront_usd"),
        ('[[credit]]\ncurrency = "EUR"\n', "there is not an amount in EUR: .* write amount or amount_per_month"),
        (OFFER + "usd_per_gpu_hour = 1.75\nper_gpu_hour = 9\n", "usd_per_gpu_hour 1.75 and per_gpu_hour.* contradict"),
        (OFFER + "per_gpu_hour = true\n", "per_gpu_hour: expected a number, found True"),
        (YEAR + "usd_per_gpu_hour = 1.75\nupfront_usd = 87600\nrecurring_usd_per_hour = 10\n", "14 contradicts .* 20"),
        (YEAR + "usd_per_gpu_hour = 4\nupfront_usd = 87600\nrecurring_usd_per_hour = 10\n", "32 contradicts .* 20"),
        (YEAR + "usd_per_gpu_hour = 1\nupfront_usd = 87600\n", "usd_per_hour 8 contradicts .* 10"),
        (OFFER + "usd_per_gpu_hour = 1.75\nupfront_usd = 1000000\n", "term_months"),
        (YEAR.replace("12", "1.5") + "usd_per_gpu_hour = 2\n", "term_months: expected a whole number, found 1.5"),
        (OFFER.replace("8", '"1_6"') + "usd_per_gpu_hour = 2\n", "gpus: expected a number, found '1_6'"),
        (OFFER + "usd_per_gpu_hour = 2\nterm_months = true\n", "term_months: expected a number, found True"),
        (OFFER + 'usd_per_gpu_hour = 2\nsystem = "nosuch"\n', r"\[offer\]:1:system: unknown system 'nosuch'"),
        (
            OFFER + 'usd_per_gpu_hour = 2\nsystem = "dgx-a100"\n',
            "the system dgx-a100-640 holds a100-sxm4-80gb, not h100-sxm5-80gb",
        ),
        (OFFER + "usd_per_gpu_hour = 2\nsystem_id = -1\n", "system_id: expected text, found -1"),
        ("[exchange_rates]\nEUR = 1.1\neur = 2\n", "'EUR' would be both 1.1 and 2 USD"),
        ("[exchange_rates]\nUSD = 2\n", "'USD' would be both 1 and 2 USD"),
        ("[[exchange_rate]]\nusd_per_unit = 2\n", "currency"),
        ("[[credit]]\nusd = 100\namount = 500\n", "usd 100 and amount.* contradict"),
        ("[[credit]]\nusd_per_month = 100\namount = 500\namount_per_month = 90\n", "usd_per_month 100 and amount_per"),
        ('[[credit]]\nusd = 100\ncurrency = "EUR"\n', r"\[credit\]:1:currency: usd is in USD: .* write amount"),
    ],
)
def test_amounts_of_which_one_must_be_wrong_are_refused(tmp_path, text, reason):
    book = tmp_path / "book.toml"
    book.write_text(text + ("" if "[exchange" in text else RATE))
    with pytest.raises(DataError, match=reason):
        _ = open_catalog("2026-02-01", book=book).books


@pytest.mark.parametrize(
    ("text", "usd"),
    [
        (OFFER + 'usd_per_gpu_hour = 2.2\nper_gpu_hour = 2\ncurrency = "EUR"\n', 2.2),
        (OFFER + 'usd_per_gpu_hour = 2\ncurrency = "usd"\n', 2),
        (YEAR + "usd_per_gpu_hour = 2.5\nupfront_usd = 87600\nrecurring_usd_per_hour = 10\n", 2.5),
        (YEAR + "usd_per_gpu_hour = 2.5\nrecurring_usd_per_hour = 10\n", 2.5),  # what is paid at the start is not known
        (YEAR + "usd_per_gpu_hour = 2.5\nupfront_usd = 87600\n", 2.5),
        (OFFER + 'usd_per_gpu_hour = 2.5\nsystem = "DGX H100"\n', 2.5),
        (OFFER + "usd_per_gpu_hour = 2.5\nupfront_usd = 0\n", 2.5),
        (OFFER.replace("8", "8.0") + 'option = "reserved"\nterm_months = "1.2e1"\nusd_per_hour = 20\n', 2.5),
    ],
)
def test_amounts_that_agree_may_stand_beside_each_other(tmp_path, text, usd):
    book = tmp_path / "book.toml"
    book.write_text(f"{text}{RATE}USD = 1\neur = 1.1\n")
    assert open_catalog(book=book).offers(provider="ours")[0].usd_per_gpu_hour == pytest.approx(usd)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("-1.0 AS usd_per_hour", "usd_per_hour"),
        ("-2 AS gpus", "gpus"),
        ("-3.0 AS upfront_usd", "upfront_usd"),
        ("-1 AS term_months", "term_months"),
        ("CAST('nan' AS DOUBLE) AS usd_per_gpu_hour", "usd_per_gpu_hour"),
        ("usd_per_gpu_hour * 8 AS usd_per_hour, 1 AS gpus", "contradict"),
        ("'many' AS gpus", "gpus"),
        ("4 AS minimum_units, 2 AS maximum_units", "minimum_units 4"),
        ("NULL AS observed_on", "observed_on"),
        ("'' AS offer_id", "offer_id"),
        ("'nobody-gpu' AS gpu", "unknown accelerator 'nobody-gpu'"),
    ],
)
def test_a_parquet_book_is_judged_by_the_bounds_of_its_columns(tmp_path, parquet, changed, reason):
    import duckdb

    names = [part.rpartition(" AS ")[2] for part in changed.split(", ")]
    kept = ", ".join(names)
    spoilt = tmp_path / "offers.parquet"
    duckdb.execute(f"CREATE OR REPLACE TEMP TABLE made AS SELECT * FROM '{parquet}'")
    have = {row[0] for row in duckdb.execute("DESCRIBE made").fetchall()}
    left = f"EXCLUDE ({kept})" if set(names) <= have else ""
    duckdb.execute(f"COPY (SELECT * {left}, {changed} FROM made) TO '{spoilt}' (FORMAT parquet)")
    with pytest.raises(UsageError, match=reason):
        open_catalog(book=tmp_path).offers()


@pytest.mark.slow
def test_no_answer_shows_where_a_book_lies(tmp_path):
    folder = tmp_path / "home" / "somebody" / "book"
    folder.mkdir(parents=True)
    (folder / "own.toml").write_text(
        OFFER + 'usd_per_gpu_hour = 0.01\nsource_id = "quote"\n[[source]]\nsource_id = "quote"\npublisher = "ours"\n'
    )
    catalog = open_catalog("2026-02-01", book=folder)
    answer = gpucost.estimate("8b", "10b", gpu="h100-sxm", catalog=catalog)
    assert answer.payload["options"][0]["provider"] == "ours"
    assert "somebody" not in answer.to_json()
    assert "somebody" not in json.dumps(catalog.rows("price_sources"), default=str)


def test_an_unknown_variable_is_named_but_its_value_is_not_shown(monkeypatch):
    from click.testing import CliRunner

    from gpucost.cli import cli

    monkeypatch.setenv("GPUCOST_API_KEY", "sk-secret-1234")
    monkeypatch.setenv("GPUCOST_FORMAT", "table")
    said = CliRunner().invoke(cli, ["config", "--format", "json"]).output
    assert "sk-secret" not in said
    assert "api_key" in said
    assert "limit_query_seconds" in said
