"""`gpucost serve`: a page to plan on."""

import click

from gpucost.cli.options import own_options
from gpucost.cli.said import say


@click.command(name="serve")
@own_options("serve")
def command(port: int, opened: bool) -> None:
    """Serve a page on which assumptions are moved and the answer follows: offers, cost against days, rent or buy.

    On this machine alone: the address holds a token, nothing is stored, and the page asks no other server.

    \b
    pip install 'gpucost[serve]'
    gpucost serve
    gpucost serve --port 8000 --no-open
    """
    from gpucost.page.app import serve

    serve(port, say, opened=opened)
