"""A saved estimate holds all facts that its figures lean on, whatever was asked for."""

import json

import pytest

import gpucost
from gpucost.ask.estimate import rerun
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.render.json import dumps

WANTED = [
    *({"option": name} for name in ("spot", "on_demand", "reserved", "savings_plan", "community")),
    *({"provider": name} for name in ("aws", "aws-sagemaker", "azure", "gcp", "lambda", "vast", "runpod", "oracle")),
    *({"gpu": name} for name in ("h200-sxm", "a100-80gb", "mi300x", "l4", "rtx-4090", "b200", "h100-sxm,h200-sxm")),
    *({"region": name} for name in ("europe", "us-east-1", "asia")),
    *({"option": "spot", "gpu": name, "top": 0} for name in ("h100-sxm", "a100-80gb", "l40s", "l4")),
    *({"option": "spot", "provider": name, "top": 0} for name in ("azure", "gcp")),
    {"option": "spot", "gpu": "a100-80gb", "gpus": 8, "mfu": "35%", "storage_bandwidth": "0.5GB/s", "top": 0},
    {"option": "spot", "region": "europe", "all_regions": True, "top": 0},
    {"gpu": "h200-sxm", "model": "mixtral-8x7b", "top": 0},
]


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-07-20")


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_a_rerun_gives_equal_bytes(wanted, catalog):
    found = gpucost.estimate(**{"model": "1b", "tokens": "1b", "deadline": "none", **wanted}, catalog=catalog)
    saved = json.loads(dumps(found.payload))
    assert dumps(rerun(saved, training_calibration(catalog))) == dumps(saved)
