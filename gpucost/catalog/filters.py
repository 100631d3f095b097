"""Filters on offers and rows: what a person typed, as the set of values that a column may have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gpucost.catalog import names
from gpucost.errors import UnknownNameError, UsageError
from gpucost.schemas import OPTIONS

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

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


def offer_filter(
    catalog: "Catalog", gpu: Names, provider: Names, region: Names, option: Names
) -> dict[str, set[str] | None]:
    """Turn the names of a filter into the sets of values that each column of an offer may have; None is any."""
    gpus = None if gpu is None else {found.id for name in listed(gpu) for found in catalog.accelerators(name)}
    return {
        "gpu": gpus,
        "provider": _known(catalog, "provider", provider),
        "region": _known(catalog, "region", region),
        "option": _options(option),
    }


def admits(wanted: Mapping[str, set[str] | None], row: Mapping[str, Any]) -> bool:
    """Tell whether a row passes a filter; a row with several candidate GPUs passes when one of them does."""
    return all(
        allowed is None or not allowed.isdisjoint(str(row[field]).split("|")) for field, allowed in wanted.items()
    )


def chosen(rows: Sequence[Row], column: str, wanted: str | None) -> list[Row]:
    """Keep the rows whose column equals one of the wanted values, whatever the case; an unknown value is an error."""
    if wanted is None:
        return list(rows)
    allowed = _matching(column, wanted, {str(row[column]) for row in rows if row[column]})
    return [row for row in rows if row[column] in allowed]


def _known(catalog: "Catalog", column: str, wanted: Names) -> set[str] | None:
    if wanted is None:
        return None
    asked = [catalog.alias(column, name) for name in listed(wanted)]
    return _matching(column, asked, {str(value) for value in catalog.offer_values(column)})


def _matching(column: str, wanted: str | Sequence[str], known: Iterable[str]) -> set[str]:
    known = set(known)
    found: set[str] = set()
    for name in listed(wanted):
        matches = {item for item in known if item.lower() == name.lower()}
        if not matches:
            some = ", ".join(sorted(known)[:12]) + (" …" if len(known) > 12 else "")
            raise UnknownNameError(column, name, names.near(name, known), f"Known: {some}." if known else "")
        found |= matches
    return found


def _options(wanted: Names) -> set[str] | None:
    if wanted is None:
        return None
    found = set()
    for name in listed(wanted):
        option = name.lower().replace("-", "_").replace(" ", "_")
        if option not in OPTIONS:
            raise UnknownNameError("option", name, names.near(option, OPTIONS), f"Options: {', '.join(OPTIONS)}.")
        found.add(option)
    return found
