"""`gpucost init`: a commented example scenario to start from."""

from pathlib import Path
from typing import Annotated

import click

from gpucost.arguments.kinds import FILE, FLAG
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import signature_options
from gpucost.cli.said import say
from gpucost.errors import UsageError


@click.command(name="init")
@signature_options
def command(
    path: Annotated[str | None, FILE, PLACE] = None,
    skill: Annotated[bool, FLAG, "Write a SKILL.md that tells an agent how to ask instead."] = False,
    force: Annotated[bool, FLAG, "Replace an existing file."] = False,
) -> None:
    """Write a commented example scenario, or a skill for agents; `-` writes to standard output.

    \b
    gpucost init
    gpucost init plans/2027.toml
    gpucost init --skill .claude/skills/gpucost/SKILL.md
    """
    from importlib.resources import files

    from gpucost.library.scenario import example
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
