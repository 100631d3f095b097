"""Each importer against real answers of its source: what it yields is held to figures read by hand.

The samples and their public sources stand in `samples/README.md`.
"""

import csv
import json
import re
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gpucost.catalog import open_catalog
from gpucost.refresh import (
    aws,
    aws_spot,
    azure,
    gcp,
    genai_prices,
    gpuhunt,
    karpenter,
    lambda_cloud,
    litellm,
    oci,
    runpod,
    skypilot,
    vast,
)
from gpucost.refresh.complete import complete
from gpucost.refresh.known import chip_of, known_of
from gpucost.refresh.registry import SOURCES
from gpucost.refresh.source import NOT_READ, Desk
from gpucost.refresh.tokens import judge_tokens
from gpucost.store.client import Client
from tests.refresh.server import Server
from tests.refresh.test_sources import catalog_zip

TODAY = date(2026, 11, 22)
ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "samples"
RAW = "/raw.githubusercontent.com"
GCP = "/cloudbilling.googleapis.com/v1/services"


def text(name):
    return (SAMPLES / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def known():
    return known_of(open_catalog("2026-11-22"))


class Asked:
    """What one source yielded: offers by id, rows with a fault, what was kept apart, what failed."""

    def __init__(self, fetch, routes, known, folder, **how):
        with Server(routes) as server, Client(mirror=server.url, pause=lambda _: None) as client:
            desk = Desk(client, folder, TODAY, how)
            fetch(desk)
            complete(desk, known)
            cursor = desk.connection.execute("SELECT * FROM candidate ORDER BY offer_id")
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            self.unknown = desk.connection.execute(
                "SELECT description, reason, region, usd_per_hour FROM unknown ORDER BY ALL"
            ).fetchall()
            self.failures = desk.failures
            desk.close()
        self.faults = [row for row in rows if row["fault"]]
        self.offers = {row["offer_id"]: row for row in rows if not row["fault"]}

    def usd(self, **cells):
        """Return the price of the one offer that has the given cells."""
        found = [row for row in self.offers.values() if all(row[name] == value for name, value in cells.items())]
        assert len(found) == 1, (cells, [row["offer_id"] for row in found])
        return found[0]["usd_per_hour"]


@pytest.fixture
def ask(tmp_path, known):
    return lambda fetch, routes, **how: Asked(fetch, routes, known, tmp_path / "desk", **how)


def sku(description, usage="OnDemand", usd=1.0, *, unit="h", group="GPU", regions=("us-central1",), currency="USD"):
    whole, nanos = divmod(round(usd * 1e9), 10**9)
    money = {"currencyCode": currency, "units": str(whole), "nanos": nanos}
    expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": money}]}
    return {
        "description": description,
        "category": {"resourceGroup": group, "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": expression}],
    }


def gcp_routes(skus, tpus=()):
    return {f"{GCP}/6F81-5844-456A/skus": {"skus": list(skus)}, f"{GCP}/E000-3F24-B8AA/skus": {"skus": list(tpus)}}


@pytest.fixture
def gcp_key(monkeypatch):
    monkeypatch.setenv("GCP_BILLING_API_KEY", "AIza-secret-key")


def test_gcp_adds_up_the_recorded_skus_and_takes_no_rupiah_for_dollars(ask, gcp_key):
    found = ask(gcp.fetch, gcp_routes(json.loads(text("gcp_billing_skus.json"))["skus"]))
    assert {row["region"] for row in found.offers.values()} == {"us-central1", "us-east1", "us-west1"}
    one = found.usd(instance_type="a2-highgpu-1g", region="us-central1")
    assert one == pytest.approx(2.933908 + 12 * 0.031611 + 85 * 0.004237)
    assert one == pytest.approx(3.673385, abs=1e-6), "as the table of Karpenter has it"


