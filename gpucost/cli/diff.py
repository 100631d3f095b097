"""`gpucost diff`: what a change does to a cost, for a person or as a comment on a pull request."""

from typing import Annotated

import click

from gpucost.arguments.kinds import FILE, USD, share
from gpucost.arguments.signature import PLACE, detail
from gpucost.cli.help import GroupedCommand
from gpucost.cli.messages import say
from gpucost.cli.options import signature_options


@click.command(name="diff", cls=GroupedCommand)
@signature_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "md", "json"]),
    default="text",
    show_default=True,
    help="How to write it; github and md are a comment for a pull request, in GitHub's or in plain Markdown.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
def command(
    form: str,
    output: str | None,
    first: Annotated[str, FILE, PLACE],
    second: Annotated[str, FILE, PLACE],
    budget: Annotated[
        str | float | None, USD, "Most that the second may cost; above it the exit code is 3.", detail(example=50000)
    ] = None,
    most_rise: Annotated[
        str | float | None,
        share(100),
        "Most by which the cost may rise; above it the exit code is 3.",
        detail(example="10%"),
    ] = None,
) -> None:
    """Show what changed between two saved answers, and how that affects cost and duration.

    \b
    gpucost saved diff main.json branch.json
    gpucost saved diff main.json branch.json --format github -o comment.md
    gpucost saved diff main.json branch.json --budget 50000 --most-rise 10%
    """
    from gpucost.errors import OverBudgetError
    from gpucost.library.diff import as_markdown, as_text, beyond, difference
    from gpucost.render.json import dumps
    from gpucost.store.files import replacing

    change = difference(first, second)
    limits = [None if limit is None else float(limit) for limit in (budget, most_rise)]
    over = beyond(change, *limits)
    if form == "json":
        rows = [dict(zip(("kind", "cause", "before", "after", "effect"), row, strict=True)) for row in change.rows]
        text = dumps({**change._asdict(), "change": change.change, "rows": rows, "over": over}) + "\n"
    else:
        text = as_text(change, over) if form == "text" else as_markdown(change, over, github=form == "github")
    if output is None:
        click.echo(text, nl=False)
    else:
        # whole or not at all: the next step of a pipeline posts the file
        with replacing(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        say(f"wrote {output}")
    # after the comment is written: a check that fails shows why
    if over:
        raise OverBudgetError(" ".join(over))
