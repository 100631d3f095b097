"""Steps that a bench measured become rows of measurements, and lie near what is predicted without having seen them."""

import numpy as np
import pytest

from gpucost.bench import file
from gpucost.bench.cases import cases_of
from gpucost.calibration import training
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration

DIFFERENT = ("fp8",)  # our fp8 script scales whole tensors by their largest values: slower than any tuned stack


@pytest.fixture(scope="module")
def machines():
    found = {}
    for row in open_catalog().rows("bench_measurements"):
        bench = found.setdefault(row["machine"], {"figures": [], "started": row["as_of"], "gpu": row["gpu"]})
        bench["figures"].append(row)
    return found


def test_training_steps_of_a_bench_are_predicted_within_a_tenth_in_the_median(machines):
    catalog = open_catalog()
    errors = []
    for bench in machines.values():
        steps = [row for row in file.training_rows(bench, bench["gpu"]) if row["precision"] not in DIFFERENT]
        found = training.gather(steps, catalog, as_written=True)
        assert found.skipped == []
        items = training.predict(found, training_calibration(catalog))
        errors += [abs(item.predicted / item.measured - 1) for item in items]
    assert len(errors) >= 15
    assert np.median(errors) < 0.10


@pytest.mark.parametrize("name", ["h100-b", "h100-c", "h100-e", "h200-b", "h200-c", "h200-d"])
def test_a_short_bench_teaches_of_other_steps(name, machines):
    """A tenth of the steps beyond 12 % or less, where the steps that the short profile has today were all measured."""
    catalog, bench, short = open_catalog(), machines[name], {case.id for case in cases_of("short", 1)}
    steps = file.training_rows(bench, bench["gpu"])
    given, others = ([row for row in steps if (row["id"] in short) is taught] for taught in (True, False))
    tuned = training.tune(training.gather(given, catalog, as_written=True), training_calibration(catalog))
    items = training.predict(training.gather(others, catalog, as_written=True), tuned)
    errors = [abs(item.predicted / item.measured - 1) for item in items]
    assert len(errors) >= 9
    assert np.median(errors) < 0.055
    assert np.quantile(errors, 0.9) < (0.12 if len(given) > 5 else 0.14)


def test_serving_steps_of_a_bench_name_what_serving_reads(machines):
    steps = file.serving_steps(machines["h200"], "h200-sxm-141gb")
    assert {step["phase"] for step in steps} == {"decode", "prefill"}
    assert all(step["step_s"] > 0 and step["tp"] == 1 for step in steps)
