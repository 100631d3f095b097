"""Each source, in the shape in which it answers, from the server to rows of offers: one integrity test each."""

import io
import json
import zipfile
from datetime import date, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from gpucost.refresh import (
    aws,
    aws_spot,
    azure,
    gcp,
    genai_prices,
    gpuhunt,
    lambda_cloud,
    litellm,
    oci,
    runpod,
    skypilot,
    vast,
)
from gpucost.refresh.complete import complete
from gpucost.refresh.known import known_of
from gpucost.refresh.registry import SOURCES
from gpucost.refresh.run import RefreshOptions, refresh_one
from gpucost.refresh.source import Desk
from gpucost.refresh.tokens import judge_tokens
from gpucost.store.client import Client
from tests.refresh.server import Server, send

TODAY = date(2026, 11, 22)


@pytest.fixture(scope="module")
def known():
    return known_of(open_catalog("2026-11-22"))


@pytest.fixture
def ask(tmp_path, known):
    """Return a function that lets one source ask a server with given routes and returns its offers by id."""

    def asked(fetch, routes, **how):
        with Server(routes) as server, Client(mirror=server.url, pause=lambda _: None) as client:
            desk = Desk(client, tmp_path / "desk", TODAY, how)
            fetch(desk)
            complete(desk, known)
            cursor = desk.connection.execute("SELECT * FROM candidate ORDER BY offer_id")
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            asked.server = server
        asked.faults = [row["fault"] for row in rows if row["fault"]]
        return {row["offer_id"]: row for row in rows if not row["fault"]}

    return asked


H100 = "8xh100-sxm5-80gb"


def test_skypilot_reads_clouds_alike_and_adds_hosts_to_accelerators(ask):
    head = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    head += "AvailabilityZone\n"
    info = "\"{'Gpus': [{'Name': 'H100', 'MemoryInfo': {'SizeInMiB': 81559}}]}\""
    routes = {
        f"/raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8/{cloud}/vms.csv": head + text
        for cloud, text in {
            "aws": f"p5.48xlarge,H100,8,192,2048,{info},55.04,20.5,us-east-1,us-east-1a\n"
            f"p5.48xlarge,H100,8,192,2048,{info},55.04,19.5,us-east-1,us-east-1b\nm5.large,,,2,8,,0.096,0.04,us-east-1,a\n",
            "gcp": "a3-highgpu-8g,,,208,1872,,9.46,3.86,us-central1,us-central1-a\n"
            ",H100,8,,,,33.61,32.01,us-central1,us-central1-a\n,H100,8,,,,33.61,32.01,us-east1,us-east1-b\n"
            ",tpu-v5p-8,1,,,,16.8,3.31,us-central1,us-central1-a\n",
            "vast": '1x-RTX_5090,RTX5090,1,32,64,"{}",0.44,0.00,"Denmark, DK, EU",\n',
        }.items()
    }
    found = ask(skypilot.fetch, routes)
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/on_demand"]["usd_per_gpu_hour"] == pytest.approx(6.88)
    spot = found[f"aws/p5.48xlarge/{H100}/us-east-1/spot"]
    assert spot["usd_per_hour"] == 19.5
    assert "dearest at 20.5" in spot["notes"]
    assert found[f"gcp/a3-highgpu-8g/{H100}/us-central1/on_demand"]["usd_per_hour"] == pytest.approx(43.07)
    assert not any("us-east1/" in name for name in found), "an accelerator without its host is no machine"
    assert found["gcp/tpu-v5p-8/4xtpu-v5p/us-central1/on_demand"]["usd_per_gpu_hour"] == pytest.approx(4.2)
    assert sum("rtx-5090" in name for name in found) == 1, "a spot price of 0.00 is none"
    assert not any("m5.large" in name for name in found)


def catalog_zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


GPUHUNT = "/dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v2"


def test_gpuhunt_reads_an_archive_whose_names_are_never_paths(ask, tmp_path):
    head = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
    files = {
        "aws.csv": head
        + "p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,\nm5.large,us-east-1,0.1,2,8,0,,,False,\n",
        "../../evil.csv": head + "gpu_8x_h100_sxm5,us-west-1,27.92,208,1800,8,H100 SXM5,80,False,\n",
        "notes.txt": "x",
    }
    found = ask(
        gpuhunt.fetch, {f"{GPUHUNT}/version": "20261101", f"{GPUHUNT}/20261101/catalog.zip": catalog_zip(files)}
    )
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/on_demand"]["usd_per_hour"] == 55.04
    assert not list(tmp_path.rglob("evil.csv"))


