"""`gpucost.open_catalog(...)`: the catalog of facts, whose SQL also reads the answers to a question."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from gpucost.catalog import Catalog
from gpucost.catalog import open_catalog as open_facts
from gpucost.catalog.relations import Relation

_Opening = ParamSpec("_Opening")  # so that the signature stays that of the catalog's own function


def filled(catalog: Catalog, names: Iterable[str], question: Mapping[str, Any]) -> Mapping[str, Relation]:
    """Return the relations that a query names, filled by the engines for a question."""
    from gpucost.ask.relations import relations  # its engines are needed only once a query names a relation

    return relations(catalog, names, question)


def _answering(open_: Callable[_Opening, Catalog]) -> Callable[_Opening, Catalog]:
    """Hand every catalog that is opened what fills the relations of a question."""

    # the catalog stands below the questions and cannot import what answers them
    @wraps(open_)
    def opened(*args: _Opening.args, **kwargs: _Opening.kwargs) -> Catalog:
        catalog = open_(*args, **kwargs)
        catalog.fill = filled
        return catalog

    return opened


open_catalog = _answering(open_facts)
