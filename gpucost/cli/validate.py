"""`gpucost validate` and `gpucost data check`: predictions against measurements, data files against their tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.help import GroupedCommand, GroupedParent
from gpucost.cli.lists import sources, systems
from gpucost.cli.messages import say, working
from gpucost.cli.options import Output, output_options
from gpucost.cli.start import schema

if TYPE_CHECKING:
    from gpucost.schemas.validation import Fault


# --- `gpucost data check`: judge data files before they are used.


@click.group(name="data", cls=GroupedParent)
def data() -> None:
    """The facts: check files, list sources and machines, print schemas."""


@data.command(name="check")
@click.argument("file", type=click.Path(), required=False)
@click.option("--table", metavar="NAME", help="The table that FILE belongs to; found by name and header otherwise.")
@click.option("--doubts", is_flag=True, help="Also list rows that are odd but may be true (always with FILE).")
@output_options
def check(out: Output, file: str | None, table: str | None, doubts: bool) -> None:
    """Check FILE, or all shipped data and your own book; list each fault as file:row:column with its reason.

    Faults are malformed, duplicate, negative, zero, infinite, misdated or unsourced rows, wrong units, unknown
    references, and prices that are contradictory or impossible. The exit code is 5 when there is a fault.

    \b
    gpucost data check
    gpucost data check my-prices.csv --table offers
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.checks import check_folder
    from gpucost.catalog.core import data_root
    from gpucost.catalog.datacheck import check_one, idle_discounts
    from gpucost.errors import CheckFailedError, UnknownNameError, UsageError
    from gpucost.schemas import TABLES

    if table is not None and table not in TABLES:
        raise UnknownNameError("table", table, [], f"Tables: {', '.join(TABLES)}.")
    if table is not None and file is None:
        raise UsageError("--table says what FILE holds: also name the file, or leave --table out to check all data.")
    # as it is, faults and all: an ordinary catalog refuses to open with them
    catalog = open_catalog(root=data_root(), checked=False)
    if file is None:
        with working("checking every row"):
            report = check_folder(catalog.store.root)
        report.faults += idle_discounts(catalog, catalog.books)  # reading a book judges it
    else:
        report = check_one(catalog, Path(file), table)
    doubts = doubts or file is not None  # who checks a file of their own wants to know
    summary = f"{report.files} files, {report.rows} rows: {len(report.faults)} faults, {len(report.doubts)} doubts"
    say(f"{summary}{'' if doubts or not report.doubts else ' (--doubts lists them)'}")
    if file is None and (availability := catalog.availability.summary(catalog.as_of)):
        say(availability)
    rows = [*_rows("fault", report.faults), *(_rows("doubt", report.doubts) if doubts else [])]
    # a table of nothing says no more than the summary; a file for a program always has its rows
    if rows or out.format != "table" or out.is_document:
        ok = not report.faults
        out.rows(rows, ("kind", "place", "reason"), catalog, files=report.files, rows_checked=report.rows, ok=ok)
    if report.faults:
        raise CheckFailedError(f"data check failed: {len(report.faults)} faults.")


def _rows(kind: str, faults: "Sequence[Fault]") -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "place": fault.place,
            "reason": fault.reason,
            "file": fault.file,
            "row": fault.row,
            "column": fault.column,
        }
        for fault in sorted(faults, key=lambda item: (item.file, item.row or 0, item.column or ""))
    ]


# --- `gpucost validate`: hold predictions against measurements.


_FITTED = ("training", "serving", "load")  # kinds whose predictions a calibration moves


