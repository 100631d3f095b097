"""What the answers about training and serving share: notes below the offers, the bill, and what was left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.document import Column, Table, columns

Options = Sequence[Mapping[str, Any]]
_NOTES = 5  # different notes below a table; the others stand in JSON


def notes_of(options: Options, excluded: Sequence[Any]) -> str:
    """Write each note once, with the ranks that it belongs to, and how many offers were left out."""
    ranks: dict[str, list[str]] = {}
    for row in options:
        for note in row.get("notes") or ():
            ranks.setdefault(str(note), []).append(str(row.get("rank", "")))
    lines = [f"{_listed(found)}: {note}" for note, found in list(ranks.items())[:_NOTES]]
    if len(ranks) > _NOTES:
        lines.append(f"{counted(len(ranks) - _NOTES, 'more note')} with the offers (--format json).")
    if excluded:
        lines.append(f"{counted(len(excluded), 'offer')} left out, each with its reason (--format json, or a report).")
    return "\n".join(lines)


def counted(count: int, noun: str) -> str:
    """Write a count with its noun.

    >>> counted(1, "offer"), counted(2, "offer")
    ('1 offer', '2 offers')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _listed(ranks: Sequence[str]) -> str:
    shown = ", ".join(ranks[:4])
    return f"{shown} …" if len(ranks) > 4 else shown


def excluded_table(payload: Mapping[str, Any]) -> tuple[Table, ...]:
    """Return what is not possible with the reason, or nothing."""
    rows = payload.get("excluded") or []
    shown = columns("provider", "instance_type=instance:1", "gpu:2", "option:3", "reason")
    return (Table(shown, rows, interactive=True),) if rows else ()


def bill_table(option: Mapping[str, Any], total_usd: Any, title: str = "") -> Table:
    """Return an option's bill with its total."""
    price = Column("unit_price_usd", "unit price", "USD per unit", priority=2)
    shown = (*columns("name=line", "quantity", "unit"), price, *columns("cost_usd", "note:3"))
    total = {"name": "total", "cost_usd": total_usd} if total_usd is not None else None
    return Table(shown, option["lines"], title=title, total=total)
