"""Lists of where machines are sold: each as its source writes it, judged, kept in the store, and heeded by offers.

The samples are named in `samples/README.md`. Answers of the clouds' own services are written out here as their
references document them.
"""

from datetime import date, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gpucost import clock
from gpucost.catalog import open_catalog
from gpucost.catalog.availability import Availability
from gpucost.refresh import karpenter
from gpucost.refresh.registry import SOURCES
from gpucost.refresh.run import RefreshOptions, refresh
from gpucost.store.folder import Folder
from tests.refresh.server import Server, send

SAMPLES = Path(__file__).parent / "samples"
RAW = "/raw.githubusercontent.com"
TODAY = clock.today()


def sample(name):
    return (SAMPLES / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


@pytest.fixture
def ask(tmp_path, catalog):
    """Return a function that refreshes from some sources and returns the first outcome and its rows on record."""

    def asked(names, routes, **wish):
        with Server(routes) as server:
            outcomes, _ = refresh(catalog, Folder(tmp_path / "store"), names, RefreshOptions(mirror=server.url, **wish))
            asked.server = server
        after = open_catalog(store=tmp_path / "store")
        asked.catalog = after
        rows = [row for row in after.rows("availability") if row["source_id"] == f"{names[0]}-at-{TODAY}"]
        return outcomes[0], {(row["machine"], row["region"]): row for row in rows}

    return asked


def machine_types(**zones):
    return {
        "items": {
            f"zones/{zone.replace('_', '-')}": (
                {"machineTypes": [{"name": name, "guestCpus": 208, "zone": zone} for name in names]}
                if names
                else {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
            )
            for zone, names in zones.items()
        }
    }


GCP = "/compute.googleapis.com/compute/v1/projects/ours/aggregated/machineTypes"


def test_google_s_own_list_names_the_zones_of_a_machine_over_several_pages(ask, monkeypatch):
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "secret-token")
    monkeypatch.setenv("GCP_PROJECT", "ours")
    first = machine_types(us_central1_a=["a3-highgpu-8g", "n2-standard-8"], us_east5_a=[]) | {"nextPageToken": "more"}
    last = machine_types(us_central1_b=["a3-highgpu-8g"], europe_west4_b=["g2-standard-48"])
    heard = []

    def answer(request):
        heard.append((request.headers["authorization"], parse_qs(urlsplit(request.path).query).get("pageToken")))
        send(request, last if heard[-1][1] else first)

    outcome, rows = ask(["gcp-zones"], {GCP: answer})
    assert outcome.state == "published", outcome.reason
    assert heard == [("Bearer secret-token", None), ("Bearer secret-token", ["more"])]
    assert set(rows) == {("a3-highgpu-8g", "us-central1"), ("g2-standard-48", "europe-west4")}
    assert rows["a3-highgpu-8g", "us-central1"]["zones"] == "us-central1-a us-central1-b"
    assert rows["a3-highgpu-8g", "us-central1"]["evidence"] == "machines"


PAGE = "/docs.cloud.google.com/compute/docs/gpus/gpu-regions-zones"


def page(*rows):
    cells = "".join(
        f"<tr><td><code>{zone}</code></td><td>There</td><td>yes</td><td>{series}</td></tr>" for zone, series in rows
    )
    return f"<html><table><tr><th>Zone</th><th>Location</th><th>GPU</th><th>Series</th></tr>{cells}</table></html>"


def test_google_s_page_names_the_regions_of_a_chip_and_longer_names_are_no_shorter_ones(ask):
    table = page(
        ("us-central1-a", "A4X Max, A3 High, A3 Edge, <b>G2</b>"),
        ("us-east4-b", "A4X<br>A4"),
        ("asia-east1-c", "N1+T4"),
    )
    outcome, rows = ask(["gcp-gpu-regions"], {PAGE: table}, accept=True)
    assert outcome.state == "published", outcome.reason
    assert {name for name, region in rows if region == "us-central1"} == {"a4x-maxgpu", "a3-highgpu", "a3-megagpu"}
    assert {name for name, region in rows if region == "us-east4"} == {"a4x-highgpu", "a4-highgpu"}
    assert not [region for _, region in rows if region == "asia-east1"]
    assert {row["evidence"] for row in rows.values()} == {"chips"}


def test_azure_s_list_says_where_a_machine_may_be_ordered_and_whether_as_spot(ask, monkeypatch):
    monkeypatch.setenv("AZURE_ACCESS_TOKEN", "secret-token")
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "1-2-3")

    def sku(name, region, zones=(), low_priority="True", kind="virtualMachines"):
        return {
            "resourceType": kind,
            "name": name,
            "locations": [region],
            "locationInfo": [{"location": region, "zones": list(zones)}],
            "capabilities": [{"name": "vCPUs", "value": "96"}, {"name": "LowPriorityCapable", "value": low_priority}],
            "restrictions": [],
        }

    values = [
        sku("Standard_ND96isr_H100_v5", "EastUS", ("1", "2")),
        sku("Standard_ND96isr_H100_v5", "westeurope", low_priority="False"),
        sku("Standard_D2_v5", "eastus"),
        sku("Standard_ND96isr_H100_v5", "uksouth", kind="disks"),
    ]
    url = "/management.azure.com/subscriptions/1-2-3/providers/Microsoft.Compute/skus"
    outcome, rows = ask(["azure-skus"], {url: {"value": values}})
    assert outcome.state == "published", outcome.reason
    assert {key: row["spot"] for key, row in rows.items()} == {
        ("Standard_ND96isr_H100_v5", "eastus"): True,
        ("Standard_ND96isr_H100_v5", "westeurope"): False,
    }
    assert rows["Standard_ND96isr_H100_v5", "eastus"]["zones"] == "eastus-1 eastus-2"


