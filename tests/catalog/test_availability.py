"""Which machine is sold where: what dated lists say of a price, and what cannot be ordered therefore."""

from datetime import date

import pytest

import gpucost
from benchmarks.availability import shaped
from gpucost.catalog import open_catalog
from gpucost.catalog.availability import UNSOLD, Availability
from gpucost.catalog.checks import reference
from gpucost.catalog.datacheck import check_one
from gpucost.catalog.price_checks import load_prices, placed
from gpucost.catalog.prices import current
from gpucost.errors import DataError
from gpucost.schemas import TABLES

SPRING, SUMMER, AUTUMN = date(2026, 5, 20), date(2026, 8, 3), date(2026, 10, 1)


def row(provider, machine, region, evidence, source_id, on=SPRING, spot=None, zones=None):
    return {
        "provider": provider, "machine": machine, "region": region, "zones": zones, "on_demand": None, "spot": spot,
        "list": source_id,
        "evidence": evidence, "observed_on": on, "source_id": source_id,
    }  # fmt: skip


def offer(provider, machine, region, option="on_demand", seen_on=SPRING, book="shipped", kind="list"):
    return {
        "provider": provider, "instance_type": machine, "region": region, "option": option, "observed_on": seen_on,
        "source_id": "price", "book": book, "price_kind": kind,
    }  # fmt: skip


LISTS = [
    row("clouds", "big.8", "north", "machines", "zones", zones="north-a north-b"),
    row("clouds", "big.8", "south", "machines", "zones", spot=False),
    row("clouds", "small.1", "east", "machines", "zones"),
    row("clouds", "big", "north", "chips", "page", SUMMER),
    row("clouds", "big", "south", "chips", "page", SUMMER),
    row("clouds", "rack", "west", "chips", "page", SUMMER),
    row("listed", "big.8", "north", "prices", "list", SUMMER),
    row("listed", "small.1", "south", "prices", "list", SUMMER),
]


def status(*given, **more):
    return Availability(LISTS, AUTUMN).of(offer(*given, **more)).status


def test_a_list_of_machines_says_where_one_is_sold_and_in_which_zones():
    sale = Availability(LISTS, AUTUMN).of(offer("clouds", "big.8", "north"))
    assert (sale.status, sale.listed_on, sale.zones) == ("listed", SPRING, "north-a north-b")


def test_a_machine_that_lists_have_elsewhere_alone_is_not_sold():
    assert status("clouds", "small.1", "north") == "unlisted"
    assert status("clouds", "big.8", "east") == "unlisted"


def test_spot_is_sold_where_the_list_does_not_deny_it():
    assert status("clouds", "big.8", "south") == "listed"
    assert status("clouds", "big.8", "south", "spot") == "unlisted"


def test_a_newer_list_of_chips_overrules_a_zone():
    lists = [*LISTS, row("clouds", "big.8", "east", "machines", "zones")]
    assert Availability(lists, AUTUMN).of(offer("clouds", "big.8", "east")).status == "unlisted"


def test_a_list_of_chips_alone_places_a_machine():
    assert status("clouds", "rack-72", "west") == "listed"
    assert status("clouds", "rack-72", "north") == "unlisted"


def test_a_price_list_proves_little_and_a_later_price_as_much():
    assert status("listed", "big.8", "north") == "priced"
    assert status("listed", "big.8", "south") == "unlisted"
    assert status("listed", "big.8", "south", seen_on=AUTUMN) == "priced"
    assert status("clouds", "big.8", "east", seen_on=AUTUMN) == "unlisted"  # its prices prove nothing


def test_what_no_list_speaks_of_is_unknown():
    assert status("others", "big.8", "north") == "unknown"
    assert status("clouds", "new.8", "north") == "unknown"
    assert status("clouds", "big.8", None) == "unknown"


def test_a_contract_of_the_user_is_never_denied():
    assert status("clouds", "small.1", "north", book="user") == "unknown"
    assert status("clouds", "small.1", "north", kind="contracted") == "unknown"


def test_an_undated_list_adds_and_excludes_nothing():
    lists = [
        row("clouds", "big.8", "north", "machines", "undated", on=None),
        row("clouds", "small.1", "east", "machines", "undated", on=None),
    ]
    seen = Availability(lists, AUTUMN)
    assert seen.of(offer("clouds", "big.8", "north")).status == "listed"
    assert seen.of(offer("clouds", "big.8", "east")).status == "unknown"


def test_an_old_list_of_machines_yields_to_a_newer_one():
    lists = [
        row("clouds", "big.8", "north", "machines", "old", date(2024, 6, 1)),
        row("clouds", "big.8", "south", "machines", "new", SUMMER),
        row("clouds", "small.1", "north", "machines", "new", SUMMER),
    ]
    assert Availability(lists, AUTUMN).of(offer("clouds", "big.8", "north")).status == "unlisted"


