"""`gpucost.sweep(...)`: one question over every combination of arguments, or over a table of cases."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.ask.result import Result, entry_of
from gpucost.errors import UsageError
from gpucost.gate import shown
from gpucost.options import OPTIONS
from gpucost.store.files import SpareFolder
from gpucost.units import counted, format_count

if TYPE_CHECKING:
    import pandas

    from gpucost.answers.combined import Sweep
    from gpucost.sweeping.chunks import SweepPlan
    from gpucost.sweeping.grid import SweepGrid

_JOINED = (".parquet", ".csv")  # files that hold any number of rows
_WORKS_TOLD = 4  # whose cheapest case the first sentence names
_IN_MEMORY = 2_000_000  # cases that a result may hold without a folder of its own


@dataclass(frozen=True, slots=True, repr=False)
class SweepResult(Result):
    """The cases of a sweep: its first rows in the payload, all of them as a frame or in files."""

    files: Sequence[Path] = field(default=(), compare=False)  # chunks in the order of the cases, of a named folder
    frame: "pandas.DataFrame | None" = field(default=None, compare=False)  # all rows, where none was named

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The best case with its first option; None where none has an answer, or where cases do different work."""
        case: Mapping[str, Any] | None = entry_of(self.payload["best"])
        return case

    def to_frame(self, *, all: bool = True) -> "pandas.DataFrame":
        """Return every case as a row; words are categories."""
        return _frame(self.files) if self.frame is None else self.frame


def sweep(
    question: str = "estimate",
    *,
    cases: Any = None,
    grid: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
    into: str | os.PathLike[str] | None = None,
    shared: bool = False,
    best: int = 1,
    told: Callable[[int, int], None] | None = None,
    **arguments: Any,
) -> SweepResult:
    """Return the first option of every case of a question: estimate, inference or tco.

    Within a service level a case has a row for each accelerator, `place` 1 the one that its answer puts first.

    Args:
        question: What is asked of every case.
        cases: A data frame, or a Parquet or CSV file: a column for each argument, a row for each case.
        grid: A TOML file of arguments, each a value, a list or a range such as "8:512:x2".
        workers: Processes of this machine.
        scheduler: Address of a running Dask cluster, such as tcp://10.0.0.5:8786 (extra `cluster`).
        executor: Any executor of `concurrent.futures`, also those of mpi4py and Dask.
        into: Folder that keeps the chunks: a sweep that was stopped goes on from there.
        shared: Whether the workers of a cluster or an executor reach that folder: each writes its chunks there itself.
        best: How many of the first cases of each kind of work the answer names.
        told: Hears of cases done and in all, as they are.
        arguments: Those of the question; a list or a range is an axis, and every combination a case.
    """
    from gpucost.arguments.kinds import whole
    from gpucost.catalog.shared import shared_catalog
    from gpucost.sweeping import chunks
    from gpucost.sweeping.chunks import ROWS_KEPT, SweepPlan, answer, cases_of_chunk
    from gpucost.sweeping.work import versions_of

    workers, scheduler, into = _read(workers, scheduler, executor, into, told)
    planned = grid_asked(question, cases, grid, arguments)
    if into is None and planned.count > _IN_MEMORY:
        raise UsageError(
            f"{planned.count:,} cases are more than {_IN_MEMORY:,}. Name a folder that keeps them:"
            " into= in the library, --into or -o FILE.parquet on the command line."
        )
    if shared and into is None:
        raise UsageError("--shared needs --into: the folder that all workers reach.")
    here = scheduler is None and executor is None  # processes of this machine reach its folders
    best = whole(highest=ROWS_KEPT).read(best, "--best")
    days = [planned.values[name][0] if name in planned.values else None for name in ("as_of", "known_as_of")]
    done = 0

    def heard(count: int) -> None:
        nonlocal done
        done += count
        if told is not None:
            told(done, planned.count)

    with SpareFolder() as spare:
        folder = Path(into or spare).absolute()
        plan = SweepPlan(planned, versions_of(shared_catalog(*days)), folder, cases_of_chunk(planned), shared or here)
        with chunks.mapper_of(workers, scheduler, executor) as mapper:
            files = answer(plan, mapper, heard)
        return _result(plan, files, into is not None, best)


def _read(workers: Any, scheduler: Any, executor: Any, into: Any, progress: Any) -> tuple[int, str | None, str | None]:
    """Read what says where a sweep is worked out and kept."""
    from gpucost.arguments.kinds import FILE, whole

    called = {
        "told": progress,
        "executor": None if executor is None else getattr(executor, "submit", "nothing to submit to"),
    }
    for name, value in called.items():
        if value is not None and not callable(value):
            raise UsageError(f"{name}: found {shown(value)}, which cannot be called.")
    places = {"--scheduler": scheduler, "--into": into}
    address, folder = (None if value is None else FILE.read(value, label) for label, value in places.items())
    return whole().read(workers, "--workers"), address, folder


