"""`gpucost mcp`: questions as tools for agents."""

import click


@click.command(name="mcp")
def command() -> None:
    """Serve estimate, inference, fit, tco, audit, prices, compare and sql as tools over standard input and output.

    An agent's client starts it (Model Context Protocol); answers are a few hundred tokens, details on request.

    \b
    pip install 'gpucost[mcp]'
    gpucost mcp
    gpucost init --skill .claude/skills/gpucost/SKILL.md
    """
    from gpucost.agents.server import run

    run()
