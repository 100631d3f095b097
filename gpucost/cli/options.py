"""Options that every command shares, and the one way in which a command hands over its answer."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv", "md")


def output_options(function: Function) -> Function:
    """Add --format, --fields and -o/--output to a command."""
    function = click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to FILE instead of the terminal.")(function)
    function = click.option("--fields", help="Comma-separated columns to show, in this order.")(function)
    return click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="How to write the answer.")(function)


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

    emit_text(render_rows(rows, columns=columns, format_=format_, fields=fields, envelope=envelope, title=title), output)
