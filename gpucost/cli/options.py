"""Options that every command shares, and the one way in which a command hands over its answer."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv", "md")


def format_option(function: Function) -> Function:
    """Add --format to a command."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to write the answer.",
    )(function)


def output_options(function: Function) -> Function:
    """Add --format, --fields and -o/--output to a command."""
    function = click.option(
        "-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE instead of the terminal."
    )(function)
    function = click.option("--fields", help="Comma-separated columns to show, in this order.")(function)
    return format_option(function)


def catalog_options(function: Function) -> Function:
    """Add --as-of and --known-as-of to a command."""
    function = click.option("--known-as-of", metavar="DATE", help="Hide what was recorded after this day.")(function)
    return click.option(
        "--as-of", metavar="DATE", help="The day that prices are asked for (YYYY-MM-DD; default today)."
    )(function)


def price_filters(function: Function) -> Function:
    """Add --gpu, --provider, --region, --option and --max-age to a command; names may be a comma-separated list."""
    function = click.option("--max-age", metavar="DURATION", help="Leave out prices older than this, such as 90d.")(
        function
    )
    function = click.option("--option", metavar="NAME", help="Purchase option: on_demand, spot, reserved …")(function)
    function = click.option("--region", metavar="NAME", help="Region as the provider names it.")(function)
    function = click.option("--provider", metavar="NAME", help="Who sells it.")(function)
    return click.option("--gpu", metavar="NAME", help="GPU or family, such as h100-sxm or h100.")(function)


def envelope(catalog: "Catalog", warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return what every JSON list carries beside its rows; the warnings are also said on stderr."""
    from gpucost.answers import SCHEMA_VERSION

    for warning in warnings:
        click.echo(f"gpucost: {warning}", err=True)
    return {
        "schema_version": SCHEMA_VERSION,
        "catalog_version": catalog.version,
        "as_of": catalog.as_of.isoformat(),
        "warnings": list(warnings),
    }


def emit_text(text: str, output: str | None) -> None:
    """Write finished text to stdout, or whole to a file: an existing file is replaced only by a complete one."""
    if output is None:
        click.echo(text.rstrip("\n"))
        sys.stdout.flush()
        return
    from gpucost.render.files import write_text

    write_text(output, text)


def emit_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    columns: Sequence[str],
    format_: str,
    fields: str | None,
    output: str | None,
    envelope: Mapping[str, Any],
    title: str = "",
) -> None:
    """Write flat rows as a table, JSON (within the envelope), CSV or Markdown.

    `columns` are those of the terminal table; --fields may name any key of the rows.
    """
    from gpucost.render.rows import render_rows

    emit_text(
        render_rows(rows, columns=columns, format_=format_, fields=fields, envelope=envelope, title=title), output
    )
