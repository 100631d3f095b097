"""One definition per table. Validation, the column dictionary of the docs and the DuckDB table are made from it.

The definitions are plain tuples, so that reading them costs nothing; the pydantic model of a table, which
judges data that is not trusted, is built on first use by `row_model`.
"""

from functools import cache
from typing import TYPE_CHECKING

from gpucost.schemas.columns import (
    CONFIDENCES,
    DUCKDB_TYPES,
    OPTIONS,
    STATUSES,
    Column,
    Kind,
    Table,
    date,
    flag,
    integer,
    number,
    text,
)
from gpucost.schemas.device import (
    COLLECTIVE_MEASUREMENTS,
    KERNEL_MEASUREMENTS,
    LIMIT_MEASUREMENTS,
    MEMORY_MEASUREMENTS,
    STEP_MEASUREMENTS,
)
from gpucost.schemas.hardware import ACCELERATORS, ALIASES, LLMS, MODEL_SOURCES, SYSTEMS
from gpucost.schemas.measurements import CALIBRATION, PUBLISHED_RUNS, TRAINING_MEASUREMENTS
from gpucost.schemas.ownership import (
    CLOUD_REGIONS,
    ENERGY,
    EXCHANGE_RATES,
    OWNERSHIP,
    OWNERSHIP_ANCHORS,
    OWNERSHIP_METHODS,
    PLAN_INPUTS,
)
from gpucost.schemas.prices import (
    COMPONENTS,
    DECISIONS,
    DISCOUNTS,
    HOSTED_TOKENS,
    MARKET_STATISTICS,
    OFFERS,
    PRICE_SOURCES,
    PROVIDERS,
    QUARANTINE,
    SERVICES,
    SPOT,
    UNDATED,
)
from gpucost.schemas.serving import LENGTH_DISTRIBUTIONS, SERVING_CALIBRATION, SERVING_MEASUREMENTS

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "ACCELERATORS",
    "ALIASES",
    "CALIBRATION",
    "CLOUD_REGIONS",
    "COLLECTIVE_MEASUREMENTS",
    "COMPONENTS",
    "CONFIDENCES",
    "DECISIONS",
    "DISCOUNTS",
    "DUCKDB_TYPES",
    "ENERGY",
    "EXCHANGE_RATES",
    "HOSTED_TOKENS",
    "KERNEL_MEASUREMENTS",
    "LENGTH_DISTRIBUTIONS",
    "LIMIT_MEASUREMENTS",
    "LLMS",
    "MARKET_STATISTICS",
    "MEMORY_MEASUREMENTS",
    "MODEL_SOURCES",
    "OFFERS",
    "OPTIONS",
    "OWNERSHIP",
    "OWNERSHIP_ANCHORS",
    "OWNERSHIP_METHODS",
    "PLAN_INPUTS",
    "PRICE_SOURCES",
    "PROVIDERS",
    "PUBLISHED_RUNS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "SERVICES",
    "SERVING_CALIBRATION",
    "SERVING_MEASUREMENTS",
    "SPOT",
    "STATUSES",
    "STEP_MEASUREMENTS",
    "SYSTEMS",
    "TABLES",
    "TRAINING_MEASUREMENTS",
    "UNDATED",
    "Column",
    "Kind",
    "Table",
    "date",
    "flag",
    "integer",
    "number",
    "row_model",
    "text",
]

SCHEMA_VERSION = "1"  # of every JSON answer: a key that changes its meaning raises it

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        ACCELERATORS,
        SYSTEMS,
        LLMS,
        ALIASES,
        MODEL_SOURCES,
        PRICE_SOURCES,
        OFFERS,
        PLAN_INPUTS,
        OWNERSHIP,
        OWNERSHIP_METHODS,
        ENERGY,
        CLOUD_REGIONS,
        MARKET_STATISTICS,
        UNDATED,
        COMPONENTS,
        QUARANTINE,
        DECISIONS,
        PROVIDERS,
        DISCOUNTS,
        SPOT,
        SERVICES,
        HOSTED_TOKENS,
        OWNERSHIP_ANCHORS,
        EXCHANGE_RATES,
        TRAINING_MEASUREMENTS,
        PUBLISHED_RUNS,
        CALIBRATION,
        MEMORY_MEASUREMENTS,
        KERNEL_MEASUREMENTS,
        COLLECTIVE_MEASUREMENTS,
        LIMIT_MEASUREMENTS,
        STEP_MEASUREMENTS,
        SERVING_MEASUREMENTS,
        SERVING_CALIBRATION,
        LENGTH_DISTRIBUTIONS,
    )
}


@cache
def row_model(name: str) -> type["BaseModel"]:
    """Build the pydantic model that judges one row of the table called `name`."""
    from gpucost.schemas.validation import build_row_model

    return build_row_model(TABLES[name])
