"""`gpucost init`: a commented example scenario to start from."""

from pathlib import Path

import click

from gpucost.cli.said import say
from gpucost.errors import UsageError


@click.command(name="init")
@click.argument("path", default="scenario.toml", type=click.Path(dir_okay=False))
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(path: str, force: bool) -> None:
    """Write a commented example scenario; `-` writes to standard output.

    \b
    gpucost init
    gpucost init plans/2027.toml
    """
    from gpucost.api.scenario import example
    from gpucost.render.files import write_text

    if path == "-":
        click.echo(example().rstrip("\n"))
        return
    if Path(path).exists() and not force:
        raise UsageError(f"{path} exists already. Name another file, or replace it with --force.")
    write_text(path, example())
    say(f"wrote {path}; build a report with: gpucost report {path} -o report.xlsx")
