"""Every shipped file is what its schema says, and every number leads to a source."""

import csv
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import gpucost
from gpucost.options import OPTIONS, Family, OptionRule
from gpucost.schemas import TABLES, DataTable
from gpucost.schemas.validation import check_file
from tests.rules import for_each

from .tables import ROOT, files, identity, lines, original, original_rows, rows

# of the program that is tested: the data may lie elsewhere
with Path(gpucost.__file__).with_name("options.csv").open(newline="", encoding="utf-8") as options:
    OPTION_ROWS = list(csv.DictReader(options))

pytestmark = pytest.mark.later

KEYS = ("source_id", "second_source_id")
SHIPPED = [table for table in TABLES.values() if files(table)]


def source_table(table: DataTable) -> str:
    return "model_sources" if table.files.startswith("models") else "price_sources"


@pytest.mark.slow
@for_each("table", SHIPPED, lambda table: table.name)
def test_follows_its_schema(table):
    faults = [str(fault) for path in files(table) for fault in check_file(table, path)[1]]
    assert not faults, faults[:5]


@for_each("table", SHIPPED, lambda table: table.name)
def test_is_plain_utf8_with_the_columns_in_order(table):
    for path in files(table):
        data = path.read_bytes()
        assert b"\r" not in data
        assert not data.startswith(b"\xef\xbb\xbf")
        assert data.endswith(b"\n")
        data.decode("utf-8")
        assert data.split(b"\n", 1)[0].decode() == ",".join(column.name for column in table.columns)


@for_each("table", SHIPPED, lambda table: table.name)
def test_keys_are_unique_over_all_files_of_a_table(table):
    keys = [tuple(item[column] for column in table.key) for item in rows(table.name)]
    assert len(set(keys)) == len(keys)


@for_each("table", SHIPPED, lambda table: table.name)
def test_every_reference_leads_somewhere(table):
    for column in table.columns:
        if not column.refers_to:
            continue
        target = source_table(table) if column.refers_to == "sources" else column.refers_to
        known = {item[TABLES[target].key[0]] for item in rows(target)}
        missing = {item[column.name] for item in rows(table.name)} - known - {""}
        assert not missing, (column.name, sorted(missing)[:3])


@pytest.mark.parametrize("folder", ["models", "pricing"])
def test_every_source_that_a_row_names_says_where_to_look(folder):
    tables = [path for path in sorted((ROOT / folder).rglob("*.csv")) if path.name != "sources.csv"]
    used = {item[key] for path in tables for item in lines(path) for key in item if key in KEYS}
    known = {item["source_id"]: item for item in lines(ROOT / folder / "sources.csv")}
    assert used - {""} <= set(known)
    assert all(item["locator"].strip() and item["title"].strip() for item in known.values())


def test_no_row_that_the_tables_began_with_was_lost():
    """Rows may be added. One that was wrong is answered by a newer one and stays; only its words may be mended.

    A system has one street price: that of its last years, for which the manifest is written anew.
    """
    for name, began in original().items():
        now = {identity(TABLES[name], item) for item in rows(name)}
        assert began <= now, f"{name}: {len(began - now)} rows are gone"


def test_the_manifest_tells_rows_apart():
    for name, began in original().items():
        assert len(began) == len(original_rows(name)), name


def test_ranges_hold_their_typical_value():
    for name in ("ownership", "energy"):
        for item in rows(name):
            low, typical, high = (float(item[part]) for part in ("low", "typical", "high"))
            assert low <= typical <= high, item["item"]


def test_aliases_lead_to_names():
    named = {
        "accelerator": {item["id"] for item in rows("accelerators")},
        "flagship": {item["id"] for item in rows("accelerators")},
        "system": {item["id"] for item in rows("systems")},
        "model": {item["id"] for item in rows("llms")},
        "provider": {item["provider"] for item in rows("providers")},
        "region": {item["region"] for item in rows("cloud_regions")},
        "option": set(OPTIONS),
    }
    lost = [(item["alias"], item["id"]) for item in rows("aliases") if item["id"] not in named[item["kind"]]]
    assert not lost
    assert all(item["alias"] == item["alias"].lower() for item in rows("aliases"))


def test_every_provider_of_an_offer_is_described():
    assert {item["provider"] for item in rows("offers")} <= {item["provider"] for item in rows("providers")}


@for_each("option", OPTION_ROWS, called=lambda option: option["option"])
def test_a_purchase_option_says_yes_or_nothing_and_is_of_a_known_family(option):
    flags = {name for name, kind in get_type_hints(OptionRule).items() if kind is bool}
    assert {option[name] for name in flags} <= {"yes", ""}
    assert option["family"] in get_args(Family)
