"""One definition per table. Validation, the column dictionary of the docs and the DuckDB table are made from it."""

from typing import TYPE_CHECKING

from gpucost.schemas.dictionary import DUCKDB_TYPES, HISTORY, TABLES, DataTable, Kind, TableColumn, table_of

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["DUCKDB_TYPES", "HISTORY", "TABLES", "DataTable", "Kind", "TableColumn", "row_model", "table_of"]


def row_model(name: str) -> type["BaseModel"]:
    """Return the pydantic model that judges one row of the table called `name`."""
    from gpucost.schemas import validation

    return validation.row_model(name)
