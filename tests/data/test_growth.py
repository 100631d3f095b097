"""Data grow by a row or a file: each kind of addition passes every check, and what was forgotten is said."""

import csv
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta

import pytest

from gpucost import clock
from gpucost.catalog import open_catalog
from gpucost.catalog.checks import check_folder
from gpucost.schemas import TABLES

from .tables import CHECKOUT, row, rows

P5 = "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"
NIMBUS = {
    "offer_id": "nimbus/gpu-8/8xh100-sxm5-80gb/eu-north/on_demand", "offer_kind": "offer", "provider": "nimbus",
    "instance_type": "gpu-8", "gpu": "h100-sxm5-80gb", "gpu_assumed": "0", "gpus": "8", "region": "eu-north",
    "region_scope": "region", "option": "on_demand", "billing": "per_use", "term_months": "0", "payment": "none",
    "usd_per_hour": "20", "usd_per_gpu_hour": "2.5", "observed_on": "2026-11-18", "recorded_on": "2026-11-18",
    "date_precision": "day", "source_id": "nimbus-price-list", "confidence": "high",
}  # fmt: skip
PRICE_LIST = {
    "source_id": "nimbus-price-list", "publisher": "Nimbus", "title": "Price list",
    "locator": "https://nimbus.example/prices", "accessed_on": "2026-11-18",
}  # fmt: skip
TODAY = max(clock.today(), *(date.fromisoformat(item["recorded_on"]) for item in rows("offers")))
CUT = {
    "observed_on": str(TODAY), "recorded_on": str(TODAY), "valid_from": "", "usd_per_hour": "54.4",
    "usd_per_gpu_hour": "6.8", "recurring_usd_per_hour": "",
}  # fmt: skip


def add(root, table, cells, file=None):
    """Append one row to a table's file, which is begun with a header where it is new."""
    path, names = root / (file or TABLES[table].files), TABLES[table].names
    assert set(cells) <= set(names), set(cells) - set(names)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(cells)


def a_price(root):
    add(root, "offers", {**row("offers", P5), **CUT}, "pricing/offers/aws.csv")


def a_provider(root):
    add(root, "offers", NIMBUS, "pricing/offers/nimbus.csv")
    add(root, "price_sources", PRICE_LIST)
    add(root, "providers", {"provider": "nimbus", "name": "Nimbus", "kind": "cloud", "source_id": "nimbus-price-list"})
    grid = {**row("cloud_regions", "aws"), "provider": "nimbus", "region": "eu-north"}
    add(root, "cloud_regions", grid)


def a_gpu(root):
    add(root, "accelerators", {**row("accelerators", "h200-sxm-141gb"), "id": "x500-sxm", "name": "Maker X500 SXM"})


def a_node(root):
    add(root, "systems", {**row("systems", "dgx-h100"), "id": "our-node", "name": "Our node"})


def a_model(root):
    add(root, "llms", {**row("llms", "llama-3.1-8b"), "id": "nimbus-8b", "family": "nimbus"})


def a_source(root):
    add(root, "model_sources", {**PRICE_LIST, "source_id": "nimbus-report"})


def a_measurement(root):
    for name in ("training_measurements", "serving_measurements"):
        first = next(iter(csv.DictReader((root / TABLES[name].files).open(newline="", encoding="utf-8"))))
        add(root, name, {**first, "id": "nimbus-001"})


def an_ownership_input(root):
    add(root, "ownership", {**row("ownership", "pue.hyperscaler"), "item": "pue.nimbus"})


ADDITIONS = (a_price, a_provider, a_gpu, a_node, a_model, a_source, a_measurement, an_ownership_input)


def copied(root):
    for folder in ("pricing", "models"):
        shutil.copytree(CHECKOUT / folder, root / folder)
    return root


@pytest.fixture
def root(tmp_path):
    """Return a copy of the data folders."""
    return copied(tmp_path)