def test_the_offerings_of_aws_are_asked_region_by_region_with_a_signature(ask, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    asked = []

    def answer(request):
        asked.append(parse_qs(request.body.decode()))
        items = "".join(
            f"<item><instanceType>{name}</instanceType><locationType>availability-zone-id</locationType>"
            f"<location>{zone}</location></item>"
            for name, zone in (("p5.48xlarge", "use2-az1"), ("p5.48xlarge", "use2-az2"), ("m5.large", "use2-az1"))
        )
        space = "http://ec2.amazonaws.com/doc/2016-11-15/"
        send(request, f'<R xmlns="{space}"><instanceTypeOfferingSet>{items}</instanceTypeOfferingSet></R>')

    outcome, rows = ask(["aws-offerings"], {"/ec2.us-east-2.amazonaws.com/": answer}, regions=("us-east-2",))
    assert outcome.state == "published", outcome.reason
    assert asked[0]["Action"] == ["DescribeInstanceTypeOfferings"]
    assert {key: row["zones"] for key, row in rows.items()} == {("p5.48xlarge", "us-east-2"): "use2-az1 use2-az2"}


ADVISOR = "/spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"


def test_the_spot_advisor_names_where_spot_is_sold_and_no_on_demand(ask):
    outcome, rows = ask(["aws-spot-advisor"], {ADVISOR: sample("aws_spot_advisor.json")}, accept=True)
    assert outcome.state == "published", outcome.reason
    assert ("p5.48xlarge", "us-east-1") in rows
    assert ("p5.48xlarge", "eu-central-1") not in rows
    assert ("p4d.24xlarge", "eu-central-1") in rows
    assert {(row["spot"], row["on_demand"]) for row in rows.values()} == {(True, None)}
    assert not [name for name, _ in rows if name.startswith("m5")]


def test_copies_of_lists_are_read_by_their_own_columns_and_days(ask):
    routes = {
        f"{RAW}/anycloud-sh/catalog/main/gcp/vms.csv": sample("anycloud_gcp.csv"),
        f"{RAW}/anycloud-sh/catalog/main/azure/vms.csv": sample("anycloud_azure.csv"),
    }
    outcome, rows = ask(["anycloud-zones"], routes, accept=True)
    assert outcome.state == "published", outcome.reason
    assert rows["a3-highgpu-8g", "us-central1"]["zones"] == "us-central1-a us-central1-b us-central1-c"
    assert ("a3-highgpu-8g", "us-west8") not in rows
    assert ("TPU v6e chip", "us-east5") in rows
    azure = [row for row in rows.values() if row["provider"] == "azure"]
    assert azure
    assert {row["evidence"] for row in azure} == {"prices"}
    assert not [row for row in azure if row["machine"].startswith("Standard_D")]

    outcome, rows = ask(
        ["vantage-regions"],
        {f"{RAW}/tsaol/aws-gpu/main/data/all_gpu_instances.js": sample("vantage_aws_gpu.js")},
        accept=True,
    )
    assert outcome.state == "published", outcome.reason
    assert rows["p5en.48xlarge", "eu-north-1"]["observed_on"] == date(2026, 1, 21)
    assert ("trn1.32xlarge", "eu-north-1") in rows or ("trn1.32xlarge", "us-east-1") in rows


def test_a_watcher_s_look_at_the_page_is_a_version_of_the_same_list(ask):
    def row(region, chip, **more):
        return {
            "provider": "gcp",
            "gpu_model": chip,
            "region": region,
            "consumption_type": "on_demand",
            "metric_type": "listed_offering",
            "metric_value": 1.0,
            "fetched_at": "2026-10-12T11:29:52+00:00",
            **more,
        }

    rows = [
        row("global", "H100"),
        row("us-east4", "H100"),
        row("us-east4", "RTX6000"),
        row("us-east4", "H100", provider="aws"),
    ]
    url = f"{RAW}/koen-nebius/price-monitor/main/capacity/store/last_snapshot.json"
    outcome, found = ask(["price-monitor-zones"], {url: rows}, accept=True)
    assert outcome.state == "published", outcome.reason
    assert set(found) == {("a3-highgpu", "us-east4"), ("a3-megagpu", "us-east4"), ("g4-standard", "us-east4")}
    assert {(one["list"], one["observed_on"]) for one in found.values()} == {("gcp-gpu-regions", date(2026, 10, 12))}
    assert ask.catalog.availability.days["gcp"] == date(2026, 10, 12)


def test_skypilot_s_zones_and_karpenter_s_regions_come_from_the_files_that_their_prices_come_from(ask):
    gcp = sample("anycloud_gcp.csv").splitlines()[0] + "\n"  # of the same columns
    gcp += "a3-highgpu-8g,208.0,1872.0,,,,europe-north1,europe-north1-c,10.41647,1.6176\n"
    base = f"{RAW}/skypilot-org/skypilot-catalog/master/catalogs/v8"
    routes = {f"{base}/aws/vms.csv": sample("skypilot_v8_aws.csv"), f"{base}/gcp/vms.csv": gcp}
    outcome, rows = ask(["skypilot-zones"], routes, accept=True)
    assert outcome.state == "published", outcome.reason
    assert rows["p5.48xlarge", "ap-northeast-2"]["spot"] is None
    assert rows["p5.48xlarge", "us-east-1"]["spot"] is True
    assert rows["a3-highgpu-8g", "europe-north1"]["zones"] == "europe-north1-c"

    routes = {
        f"{RAW}/{karpenter.FILES[cloud][0]}": f"karpenter_{cloud}_prices.{'json' if cloud == 'gcp' else 'go.txt'}"
        for cloud in karpenter.FILES
    }
    outcome, rows = ask(["karpenter-regions"], {url: sample(name) for url, name in routes.items()}, accept=True)
    assert outcome.state == "published", outcome.reason
    kinds = {(row["provider"], row["evidence"]) for row in rows.values()}
    assert kinds == {("aws", "prices"), ("azure", "prices"), ("gcp", "machines")}
    assert rows["Standard_ND96isr_H100_v5", "eastus"]["observed_on"] == date(2026, 6, 18)


# --- The gate.


def zones_of(*regions, machine="a3-highgpu-8g"):
    return page(*((f"{region}-a", "A3 High") for region in regions))


def test_a_list_that_names_far_less_than_before_says_nothing_until_it_is_accepted(ask, catalog):
    before = {row["region"] for row in catalog.rows("availability") if row["list"] == "gcp-gpu-regions"}
    assert len(before) > 10
    outcome, rows = ask(["gcp-gpu-regions"], {PAGE: zones_of("us-central1")})
    assert outcome.state == "failed"
    assert "2 machines" in outcome.reason
    assert rows == {}
    outcome, rows = ask(["gcp-gpu-regions"], {PAGE: zones_of("us-central1")}, accept=True)
    assert outcome.state == "published"
    assert set(rows) == {("a3-highgpu", "us-central1"), ("a3-megagpu", "us-central1")}


def test_a_machine_that_loses_most_of_its_regions_keeps_them_until_it_is_accepted(ask, monkeypatch):
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "secret-token")
    monkeypatch.setenv("GCP_PROJECT", "ours")
    places = ("us-central1", "us-east4", "us-west1", "europe-west4", "asia-southeast1", "europe-west1")
    full = {f"{place}-a".replace("-", "_"): ["a3-highgpu-8g", "g2-standard-48"] for place in places}
    assert ask(["gcp-zones"], {GCP: machine_types(**full)})[0].state == "published"
    fewer = {
        zone: (["a3-highgpu-8g"] if zone != "us_east4_a" else []) + ["g2-standard-48"] * (zone == "us_east4_a")
        for zone in full
    }
    outcome, rows = ask(["gcp-zones"], {GCP: machine_types(**fewer)})
    assert outcome.verdict.held == {"sold in less than half of its regions": 1}
    assert {region for name, region in rows if name == "g2-standard-48"} == set(places)
    assert {region for name, region in rows if name == "a3-highgpu-8g"} == set(places) - {"us-east4"}
    outcome, rows = ask(["gcp-zones"], {GCP: machine_types(**fewer)}, accept=True)
    assert {region for name, region in rows if name == "g2-standard-48"} == {"us-east4"}


