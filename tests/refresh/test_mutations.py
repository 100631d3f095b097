"""Mutated answers: nothing that a source did not mean is published without a question."""

import json
import os
import random
from functools import cached_property
from unittest import mock

import pytest

from gpucost.catalog import open_catalog
from gpucost.refresh.known import REFERENCE, known_of
from gpucost.refresh.registry import SOURCES
from gpucost.refresh.run import RefreshOptions, refresh_one
from tests.refresh.mutations import mutated
from tests.refresh.server import Server
from tests.refresh.test_samples import (
    TODAY,
    catalog_zip,
    described,
    gcp_routes,
    hosts,
    hunted,
    karpenter_routes,
    skypilot_routes,
    text,
)

KEYS = dict.fromkeys(
    ("GCP_BILLING_API_KEY", "LAMBDA_API_KEY", "RUNPOD_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "key-of-a-test",
)
NEAR = 0.40  # a price that is off by less is no wrong price to a machine: it may have moved since it was last seen


def _routes():
    """The answers of each source, as text by path."""
    aws = "/pricing.us-east-1.amazonaws.com"
    linux = text("aws_bulk_excerpt.csv").replace('"Dedicated"', '"Shared"').replace('"SQL Web"', '"NA"')
    linux = linux.replace('"Windows"', '"Linux"').replace('"c6i.large"', '"p5.48xlarge"')
    linux = linux.replace("0.1046300000", "29.5")
    vast = json.loads(text("vast_offers_recorded.json"))
    for offer in vast["offers"]:
        offer |= {"rentable": True, "dph_total": offer["discounted_dph_total"] * 4, "min_bid": offer["min_bid"] * 3}
    sold = [
        *described("B200"),
        *described("H100 80GB"),
        *described("H200"),
        *described("A100"),
        *hosts("A3"),
        *hosts("A3Plus"),
        *hosts("A3Ultra"),
        *hosts("A2"),
        *json.loads(text("gcp_billing_skus.json"))["skus"],
    ]
    return {
        "gcp": gcp_routes(sold),
        "azure": {"/prices.azure.com/api/retail/prices": text("azure_retail_eastus_nd.json")},
        "oci": {"/apexapps.oracle.com/pls/apex/cetools/api/v1/products/": text("oci_prices_usd.json")},
        "aws": {f"{aws}/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv": linux},
        "karpenter": karpenter_routes(),
        "skypilot": skypilot_routes("aws", "jarvislabs", "verda", "lambda", "spheron"),
        "lambda": {"/cloud.lambda.ai/api/v1/instance-types": text("lambda_instance_types_documented.json")},
        "runpod": {"/api.runpod.io/graphql": text("runpod_gpu_types_documented.json")},
        "vast": {"/console.vast.ai/api/v0/bundles/": json.dumps(vast, indent=1)},
        "gpuhunt": {
            "/dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v2/version": "20261120-1",
            "/dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v2/20261120-1/catalog.zip": hunted(
                "gpu_8x_h100_sxm5,us-west-1,27.92,208,1800,8,H100,80,False,,nvidia,",
                "gpu_1x_a10,us-east-1,0.75,30,200,1,A10,24,False,,nvidia,",
                "gpu_1x_h100_pcie,us-west-1,2.49,26,200,1,H100,80,False,,nvidia,",
            ),
        },
    }


class Bench:
    """The sources, what each means by its answer, and a try with one answer changed."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0
        self.known = known_of(open_catalog("2026-11-22"))
        self.last = {row[0]: row[list(REFERENCE).index("usd_per_hour")] for row in self.known.reference}

    @cached_property
    def routes(self):
        return {
            name: {path: body if isinstance(body, str) else json.dumps(body, indent=1) for path, body in paths.items()}
            for name, paths in _routes().items()
        }

    @cached_property
    def meant(self):
        """What each source means by its own answer: the price by the hour of every offer."""
        return {name: self._offers(name, paths, accept=True) for name, paths in self.routes.items()}

    def tried(self, rng):
        """Change one answer of one source; return what was done and what was published that is not meant."""
        name = rng.choice(list(self.routes))
        path = rng.choice([one for one in self.routes[name] if not one.endswith(("version", "commits"))])
        body, way = mutated(self.routes[name][path], rng)
        found = self._offers(name, {**self.routes[name], path: body}, accept=False)
        meant = self.meant[name]
        wrong = [
            (offer, usd, meant.get(offer))
            for offer, usd in found.items()
            if not any(then and abs(usd / then - 1) < NEAR + 1e-9 for then in (meant.get(offer), self.last.get(offer)))
        ]
        return f"{name} {way}", wrong

    def _offers(self, name, routes, accept):
        self.number += 1
        served = {
            path: catalog_zip({"lambdalabs.csv": body}) if path.endswith(".zip") else body
            for path, body in routes.items()
        }
        with mock.patch.dict(os.environ, KEYS), Server(served) as server:
            wish = RefreshOptions(
                accept, server.url, regions=("us-east-1",) if name == "aws" else (), pause=lambda _: None
            )
            outcome = refresh_one(SOURCES[name], self.known, {}, self.folder / f"desk-{self.number}", wish, TODAY)
        if outcome.state != "published":
            return {}
        import duckdb

        (part,) = [part for part in outcome.parts if part.kind == "offers"]
        file = self.folder / part.sha256
        sql = f"SELECT offer_id, usd_per_hour FROM read_parquet('{file}') WHERE NOT gone"
        return dict(duckdb.sql(sql).fetchall())


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("mutations"))


def test_every_source_means_something(bench):
    assert {name for name, offers in bench.meant.items() if offers} == set(bench.routes)


@pytest.mark.parametrize("number", range(60))
def test_no_wrong_price_of_a_mutated_answer_is_published_without_a_question(bench, number):
    """Sixty of them here; `python -m tests.refresh.mutations 1000` tries more."""
    what, wrong = bench.tried(random.Random(number))
    assert not wrong, (what, wrong)


@pytest.mark.parametrize("number", [328, 346, 490, 632, 843, 943])
def test_a_place_a_name_or_a_bid_of_another_field_is_kept_apart(bench, number):
    assert bench.tried(random.Random(number))[1] == []
