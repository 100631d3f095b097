"""The catalog: facts with their sources and dates, loaded into DuckDB, and the names that find them."""

from gpucost.catalog.core import Catalog, open_catalog

__all__ = ["Catalog", "open_catalog"]