def described(gcp_part):
    """The recorded descriptions as SKUs, every one labelled OnDemand or Preemptible as Google labels them."""
    for row in csv.DictReader(text("gcp_sku_descriptions.csv").splitlines()):
        if gcp_part in row["description"]:
            yield sku(row["description"], "OnDemand", float(row["usd_per_gpu_hour"]), regions=(row["region"],))


def test_gcp_reads_the_spot_slices_of_a4_as_spot_though_they_are_labelled_on_demand(ask, gcp_key):
    found = ask(gcp.fetch, gcp_routes(described("B200")))
    usd = {(row["region"], row["option"], row["term_months"]): row["usd_per_hour"] for row in found.offers.values()}
    assert usd == {
        ("us-central1", "on_demand", 0): pytest.approx(8 * 16.11),
        ("us-central1", "spot", 0): pytest.approx(8 * 4.2796),
        ("asia-south1", "spot", 0): pytest.approx(8 * 2.8099),
        ("us-central1", "flex_start", 0): pytest.approx(8 * 8.055),
        ("asia-south1", "flex_start", 0): pytest.approx(8 * 8.055),
        ("us-central1", "calendar", 0): pytest.approx(8 * 11.277),
        ("asia-south1", "calendar", 0): pytest.approx(8 * 11.277),
        ("us-central1", "commitment", 12): pytest.approx(8 * 11.1159),
        ("us-central1", "commitment", 36): pytest.approx(8 * 7.0884),
    }
    assert not found.unknown


def test_gcp_knows_every_recorded_description_of_an_accelerator():
    """Each of the 69, with how it is paid for: the words decide, not the label."""
    seen = {}
    for row in csv.DictReader(text("gcp_sku_descriptions.csv").splitlines()):
        found = gcp.read_sku(sku(row["description"], "OnDemand", float(row["usd_per_gpu_hour"])))
        assert not found.aside, row
        seen[found.part, found.usage, row["region"]] = found.usd
    assert len(seen) == 69, "no two of them mean the same"
    assert seen["h100 80gb mega", "on demand", "us-central1"] == 10.3443
    assert seen["h100 80gb mega", "flex start", "us-central1"] == 4.4239
    assert seen["h100 80gb mega", "calendar", "asia-south1"] == 4.8411
    assert seen["h200 141gb", "on demand", "us-central1"] == 9.3117
    assert seen["l4", "3 years", "us-central1"] == 0.252


def hosts(kind, usage="OnDemand", words="running in Iowa"):
    return [
        sku(f"{kind} Instance Core {words}", usage, 0.03, group="CPU"),
        sku(f"{kind} Instance Ram {words}", usage, 0.0025, unit="GiBy.h", group="RAM"),
        sku("SSD backed Local Storage", usage, 0.08, unit="GiBy.mo", group="LocalSSD"),
    ]


def test_gcp_joins_a3_mega_a3_ultra_and_g4_by_their_newer_descriptions(ask, gcp_key):
    skus = [
        sku("Nvidia H100 80GB Plus GPU running in Americas", usd=10.3443),
        sku("H200 141GB GPU running in Americas", usd=9.3117),
        sku("Nvidia RTX 6000 96GB GPU running in Americas", usd=2.5),
        *hosts("A3Plus"),
        *hosts("A3 Ultra"),
        *hosts("G4"),
    ]
    found = ask(gcp.fetch, gcp_routes(skus))
    ssd = 0.08 / 730
    assert found.usd(instance_type="a3-megagpu-8g") == pytest.approx(
        8 * 10.3443 + 208 * 0.03 + 1872 * 0.0025 + 6000 * ssd
    )
    assert found.usd(instance_type="a3-ultragpu-8g") == pytest.approx(
        8 * 9.3117 + 224 * 0.03 + 2952 * 0.0025 + 12000 * ssd
    )
    assert found.usd(instance_type="g4-standard-48") == pytest.approx(2.5 + 48 * 0.03 + 180 * 0.0025)


