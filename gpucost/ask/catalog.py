"""`gpucost.open_catalog(...)`: the catalog of facts, whose SQL also reads the answers to a question."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from gpucost.catalog import Catalog
from gpucost.catalog import open_catalog as open_facts
from gpucost.catalog.relations import Relation

Asked = ParamSpec("Asked")


def filled(catalog: Catalog, names: Iterable[str], question: Mapping[str, Any]) -> Mapping[str, Relation]:
    """Return the relations that a query names, filled by the engines for a question."""
    from gpucost.ask.relations import relations

    return relations(catalog, names, question)


def _answering(open_: Callable[Asked, Catalog]) -> Callable[Asked, Catalog]:
    """Hand every catalog that is opened what fills the relations of a question."""

    @wraps(open_)
    def opened(*positional: Asked.args, **named: Asked.kwargs) -> Catalog:
        catalog = open_(*positional, **named)
        catalog.fill = filled
        return catalog

    return opened


open_catalog = _answering(open_facts)
