"""`gpucost validate`: hold predictions against measurements."""

from typing import TYPE_CHECKING

import click

from gpucost.cli.options import emit_text

if TYPE_CHECKING:
    from gpucost.answers.checks import Validation

KINDS = ("training", "memory", "serving")


@click.command(name="validate")
@click.option("--kind", type=click.Choice(KINDS), default="training", show_default=True, help="What is predicted.")
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Rows in the columns of the shipped measurements; else the shipped ones.",
)
@click.option(
    "--leave-out",
    type=click.Choice(("source", "family", "software", "model")),
    help="Predict each group with a calibration fitted to the others (takes minutes).",
)
@click.option("--core/--all", "core", default=False, help="Only rows marked as well suited.")
@click.option("--max-error", type=float, metavar="FRACTION", help="Exit 5 if the macro-median error is above this.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("table", "json", "csv", "md")),
    default="table",
    show_default=True,
    help="How to write the answer.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE instead of the terminal.")
def command(
    kind: str, measurements: str | None, leave_out: str | None, core: bool, max_error: float | None, format_: str,
    output: str | None,
) -> None:  # fmt: skip
    """Predict every measured run from its description, and show the errors per source and in total.

    Predictions see no measured column. Unknown chips and models are taken as their nearest kin, with a note; what
    cannot be computed is skipped with its reason. Figures that a source states only as TFLOP/s or MFU are apart.

    \b
    gpucost validate
    gpucost validate --kind training --measurements runs.csv --format json
    gpucost validate --leave-out source --core
    """
    from gpucost.catalog import open_catalog
    from gpucost.errors import CheckFailedError
    from gpucost.validation.report import answer
    from gpucost.validation.runs import VALIDATIONS

    catalog = open_catalog()
    request = {"kind": kind, "measurements": measurements, "leave_out": leave_out, "core": core}
    report = VALIDATIONS[kind](catalog, measurements, leave_out=leave_out, core=core)
    found = answer(report, request, catalog.as_of, catalog.version)
    emit_text(rendered(found, format_), output)
    macro = found["macro_median_abs_error_fraction"]
    if max_error is not None and (macro is None or macro > max_error):
        said = "nothing was predicted" if macro is None else f"the macro-median error is {macro:.1%}"
        raise CheckFailedError(f"{said}; {max_error:.1%} was asked for.")


def rendered(payload: "Validation", format_: str) -> str:
    """Write the report in a format."""
    if format_ == "json":
        from gpucost.render.json import dumps

        return dumps(payload)
    if format_ == "csv":
        from gpucost.render.rows import render_rows

        return render_rows(
            payload["items"],
            columns=list(payload["items"][0]) if payload["items"] else [],
            format_="csv",
            fields=None,
            envelope={},
            title="",
        )
    from gpucost.render import markdown, text
    from gpucost.render.validation import document

    return text.write(document(payload)) if format_ == "table" else markdown.write(document(payload))