def test_gcp_prices_tpus_by_the_chip_from_both_services(ask, gcp_key):
    chips = [
        sku("TpuV5p running in South Carolina", usd=4.2, group="TPU", regions=("us-east1",)),
        sku("TpuV6e attached to Spot Preemptible VMs running in Ohio", "Preemptible", 1.89, group="TPU"),
        sku("TpuV6e running in Ohio", usd=2.7, group="TPU"),
    ]
    old = [sku("Tpu-v4 Pod Oklahoma", usd=12.88, group="TPU", regions=("us-central2",))]
    found = ask(gcp.fetch, gcp_routes(chips, old))
    assert found.usd(gpu="tpu-v5p", region="us-east1") == pytest.approx(4.2)
    assert found.usd(gpu="tpu-v6e", option="spot") == pytest.approx(1.89)
    assert found.usd(gpu="tpu-v6e", option="on_demand") == pytest.approx(2.7)
    assert found.usd(gpu="tpu-v4") == pytest.approx(3.22), "a slice of four chips at 12.88"


def test_gcp_keeps_apart_what_it_cannot_read_and_says_why(ask, gcp_key):
    skus = [
        sku("Nvidia R400 512GB GPU running in Iowa", usd=30),
        sku("Nvidia Tesla T4 GPU running in Iowa", usd=0.35),
        sku("Nvidia L4 GPU running in Iowa", usd=0.56, currency="IDR"),
        sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa", "Commit1Yr"),
        sku("N1 Predefined Instance Core running in Iowa", group="CPU"),
    ]
    found = ask(gcp.fetch, gcp_routes(skus, [sku("Tpu-v4 Pod Oklahoma", usd=12.88, group="TPU")]))
    assert {row[:2] for row in found.unknown} == {
        ("Nvidia R400 512GB GPU running in Iowa", NOT_READ),
        ("Nvidia Tesla T4 GPU running in Iowa", "sold beside a host of one's own choice"),
        ("Nvidia L4 GPU running in Iowa", "not in US dollars"),
        (skus[3]["description"], "how it is paid for is not known"),
    }


def test_gcp_waits_for_a_yes_where_a_part_has_two_prices(ask, gcp_key):
    slices = [sku("A4 Nvidia B200 (1 gpu slice) running in Iowa", usd=usd) for usd in (16.11, 4.28)]
    (row,) = ask(gcp.fetch, gcp_routes(slices)).offers.values()
    assert (row["question"], row["usd_per_hour"]) == ("two prices of one part", pytest.approx(128.88))


def test_azure_reads_the_recorded_items(ask):
    found = ask(azure.fetch, {"/prices.azure.com/api/retail/prices": json.loads(text("azure_retail_eastus_nd.json"))})
    usd = {
        (row["instance_type"], row["option"], row["tier"], row["term_months"]): row["usd_per_hour"]
        for row in found.offers.values()
    }
    assert usd == {
        ("Standard_ND96isr_H100_v5", "on_demand", None, 0): 98.32,
        ("Standard_ND96isr_H100_v5", "reserved", None, 12): pytest.approx(551_221 / 8760),
        ("Standard_ND96isr_H100_v5", "reserved", None, 36): pytest.approx(1_134_310 / 26_280),
        ("Standard_ND96is_H100_v5", "on_demand", None, 0): 88.488,
        ("Standard_ND96amsr_A100_v4", "spot", "low_priority", 0): 6.554,
        ("Standard_ND96asr_v4", "spot", None, 0): 5.98334,
    }


