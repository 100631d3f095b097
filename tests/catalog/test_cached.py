"""Offers kept from an earlier start: the same as those asked for anew, and never anything else."""

import sys
from datetime import date

import pytest

from gpucost.catalog import cached, core, open_catalog
from gpucost.catalog.core import Catalog
from gpucost.schemas import HISTORY
from tests.catalog.world import offer, world

pytestmark = pytest.mark.later


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Count how often the database is asked for the offers, from a folder that is empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count, ask = [], Catalog._queried_offers
    monkeypatch.setattr(Catalog, "_queried_offers", lambda self: count.append(1) or ask(self))
    return count


def test_the_second_start_finds_what_the_first_asked_for(asked):
    first, second = open_catalog(), open_catalog()
    offers = first.offers()
    assert second.offers() == offers
    assert len(offers) > 1000
    assert (second.ended, second.version, second.dated) == (first.ended, first.version, first.dated)
    assert len(asked) == 1
    assert second.store._connection is None


@pytest.mark.parametrize("harm", ["cut", "changed", "no file", "a folder"])
def test_what_was_harmed_is_asked_for_again(asked, harm):
    offers = open_catalog().offers()
    file = cached._offers_file()
    data = file.read_bytes()
    file.unlink()
    if harm == "a folder":
        file.mkdir()
    elif harm != "no file":
        file.write_bytes(data[:-100] if harm == "cut" else data.replace(b"lambda", b"lambdb", 1))
    assert open_catalog().offers() == offers
    assert len(asked) == 2


def test_another_day_rule_or_table_finds_nothing(asked, monkeypatch):
    offers = open_catalog().offers()
    assert open_catalog(open_catalog().as_of).offers() == offers
    assert len(asked) == 2, "a day that is named is asked for"
    store = open_catalog().store
    assert cached.read(store, core.RULE)
    assert not cached.read(store, core.RULE + " ")
    monkeypatch.setattr(store, "contents", lambda name: type("Other", (), {"digest": "0"}))
    assert not cached.read(store, core.RULE)


def test_a_private_book_is_never_kept(asked, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text(
        '[[offer]]\nprovider = "lambda"\ngpu = "h100-sxm"\ngpus = 8\noption = "on_demand"\nusd_per_gpu_hour = 0.77\n'
        'observed_on = 2026-06-01\nregion = "us-east-1"\ninstance_type = "ours"\n'
    )
    own = open_catalog(book=tmp_path / "book").offers("h100-sxm")
    assert any(offer.usd_per_gpu_hour == 0.77 for offer in own)
    assert not cached._offers_file().exists()
    assert not any(offer.usd_per_gpu_hour == 0.77 for offer in open_catalog().offers("h100-sxm"))
    assert b"0.77," not in cached._offers_file().read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="names its folder by a variable")
def test_without_a_folder_to_write_it_is_asked_for_each_time(asked, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    assert open_catalog().offers() == open_catalog().offers()
    assert len(asked) == 2


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Count how often the dense history is made of its tables, from a folder that is empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count, keep = [], cached.keep_history
    monkeypatch.setattr(cached, "keep_history", lambda *given: count.append(1) or keep(*given))
    return count


def past(root, book=None):
    """Return the dense history and the shape of its table, seen from a day of the past."""
    catalog = Catalog(date(2025, 6, 30), None, root, {} if book is None else {"user": book})
    catalog.prepare_prices()
    store = catalog.store
    return store.fetch("FROM history_offers ORDER BY ALL"), store.fetch("DESCRIBE history_offers")


def seen_in(root, *months):
    """Write a history of one machine, seen at the beginning of some months."""
    file = root / "pricing/history/test.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    cells = {"provider": "aws", "instance_type": "one", "gpu": "h100-sxm5-80gb", "gpus": 1, "option": "spot",
             "term_months": 0, "usd_per_hour": 2, "event": "price", "source_id": "p"}  # fmt: skip
    rows = [{**cells, "observed_on": f"2025-0{month}-01"} for month in months]
    lines = [",".join(str(row.get(name, "")) for name in HISTORY.names) for row in rows]
    file.write_text("\n".join((",".join(HISTORY.names), *lines, "")), "utf-8")


@pytest.mark.parametrize("harm", ["none", "cut", "changed", "gone", "another table"])
def test_a_history_is_kept_whole_or_made_again(made, tmp_path, harm):
    root = world(tmp_path, [offer("acme/one", 2.0, "2025-12-01")])
    seen_in(root, 1, 2, 3)
    first = past(root)
    assert len(first[0]) == 3
    [file] = cached._history_folder().glob("*")
    if harm == "another table":
        seen_in(root, 1, 2)
        assert len(past(root)[0]) == 2
        assert [other != file for other in cached._history_folder().glob("*")] == [True], "one history is kept"
    else:
        data = file.read_bytes()
        harmed = {"none": data, "cut": data[:-9], "changed": data.replace(b"aws", b"awt", 1), "gone": b""}[harm]
        file.unlink() if harm == "gone" else file.write_bytes(harmed)
        assert past(root) == first
    assert len(made) == 1 + (harm != "none")


def test_a_history_beside_a_book_is_never_kept(made, tmp_path):
    root = world(tmp_path / "data", [offer("acme/one", 2.0, "2025-12-01")])
    seen_in(root, 1)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text(
        '[[system]]\nid = "aws-one"\ngpu = "h100-sxm5-80gb"\ngpus = 1\n', "utf-8"
    )
    assert past(root, tmp_path / "book")[0][0]["system_id"] == "aws-one"
    assert not cached._history_folder().exists()


@pytest.mark.parametrize("harm", [b"", b"0\ntext", b"\xff", None])
def test_a_text_is_made_once_and_again_where_its_bytes_are_not_whole(monkeypatch, tmp_path, harm):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return "text\r\n\u2028"

    assert cached.text("a-1.js", make) == cached.text("a-1.js", make) == make()
    assert len(made) == 2
    if harm is not None:
        (cached.cache_folder() / "a-1.js").write_bytes(harm)
        assert cached.text("a-1.js", make) == make()
        assert len(made) == 4
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
        assert cached.text("a-1.js", make) == make()