def test_machines_and_regions_that_nobody_knows_are_kept_apart(ask, monkeypatch):
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "secret-token")
    monkeypatch.setenv("GCP_PROJECT", "ours")
    zones = machine_types(us_central1_a=["a3-highgpu-8g", "a9-omegagpu-8g"], mars_north1_a=["a3-highgpu-8g"])
    outcome, rows = ask(["gcp-zones"], {GCP: zones})
    assert set(rows) == {("a3-highgpu-8g", "us-central1")}
    assert outcome.verdict.unknown == {"machine without a price": 1, "a region that is not known": 1}


def test_what_is_refreshed_decides_what_can_be_ordered(ask, catalog):
    """A region that Google's page names no more has no H100 to order, and one that it names anew has."""
    sold = {offer.region for offer in catalog.offers(provider="gcp", gpu="h100-sxm") if offer.sale == "listed"}
    lost = sorted(sold)[0]
    shipped = {
        row["region"]
        for row in catalog.rows("availability")
        if row["list"] == "gcp-gpu-regions" and row["machine"] == "a3-highgpu"
    }
    assert lost in shipped
    chips = {
        "a4-highgpu": "A4",
        "a4x-highgpu": "A4X",
        "a4x-maxgpu": "A4X Max",
        "a3-ultragpu": "A3 Ultra",
        "g4-standard": "G4",
        "a3-highgpu": "A3 High",
    }
    rows = [
        (f"{row['region']}-a", chips[row["machine"]])
        for row in catalog.rows("availability")
        if row["list"] == "gcp-gpu-regions"
        and row["machine"] in chips
        and (row["machine"], row["region"]) != ("a3-highgpu", lost)
    ]
    outcome, _ = ask(["gcp-gpu-regions"], {PAGE: page(*rows)})
    assert outcome.state == "published", outcome.reason
    after = {offer.region for offer in ask.catalog.offers(provider="gcp", gpu="h100-sxm")}
    assert lost not in after
    assert sold - {lost} <= after


