"""Relations that a question fills for one query: columns of values beside the tables of the catalog."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

QUESTIONED = ("speeds", "estimates", "served", "deployments")
_NAMED = re.compile(rf"\b({'|'.join(QUESTIONED)})\b", re.IGNORECASE)
_LISTS = re.compile(r"\bshow\b|information_schema|duckdb_", re.IGNORECASE)


class Relation(NamedTuple):
    """A table of one query: the type of each column, and the columns."""

    types: Mapping[str, str]
    columns: Sequence[Sequence[Any]]


def questioned_in(query: str) -> frozenset[str]:
    """Return which relations of a question a query may read: those whose name it holds, all where it lists tables.

    >>> sorted(questioned_in("FROM Speeds JOIN prices USING (gpu, gpus)")), len(questioned_in("SHOW TABLES"))
    (['speeds'], 4)
    """
    if _LISTS.search(query):
        return frozenset(QUESTIONED)
    return frozenset(name.lower() for name in _NAMED.findall(query))
