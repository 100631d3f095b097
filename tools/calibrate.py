"""The efficiencies fitted to the shipped measurements, and what the fits say of sources that they have not seen.

    python -m tools.calibrate fit --kind training -o models/calibration.csv
    python -m tools.calibrate fit --kind serving -o models/serving_calibration.csv
    python -m tools.calibrate choose --kind serving
    python -m tools.calibrate hold-out --kind training --by source --core

`choose` shows what each term earns on sources that took no part in fitting it; `hold-out` predicts each group with a
calibration fitted to the others. Each takes minutes.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from gpucost.calibration import fits, serving, training
from gpucost.calibration.fits import published, training_shipped
from gpucost.calibration.measurements import Measurements
from gpucost.calibration.serving import loads_of, printed
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.physics.calibration import Calibration, Scheme, as_csv, table, width_of
from gpucost.physics.serving.calibration import SCHEME as SERVING
from gpucost.physics.training.calibration import SCHEME as TRAINING
from tools import choice, serving_fit, training_fit


def serving_shipped(catalog: Catalog) -> Measurements:
    """Return the measurements of serving that are fitted: published runs, and this project's own steps."""
    own = serving.own_steps(catalog.rows("step_measurements"))
    return serving.gather([*catalog.rows("serving_measurements"), *own], catalog)


def _fit_training(catalog: Catalog) -> Calibration:
    """Fit training to the shipped measurements, with ranges for what users leave unsaid."""
    fitted = training_fit.calibrate(training_shipped(catalog), first_of(catalog, "training"))
    return training_fit.widen_for_the_unstated(published(catalog), catalog, fitted)


# Commits in models/ledger.csv whose faults were mended since: first predictions of theirs that a mended fault
# explains do not count against today's ranges.
_BEFORE_SERVERS = ("3586665",)  # did not know a server as it comes
_BEFORE_LIBRARY_SCORES = ("4802c58",)  # did not know attention as a library writes it out


def first_of(catalog: Catalog, kind: str) -> dict[str, float]:
    """Return log(predicted ÷ measured) of first predictions: by row for training, by row and metric for serving.

    Servers as they come are left out where the model of that day took them for tuned ones, and steps of a library where
    it knew no more than a plain loop's attention: those errors are mended.
    """
    rows = [row for row in catalog.rows("first_predictions") if row["kind"] == kind]
    gaps = {str(row["id"]): float(np.log(row["predicted"] / row["measured"])) for row in rows}
    # the id of a first prediction is that of its row and the metric, with a space between
    if kind == "training":
        mended = {line["source"] for line in catalog.rows("ledger") if line["commit"] in _BEFORE_LIBRARY_SCORES}
        valid = {str(row["id"]) for row in rows if row["source"] not in mended}
        return {name.rpartition(" ")[0]: gap for name, gap in gaps.items() if name in valid}
    early = {line["source"] for line in catalog.rows("ledger") if line["commit"] in _BEFORE_SERVERS}
    served = {row["id"] for row in catalog.rows("serving_measurements") if row["served_by"] == "default"}
    mistaken = {row["id"] for row in rows if row["source"] in early and row["id"].rpartition(" ")[0] in served}
    return {name: gap for name, gap in gaps.items() if name not in mistaken}


def choose(catalog: Catalog, kind: str) -> list[dict[str, Any]]:
    """Return every term of a model: what it earns on sources outside its proposal, and whether it stays."""
    k = KINDS[kind]
    shipped = {parameter.name.partition(".")[0] for parameter in k.scheme.parameters if parameter.fitted}
    return [
        {
            "name": term.name,
            "parameters": term.parameters,
            "gain": term.gain,
            "kept": term.kept,
            "fitted": term.name in shipped,
        }
        # by what each parameter earns: what goes stands first
        for term in sorted(choice.choose(k.sources(k.shipped(catalog))), key=lambda term: term.gain / term.parameters)
    ]


class FitKind(Struct, frozen=True):
    """What differs between the calibrations of training and serving."""

    scheme: Scheme
    source_id: str
    shipped: Callable[[Catalog], Measurements]
    fit: Callable[[Catalog], Calibration]
    sources: Callable[[Measurements], choice.Sources]


KINDS = {
    "training": FitKind(TRAINING, "gpucost-calibrate-training", training_shipped, _fit_training, training_fit.sources),
    "serving": FitKind(
        SERVING,
        "gpucost-calibrate-serving",
        serving_shipped,
        lambda catalog: serving_fit.calibrate(serving_shipped(catalog), first_of(catalog, "serving")),
        serving_fit.sources,
    ),
}


GROUPINGS = {"training": training_fit.GROUPINGS, "serving": serving_fit.GROUPINGS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fit", "choose", "hold-out"))
    parser.add_argument("--kind", choices=KINDS, default="training")
    parser.add_argument("--by", default="source", help="What is held out: source, family, software, model or gpu.")
    parser.add_argument("--core", action="store_true", help="Only rows marked as well suited to validation.")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.by not in GROUPINGS[options.kind]:
        parser.error(f"{options.kind} holds out {', '.join(GROUPINGS[options.kind])}, not {options.by}.")
    catalog = open_catalog()
    if options.what == "fit":
        k = KINDS[options.kind]
        measured = k.shipped(catalog)
        # of training without doubtful rows and hours of whole runs, which no fit sees
        used = int(training.fit_rows(measured).sum()) if options.kind == "training" else len(measured.figures)
        text = as_csv(table(k.scheme, k.fit(catalog), used, k.source_id, k.scheme.defaults))
    elif options.what == "choose":
        text = "".join(
            f"{term['name']:32} {term['parameters']:3} {100 * term['gain']:+.2f} % "
            f"{'stays' if term['kept'] else 'goes'}\n"
            for term in choose(catalog, options.kind)
        )
    else:
        from gpucost.ask.result import Result
        from gpucost.calibration.measurements import answer

        head: dict[str, Any] = {
            "kind": "validation",
            "validated": options.kind,
            "method": f"each {options.by} predicted with a calibration fitted to the others",
        }
        if options.kind == "training":
            pool, known = training_shipped(catalog), training_calibration(catalog)
            items = training.with_ranges(pool, training_fit.leave_one_out(pool, options.by, pool, known.values), known)
            # `--core` narrows what is shown: the fit learns from every row, as the shipped one did
            items = [item for item, row in zip(items, pool.rows, strict=True) if row.core or not options.core]
            rows = pool.core() if options.core else pool
            report = training.report_payload(rows, items, baselines=fits.baselines(rows), **head)
        else:
            # published runs are predicted; the fits learn from this project's own steps too
            rows = serving.gather(catalog.rows("serving_measurements"), catalog)
            rows, known = rows.core() if options.core else rows, serving_calibration(catalog)
            logged = serving_fit.leave_one_out(rows, options.by, serving_shipped(catalog), known.values)
            traits = serving.traits_of(rows, rows.figures, printed(loads_of(rows.rows, known.values), known.values))
            items = rows.items(np.exp(logged), width_of(traits, known.ranges))
            report = serving.report_payload(rows, items, **head)
        request = {"kind": options.kind, "by": options.by, "core": options.core}
        text = Result(answer(report, request, catalog.as_of, catalog.version)).to_text()
    if options.output:
        options.output.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