def test_oci_reads_every_gpu_of_its_list_and_keeps_apart_what_has_no_shape(ask):
    listed = json.loads(text("oci_prices_usd.json"))
    path = "/apexapps.oracle.com/pls/apex/cetools/api/v1/products/"
    found = ask(oci.fetch, {path: listed})
    per_gpu = {row["instance_type"]: row["usd_per_gpu_hour"] for row in found.offers.values()}
    assert per_gpu == {
        "BM.GPU.H100.8": 10,
        "BM.GPU.A100-v2.8": 4,
        "BM.GPU.A10.4": 2,
        "VM.GPU.A10.1": 2,
        "VM.GPU.A10.2": 2,
        "BM.GPU4.8": 3.05,
        "BM.GPU3.8": 2.95,
        "VM.GPU3.1": 2.95,
        "VM.GPU3.2": 2.95,
        "VM.GPU3.4": 2.95,
        "BM.GPU2.2": 1.275,
        "VM.GPU2.1": 1.275,
    }
    assert {row["gpu"] for row in found.offers.values() if row["instance_type"] == "BM.GPU4.8"} == {"a100-sxm4-40gb"}
    assert not found.unknown
    listed["items"][0] |= {"displayName": "Compute - GPU - R400"}
    (row,) = ask(oci.fetch, {path: listed}).unknown
    assert row[0].endswith("Compute - GPU - R400")
    assert row[1] == NOT_READ


def test_aws_files_without_a_linux_accelerator_yield_nothing(ask):
    offers = "/pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/us-east-1/index"
    for fetch, ending, sample in (
        (aws.fetch_json, "json", "aws_bulk_offer.json"),
        (aws.fetch_csv, "csv", "aws_bulk_excerpt.csv"),
    ):
        assert not ask(fetch, {f"{offers}.{ending}": text(sample)}, regions=("us-east-1",)).offers


def test_aws_reads_its_real_header_of_ninety_columns(ask):
    """The recorded rows, made Linux, shared and of an accelerator: an hour and an upfront fee are one reservation."""
    body = text("aws_bulk_excerpt.csv").replace('"Dedicated"', '"Shared"').replace('"SQL Web"', '"NA"')
    body = body.replace('"Windows"', '"Linux"').replace('"c6i.large"', '"p3.2xlarge"')
    path = "/pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/ap-northeast-1/index.csv"
    found = ask(aws.fetch_csv, {path: body}, regions=("ap-northeast-1",))
    assert found.usd(option="reserved", term_months=36) == pytest.approx(0.10463 + 2750 / 26_280)


def test_aws_savings_plans_tell_the_plan_of_one_family_from_the_compute_plan(ask):
    """The recorded rows are of dedicated tenancy: none is taken. Made shared, each plan has its own label."""
    place = "/pricing.us-east-1.amazonaws.com/savingsPlan/v1.0/aws/AWSComputeSavingsPlan"
    body = text("aws_savings_plans_excerpt.csv")
    routes = {
        f"{place}/current/region_index.json": text("aws_savings_plans_region_index.json"),
        f"{place}/20250911184447/ap-east-2/index.csv": body,
    }
    assert not ask(aws.fetch_plans, routes, regions=("ap-east-2",)).offers
    body = body.replace("DedicatedUsage:r7g.xlarge,RunInstances:1010", "BoxUsage:p5.48xlarge,RunInstances")
    plan = next(line for line in body.splitlines() if "BoxUsage:p5" in line)
    compute = plan.replace("EC2InstanceSavingsPlans", "ComputeSavingsPlans").replace("0.2399", "0.31")
    routes[f"{place}/20250911184447/ap-east-2/index.csv"] = f"{body}\n{compute}\n".replace("\n\n", "\n")
    found = ask(aws.fetch_plans, routes, regions=("ap-east-2",))
    assert found.usd(tier="ec2_instance", option="savings_plan") == pytest.approx(0.2399)
    assert found.usd(tier="compute", option="savings_plan") == pytest.approx(0.31)


def test_aws_spot_takes_linux_of_its_documented_answer(ask, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A" * 16)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S" * 16)
    body = text("aws_spot_history_documented.xml").replace("m3.medium", "p3.2xlarge")
    found = ask(aws_spot.fetch, {"/ec2.us-west-2.amazonaws.com/": body}, regions=("us-west-2",))
    assert found.usd(instance_type="p3.2xlarge", option="spot") == 0.287
    assert [row["fault"] for row in found.faults] == ["windows meter"]


