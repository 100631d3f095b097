"""Small tables read without the database: the same rows, and anything unusual left to the database."""

from pathlib import Path

import pytest

from gpucost.catalog.loader import Store, shipped_root
from gpucost.schemas import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_both_readers_return_the_same_rows(name):
    store = Store(shipped_root())
    quick = store.rows(name)
    store.ensure(name)
    assert repr(quick) == repr(store.fetch(f'SELECT * FROM "{name}"'))


def test_one_file_is_read_without_the_database_and_many_with_it():
    store = Store(shipped_root())
    store.rows("accelerators")
    assert "accelerators" not in store._loaded
    store.rows("offers")
    assert "offers" in store._loaded


def rates(folder: Path, text: str) -> Store:
    (folder / "pricing").mkdir()
    (folder / "pricing/exchange_rates.csv").write_bytes(text.encode())
    return Store(folder)


HEADER = ",".join(column.name for column in TABLES["exchange_rates"].columns)


def cells(**known: str) -> str:
    filled = {"currency": "EUR", "on": "2026-01-02", "usd_per_unit": "1.1", "source_id": "s", "confidence": "high"}
    return ",".join((filled | known).get(column.name, "") for column in TABLES["exchange_rates"].columns)


def test_quotes_line_ends_and_empty_cells_are_read_as_the_database_reads_them(tmp_path):
    text = f"{HEADER}\r\n{cells(notes=chr(34) + 'a, b' + chr(34))}\r\n{cells(usd_per_unit='2')}"
    quick = rates(tmp_path, text).rows("exchange_rates")
    slow = Store(tmp_path)
    slow.ensure("exchange_rates")
    assert repr(quick) == repr(slow.fetch("SELECT * FROM exchange_rates"))
    assert len(quick) == 2


def test_a_cell_that_cannot_be_read_is_reported_as_ever(tmp_path):
    from gpucost.errors import DataError

    with pytest.raises(DataError, match="usd_per_unit"):
        rates(tmp_path, f"{HEADER}\n{cells(usd_per_unit='much')}\n").rows("exchange_rates")