@click.command(name="validate", cls=GroupedCommand)
@click.option(
    "--kind",
    type=click.Choice(["training", "memory", "serving", "load", "rl", "runs"]),
    default="training",
    show_default=True,
    help="What is predicted: speed of training or serving, peak memory, steps of reinforcement learning (rl), hours of "
    "whole published runs (runs).",
)
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Rows in the columns of the shipped measurements; else the shipped ones. With --kind load also the result of "
    "a load test (JSON or JSONL of vLLM, SGLang, GenAI-Perf, AIPerf, guidellm or inference-perf).",
)
@click.option("--model", metavar="NAME", help="With the result of a load test: the model, if the file does not say.")
@click.option("--gpu", metavar="NAME", help="With the result of a load test: the accelerator.")
@click.option("--gpus", type=click.IntRange(1), help="With the result of a load test: number of GPUs.  [default: 1]")
@click.option("--tensor", type=click.IntRange(1), help="With the result of a load test: tensor-parallel degree.")
@click.option("--precision", metavar="NAME", help="With the result of a load test: format of the weights.")
@click.option("--software", metavar="NAME", help="With the result of a load test: the engine, such as vllm.")
@click.option(
    "--calibration",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Predict with this table, as `gpucost calibrate --format csv` writes it.",
)
@click.option(
    "--core/--all", "core", default=False, is_flag=True, help="Only rows marked as well suited to validation."
)
@click.option("--max-error", metavar="SHARE", help="Exit 5 if the macro-median error is above this.")
@output_options
def validate(
    out: Output,
    kind: str,
    measurements: str | None,
    calibration: str | None,
    core: bool,
    max_error: str | None,
    software: str | None,
    **server: Any,
) -> None:
    """Predict every measured run from its description, and show the errors per source and in total.

    Predictions see no measured column. Unknown chips and models are taken as their nearest kin, with a note; what
    cannot be computed is skipped with its reason. Figures that a source states only as TFLOP/s or MFU are apart.

    \b
    gpucost validate
    gpucost validate --kind training --measurements runs.csv --format json
    gpucost validate --measurements runs.csv --calibration own.csv
    gpucost validate --kind runs --measurements published.csv
    gpucost validate --core
    gpucost validate --kind load --measurements result.json --gpu h100-sxm
    """
    from gpucost.arguments.kinds import share
    from gpucost.ask.published import validate_runs
    from gpucost.ask.result import Result
    from gpucost.calibration.fits import VALIDATIONS
    from gpucost.calibration.load_results import TestedServer, is_result, read_results, sentence_of
    from gpucost.calibration.measurements import answer, read_file
    from gpucost.catalog import open_catalog
    from gpucost.catalog.calibrations import use
    from gpucost.errors import CheckFailedError

    # an empty name would mean the shipped rows
    if measurements == "":
        raise click.UsageError("cannot read '': --measurements names a file.")
    server = {name: value for name, value in {**server, "engine": software}.items() if value is not None}
    is_load_result = kind == "load" and measurements is not None and is_result(measurements)
    if server and not is_load_result:
        typed = ", ".join(f"--{'software' if name == 'engine' else name}" for name in server)
        raise click.UsageError(f"{typed}: only with --kind load and the result of a load test as --measurements.")
    limit = None if max_error is None else share(100.0).read(max_error, "--max-error")
    catalog = open_catalog()
    if calibration:
        if kind not in _FITTED:
            raise click.UsageError(f"--calibration needs --kind {', '.join(_FITTED)}: nothing is fitted to {kind}.")
        # load tests are predicted with the efficiencies of serving
        use(catalog, "serving" if kind == "load" else kind, read_file(calibration, ("name", "kind", "value")))
    request = {"kind": kind, "measurements": measurements, "core": core}
    request |= ({"calibration": calibration} if calibration else {}) | server
    tests = {"rows": read_results(str(measurements), TestedServer(**server))} if is_load_result else {}
    for test in tests.get("rows", ()):
        say(sentence_of(test))
    with working("predicting the measured runs"):
        # whole runs are asked as `estimate` is, which the room of calibrations cannot do
        report = (VALIDATIONS | {"runs": validate_runs})[kind](catalog, measurements, core=core, **tests)
    if calibration:
        report["method"] = f"predicted with the calibration of {calibration}"
    answered = answer(report, request, catalog.as_of, catalog.version)
    out.result(Result(answered))
    macro = answered["macro_median_abs_error_fraction"]
    # where nothing could be predicted the check fails, too
    if limit is not None and (macro is None or macro > limit):
        outcome = "nothing was predicted" if macro is None else f"the macro-median error is {macro:.1%}"
        raise CheckFailedError(f"{outcome}; the limit is {limit:.1%}.")


for _more in (sources, systems, schema):
    data.add_command(_more)