def test_gpuhunt_refuses_an_archive_that_unpacks_without_end(ask, monkeypatch):
    monkeypatch.setattr(gpuhunt, "_MOST_BYTES", 1e6)
    bomb = catalog_zip({"aws.csv": "x" * 50_000_000})
    with pytest.raises(UsageError, match="1 MB"):
        ask(gpuhunt.fetch, {f"{GPUHUNT}/version": "20261101", f"{GPUHUNT}/20261101/catalog.zip": bomb})


AWS = "/pricing.us-east-1.amazonaws.com"
AWS_HEAD = (
    "SKU,OfferTermCode,TermType,Unit,PricePerUnit,Currency,LeaseContractLength,PurchaseOption,OfferingClass,"
    "Instance Type,Tenancy,Operating System,CapacityStatus,Pre Installed S/W,Region Code,vCPU,Memory,EffectiveDate"
)


def aws_csv(rows):
    above = (
        '"FormatVersion","v1.0"\n"Disclaimer","…"\n"Publication Date","2026-11-01"\n"Version","1"\n"OfferCode","E"\n'
    )
    quote = lambda line: ",".join(f'"{cell}"' for cell in line.split(","))  # noqa: E731
    return above + "\n".join(quote(line) for line in [AWS_HEAD, *rows]) + "\n"


def aws_row(
    kind,
    unit,
    price,
    lease="",
    purchase="",
    clas="",
    os="Linux",
    tenancy="Shared",
    sku="S1",
    code="T1",
    name="p5.48xlarge",
):
    start = f"{sku},{code},{kind},{unit},{price},USD,{lease},{purchase},{clas},{name},{tenancy},{os}"
    return f"{start},Used,NA,us-east-1,192,2048 GiB,2025-06-01"


def test_aws_reads_on_demand_and_adds_upfront_fees_to_reserved_hours(ask):
    rows = [
        aws_row("OnDemand", "Hrs", 55.04),
        aws_row("OnDemand", "Hrs", 61.66, os="Windows", sku="S2"),
        aws_row("OnDemand", "Hrs", 60.54, tenancy="Dedicated", sku="S3"),
        aws_row("OnDemand", "Hrs", 0.096, name="m5.large", sku="S4"),
        aws_row("Reserved", "Hrs", 20.0, "1yr", "Partial Upfront", "standard", code="T2"),
        aws_row("Reserved", "Quantity", 87600, "1yr", "Partial Upfront", "standard", code="T2"),
        aws_row("Reserved", "Hrs", 1.0, "1yr", "No Upfront", "convertible", code="T3"),
    ]
    found = ask(
        aws.fetch_csv,
        {f"{AWS}/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv": aws_csv(rows)},
        regions=("us-east-1",),
    )
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/on_demand"]["usd_per_hour"] == 55.04
    reserved = found[f"aws/p5.48xlarge/{H100}/us-east-1/reserved/12mo/partial_upfront"]
    assert reserved["usd_per_hour"] == pytest.approx(20 + 87600 / 8760)
    assert (reserved["recurring_usd_per_hour"], reserved["upfront_usd"]) == (20, 87600)
    assert len(found) == 2


def test_aws_json_says_the_same_as_its_csv(ask):
    attributes = {
        "instanceType": "p5.48xlarge",
        "regionCode": "us-east-1",
        "vcpu": "192",
        "memory": "2,048 GiB",
        "tenancy": "Shared",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }

    def term(*prices, **more):
        found = {f"d{i}": {"unit": unit, "pricePerUnit": {"USD": str(usd)}} for i, (unit, usd) in enumerate(prices)}
        return {
            "offerTermCode": "T",
            "effectiveDate": "2025-06-01T00:00:00Z",
            "priceDimensions": found,
            "termAttributes": more,
        }

    paid = {"LeaseContractLength": "3yr", "PurchaseOption": "All Upfront", "OfferingClass": "standard"}
    body = {
        "formatVersion": "v1.0",
        "products": {"S1": {"attributes": attributes}, "S2": {"attributes": {**attributes, "tenancy": "Host"}}},
        "terms": {
            "OnDemand": {"S1": {"S1.T": term(("Hrs", 55.04))}, "S2": {"S2.T": term(("Hrs", 61))}},
            "Reserved": {"S1": {"S1.R": term(("Hrs", 0), ("Quantity", 262800), **paid)}},
        },
    }
    found = ask(
        aws.fetch_json, {f"{AWS}/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.json": body}, regions=("us-east-1",)
    )
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/on_demand"]["usd_per_hour"] == 55.04
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/reserved/36mo/all_upfront"]["usd_per_hour"] == pytest.approx(10)
    assert len(found) == 2


