"""How much of anything is read, run or written: each bound with its reason, in one table; a setting raises it."""

import os
from collections.abc import Callable
from typing import NamedTuple

from gpucost.errors import UsageError


class Limit(NamedTuple):
    """A bound: its usual value, the most that a setting may raise it to, its unit and why it stands."""

    value: float
    most: float
    unit: str
    reason: str


LIMITS: dict[str, Limit] = {
    "limit_text_file_bytes": Limit(8e6, 256e6, "bytes", "a plan, scenario, pool or trace is read whole into memory"),
    "limit_log_file_bytes": Limit(256e6, 4e9, "bytes", "a log of a million steps takes about 150 MB"),
    "limit_answer_file_bytes": Limit(256e6, 2e9, "bytes", "a saved answer with its facts takes about 2 MB"),
    "limit_book_file_bytes": Limit(1e9, 16e9, "bytes", "a table of a million prices takes about 250 MB"),
    "limit_book_unpacked_bytes": Limit(1.6e9, 64e9, "bytes", "what a Parquet file unpacks to, an eighth of it at once"),
    "limit_book_rows": Limit(2e7, 1e9, "rows", "ten million prices are judged in about 10 s"),
    "limit_book_offers": Limit(2e5, 1e7, "offers", "an answer ranks each one, at about 4 KB of memory"),
    "limit_table_file_bytes": Limit(16e6, 1e9, "bytes", "a table is read row by row, at 20 times its size in memory"),
    "limit_invoice_file_bytes": Limit(32e9, 1e12, "bytes", "ten million charges take 1 GB as Parquet, 5 as CSV"),
    "limit_workbook_cells": Limit(1e6, 1e8, "cells", "a second for about 100,000"),
    "limit_workbook_bytes": Limit(512e6, 4e9, "bytes", "what an .xlsx file unpacks to; a packed bomb is small"),
    "limit_nesting": Limit(64, 200, "levels", "lists in lists; what is deeper is no answer of ours"),
    "limit_digits": Limit(300, 308, "digits", "the largest double has 309"),
    "limit_text_characters": Limit(100_000, 10_000_000, "characters", "one text or cell; a note is some hundred"),
    "limit_name_characters": Limit(4096, 65_536, "characters", "the longest path of most systems; lists of names, too"),
    "limit_query_seconds": Limit(20, 3600, "seconds", "a query over every shipped table takes less than one"),
    "limit_query_memory_gb": Limit(1, 64, "GB", "what one query may hold while it runs"),
    "limit_query_result_bytes": Limit(256e6, 4e9, "bytes", "what a query may hand over"),
    "limit_query_row_bytes": Limit(
        1e6, 256e6, "bytes", "one row of a query; whole tables gathered into a cell grow twentyfold"
    ),
    "limit_sweep_cases": Limit(1e8, 1e12, "cases", "a core answers about 100,000 training cases a second"),
    "limit_sweep_values": Limit(1e6, 1e8, "values", "one argument of a sweep"),
    "limit_draw_months": Limit(1e7, 1e9, "draws times months", "a million simulated months take about a second"),
    "limit_workloads": Limit(16, 200, "workloads", "each is asked of every accelerator, in about half a second"),
    "limit_refresh_seconds": Limit(900, 14_400, "seconds", "the largest price list takes some minutes"),
    "limit_refresh_bytes": Limit(2e9, 32e9, "bytes", "the largest price list takes about 0.5 GB"),
    "limit_query_rows": Limit(1e6, 1e8, "rows", "a sheet of a spreadsheet holds about as many"),
}


def of_environment(name: str) -> object:
    """Return what a variable of the environment says of a limit: GPUCOST_LIMIT_…, or None."""
    return os.environ.get(f"GPUCOST_{name.upper()}")


raised: Callable[[str], object] = of_environment  # the settings put themselves here once they are imported


def limit(name: str, asked: object = None) -> float:
    """Return a bound: what was asked for, else the setting, else the usual one; above zero and not beyond the most.

    >>> limit("limit_query_seconds"), limit("limit_query_seconds", "60")
    (20, 60.0)
    """
    bound = LIMITS[name]
    asked = raised(name) if asked is None else asked
    if asked is None:
        return bound.value
    try:
        number = float(str(asked))
    except ValueError:
        number = 0.0
    if not 0 < number <= bound.most:
        raise UsageError(
            f"{name}: {str(asked)[:40]!r} is no number above 0 and up to {bound.most:,.0f} {bound.unit}; the usual one"
            f" is {bound.value:,.0f} ({bound.reason})."
        )
    return number
