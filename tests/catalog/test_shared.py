"""A process reads its facts once, sees what changed, and hands a catalog to other threads and processes."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

import gpucost
from gpucost.catalog import loader, shared
from gpucost.catalog.calibrations import training_calibration, use
from gpucost.catalog.shared import shared_catalog
from gpucost.market import facts

pytestmark = pytest.mark.later

OWN = "[[offer]]\nprovider = 'x'\ngpu = 'h100-sxm'\nusd_per_hour = {price}\nobserved_on = 2026-11-01\n"
ASKED = {"model": "8b", "tokens": "10b"}


@pytest.fixture
def none_kept(monkeypatch):
    monkeypatch.setattr(shared, "_catalogs", type(shared._catalogs)())


@pytest.fixture
def read(monkeypatch, none_kept):
    """Return the tables that were read and the markets that were made."""
    tables, markets = [], []
    contents, made = loader.read_contents, facts.make_market
    monkeypatch.setattr(
        loader, "read_contents", lambda root, table: (tables.append(table.name), contents(root, table))[1]
    )
    monkeypatch.setattr(facts, "make_market", lambda found: (markets.append(found), made(found))[1])
    return tables, markets


def test_two_questions_read_no_table_twice_and_build_one_market(read):
    tables, markets = read
    first, second = (gpucost.estimate(**ASKED).payload for _ in range(2))
    assert first == second
    assert len(markets) == 1
    assert len(tables) == len(set(tables)) > 5


@pytest.mark.slow
def test_threads_share_one_market(read):
    _, markets = read
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: json.dumps(gpucost.estimate(**ASKED).payload, default=str), range(8)))
    assert len(set(answers)) == len(markets) == 1


def test_a_changed_book_a_refreshed_store_and_another_setting_are_seen(tmp_path, monkeypatch, none_kept):
    book, store = tmp_path / "book", tmp_path / "prices"
    (store / "snapshots").mkdir(parents=True)
    book.mkdir()
    monkeypatch.setenv("GPUCOST_STORE", str(store))
    seen = [shared_catalog()]
    monkeypatch.setenv("GPUCOST_BOOK", str(book))
    for price in (1.5, 2.5):  # as long as one another
        (book / "own.toml").write_text(OWN.format(price=price))
        seen.append(shared_catalog())
        assert shared_catalog() is seen[-1]
        assert [offer.usd_per_gpu_hour for offer in seen[-1].offers(provider="x")] == [price]
    (store / "snapshots" / "20261101T000000000000Z-0123456789abcdef.json").write_text("{}")
    seen.append(shared_catalog())
    seen.append(shared_catalog("2026-01-01"))
    assert shared_catalog("2026-01-01") is seen[-1]
    assert len({id(catalog) for catalog in seen}) == len(seen) == 5


def test_few_catalogs_are_kept(none_kept):
    for day in range(1, 10):
        shared_catalog(f"2026-01-0{day}")
    assert len(shared._catalogs) == 4


@pytest.mark.slow
def test_a_pickled_catalog_answers_alike():
    catalog = gpucost.open_catalog("2026-06-01")
    use(catalog, "training", [{**catalog.rows("calibration")[0], "value": 0.123}])
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.version == catalog.version
    assert copy.offers() == catalog.offers()
    assert training_calibration(copy) == training_calibration(catalog)
    assert training_calibration(copy) != training_calibration(gpucost.open_catalog("2026-06-01"))
    asked = {**ASKED, "gpu": "h100"}
    assert gpucost.estimate(**asked, catalog=copy).payload == gpucost.estimate(**asked, catalog=catalog).payload


def test_what_is_changed_in_an_answer_changes_no_other_one():
    first = gpucost.estimate(**ASKED, gpu="l40s").payload
    kept = json.dumps(first["facts"], default=str)
    for rows in first["facts"].values():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            rows[0].clear()
        rows.clear()
    assert json.dumps(gpucost.estimate(**ASKED, gpu="l40s").payload["facts"], default=str) == kept