def test_aws_savings_plans_cost_the_same_whenever_they_are_paid(ask):
    head = "SKU,DiscountedRate,Currency,DiscountedUsageType,DiscountedOperation,PurchaseOption,LeaseContractLength"
    head += ",Product Family"
    lines = [
        "A,31.0,USD,USE1-BoxUsage:p5.48xlarge,RunInstances,No Upfront,3,ComputeSavingsPlans",
        "A,30.0,USD,USE1-BoxUsage:p5.48xlarge,RunInstances,All Upfront,3,ComputeSavingsPlans",
        "A,35.0,USD,USE1-BoxUsage:p5.48xlarge,RunInstances:0002,All Upfront,3,ComputeSavingsPlans",
    ]
    index = {"regions": [{"regionCode": "us-east-1", "versionUrl": "/savingsPlan/x/us-east-1/index.json"}]}
    routes = {
        f"{AWS}{aws.PLANS}": index,
        f"{AWS}/savingsPlan/x/us-east-1/index.csv": "a\nb\nc\nd\ne\n" + "\n".join([head, *lines]),
    }
    found = ask(aws.fetch_plans, routes, regions=("us-east-1",))
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/savings_plan.compute/36mo/no_upfront"][
        "usd_per_hour"
    ] == pytest.approx(31)
    paid = found[f"aws/p5.48xlarge/{H100}/us-east-1/savings_plan.compute/36mo/all_upfront"]
    assert (paid["usd_per_hour"], paid["upfront_usd"]) == (pytest.approx(30), pytest.approx(30 * 26280))
    assert len(found) == 2


def test_aws_spot_reads_pages_signed_with_the_key(ask, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")

    def page(request):
        more = b"NextToken" not in request.body
        zone, price = ("a", 20.5) if more else ("b", 19.25)
        item = "<item><instanceType>p5.48xlarge</instanceType><productDescription>Linux/UNIX</productDescription>"
        item += f"<spotPrice>{price}</spotPrice><availabilityZone>us-east-1{zone}</availabilityZone></item>"
        token = "<nextToken>next</nextToken>" if more else "<nextToken/>"
        text = '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        send(
            request,
            f"{text}<spotPriceHistorySet>{item}</spotPriceHistorySet>{token}</DescribeSpotPriceHistoryResponse>",
        )

    found = ask(aws_spot.fetch, {"/ec2.us-east-1.amazonaws.com/": page}, regions=("us-east-1",))
    assert found[f"aws/p5.48xlarge/{H100}/us-east-1/spot"]["usd_per_hour"] == 19.25
    sent = ask.server.asked[0].headers["authorization"]
    assert sent.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "wJalr" not in sent


def test_aws_requests_are_signed_as_its_documentation_computes_it():
    """The chain of keys against a signature computed step by step with openssl's HMAC."""
    import hashlib
    import hmac
    from datetime import UTC, datetime

    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    found = aws_spot.signed("Action=X", "us-east-1", "AKID", "SECRET", "", now)
    one = lambda key, text: hmac.new(key, text.encode(), hashlib.sha256)  # noqa: E731
    key = one(
        one(one(one(b"AWS4SECRET", "20260102").digest(), "us-east-1").digest(), "ec2").digest(), "aws4_request"
    ).digest()
    request = (
        "POST\n/\n\ncontent-type:application/x-www-form-urlencoded; charset=utf-8\nhost:ec2.us-east-1.amazonaws.com\n"
        "x-amz-date:20260102T030405Z\n\ncontent-type;host;x-amz-date\n" + hashlib.sha256(b"Action=X").hexdigest()
    )
    text = (
        "AWS4-HMAC-SHA256\n20260102T030405Z\n20260102/us-east-1/ec2/aws4_request\n"
        + hashlib.sha256(request.encode()).hexdigest()
    )
    assert found["authorization"].endswith("Signature=" + one(key, text).hexdigest())