def last_changes(*repositories):
    """Return GitHub's answers about the last change of the files of repositories."""
    answer = [{"commit": {"committer": {"date": "2026-11-20T08:00:00Z"}}}]
    return {f"/api.github.com/repos/{name}/commits": answer for name in repositories}


def karpenter_routes(**more):
    files = {"aws": "karpenter_aws_prices.go.txt", "azure": "karpenter_azure_prices.go.txt"}
    files["gcp"] = "karpenter_gcp_prices.json"
    return last_changes("cloudpilot-ai/karpenter-provider-gcp") | {
        f"{RAW}/{path}": more.get(name, text(files[name])) for name, (path, _) in karpenter.FILES.items()
    }


def test_karpenter_reads_all_three_tables_as_they_are_and_as_old_as_they_say(ask):
    found = ask(karpenter.fetch, karpenter_routes())
    assert found.usd(instance_type="p5.48xlarge") == 55.04
    assert found.usd(instance_type="p6-b300.48xlarge") == 142.416
    assert found.usd(instance_type="trn1.32xlarge") == 21.5
    assert found.usd(instance_type="Standard_NC40ads_H100_v5", region="eastus") == 6.98
    assert found.usd(instance_type="Standard_ND96isr_H100_v5", region="southcentralus") == 117.968
    assert found.usd(instance_type="Standard_ND96isr_H100_v5", region="swedencentral") == 127.816
    assert found.usd(instance_type="Standard_NC4as_T4_v3", region="australiacentral") == 0.684
    usd = lambda option: found.usd(instance_type="a3-highgpu-8g", region="us-central1", option=option)  # noqa: E731
    assert usd("on_demand") == pytest.approx(88.49, abs=1e-6)
    assert usd("spot") == pytest.approx(50.6095, abs=1e-4)
    assert found.usd(instance_type="a3-megagpu-8g", region="europe-west4", option="on_demand") == pytest.approx(
        118.2368, abs=1e-4
    )
    seen = {row["provider"]: row["observed_on"] for row in found.offers.values()}
    assert seen == {"aws": date(2026, 7, 20), "azure": date(2026, 6, 18), "gcp": date(2026, 11, 20)}


@pytest.mark.parametrize("broken", ["aws", "azure", "gcp"])
def test_karpenter_reads_two_tables_where_the_third_is_broken(ask, broken):
    found = ask(karpenter.fetch, karpenter_routes(**{broken: "<html>"}))
    assert {row["provider"] for row in found.offers.values()} == {"aws", "azure", "gcp"} - {broken}
    assert len(found.failures) == 1
    assert found.failures[0].startswith(f"{broken}: ")


HUNT = "/dstack-gpu-pricing.s3.eu-west-1.amazonaws.com"
HUNT_HEAD = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags"


def hunted(*rows, head=HUNT_HEAD):
    return head + "\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize("version", ["20250226-6552", "20260914-19524", "20260818-42", "20261123-881", "20240611"])
def test_gpuhunt_reads_every_form_of_a_version_and_dates_its_prices_by_it(ask, version):
    body = hunted("gpu_8x_h100_sxm5,us-west-1,27.92,208,1800,8,H100,80,False,,nvidia,")
    archive = catalog_zip({"lambdalabs.csv": body})
    found = ask(gpuhunt.fetch, {f"{HUNT}/v2/version": version + "\n", f"{HUNT}/v2/{version}/catalog.zip": archive})
    (row,) = found.offers.values()
    assert row["usd_per_hour"] == 27.92
    said = date(int(version[:4]), int(version[4:6]), int(version[6:8]))
    assert row["observed_on"] == min(said, TODAY)


