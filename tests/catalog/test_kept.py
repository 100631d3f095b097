"""Offers kept from an earlier start: the same as those asked for anew, and never anything else."""

import sys

import pytest

from gpucost.catalog import core, kept, open_catalog
from gpucost.catalog.core import Catalog


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Count how often the database is asked for the offers, from a folder that is empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count, ask = [], Catalog._asked_offers
    monkeypatch.setattr(Catalog, "_asked_offers", lambda self: count.append(1) or ask(self))
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
    file = kept._file()
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
    assert kept.read(store, core.RULE)
    assert not kept.read(store, core.RULE + " ")
    monkeypatch.setattr(store, "contents", lambda name: type("Other", (), {"digest": "0"}))
    assert not kept.read(store, core.RULE)


def test_a_private_book_is_never_kept(asked, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text(
        '[[offer]]\nprovider = "lambda"\ngpu = "h100-sxm"\ngpus = 8\noption = "on_demand"\nusd_per_gpu_hour = 0.77\n'
        'observed_on = 2026-06-01\nregion = "us-east-1"\ninstance_type = "ours"\n'
    )
    own = open_catalog(book=tmp_path / "book").offers("h100-sxm")
    assert any(offer.usd_per_gpu_hour == 0.77 for offer in own)
    assert not kept._file().exists()
    assert not any(offer.usd_per_gpu_hour == 0.77 for offer in open_catalog().offers("h100-sxm"))
    assert b"0.77," not in kept._file().read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="names its folder by a variable")
def test_without_a_folder_to_write_it_is_asked_for_each_time(asked, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    assert open_catalog().offers() == open_catalog().offers()
    assert len(asked) == 2