def test_aws_spot_refuses_entities(ask, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A" * 16)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S" * 16)
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    with pytest.raises(UsageError, match="entities"):
        ask(aws_spot.fetch, {"/ec2.us-east-1.amazonaws.com/": bomb}, regions=("us-east-1",))


def azure_item(**more):
    item = {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": 98.32,
        "unitPrice": 98.32,
        "armRegionName": "eastus",
        "effectiveStartDate": "2024-08-01T00:00:00Z",
        "productName": "NDsr H100 v5 Series",
        "skuName": "ND96isr H100 v5",
        "meterName": "ND96isr H100 v5",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": "Standard_ND96isr_H100_v5",
    }
    return {**item, **more}


def test_azure_follows_pages_and_leaves_out_windows(ask):
    second = {
        "Items": [
            azure_item(type="Reservation", reservationTerm="3 Years", retailPrice=1_134_310.0),
            azure_item(skuName="ND96isr H100 v5 Spot", meterName="ND96isr H100 v5 Spot", retailPrice=29.49),
            azure_item(
                skuName="ND96isr H100 v5 Low Priority", meterName="ND96isr H100 v5 Low Priority", retailPrice=39.3
            ),
            azure_item(type="DevTestConsumption", retailPrice=50),
        ],
        "NextPageLink": None,
    }
    first = {
        "Items": [
            azure_item(savingsPlan=[{"unitPrice": 60.0, "retailPrice": 60.0, "term": "1 Year"}]),
            azure_item(productName="NDsr H100 v5 Series Windows", retailPrice=102.7),
            azure_item(isPrimaryMeterRegion=False, retailPrice=1.0),
        ],
        "NextPageLink": "https://prices.azure.com/api/retail/prices?$skip=100",
    }

    def page(request):
        send(
            request,
            second
            if "skip" in parse_qs(urlsplit(request.path).query).get("$skip", ["no"]) or "$skip=100" in request.path
            else first,
        )

    found = ask(azure.fetch, {"/prices.azure.com/api/retail/prices": page})
    start = f"azure/standard-nd96isr-h100-v5/{H100}/eastus/"
    prices = {name.removeprefix(start): row["usd_per_hour"] for name, row in found.items()}
    assert prices == {
        "on_demand": 98.32,
        "spot": 29.49,
        "spot.low_priority": 39.3,
        "savings_plan/12mo/monthly": 60,
        "reserved/36mo/monthly": pytest.approx(1_134_310 / 26_280),
    }


def test_azure_refuses_pages_in_a_circle(ask):
    page = {"Items": [], "NextPageLink": "https://prices.azure.com/api/retail/prices?$skip=100"}
    with pytest.raises(UsageError, match="circle"):
        ask(azure.fetch, {"/prices.azure.com/api/retail/prices": page})


def sku(description, usage, nanos, units=0, unit="h", regions=("us-central1",)):
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": str(units), "nanos": nanos}}
    expression = {"usageUnit": unit, "tieredRates": [rate]}
    category = {"resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": usage}
    return {
        "description": description,
        "category": category,
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": expression}],
    }