def test_gpuhunt_reads_an_archive_of_each_provider_and_what_google_sells_by_other_terms(ask):
    gcp_rows = hunted(
        "a3-highgpu-8g,us-east4-a,88.56,208,1872,8,H100,80,False,,nvidia,,,{}",
        "a3-highgpu-8g,us-east4-a,43.79,208,1872,8,H100,80,False,,nvidia,gcp-dws-calendar-mode,,{}",
        "a3-edgegpu-8g,us-east4-a,51.0,208,1872,8,H100,80,False,,nvidia,,,{}",
        head=f"{HUNT_HEAD},cpu_arch,provider_data",
    )
    routes = {
        f"{HUNT}/v3/gcp/version": "20260914-12",
        f"{HUNT}/v3/gcp/20260914-12/catalog.zip": catalog_zip({"gcp.csv": gcp_rows}),
    }
    found = ask(gpuhunt.fetch, routes)
    usd = {row["option"]: row["usd_per_hour"] for row in found.offers.values()}
    assert usd == {"on_demand": 88.56, "calendar": 43.79}
    assert any(text.startswith("aws: ") for text in found.failures), "what is not there is named"


def skypilot_routes(*clouds):
    return last_changes("skypilot-org/skypilot-catalog") | {
        f"{RAW}/skypilot-org/skypilot-catalog/master/catalogs/v8/{cloud}/vms.csv": text(f"skypilot_v8_{cloud}.csv")
        for cloud in clouds
    }


def test_skypilot_reads_its_eighth_version_by_the_names_of_columns(ask):
    found = ask(skypilot.fetch, skypilot_routes("aws", "jarvislabs", "verda", "lambda", "spheron"))
    assert found.usd(provider="jarvislabs", instance_type="8x_H200_224V_2400G") == 36.72
    assert found.usd(provider="verda", instance_type="2B300.60V", option="spot") == 4.893
    assert not [row for row in found.offers.values() if row["instance_type"] == "2B300.60V" and row["option"] != "spot"]
    assert found.usd(provider="aws", instance_type="p5e.48xlarge") == 19.4254
    assert found.usd(provider="aws", instance_type="p6-b300.48xlarge", option="on_demand") == 142.416
    assert found.usd(provider="aws", instance_type="p6-b300.48xlarge", option="spot") == 33.4308
    assert found.usd(provider="aws", instance_type="p5.48xlarge", region="ap-northeast-2") == 75.9552
    assert found.usd(provider="lambda", instance_type="gpu_8x_v100_n") == 6.32
    assert found.usd(provider="spheron", instance_type="n3-A100x1-spot__CANADA-1") == 1.1476
    chips = {row["instance_type"]: row["gpu"] for row in found.offers.values()}
    assert chips["1H100.80S.32V_FIN-03_500"] == "h100-sxm5-80gb"
    assert chips["1H200.141S.44V"] == "h200-sxm-141gb"
    assert chips["RTX5090x8_67884c00280fba46a71e23eb_casper-usa-1"] == "rtx-5090"
    assert not any(row["gpu"] is None for row in found.offers.values())


def test_form_factors_in_the_names_of_products_tell_variants_apart(ask):
    """`gpu-h100-sxm_8gpu-…` of Nebius, `1H100.80S.32V` of Verda: the accelerator's own column says H100 alone."""
    head = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region\n"
    rows = [
        "gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,128,1600,,23.6,,eu-north1",
        "gpu-h200-sxm_8gpu-128vcpu-1600gb,H200,8,128,1600,,28.0,,eu-north1",
    ]
    path = f"{RAW}/skypilot-org/skypilot-catalog/master/catalogs/v8"
    verda = "1H100.80S.32V,H100,1,32,185,,3.25,,FIN-01"
    found = ask(
        skypilot.fetch,
        {
            f"{path}/nebius/vms.csv": head + "\n".join(rows) + "\n",
            f"{path}/verda/vms.csv": head + verda + "\n",
        },
    )
    assert {(row["instance_type"], row["gpu"], row["gpu_assumed"]) for row in found.offers.values()} == {
        ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "h100-sxm5-80gb", False),
        ("gpu-h200-sxm_8gpu-128vcpu-1600gb", "h200-sxm-141gb", False),
        ("1H100.80S.32V", "h100-sxm5-80gb", False),
    }


