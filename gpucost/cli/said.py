"""What the program says beside its answers, on stderr: no text from outside steers the terminal."""

import click


def say(text: str) -> None:
    """Write one remark on stderr; signs that a terminal would obey are shown, not sent."""
    click.echo(f"gpucost: {printable(text)}", err=True)


def tell(text: str) -> None:
    """Write one line of an answer on stdout, as `say` does."""
    click.echo(printable(text))


def printable(text: str) -> str:
    """Return a text in which control characters can be seen."""
    if text.isprintable():
        return text
    from gpucost.render.document import visible

    return visible(text)