def test_gcp_joins_accelerators_hosts_and_disks_and_prices_no_machine_that_lacks_one(ask, monkeypatch):
    monkeypatch.setenv("GCP_BILLING_API_KEY", "AIza-secret-key")
    skus = [
        sku("Nvidia H100 80GB GPU running in Iowa", "OnDemand", 796_550_000, 9),
        sku("A3 Instance Core running in Iowa", "OnDemand", 29_040_000),
        sku("A3 Instance Ram running in Iowa", "OnDemand", 2_529_000),
        sku("SSD backed Local Storage", "OnDemand", 80_000_000, unit="GiBy.mo"),
        sku("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa", "Preemptible", 0, 3),
        sku("Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year", "Commit1Yr", 0, 5),
        sku("A3 Instance Core running in Iowa Sole Tenancy", "OnDemand", 1),
        sku("Nvidia L4 GPU running in Iowa", "OnDemand", 560_040_000),
    ]

    def page(request):
        assert request.headers["x-goog-api-key"] == "AIza-secret-key"
        last = "pageToken=next" in request.path
        send(request, {"skus": skus[4:], "nextPageToken": ""} if last else {"skus": skus[:4], "nextPageToken": "next"})

    place = "/cloudbilling.googleapis.com/v1/services"
    found = ask(gcp.fetch, {f"{place}/6F81-5844-456A/skus": page, f"{place}/E000-3F24-B8AA/skus": {"skus": []}})
    whole = found[f"gcp/a3-highgpu-8g/{H100}/us-central1/on_demand"]["usd_per_hour"]
    assert whole == pytest.approx(8 * 9.79655 + 208 * 0.02904 + 1872 * 0.002529 + 6000 * 0.08 / 730)
    assert not any("/spot" in name or "commitment" in name or "g2-" in name for name in found)


def test_lambda_lists_one_price_everywhere(ask, monkeypatch):
    monkeypatch.setenv("LAMBDA_API_KEY", "secret-lambda")
    kind = {
        "name": "gpu_8x_h100_sxm5",
        "gpu_description": "H100 (80 GB SXM5)",
        "price_cents_per_hour": 3192,
        "specs": {"gpus": 8, "vcpus": 208, "memory_gib": 1800},
    }
    body = {
        "data": {
            "gpu_8x_h100_sxm5": {"instance_type": kind, "regions_with_capacity_available": []},
            "broken": {"instance_type": None},
        }
    }
    found = ask(lambda_cloud.fetch, {"/cloud.lambda.ai/api/v1/instance-types": body})
    assert found[f"lambda/gpu-8x-h100-sxm5/{H100}/global/on_demand"]["usd_per_hour"] == 31.92
    assert ask.server.asked[0].headers["authorization"] == "Bearer secret-lambda"


def test_runpod_prices_its_tiers_and_no_tier_that_it_lacks(ask, monkeypatch):
    monkeypatch.setenv("RUNPOD_API_KEY", "secret-runpod")
    item = {
        "id": "NVIDIA H100 80GB HBM3",
        "displayName": "H100 SXM",
        "memoryInGb": 80,
        "securePrice": 2.99,
        "communityPrice": 0,
        "secureSpotPrice": 1.75,
        "communitySpotPrice": None,
    }
    found = ask(runpod.fetch, {"/api.runpod.io/graphql": {"data": {"gpuTypes": [item]}}})
    assert {name.split("/")[-1]: row["usd_per_gpu_hour"] for name, row in found.items()} == {
        "on_demand.secure": 2.99,
        "spot.secure": 1.75,
    }
    assert json.loads(ask.server.asked[0].body)["query"].startswith("query")


def test_vast_keeps_the_cheapest_of_equal_machines_in_a_place(ask):
    offer = {
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_ram": 24564,
        "dph_total": 0.35,
        "min_bid": 0.2,
        "geolocation": "Texas, US",
    }
    routes = {
        "/console.vast.ai/api/v0/bundles/": {
            "offers": [offer, {**offer, "dph_total": 0.31, "min_bid": None}, {"num_gpus": "x"}]
        }
    }
    found = ask(vast.fetch, routes)
    assert found["vast/1x-rtx-4090/1xrtx-4090/us-texas/on_demand.marketplace"]["usd_per_hour"] == 0.31
    assert found["vast/1x-rtx-4090/1xrtx-4090/us-texas/interruptible.marketplace"]["usd_per_hour"] == 0.2


def test_oci_multiplies_the_price_of_a_gpu_by_those_of_each_shape(ask):
    def product(name, usd, metric="GPU Per Hour"):
        money = [{"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": usd}]}]
        return {"partNumber": "B1", "displayName": name, "metricName": metric, "currencyCodeLocalizations": money}

    items = [
        product("OCI - Compute - GPU - H100", 10.0),
        product("OCI - Compute - GPU - A100 - v2", 4.0),
        product("Compute - Standard - E4", 0.025, "OCPU Per Hour"),
    ]
    found = ask(oci.fetch, {"/apexapps.oracle.com/pls/apex/cetools/api/v1/products/": {"items": items}})
    assert {name: row["usd_per_hour"] for name, row in found.items()} == {
        f"oci/bm.gpu.h100.8/{H100}/global/on_demand": 80,
        "oci/bm.gpu.a100-v2.8/8xa100-sxm4-80gb/global/on_demand": 32,
    }