# --- Versions of one list.


def test_of_one_list_only_the_newest_version_known_on_a_day_speaks():
    def row(region, on, source_id):
        return {
            "provider": "clouds",
            "machine": "big.8",
            "region": region,
            "zones": None,
            "on_demand": None,
            "spot": None,
            "list": "zones",
            "evidence": "machines",
            "observed_on": on,
            "source_id": source_id,
        }

    old, new = date(2026, 5, 1), date(2026, 9, 1)
    rows = [
        row("north", old, "first"),
        row("south", old, "first"),
        row("south", new, "second"),
        row("east", new, "second"),
    ]
    offer = {
        "provider": "clouds",
        "instance_type": "big.8",
        "option": "on_demand",
        "observed_on": old,
        "book": "shipped",
        "source_id": "price",
        "price_kind": "list",
    }

    def status(region, known_on):
        return Availability(rows, known_on).of({**offer, "region": region}).status

    assert [status(region, new) for region in ("north", "south", "east")] == ["unknown", "listed", "listed"]
    assert [status(region, new - timedelta(1)) for region in ("north", "south", "east")] == [
        "listed",
        "listed",
        "unknown",
    ]


def test_every_list_of_the_table_is_renewed_by_some_source_or_is_an_old_edition_of_one(catalog):
    names = {row["list"] for row in catalog.rows("availability")}
    import gpucost.refresh.availability as importers

    code = Path(importers.__file__).read_text("utf-8")
    renewed = {name for name in names if f'"{name}"' in code}
    renewed |= {f"{kind}-{cloud}" for kind in ("anycloud", "karpenter") for cloud in ("aws", "azure", "gcp")} & names
    assert names - renewed == {"skypilot-aws-2024"}
    assert {source.name for source in SOURCES.values() if source.kind == "availability"} >= {"gcp-zones", "azure-skus"}