def faults(root):
    return [str(fault) for fault in check_folder(root).faults]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Return a copy of the data folders with every addition."""
    root = copied(tmp_path_factory.mktemp("grown"))
    for addition in ADDITIONS:
        addition(root)
    return root


@pytest.mark.slow
def test_additions_have_no_fault(grown):
    assert faults(grown) == []


@pytest.mark.slow
def test_what_was_added_is_answered(grown):
    catalog = open_catalog(root=grown, checked=False)
    prices = {offer.offer_id: offer.usd_per_hour for offer in catalog.offers(gpu="h100-sxm")}
    assert (prices[P5], prices[NIMBUS["offer_id"]]) == (54.4, 20)
    yesterday = open_catalog(TODAY, TODAY - timedelta(days=1), root=grown, checked=False).offers(provider="aws")
    assert 54.4 not in {offer.usd_per_hour for offer in yesterday if offer.offer_id == P5}
    assert catalog.accelerator("x500").id == "x500-sxm"
    assert catalog.architecture("nimbus-8b").layers == 32
    assert catalog.system("our-node").gpus == 8
    assert catalog.source("nimbus-report")["publisher"] == "Nimbus"
    assert "nimbus-001" in {item["id"] for item in catalog.rows("training_measurements")}


# On past days an addition of today changes nothing.
PAST = "as_its_provider_listed_it_on_that_day or cut_of_june or list_prices"


@pytest.mark.more
@pytest.mark.slow
def test_every_check_of_rows_holds_over_the_grown_data(grown):
    """Run the tests of this folder in a process of their own, over the copy with more rows."""
    tests = [str(path) for path in (CHECKOUT / "tests/data").glob("test_*.py") if path.stem != "test_growth"]
    asked = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", f"not ({PAST})", *tests]
    environment = {**os.environ, "DATA_UNDER_TEST": str(grown)}
    run = subprocess.run(asked, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]


FORGOTTEN = {
    "its provider": (
        {},
        ("price_sources", "cloud_regions"),
        "'{name}' is not in pricing/providers.csv: add it there",
    ),
    "its source": (
        {},
        ("providers", "cloud_regions"),
        "'{name}-price-list' is not in pricing/sources.csv: add it there",
    ),
    "its grid": ({}, ("providers", "price_sources"), "'eu-north' of {name} is not in pricing/cloud_regions.csv"),
    "its accelerator": ({"gpu": "x500-sxm"}, (), "'x500-sxm' is not in models/accelerators.csv"),
    "its node": ({"system_id": "nimbus-node"}, (), "'nimbus-node' is not in models/systems.csv: add it there"),
    "the node's accelerator": ({"system_id": "dgx-b200"}, (), "dgx-b200 holds 8 × b200-sxm"),
    "the price per GPU": ({"usd_per_gpu_hour": "20"}, (), "20 is not usd_per_hour ÷ gpus = 2.5"),
    "the day of learning": ({"recorded_on": "2026-11-17"}, (), "lies before the observation"),
    "the term": ({"option": "reserved"}, (), "a reserved price needs the length of its term"),
    "the payment": (
        {"option": "reserved", "term_months": "12", "billing": "take_or_pay"},
        (),
        "a reserved price is paid whether used or not",
    ),
    "the region": ({"region": ""}, (), "a price for the scope region needs a region"),
}


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    """Return what is said of data in which a contributor forgot one thing at each of several providers."""
    root = copied(tmp_path_factory.mktemp("forgetful"))
    for number, (cells, present, _) in enumerate(FORGOTTEN.values()):
        name = f"nimbus{number}"
        here = {"provider": name, "source_id": f"{name}-price-list"}
        id_ = NIMBUS["offer_id"].replace("nimbus", name)
        add(root, "offers", {**NIMBUS, **here, "offer_id": id_, **cells}, f"pricing/offers/{name}.csv")
        for table in present or ("providers", "price_sources", "cloud_regions"):
            if table == "providers":
                add(root, table, {"provider": name, "name": "Nimbus", "kind": "cloud"})
            elif table == "price_sources":
                add(root, table, {**PRICE_LIST, "source_id": here["source_id"]})
            else:
                add(root, table, {**row("cloud_regions", "aws"), "provider": name, "region": "eu-north"})
    return faults(root)


@pytest.mark.slow
@pytest.mark.parametrize("what", FORGOTTEN)
def test_what_a_contributor_forgot_is_said(forgetful, what):
    name = f"nimbus{list(FORGOTTEN).index(what)}"
    said = FORGOTTEN[what][2].format(name=name)
    found = [fault for fault in forgetful if f"{name}.csv:2:" in fault]
    assert any(said in fault for fault in found), found


@pytest.mark.more
def test_a_key_in_two_files_an_alias_to_nothing_and_a_range_without_its_middle_are_said(root):
    first = row("offers", P5)
    add(root, "offers", first, "pricing/offers/zzz.csv")
    add(root, "aliases", {"kind": "model", "alias": "nosuch-model", "id": "nosuch"})
    add(root, "ownership", {**row("ownership", "pue.hyperscaler"), "item": "pue.odd", "typical": "99"})
    said = "\n".join(faults(root))
    assert "zzz.csv:2:offer_id: the same offer_id, valid_from" in said
    assert "'nosuch' is no model that the tables know" in said
    assert "99 lies" in said


@pytest.mark.more
def test_a_source_that_nothing_names_yet_is_a_doubt(root):
    before = [one.reason for one in check_folder(root).doubts if one.column == "source_id"]
    a_source(root)
    after = [one.reason for one in check_folder(root).doubts if one.column == "source_id"]
    assert after == [*before, "no row names this source yet"]


@pytest.mark.more
def test_a_year_of_daily_prices_is_checked_in_time_that_grows_with_its_rows(root):
    """Sixty thousand prices of one accelerator: a median over all of them for each would be 3.6 billion steps."""
    from gpucost.catalog.checks import reference
    from gpucost.catalog.price_checks import check_prices, load_prices

    catalog = open_catalog(root=root, checked=False)
    model = next(item for item in catalog.rows("offers") if item["offer_id"] == P5)
    days = [date(2026, 1, 1) + timedelta(days=i % 300) for i in range(60_000)]
    many = [
        {**model, "offer_id": f"{P5}-{i}", "observed_on": day, "recorded_on": day, "valid_from": None}
        for i, day in enumerate(days)
    ]
    tables = {"offers": many}
    known = reference(lambda name: tables.get(name) or catalog.rows(name), TODAY)
    prices = load_prices(catalog.store, "many", list(enumerate(many, 2)))
    found = list(check_prices(catalog.store, prices, prices, known))
    assert [finding for finding in found if not finding.doubt] == []
