"""A machine on record as the bench file that it wrote."""

import json

from gpucost.calibration import fits
from gpucost.catalog import open_catalog


def bench_on_record(machine="h200", device="NVIDIA H200"):
    rows = [row for row in open_catalog().rows("bench_measurements") if row["machine"] == machine]
    figures = [{"id": row["case"], **{k: v for k, v in row.items() if v is not None}} for row in rows]
    head = {"schema_version": 1, "kind": "bench", "profile": "full", "started": "2026-11-22", "software": {}}
    whole = {"machine": {"device": device, "gpus": 1, "power_limit_w": 700.0}, "figures": figures}
    return json.dumps({**head, **whole, "failed": [], "notes": []})


def fit_own(catalog, kind, rows):
    """Fit runs of one's own on top of the current calibration, as `gpucost calibrate` does."""
    return fits.fit_read(catalog, kind, fits.read_own(catalog, kind, rows))