@pytest.mark.parametrize(
    ("name", "memory", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", 80, "h100-sxm5-80gb"),
        ("NVIDIA B300 SXM6 AC", 288, "b300-sxm"),
        ("AMD Instinct MI300X OAM", 192, "mi300x"),
        ("NVIDIA A100 80GB PCIe", 80, "a100-pcie-80gb"),
        ("RTX5090_PCIE_BAREMETAL", 32, "rtx-5090"),
        ("1x H100 (80 GB PCIe)", None, "h100-pcie-80gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, "rtx-pro-6000-bw-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, "rtx-pro-6000-bw-ws"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, "rtx-pro-6000-bw-max-q"),
        ("Tesla V100-SXM2-16GB", 16, "v100-sxm2-16gb"),
        ("NVIDIA H100 NVL", 94, "h100-nvl-94gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", 24, None),
        ("H100", 20, None),
        ("RTX 3080 laptop", 8, None),
        ("unknown", 0, None),
    ],
)
def test_names_of_the_trade_are_understood_and_slices_are_none(known, name, memory, gpu):
    assert chip_of(known, name, memory) == gpu


def test_runpod_reads_its_answer_and_no_tier_that_is_not_offered(ask, monkeypatch):
    monkeypatch.setenv("RUNPOD_API_KEY", "secret-runpod")
    answer = json.loads(text("runpod_gpu_types_documented.json"))
    found = ask(runpod.fetch, {"/api.runpod.io/graphql": answer})
    assert {name.split("/")[-1]: row["usd_per_hour"] for name, row in found.offers.items()} == {
        "on_demand.secure": 0.44,
        "community": 0.34,
        "spot.secure": 0.22,
        "spot.community": 0.17,
    }
    answer["data"]["gpuTypes"][0]["communityCloud"] = False
    found = ask(runpod.fetch, {"/api.runpod.io/graphql": answer})
    assert {row["tier"] for row in found.offers.values()} == {"secure"}


def test_runpod_knows_the_types_of_a_day_and_counts_the_others(ask, monkeypatch):
    monkeypatch.setenv("RUNPOD_API_KEY", "secret-runpod")
    types = [
        {
            "id": row["gpu_id"],
            "displayName": row["display_name"],
            "memoryInGb": float(row["memory_gb"] or 0),
            "securePrice": float(row["secure_price"] or 0),
            "communityPrice": float(row["community_price"] or 0),
        }
        for row in csv.DictReader(text("runpod_daily.csv").splitlines())
    ]
    found = ask(runpod.fetch, {"/api.runpod.io/graphql": {"data": {"gpuTypes": types}}})
    secure = {row["listed_as"]: row["gpu"] for row in found.offers.values() if row["tier"] == "secure"}
    assert secure["NVIDIA H100 80GB HBM3"] == "h100-sxm5-80gb"
    assert secure["NVIDIA H200"] == "h200-sxm-141gb", "its display name says SXM"
    assert secure["NVIDIA B300 SXM6 AC"] == "b300-sxm"
    assert "NVIDIA A100-SXM4-40GB" not in secure, "a price of nothing is no tier"
    named = {row["listed_as"] for row in (*found.offers.values(), *found.faults)}
    assert named == {item["id"] for item in types if item["securePrice"] or item["communityPrice"]}


def test_lambda_vast_and_their_answers(ask, monkeypatch):
    monkeypatch.setenv("LAMBDA_API_KEY", "secret-lambda")
    answer = text("lambda_instance_types_documented.json")
    found = ask(lambda_cloud.fetch, {"/cloud.lambda.ai/api/v1/instance-types": answer})
    assert found.usd(gpu="h100-pcie-80gb") == 2.49
    offers = json.loads(text("vast_offers_recorded.json"))
    assert not ask(vast.fetch, {"/console.vast.ai/api/v0/bundles/": offers}).offers, "neither can be rented"
    for offer in offers["offers"]:
        offer |= {"rentable": True, "dph_total": offer["discounted_dph_total"]}
    found = ask(vast.fetch, {"/console.vast.ai/api/v0/bundles/": offers})
    assert found.usd(region="ca", option="on_demand") == pytest.approx(0.11570, abs=1e-5)
    assert found.usd(region="us-texas", option="on_demand") == pytest.approx(0.12667, abs=1e-5)
    assert found.usd(region="ca", option="interruptible") == pytest.approx(0.1053333)


