"""`gpucost report`: a workbook, page or text from a scenario file or a saved answer."""

import click

from gpucost.cli.options import list_options
from gpucost.cli.progress import working
from gpucost.cli.said import say


@click.command(name="report")
@list_options("report")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="File to write: .xlsx, .html, .md, .json or .txt."
)
def command(source: str, output: str | None) -> None:
    """Answer a scenario and write it as a report; the output's suffix says how.

    A saved answer (--format json of any command) is rendered again without asking anew.

    \b
    gpucost init scenario.toml
    gpucost report scenario.toml -o report.xlsx
    gpucost estimate --model 8b --tokens 100b --format json -o run.json && gpucost report run.json -o run.html
    """
    from gpucost.api.report import check_suffix, report

    if output is not None:
        check_suffix(output)
    with working("answering the scenario"):
        result = report(source)
    for warning in result.payload["warnings"] if result.payload["kind"] == "scenario" else ():
        say(warning)
    if output is None:
        click.echo(result.to_text().rstrip("\n"))
        return
    with working(f"writing {output}"):
        result.write(output)
    say(f"wrote {output}")
