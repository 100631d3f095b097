"""What a user starts from and serves: `gpucost init`, `gpucost schema`, `gpucost serve`, `gpucost mcp`."""

import json
from pathlib import Path
from typing import Annotated

import click

from gpucost.arguments.kinds import FILE, FLAG, named
from gpucost.arguments.signature import PLACE
from gpucost.cli.help import GroupedCommand
from gpucost.cli.messages import say
from gpucost.cli.options import signature_options
from gpucost.errors import UnknownNameError, UsageError, nearest

# --- `gpucost serve`: a page to plan on; `gpucost mcp`: questions as tools for agents.

# What the page and the tools for agents both take: of a folder that nobody named no file is read.
_files_option = click.option(
    "--files",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files may be named in questions.  [default: none is read]",
)


@click.command(name="serve", cls=GroupedCommand)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Local port.  [default: any free one]")
@click.option(
    "--open/--no-open", "opened", default=True, is_flag=True, help="Open the page in the browser.  [default: open]"
)
@_files_option
@click.option(
    "--static",
    "static_folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write the page with its answers into DIR/index.html, for people without gpucost, and end.",
)
@click.option(
    "--question",
    "queries",
    metavar="TEXT",
    multiple=True,
    help="With --static: what the page's address has behind the question mark; may be repeated."
    "  [default: model=8b&tokens=100b]",
)
def serve(port: int, opened: bool, files: Path | None, static_folder: str | None, queries: tuple[str, ...]) -> None:
    """Serve a page on which you change assumptions and see the answer: offers, cost against days, rent or buy.

    Only on this machine: the address holds a token, nothing is stored, and the page contacts no other server.

    \b
    pip install 'gpucost[serve]'
    gpucost serve
    gpucost serve --port 8000 --no-open
    gpucost serve --static plan --question "model=70b&tokens=1t&deadline=60d"
    """
    # a page in a file needs no server: who gets it need not have gpucost
    if static_folder is not None:
        from gpucost.page import static

        say(f"wrote {static.write(static_folder, queries)}: one file, to be opened or sent as it is")
        return
    if queries:
        raise UsageError("--question goes with --static; a page that is served has the question in its address.")
    from gpucost.page.app import serve

    serve(port, say, opened=opened, folder=files)


@click.command(name="mcp", cls=GroupedCommand)
@_files_option
def mcp(files: Path | None) -> None:
    """Serve estimate, inference, fit, tco, audit, prices, compare and sql as tools over standard input and output.

    An agent's client starts it (Model Context Protocol); answers are a few hundred tokens, details on request.

    \b
    pip install 'gpucost[mcp]'
    gpucost mcp
    gpucost init --skill .claude/skills/gpucost/SKILL.md
    """
    from gpucost.agents.server import run

    run(files)


# --- What a user starts from: `gpucost init` and `gpucost schema`.

# --- An example scenario.


@click.command(name="init", cls=GroupedCommand)
@signature_options
def init(
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
    # an example must never replace what somebody wrote
    if Path(path).exists() and not force:
        raise UsageError(f"{path} exists already. Name another file, or replace it with --force.")
    if skill:  # a skill lies in a folder of its own, which is made
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    then = (
        "serve its tools with: gpucost mcp" if skill else f"build a report with: gpucost report {path} -o report.xlsx"
    )
    say(f"wrote {path}; {then}")


# --- JSON schemas of a scenario file, an answer, or a row of a data table.


@click.command(name="schema", cls=GroupedCommand)
@signature_options
def schema(what: Annotated[str, named("NAME", "schemas"), PLACE] = "scenario") -> None:
    """Print the JSON schema of a scenario file, an answer (estimate, inference, tco, mix, report …) or a table's row.

    \b
    gpucost data schema scenario > scenario.schema.json
    gpucost data schema estimate
    gpucost data schema offers
    """
    from gpucost.answers import KINDS
    from gpucost.schemas import TABLES

    kind = _KINDS_OF_COMMANDS.get(what, what)
    if what == "scenario":
        from gpucost.library.scenario import json_schema

        content = json_schema()
    elif kind in KINDS:
        from gpucost.answers.schema import answer_schema

        content = answer_schema(kind)
    elif what in TABLES:
        from gpucost.schemas import row_model

        content = row_model(what).model_json_schema()
    else:
        near = nearest(what, [*KINDS, *TABLES], 3, 0.4)
        raise UnknownNameError("schema", what, near, f"There are: {', '.join([*KINDS, 'report', *TABLES])}.")
    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


# A command whose answer is of a kind with another name.
_KINDS_OF_COMMANDS = {"report": "scenario", "compare": "comparison", "validate": "validation"}