def tokens_of(tmp_path, known, fetch, routes, earlier=None, today=TODAY, accept=False):
    with Server(routes) as server, Client(mirror=server.url) as client:
        desk = Desk(client, tmp_path / f"tokens-{today}", today)
        fetch(desk)
        verdict = judge_tokens(desk, known, earlier, None, accept, "s")
        desk.connection.execute(f"COPY part TO '{tmp_path / 'part.parquet'}' (FORMAT parquet)")
        rows = desk.connection.execute(
            "SELECT provider, model_id, input_usd_per_mtok, output_usd_per_mtok, cached_input_usd_per_mtok FROM part"
        ).fetchall()
    return verdict, rows


def test_litellm_prices_tokens_of_models_that_one_can_host(tmp_path, known):
    llama = {
        "litellm_provider": "together_ai",
        "mode": "chat",
        "input_cost_per_token": 8.8e-07,
        "output_cost_per_token": 8.8e-07,
        "cache_read_input_token_cost": 4.4e-07,
    }
    table = {
        "sample_spec": {"mode": "chat"},
        "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo": llama,
        "gpt-9": {**llama, "litellm_provider": "openai"},
        "groq/llama-3.3-70b-versatile": {**llama, "litellm_provider": "groq", "output_cost_per_token": 0},
    }
    path = "/raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
    verdict, rows = tokens_of(tmp_path, known, litellm.fetch, {path: table})
    assert rows == [("together", "llama-3.3-70b", 0.88, 0.88, 0.44)]
    assert verdict.left_out == {"price of $0": 1}


