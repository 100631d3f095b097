"""Benches on record against predictions, and what the short bench of a machine teaches about its other steps.

    python -m benchmarks.own_machine

No fit has seen the benches. Steps that the short profile measures are given to `gpucost calibrate`; the others are
predicted before and after.
"""

import numpy as np

from gpucost.bench import file as from_bench
from gpucost.bench.cases import cases_of
from gpucost.calibration import serving, training
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration

# steps of serving that the short profile measures, by what a bench's row says of them
_SHORT_STEPS = {
    tuple(case.arguments[name] for name in ("model", "phase", "batch", "context"))
    for case in cases_of("short", 1)
    if case.op == "serve"
}


def figures(errors: list[float]) -> str:
    """Write how many errors there are, their median and 90th percentile."""
    if not errors:
        return "none"
    return f"{len(errors)}, {np.median(errors):.1%}, {np.quantile(errors, 0.9):.1%}"


def _training_errors(catalog: Catalog, bench: dict, gpu: str, short: set[str]) -> dict[str, list[float]]:
    """Return the errors of all steps, of those beyond the short profile, and of these after it."""
    rows = from_bench.training_rows(bench, gpu)
    # as `gpucost calibrate` would learn from the short bench of this machine
    learned = training.gather([row for row in rows if row["id"] in short], catalog, as_written=True)
    base = training_calibration(catalog)
    tuned = training.tune(learned, base) if learned.rows else base
    errors: dict[str, list[float]] = {"training": [], "training beyond short": [], "training after short": []}
    for row in rows:
        measured = training.gather([row], catalog, as_written=True)
        before, after = (
            abs(training.predict(measured, calibration)[0].predicted / measured.figures[0].value - 1)
            for calibration in (base, tuned)
        )
        errors["training"].append(before)
        if row["id"] not in short:
            errors["training beyond short"].append(before)
            errors["training after short"].append(after)
        print(f"  {row['id']:44} {before:6.1%} {after:6.1%} {'given' if row['id'] in short else ''}")
    return errors


def _serving_errors(catalog: Catalog, bench: dict, gpu: str) -> dict[str, list[float]]:
    """Return the errors of decode and prefill steps before and after the short profile."""
    steps = list(from_bench.serving_steps(bench, gpu))
    errors: dict[str, list[float]] = {}
    base = serving_calibration(catalog)
    learned = [step for step in steps if is_short(step)]
    tuned = serving.tune(serving.gather(serving.own_steps(learned), catalog), base) if learned else base
    for step in steps:
        measured = serving.gather(serving.own_steps([step]), catalog)
        for name, calibration in (("", base), (" after short", tuned)):
            if name and is_short(step):  # the calibration has seen it
                continue
            logged = serving.log_predicted(serving.observe(measured), calibration.values)
            error = float(np.abs(np.expm1(logged - measured.log_measured))[0])
            errors.setdefault(f"{step['phase']}{name}", []).append(error)
    return errors


def is_short(step: dict) -> bool:
    """Tell whether the short profile measures a serving step."""
    return (step["model"], step["phase"], step["batch"], step["context"]) in _SHORT_STEPS


def main() -> None:
    catalog = open_catalog()
    machines: dict[str, list[dict]] = {}
    for row in catalog.rows("bench_measurements"):
        stated = {column: value for column, value in row.items() if value is not None}
        machines.setdefault(row["machine"], []).append(stated)
    for name, rows in machines.items():
        print(name)
        bench = {"figures": rows, "started": rows[0]["as_of"]}
        short = {case.id for case in cases_of("short", rows[0]["gpus"])}
        by_kind = _training_errors(catalog, bench, rows[0]["gpu"], short)
        by_kind |= _serving_errors(catalog, bench, rows[0]["gpu"])
        for kind, errors in by_kind.items():
            print(f"{name:10} {kind:24} {figures(errors)}")


if __name__ == "__main__":
    main()