def grid_asked(question: str, cases: Any, grid: str | None, arguments: dict[str, Any]) -> "SweepGrid":
    """Return the cases that were asked for."""
    from gpucost.arguments.kinds import FILE
    from gpucost.sweeping.grid import cases_of, combinations, grid_of, listed

    stated = {name: value for name, value in arguments.items() if value is not None}
    if grid is not None:
        stated = {**grid_of(FILE.read(grid, "--grid")), **stated}
    return combinations(question, stated) if cases is None else listed(question, cases_of(cases), stated)


def _result(plan: "SweepPlan", files: list[Path], keeps_files: bool, best: int) -> SweepResult:
    payload = _payload(plan, files, best)
    return SweepResult(payload, files=tuple(files)) if keeps_files else SweepResult(payload, frame=_frame(files))


def _frame(files: Sequence[Path]) -> "pandas.DataFrame":
    """Return every row of the chunks."""
    import duckdb

    from gpucost.catalog.loader import quiet
    from gpucost.sweeping.chunks import table_of

    with duckdb.connect() as own:  # the one that all of a process share belongs to the caller, and hangs after a fork
        rows: pandas.DataFrame = quiet(own).execute(f"FROM {table_of(files)}").df()
    return rows


def _payload(plan: "SweepPlan", files: list[Path], best: int) -> "Sweep":
    from gpucost import __version__
    from gpucost.answers import SCHEMA_VERSION
    from gpucost.sweeping.chunks import ROWS_KEPT, Found

    grid = plan.grid
    summary = Found(files, grid.question)
    reasons = summary.reasons()
    answered = int(summary.rows("select count(*) as cases from cases where reason is null")[0]["cases"])
    axes = {name: len(values) for name, values in grid.values.items()}
    front, works = summary.front(grid.count, axes), summary.works(axes)
    kinds_of_work = prod(axes[name.removeprefix("asked_")] for name in works)
    leading = summary.best_of_each(works, best, axes)
    return {
        "kind": "sweep",
        "gpucost_version": __version__,
        "schema_version": SCHEMA_VERSION,
        "request": {
            "question": grid.question,
            **{name: values[:20] for name, values in grid.values.items()},
            **({"best": best} if best != 1 else {}),
        },
        "as_of": plan.versions["as_of"],
        "catalog_version": plan.versions["catalog"],
        "lead": _lead(grid, answered, next(iter(leading), None), _firsts(leading, works), kinds_of_work),
        "question": grid.question,
        "axes": axes,
        "cases": grid.count,
        "answered": answered,
        "best": next(iter(leading), None) if kinds_of_work == 1 else None,
        "best_of_each": leading,
        "front": front,
        "heat": summary.heat(axes),
        "reasons": reasons,
        "rows": summary.rows(f"select * from found limit {ROWS_KEPT}"),
        "file": None,
        "warnings": [],
        "sources": {},
    }


def _firsts(leading: Sequence[Mapping[str, Any]], works: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the cheapest case of each work by what is asked of it; nothing where there is one work, or many."""
    firsts: dict[str, Mapping[str, Any]] = {}
    for row in leading:
        texts = (format_count(row[name]) if isinstance(row[name], float) else str(row[name]) for name in works)
        firsts.setdefault(", ".join(texts), row)
    return firsts if 1 < len(firsts) <= _WORKS_TOLD else {}


def _lead(grid: "SweepGrid", answered: int, best: Any, firsts: Mapping[str, Mapping[str, Any]], works: int) -> str:
    moving = () if grid.listed is not None else grid.moving
    counts = ", ".join(f"{name.replace('_', ' ')}: {len(grid.values[name])}" for name in moving)
    sentence = f"{counted(grid.count, 'case')}{f' ({counts})' if counts else ''}, {answered:,} with an answer."
    if best is None:
        return f"{sentence} None has an answer; see the reasons."
    if grid.question == "estimate" and firsts:
        clusters = {work: f"{row['gpus']:,.0f} × {row['gpu']}" for work, row in firsts.items()}
        told = (f"{work} {row['cost_usd']:,.0f} USD on {clusters[work]}" for work, row in firsts.items())
        return f"{sentence} Cheapest: {'; '.join(told)}."
    if works > 1:
        return f"{sentence} They do {works:,} kinds of work: the cheapest of each stands in the front of its own."
    if grid.question in ("estimate", "inference"):
        option = OPTIONS[best["option"]].label
        where = f"{best['gpus']:,.0f} × {best['gpu']} at {best['provider']}, {option}"
        if grid.question == "estimate":
            return f"{sentence} Cheapest: {best['cost_usd']:,.0f} USD and {best['days']:.1f} days on {where}."
        return f"{sentence} Cheapest: {best['usd_per_mtok']:.4g} USD per million tokens on {where}."
    return (
        f"{sentence} Least to own: {best['own_npv_usd']:,.0f} USD in present value, {best['cheaper']} is cheaper there."
    )
