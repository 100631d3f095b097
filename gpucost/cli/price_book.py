"""`gpucost prices book`: the user's contracts and discounts beside the lists."""

import click

from gpucost.cli.options import Output, output_options


@click.group(name="book")
def book() -> None:
    """Contracts and discounts of your own book."""


@book.command(name="check")
@click.argument("path", required=False, type=click.Path(exists=True))
@click.option("--as-of", metavar="DATE", help="The day to look from.  [default: today]")
@output_options
@click.pass_context
def check(ctx: click.Context, out: Output, path: str | None, as_of: str | None) -> None:
    """Check a price book: every contract and discount with its list, contracted and effective price.

    Errors name the file, row and column. Exit code 5 if a contract has ended or costs more than the list, or a discount
    matches no price.

    \b
    gpucost prices book check
    gpucost prices book check quotes.xlsx --as-of 2026-12-31
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.datacheck import judged
    from gpucost.errors import UsageError

    catalog = open_catalog(as_of, book=path)
    if not catalog.books:
        raise UsageError("there is no price book. `gpucost config` says where it is looked for.")
    rows, remarks = judged(catalog)
    out.rows(rows, "prices book", catalog, remarks)
    if any(word in text for text in remarks for word in ("ended on", "dearer than", "matches no")):
        ctx.exit(5)


COMMANDS = (book,)
