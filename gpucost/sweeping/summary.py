"""What a sweep comes to: counts, the best case, the front of cost and days, a map over two arguments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucost.answers.sweep import Heat, Reason, Row
from gpucost.sweeping.chunks import table_of

GOALS = {
    "estimate": ("cost_usd", "days"),
    "inference": ("usd_per_mtok", "tpot_ms"),
    "tco": ("own_npv_usd", "rent_npv_usd"),
}
ROWS_KEPT = 1000  # in the answer itself; the files hold all
_FRONT_ROWS = 40
_HEAT_VALUES = 40
_FRONT_CASES = 2_000_000


class Found:
    """The chunks of a sweep as one table that can be asked."""

    def __init__(self, files: Sequence[Path], question: str) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("set enable_progress_bar = false; set memory_limit = '1GB'")
        self.connection.execute(f"create view found as select * from {table_of(files)}")
        self.goal, self.other = GOALS[question]

    def rows(self, query: str) -> list[Row]:
        """Return the rows of a query; what is missing is None."""
        answer = self.connection.execute(query)
        names = [column[0] for column in answer.description or ()]
        return [{name: _plain(value) for name, value in zip(names, row, strict=True)} for row in answer.fetchall()]

    def reasons(self) -> list[Reason]:
        """Return why cases have no answer, the most frequent first."""
        query = "select reason, count(*) as cases from found where reason is not null group by 1 order by 2 desc, 1"
        return [{"reason": str(row["reason"]), "cases": int(row["cases"])} for row in self.rows(f"{query} limit 20")]

    def best(self) -> Row | None:
        """Return the case that ranks first."""
        query = f"select * from found where reason is null order by {self.goal}, {self.other} limit 1"
        return next(iter(self.rows(query)), None)

    def front(self, cases: int) -> list[Row]:
        """Return the cases that no other one beats in both goals; of very many, none is looked for."""
        if cases > _FRONT_CASES:
            return []
        before = "rows between unbounded preceding and 1 preceding"
        window = f"min({self.other}) over (order by {self.goal}, {self.other} {before})"
        inner = f"select *, {window} as least from found where reason is null"
        query = f"select * exclude (least) from ({inner}) where least is null or {self.other} < least"
        return self.rows(f"{query} order by {self.goal} limit {_FRONT_ROWS}")

    def heat(self, axes: Mapping[str, int]) -> Heat | None:
        """Return the best value over the two arguments with the most values that a map can show."""
        named = {row["column_name"] for row in self.rows("describe found")}
        wide = sorted((name for name, count in axes.items() if 1 < count <= _HEAT_VALUES), key=lambda name: -axes[name])
        if len(wide) < 2:
            return None
        x, y = (f"asked_{name}" if f"asked_{name}" in named else name for name in wide[:2])
        query = f'select "{x}" as x, "{y}" as y, min({self.goal}) as value, count(*) as cases from found group by 1, 2'
        cells: Any = self.rows(f"{query} order by 1, 2")
        return {"x": x, "y": y, "value": self.goal, "cells": cells}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