def test_a_hosted_model_that_is_listed_no_more_has_ended(tmp_path, known):
    """Of two models one is missing on the next day: its price ended the day before, and comes back if it does."""
    import duckdb

    price = {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
    both = {"groq/llama-3.3-70b-versatile": price, "groq/llama-3.1-8b-instant": price}
    path = "/raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
    days = [TODAY + timedelta(days=n) for n in range(4)]
    part, seen = None, []
    for day, names in zip(days, ([0, 1], [0], [0], [0, 1]), strict=True):
        table = {name: both[name] for name in (list(both)[n] for n in names)}
        verdict, _ = tokens_of(tmp_path, known, litellm.fetch, {path: table}, part, day)
        part = tmp_path / f"part-{day}.parquet"
        (tmp_path / "part.parquet").replace(part)
        query = f"SELECT observed_on, valid_until FROM '{part}' WHERE model_id = 'llama-3.1-8b'"
        seen.append((*duckdb.sql(query).fetchall(), verdict.gone))
    assert seen == [
        ((days[0], None), 0),
        ((days[1], days[0]), 1),
        ((days[1], days[0]), 0),
        ((days[3], None), 0),
    ]


@pytest.mark.parametrize("accept", [False, True])
def test_listings_of_tokens_are_counted_for_what_became_of_them(tmp_path, known, accept):
    """Of two prices one moved and one is told no more, though its model is still listed; a third is doubtful."""

    def listed(usd_in, usd_out):
        price = {"input_cost_per_token": usd_in and usd_in / 1e6, "output_cost_per_token": usd_out and usd_out / 1e6}
        return {"litellm_provider": "groq", "mode": "chat", **price}

    path = "/raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
    one, two, three = "groq/llama-3.3-70b-versatile", "groq/llama-3.1-8b-instant", "groq/gemma2-9b-it"
    tokens_of(tmp_path, known, litellm.fetch, {path: {one: listed(1.0, 2.0), two: listed(1.0, 2.0)}})
    earlier = (tmp_path / "part.parquet").replace(tmp_path / "earlier.parquet")
    table = {one: listed(1.2, 2.0), two: listed(1.0, None), three: listed(2.0, 1.0)}
    verdict, rows = tokens_of(tmp_path, known, litellm.fetch, {path: table}, earlier, TODAY, accept)
    assert len(rows) == verdict.rows == 2 + accept
    assert (verdict.new, verdict.changed, verdict.same, verdict.gone) == (accept, 1, 0, 0)
    assert verdict.left_out == {"no price": 1}
    assert verdict.held == ({} if accept else {"output cheaper than input": 1})
    assert verdict.examples == {
        "no price": ["groq groq/llama-3.1-8b-instant"],
        "output cheaper than input": ["groq groq/gemma2-9b-it"],
    }


def test_genai_prices_takes_the_price_that_holds_today(tmp_path, known):
    dated = [
        {"prices": {"input_mtok": 1.0, "output_mtok": 1.0}},
        {
            "constraint": {"start_date": "2026-01-01"},
            "prices": {"input_mtok": {"base": 0.59, "tiers": []}, "output_mtok": 0.79},
        },
    ]
    table = [
        {
            "id": "groq",
            "models": [
                {"id": "llama-3.3-70b-versatile", "prices": dated},
                {"id": "unheard-of", "prices": {"input_mtok": 1, "output_mtok": 2}},
            ],
        },
        {"id": "openai", "models": []},
    ]
    path = "/raw.githubusercontent.com/pydantic/genai-prices/main/prices/data.json"
    verdict, rows = tokens_of(tmp_path, known, genai_prices.fetch, {path: table})
    assert rows == [("groq", "llama-3.3-70b", 0.59, 0.79, None)]
    assert verdict.left_out == {"model not known": 1}


@pytest.mark.parametrize("body", ["{}", "[]", "null", '{"Items": 7}', "<html>", ""])
@pytest.mark.parametrize(
    "fetch", [azure.fetch, oci.fetch, vast.fetch, runpod.fetch, lambda_cloud.fetch, gcp.fetch, litellm.fetch]
)
def test_an_answer_of_another_shape_is_a_sentence(ask, monkeypatch, fetch, body):
    from gpucost.errors import GpuCostError

    for name in ("RUNPOD_API_KEY", "LAMBDA_API_KEY", "GCP_BILLING_API_KEY"):
        monkeypatch.setenv(name, "secret-key")

    class Any(dict):
        def get(self, key, other=None):
            return body

    if fetch is litellm.fetch and body == "{}":
        return  # a table without models is one
    with pytest.raises(GpuCostError) as error:
        ask(fetch, Any())
    assert "secret-key" not in str(error.value)


WRONG = {
    "Items": [5, None, {"retailPrice": "x"}],
    "data": {"gpuTypes": [{"id": [], "lowestPrice": "x"}]},
    "skus": [7],
    "offers": [[1]],
    "items": [None, {"prices": 5}],
    "products": "no",
    "terms": [],
    "m": {"input_cost_per_token": []},
}
HOSTILE = {
    "the key said back": lambda request: send(request, f"{request.headers} {request.path} {request.body}", 401),
    "not numbers": lambda request: send(
        request, '{"Items": [{"unitPrice": NaN}], "data": [1e308], "offers": Infinity}'
    ),
    "without end": lambda request: send(request, b"[" * 100_000),
    "control": lambda request: send(request, '\0\x1b[31m,\x07"\0","=cmd|\' /C calc\'!A0"\n1,2,3\n'),
    "of other types": lambda request: send(request, WRONG),
    "a line without end": lambda request: send(request, b"0," * 200_000, packed=True),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_answer_is_a_sentence_without_keys(name, known, tmp_path, monkeypatch):
    """Whatever comes, the source alone fails: in one line, in a sentence of ours, in time, and with no key in it."""
    for key in SOURCES[name].keys:
        monkeypatch.setenv(key, "key-NOT-TO-BE-SAID")
    with Server() as server:
        wish = RefreshOptions(mirror=server.url, seconds=20, regions=("us-east-1",), pause=lambda _: None)
        for number, (what, answer) in enumerate(HOSTILE.items()):
            server.routes = _Always(answer)
            found = refresh_one(SOURCES[name], known, {}, tmp_path / str(number), wish, TODAY)
            assert found.state == "failed", what
            assert "format may" not in found.reason, (what, found.reason)
            assert found.reason.isprintable(), what
            assert "NOT-TO-BE-SAID" not in f"{found.reason} {found.verdict}", what
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"NOT-TO-BE-SAID" not in kept


class _Always(dict):
    def __init__(self, answer):
        self._answer = answer

    def get(self, *_):
        return self._answer