def hosted(fetch, path, sample, known, folder):
    with Server({path: text(sample)}) as server, Client(mirror=server.url) as client:
        desk = Desk(client, folder, TODAY)
        fetch(desk)
        verdict = judge_tokens(desk, known, None, None, True, "s")
        rows = desk.connection.execute(
            "SELECT provider, listing, model_id, input_usd_per_mtok, cached_input_usd_per_mtok, output_usd_per_mtok"
            " FROM part"
        ).fetchall()
        apart = {row[0] for row in desk.connection.execute("SELECT description FROM apart").fetchall()}
        desk.close()
    return verdict, {(row[0], row[1].rsplit("/", 1)[-1]): row[2:] for row in rows}, apart


def test_genai_prices_counts_no_guard_and_no_distilled_model_as_its_base(known, tmp_path):
    path = f"{RAW}/pydantic/genai-prices/main/prices/data.json"
    verdict, rows, apart = hosted(genai_prices.fetch, path, "genai_prices_data.json", known, tmp_path / "desk")
    assert rows["groq", "llama-3.3-70b-versatile"] == ("llama-3.3-70b", 0.59, None, 0.79)
    assert rows["fireworks", "gpt-oss-120b"] == ("gpt-oss-120b", 0.15, 0.07, 0.60)
    other = {listing: cells[0] for (_, listing), cells in rows.items() if "distill" in listing or "guard" in listing}
    assert all("distill" in model or "guard" in model for model in other.values()), other
    assert "novita/Sao10K/L3-8B-Stheno-v3.2" in apart, "a tune of llama-3-8b"
    assert verdict.unknown == {"model not known": len(apart)}


def test_litellm_reads_prices_by_the_token(known, tmp_path):
    path = f"{RAW}/BerriAI/litellm/main/model_prices_and_context_window.json"
    _, rows, apart = hosted(litellm.fetch, path, "litellm_prices.json", known, tmp_path / "desk")
    assert rows["together", "gpt-oss-120b"] == ("gpt-oss-120b", 0.15, None, 0.60)
    assert rows["deepinfra", "gpt-oss-120b"][1::2] == (0.037, 0.17)
    assert rows["groq", "gpt-oss-120b"] == ("gpt-oss-120b", 0.15, 0.075, 0.60)
    assert rows["cerebras", "gpt-oss-120b"][1::2] == (0.35, 0.75)
    assert "groq/openai/gpt-oss-safeguard-20b" in apart
    assert "sample_spec" not in {listing for _, listing in rows}


def test_every_source_stands_on_its_page_and_every_sample_in_its_list():
    page = (ROOT / "docs/refresh.md").read_text("utf-8")
    assert not [name for name in SOURCES if f"`{name}`" not in page], "one row each in docs/refresh.md"
    listed = re.findall(r"[a-z]\w*(?:\.\w+|\*)+", text("README.md"))
    samples = [path.name for path in SAMPLES.iterdir() if path.name != "README.md"]
    lacking = [name for name in samples if not any(fnmatch(name, pattern) for pattern in listed)]
    assert not lacking, "one row each in tests/refresh/samples/README.md"


def test_a_cell_under_no_column_is_no_cell_of_a_listing(tmp_path):
    desk = Desk(Client(), tmp_path, TODAY)
    with pytest.raises(KeyError, match="usd_per_gpu"):
        desk.add([{"provider": "lambda", "usd_per_gpu": 2.0}])
    desk.close()
