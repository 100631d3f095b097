"""Every number's source survives from the file to the output."""

import csv
import json

import pytest
from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.catalog.loader import shipped_root, table_files
from gpucost.catalog.shipped import sourced_tables
from gpucost.cli import cli
from gpucost.schemas import TABLES


def source_ids_in_files() -> set[str]:
    """Read the CSV files with nothing of ours."""
    found = set()
    for name in ("model_sources", "price_sources"):
        for path in table_files(shipped_root(), TABLES[name]):
            with path.open(encoding="utf-8", newline="") as stream:
                found |= {row["source_id"] for row in csv.DictReader(stream)}
    return found


def test_as_many_sources_in_the_files_after_loading_and_in_the_output():
    in_files = source_ids_in_files()
    catalog = open_catalog()
    loaded = {row["source_id"] for name in ("model_sources", "price_sources") for row in catalog.rows(name)}
    shown = json.loads(CliRunner().invoke(cli, ["data", "sources", "--format", "json"]).stdout)["rows"]
    assert len(in_files) > 100
    assert in_files == loaded == {row["source_id"] for row in shown}


def test_every_row_names_a_source_that_is_there():
    catalog = open_catalog()
    for table in sourced_tables():
        if table.column("source_id").required:
            assert not catalog.query(f'SELECT 1 FROM "{table.name}" WHERE source_id IS NULL', table.name)
        for row in catalog.query(
            f'SELECT DISTINCT source_id FROM "{table.name}" WHERE source_id IS NOT NULL', table.name
        ):
            source = catalog.source(row["source_id"])
            assert source["publisher"], row
            assert source["locator"], row


def test_offers_carry_their_source_into_prices():
    shown = json.loads(CliRunner().invoke(cli, ["prices", "--format", "json"]).stdout)["rows"]
    assert {row["source_id"] for row in shown} <= source_ids_in_files()


@pytest.mark.slow
def test_the_long_view_says_field_value_unit_status_source_and_date():
    catalog = open_catalog()
    rows = catalog.sql("SELECT * FROM facts WHERE \"table\" = 'accelerators' AND entity = 'h100-sxm5-80gb'")
    facts = {row["field"]: row for row in rows}
    assert facts["hbm_gb_per_s"]["number"] == 3350
    assert facts["hbm_gb_per_s"]["unit"] == "GB per second, one direction"
    assert all(row["source"] and row["status"] for row in rows)
    prices = catalog.sql(
        "SELECT count(*) AS n, count(date) AS dated FROM facts WHERE \"table\" = 'offers' AND field = 'usd_per_hour'"
    )[0]
    assert prices["n"] == prices["dated"] == len(catalog.rows("offers"))


@pytest.mark.slow
def test_our_own_estimates_are_marked_as_assumptions():
    catalog = open_catalog()
    join = "facts AS f JOIN price_sources AS s ON s.source_id = f.source"
    query = f"SELECT DISTINCT f.status FROM {join} WHERE s.publisher = 'gpucost'"
    assert [row["status"] for row in catalog.sql(query)] == ["assumed"]
