"""What the answers about training and serving share: the offers with their notes, the bill, and what was left out."""

from collections.abc import Sequence

from gpucost.answers.common import BillLine, Excluded
from gpucost.answers.serving import ServingOption
from gpucost.answers.training import TrainingOption
from gpucost.options import OPTIONS
from gpucost.render.document import Axis, Block, Chart, Column, Paragraph, Row, Table, columns, columns_of
from gpucost.render.numbers import format_named
from gpucost.units import counted

_BARS = 15
_NOTES = 5  # different notes below a table; the others stand in JSON


def offers_table(
    shown: tuple[Column, ...],
    options: Sequence[TrainingOption | ServingOption],
    excluded: Sequence[Excluded],
) -> list[Table]:
    """Return the offers; below them each note once, with the ranks that it belongs to, and how many were left out."""
    ranks: dict[str, list[str]] = {}
    for row in options:
        for note in row["notes"]:
            ranks.setdefault(note, []).append(str(row["rank"]))
    lines = [f"{_listed(found)}: {note}" for note, found in list(ranks.items())[:_NOTES]]
    if len(ranks) > _NOTES:
        lines.append(f"{counted(len(ranks) - _NOTES, 'more note')} with the offers (--format json).")
    if excluded:
        lines.append(f"{counted(len(excluded), 'offer')} left out, each with its reason (--format json, or a report).")
    return [Table(shown, options, note="\n".join(lines), interactive=True)]


def offer_charts(
    options: Sequence[TrainingOption | ServingOption],
    names: Sequence[str],
    keys: Sequence[str],
    across: Axis,
    bars: tuple[str, str],
    points: tuple[str, str],
) -> list[Block]:
    """Return the offers as bars of their cost with its range, and as points of that cost.

    `keys` are what a point knows, the cost and the ends of its range first; a picture has a title and words, in which
    {} stands for the cheapest.
    """
    cost, low, high, *_ = keys
    rows: Sequence[Row] = options
    dots = [
        {"offer": name, **{key: value for key, value in row.items() if key in keys}}
        for name, row in zip(names, rows, strict=True)
    ]
    cheapest, log = f"The cheapest is {names[0]}, {format_named(cost, rows[0][cost])}.", Axis(cost, log=True)
    return [
        Chart("bar", bars[0], bars[1].format(cheapest), dots[:_BARS], Axis("offer"), Axis(cost), low=low, high=high),
        Chart("scatter", points[0], points[1].format(cheapest), dots, across, log, series="gpu", label="provider"),
    ]


def option_text(option: str, term_months: int) -> str:
    """Name an option with its term.

    >>> option_text("reserved", 36), option_text("on_demand", 0)
    ('reserved 3 y', 'on demand')
    """
    years, months = divmod(term_months, 12)
    term = "" if not term_months else f" {term_months} mo" if months else f" {years} y"
    return OPTIONS[option].label.replace("calendar reservation", "calendar") + term


def _listed(ranks: Sequence[str]) -> str:
    shown = ", ".join(ranks[:4])
    return f"{shown} …" if len(ranks) > 4 else shown


def excluded_table(rows: Sequence[Excluded]) -> list[Table]:
    """Return what is not possible with the reason, or nothing; paper counts it only."""
    shown = columns("provider", "instance_type=instance:1", "gpu:2", "option:3", "reason")
    paper = f"{counted(len(rows), 'offer')} left out: on screen each stands with its reason."
    return [Table(shown, rows, interactive=True, paper=paper)] if rows else []


def bill_table(lines: Sequence[BillLine], total_usd: float, title: str = "") -> Table:
    """Return a bill with its total."""
    total: Row = {"name": "total", "cost_usd": total_usd}
    return Table(columns_of("bill"), lines, title, total=total)


def left_out(items: Sequence[str]) -> list[Block]:
    """Say what the figures do not include."""
    return [Paragraph(f"Not included: {'; '.join(item.rstrip('.') for item in items)}.")] if items else []