def test_a_day_of_knowledge_hides_later_lists_where_an_earlier_one_speaks():
    before = Availability(LISTS, SPRING)
    assert before.of(offer("clouds", "rack-72", "north")).status == "unknown"
    assert Availability(LISTS, date(2025, 1, 1)).of(offer("clouds", "small.1", "north")).status == "unlisted"


@pytest.mark.parametrize(("machine", "region"), [("g2-standard-4", "us-east5"), ("a2-highgpu-1g", "us-east4")])
def test_google_sells_no_such_machine_there(machine, region):
    """Google's list of GPU locations has neither L4 in us-east5 nor A100 40GB in us-east4."""
    catalog = open_catalog("2026-11-20")
    assert not [one for one in catalog.offers(provider="gcp", region=region) if one.instance_type == machine]
    rows = [one for one in current(catalog, catalog.offer_filter(None, "gcp", region, None), None)[0]
            if one["instance_type"] == machine]  # fmt: skip
    assert rows
    assert {one["not_ranked_because"] for one in rows} == {"not sold in its region"}
    assert catalog.ended[UNSOLD]


def test_google_sells_what_its_zones_have():
    sold = {
        one.region for one in open_catalog("2026-11-20").offers(provider="gcp") if one.instance_type == "g2-standard-48"
    }
    assert {"us-central1", "us-east4", "europe-west4"} <= sold


def test_a_list_becomes_a_row_per_region():
    cells = {"provider": "gcp", "on_demand": "y", "observed_on": "2026-05-20"}
    source = "github:anycloud-sh/catalog gcp/vms.csv @62ff0a98"
    raw = [
        {**cells, "machine": "tpu-v6e-4", "region": "us-east5", "zone": "us-east5-a", "spot": "n", "source": source},
        {**cells, "machine": "tpu-v6e-8", "region": "us-east5", "zone": "us-east5-b", "spot": "y", "source": source},
    ]
    (made,) = shaped(raw)
    assert (made["machine"], made["zones"], made["spot"]) == ("TPU v6e chip", "us-east5-a us-east5-b", "1")


def test_data_check_doubts_what_is_not_sold_and_refuses_another_fabric():
    catalog = open_catalog("2026-11-20")
    known = reference(catalog.rows, date(2026, 11, 20))
    cells = {**dict.fromkeys(TABLES["offers"].names), "option": "on_demand", "observed_on": date(2026, 7, 1)}
    phantom = {**cells, "provider": "gcp", "instance_type": "g2-standard-4", "region": "us-east5", "source_id": "list"}
    other = {**cells, "provider": "aws", "system_id": "aws-p5.48xlarge", "interconnect": "InfiniBand NDR 3200G"}
    prices = load_prices(catalog.store, "placed_prices", [(7, phantom), (8, other)])
    found = {finding.row: finding for finding in placed(catalog.store, prices, known)}
    assert found[7].doubt
    assert "g2-standard-4 is not sold in us-east5" in found[7].reason
    assert not found[8].doubt
    assert "contradicts the machine: aws-p5.48xlarge is joined by EFA" in found[8].reason


BOOK = "provider,instance_type,gpu,gpus,region,option,usd_per_hour,observed_on,interconnect\n"


def book_of(folder, line):
    (folder / "offers.csv").write_text(BOOK + line + "\n")
    return folder


@pytest.mark.slow
def test_a_price_of_ones_own_counts_where_no_list_has_the_machine_and_is_marked(tmp_path):
    line = "gcp,a3-highgpu-8g,h100-sxm,8,us-central9,on_demand,8,2026-11-20,"
    catalog = open_catalog("2026-11-24", book=book_of(tmp_path, line))
    (own,) = list(catalog.offers(provider="gcp", region="us-central9"))
    assert own.sale == "unknown"
    assert gpucost.estimate("8b", "100b", gpu="h100-sxm", catalog=catalog).best["region"] == "us-central9"
    report = check_one(catalog, tmp_path / "offers.csv", None)
    assert not report.faults
    assert "not sold in us-central9" in report.doubts[0].reason
    assert "your own" in report.doubts[0].reason


def test_a_fabric_that_contradicts_the_machine_is_refused_with_its_row(tmp_path):
    line = "aws,p5.48xlarge,h100-sxm,8,us-east-1,on_demand,40,2026-11-20,InfiniBand 3200G"
    book = book_of(tmp_path, line)
    with pytest.raises(DataError, match=r"offers.csv:2:interconnect: 'InfiniBand 3200G' contradicts the machine"):
        open_catalog("2026-11-24", book=book).offers()
    report = check_one(open_catalog("2026-11-24"), book / "offers.csv", None)
    assert [fault.column for fault in report.faults] == ["interconnect"]
    assert open_catalog("2026-11-24", book=book_of(tmp_path, line.replace("InfiniBand", "EFA"))).offers()
