"""`gpucost serve`: a page to plan on; `gpucost mcp`: questions as tools for agents."""

import click

from gpucost.cli.messages import say


@click.command(name="serve")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Local port.  [default: any free one]")
@click.option(
    "--open/--no-open", "opened", default=True, is_flag=True, help="Open the page in the browser.  [default: open]"
)
def serve(port: int, opened: bool) -> None:
    """Serve a page on which you change assumptions and see the answer: offers, cost against days, rent or buy.

    Only on this machine: the address holds a token, nothing is stored, and the page contacts no other server.

    \b
    pip install 'gpucost[serve]'
    gpucost serve
    gpucost serve --port 8000 --no-open
    """
    from gpucost.page.app import serve

    serve(port, say, opened=opened)


@click.command(name="mcp")
def mcp() -> None:
    """Serve estimate, inference, fit, tco, audit, prices, compare and sql as tools over standard input and output.

    An agent's client starts it (Model Context Protocol); answers are a few hundred tokens, details on request.

    \b
    pip install 'gpucost[mcp]'
    gpucost mcp
    gpucost init --skill .claude/skills/gpucost/SKILL.md
    """
    from gpucost.agents.server import run

    run()
