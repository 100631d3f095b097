"""Filters on offers and rows: what a person typed, as the set of values that a column may have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gpucost.catalog import names
from gpucost.errors import UnknownNameError, UsageError
from gpucost.options import OPTIONS

Names = str | Sequence[str] | None
Row = TypeVar("Row", bound=Mapping[str, Any])


def listed(value: str | Sequence[str]) -> list[str]:
    """Split one name, several names, or a comma-separated list.

    >>> listed("aws, gcp"), listed(["aws", "gcp"])
    (['aws', 'gcp'], ['aws', 'gcp'])
    """
    parts = value.split(",") if isinstance(value, str) else [part for text in value for part in text.split(",")]
    found = [part.strip() for part in parts if part.strip()]
    if not found:
        raise UsageError("a name to filter by is empty. Leave the filter out, or name something.")
    return found


def admits(wanted: Mapping[str, set[str] | None], row: Mapping[str, Any]) -> bool:
    """Tell whether a row passes a filter; a row with several candidate GPUs passes when one of them does."""
    return all(
        allowed is None or not allowed.isdisjoint(str(row[field]).split("|")) for field, allowed in wanted.items()
    )


def condition(wanted: Mapping[str, set[str] | None]) -> tuple[str, dict[str, list[str]]]:
    """Return what `admits` tests, as an SQL condition on a table's columns with its parameters."""
    asked = {field: sorted(allowed) for field, allowed in wanted.items() if allowed is not None}
    tests = [f"coalesce(list_has_any(string_split(CAST({field} AS VARCHAR), '|'), ${field}), false)" for field in asked]
    return " AND ".join(tests) or "true", asked


def chosen(rows: Sequence[Row], column: str, wanted: str | None, others: Iterable[str] = ()) -> list[Row]:
    """Keep the rows whose column equals one of the wanted values, whatever the case; an unknown value is an error.

    So is one of `others`, which rows that were not asked for have.
    """
    if wanted is None:
        return list(rows)
    known = {str(row[column]) for row in rows if row[column]}
    allowed = matching(column, wanted, {*known, *others})
    found = [row for row in rows if row[column] in allowed]
    if rows and not found:
        there = ", ".join(sorted(known)[:12]) or "none that is known"
        raise UsageError(f"--{column} {wanted}: none of those asked for; theirs: {there}. Leave one of the two out.")
    return found


def matching(column: str, wanted: str | Sequence[str], known: Iterable[str], others: Iterable[str] = ()) -> set[str]:
    """Return the known values that the wanted names mean, whatever the case; an unknown name is an error."""
    known = set(known)
    found: set[str] = set()
    for name in listed(wanted):
        matches = {item for item in known if item.lower() == name.lower()}
        if not matches:
            some = ", ".join(sorted(known)[:12]) + (" …" if len(known) > 12 else "")
            raise UnknownNameError(
                column, name, names.near(name, {*known, *others}), f"Known: {some}." if known else ""
            )
        found |= matches
    return found


def options(wanted: Names) -> set[str] | None:
    """Return the purchase options that names mean; None is any."""
    if wanted is None:
        return None
    found = set()
    for name in listed(wanted):
        option = name.lower().replace("-", "_").replace(" ", "_")
        if option not in OPTIONS:
            raise UnknownNameError("option", name, names.near(option, OPTIONS), f"Options: {', '.join(OPTIONS)}.")
        found.add(option)
    return found
