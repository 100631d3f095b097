"""`gpucost init`: a commented example scenario to start from."""

from pathlib import Path

import click

from gpucost.cli.options import list_options
from gpucost.cli.said import say
from gpucost.errors import UsageError


@click.command(name="init")
@list_options("init")
def command(path: str | None, skill: bool, force: bool) -> None:
    """Write a commented example scenario, or a skill for agents; `-` writes to standard output.

    \b
    gpucost init
    gpucost init plans/2027.toml
    gpucost init --skill .claude/skills/gpucost/SKILL.md
    """
    from importlib.resources import files

    from gpucost.api.scenario import example
    from gpucost.store.files import write_text

    path = path or ("SKILL.md" if skill else "scenario.toml")
    text = files("gpucost.agents").joinpath("SKILL.md").read_text("utf-8") if skill else example()
    if path == "-":
        click.echo(text.rstrip("\n"))
        return
    if Path(path).exists() and not force:
        raise UsageError(f"{path} exists already. Name another file, or replace it with --force.")
    if skill:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    then = (
        "serve its tools with: gpucost mcp" if skill else f"build a report with: gpucost report {path} -o report.xlsx"
    )
    say(f"wrote {path}; {then}")
