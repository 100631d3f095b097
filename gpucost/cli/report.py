"""`gpucost report`: a workbook, page or text from a scenario file or a saved answer."""

from typing import Annotated

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FILE, named
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import signature_options
from gpucost.cli.progress import working
from gpucost.cli.said import say


@click.command(name="report")
@signature_options
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="File to write: .xlsx, .html, .md, .json or .txt."
)
def command(
    output: str | None,
    source: Annotated[str, named("SCENARIO.toml|ANSWER.json"), PLACE],
    status: v.Status | None = None,
    by: v.StampedBy | None = None,
    date: v.StampedOn | None = None,
    share_safe: v.ShareSafe = False,
    accept_changed: v.AcceptChanged = False,
    template: Annotated[
        str | None, FILE, "Fill the named cells of this .xlsx; -o names the copy that is written."
    ] = None,
) -> None:
    """Answer a scenario and write a report in the format of the output's suffix.

    A saved answer (--format json of any command) is rendered without computing it again.

    \b
    gpucost init scenario.toml
    gpucost report scenario.toml -o report.xlsx
    gpucost estimate --model 8b --tokens 100b --format json -o run.json
    gpucost report run.json -o run.html
    gpucost report run.json --status approved --by "Finance" -o run.xlsx
    gpucost report run.json --template budget.xlsx -o filled.xlsx
    """
    from gpucost.library.report import check_suffix, report

    if output is not None:
        check_suffix(output)
    if template is not None and (output is None or not output.lower().endswith(".xlsx")):
        raise click.UsageError("--template needs -o FILE.xlsx: the copy that is filled.")
    with working("answering the scenario"):
        result = report(source, status=status, by=by, date=date, share_safe=share_safe, accept_changed=accept_changed)
    for warning in result.payload["warnings"] if result.payload["kind"] == "scenario" else ():
        say(warning)
    if output is None:
        click.echo(result.to_text().rstrip("\n"))
        return
    with working(f"writing {output}"):
        if template is None:
            result.write(output)
    for line in result.fill(template, output) if template is not None else ():
        say(line)
    say(f"wrote {output}")
