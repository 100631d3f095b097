"""The data dictionary is complete in itself: kinds, units by suffix, bounds, keys and references that exist."""

import re

import pytest

from gpucost.gate import beside
from gpucost.schemas import DUCKDB_TYPES, HISTORY, TABLES, dictionary, row_model
from gpucost.units import unit_of
from tests.rules import for_each

COLUMNS = [(table, column) for table in TABLES.values() for column in table.columns]


@for_each("table", TABLES.values(), lambda table: table.name)
def test_a_table_has_its_key_and_leads_somewhere(table):
    assert table.description.endswith(".")
    assert set(table.key) <= set(table.names)
    assert len(set(table.names)) == len(table.names)
    assert re.fullmatch(r"(pricing|models)/[a-z_/*]+\.csv", table.files)


def test_every_column_is_described_and_of_a_known_kind():
    for table, column in COLUMNS:
        assert column.kind in DUCKDB_TYPES, (table.name, column)
        assert column.description, (table.name, column)
        assert column.refers_to in ("", "sources", *TABLES), (table.name, column)


def test_the_unit_of_a_column_is_the_one_that_its_suffix_states():
    for table, column in COLUMNS:
        if column.kind in ("number", "integer"):
            assert unit_of(column.name) in ("", column.unit), (table.name, column)
        else:
            assert column.unit == "", (table.name, column)
        if column.name.endswith("_fraction"):
            assert (column.low, column.high) in ((0, 1), (None, None)), (table.name, column)


def test_only_numbers_have_bounds_and_only_text_is_a_closed_list():
    for table, column in COLUMNS:
        bounded = column.positive or column.low is not None or column.high is not None
        assert not bounded or column.kind in ("number", "integer"), (table.name, column)
        assert not column.choices or column.kind == "text", (table.name, column)
        assert len(set(column.choices)) == len(column.choices), (table.name, column)


def test_the_model_of_a_row_has_the_same_columns():
    for table in TABLES.values():
        fields = row_model(table.name).model_fields
        assert tuple(fields) == table.names
        assert [field.is_required() for field in fields.values()] == [column.required for column in table.columns]


def test_every_choice_belongs_to_a_column_and_the_columns_of_a_key_are_counted_from_one():
    names = {(table.name, name) for table in (*TABLES.values(), HISTORY) for name in table.names}
    choices = beside(dictionary.__file__, "choices")[1:]
    assert {(table, column) for table, column, _ in choices} <= names
    keys: dict[str, list[str]] = {}
    for table, _, _, _, key, *_ in beside(dictionary.__file__, "columns")[1:]:
        keys.setdefault(table, []).extend([key] * bool(key))
    for table, places in keys.items():
        assert sorted(map(int, places)) == list(range(1, len(places) + 1)), table
        assert places, table


def test_an_unknown_table_has_no_columns():
    assert "nosuch" not in TABLES
    with pytest.raises(KeyError):
        TABLES["nosuch"]
