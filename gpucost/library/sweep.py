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

_MOST_WORKS_NAMED = 4  # of whose cheapest cases the first sentence has room
_IN_MEMORY = 2_000_000  # cases that a result may hold without a folder of its own
_VALUES_NAMED = 20  # of an axis in the request: an answer is no table of cases


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
        return _frame(self.files) if self.frame is None else self.frame  # files are read anew: they may be large


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
    from gpucost.arguments.kinds import FILE, whole
    from gpucost.catalog.shared import shared_catalog
    from gpucost.sweeping import chunks
    from gpucost.sweeping.work import versions_of

    # what says where a sweep is worked out and kept
    executor_call = None if executor is None else getattr(executor, "submit", "nothing to submit to")
    for name, value in {"told": told, "executor": executor_call}.items():
        if value is not None and not callable(value):
            raise UsageError(f"{name}: found {shown(value)}, which cannot be called.")
    scheduler = None if scheduler is None else FILE.read(scheduler, "--scheduler")
    into = None if into is None else FILE.read(into, "--into")
    workers = whole().read(workers, "--workers")
    # the grid is checked whole before a folder is made or a worker starts
    planned = grid_asked(question, cases, grid, arguments)
    if into is None and planned.count > _IN_MEMORY:
        raise UsageError(
            f"{planned.count:,} cases are more than {_IN_MEMORY:,}. Name a folder that keeps them:"
            " into= in the library, --into or -o FILE.parquet on the command line."
        )
    if shared and into is None:
        raise UsageError("--shared needs --into: the folder that all workers reach.")
    here = scheduler is None and executor is None  # processes of this machine reach its folders
    best = whole(highest=chunks.ROWS_KEPT).read(best, "--best")
    # the first day of an axis of days: which facts there are then decides whether a folder's chunks are still good
    days = [planned.values[name][0] if name in planned.values else None for name in ("as_of", "known_as_of")]
    done = 0

    def heard(count: int) -> None:
        nonlocal done
        done += count
        if told is not None:
            told(done, planned.count)

    with SpareFolder() as spare:
        folder = Path(into or spare).absolute()
        versions, cases_of_chunk = versions_of(shared_catalog(*days)), chunks.cases_of_chunk(planned)
        plan = chunks.SweepPlan(planned, versions, folder, cases_of_chunk, shared or here)
        with chunks.mapper_of(workers, scheduler, executor) as mapper:
            files = chunks.answer(plan, mapper, heard)
        payload = _payload(plan, files, best)
        if into is not None:
            return SweepResult(payload, files=tuple(files))
        return SweepResult(payload, frame=_frame(files))  # read now: the spare folder goes


def grid_asked(question: str, cases: Any, grid: str | None, arguments: dict[str, Any]) -> "SweepGrid":
    """Return the cases that were asked for."""
    from gpucost.arguments.kinds import FILE
    from gpucost.sweeping.grid import cases_of, combinations, grid_of, listed

    stated = {name: value for name, value in arguments.items() if value is not None}
    if grid is not None:
        stated = {**grid_of(FILE.read(grid, "--grid")), **stated}
    return combinations(question, stated) if cases is None else listed(question, cases_of(cases), stated)


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
    from gpucost.sweeping.chunks import ROWS_KEPT, SweepTable

    grid = plan.grid
    summary = SweepTable(files, grid.question)
    reasons = summary.reasons()
    answered = int(summary.rows("select count(*) as cases from cases where reason is null")[0]["cases"])
    axes = {name: len(values) for name, values in grid.values.items()}
    front, works = summary.front(grid.count, axes), summary.works(axes)
    # cases of different work (another model, other tokens) do not compete: each work has a best of its own
    kinds_of_work = prod(axes[name.removeprefix("asked_")] for name in works)
    leading = summary.best_of_each(works, best, axes)
    cheapest = next(iter(leading), None)
    return {
        "kind": "sweep",
        "gpucost_version": __version__,
        "schema_version": SCHEMA_VERSION,
        "request": {
            "question": grid.question,
            **{name: values[:_VALUES_NAMED] for name, values in grid.values.items()},
            **({"best": best} if best != 1 else {}),
        },
        "as_of": plan.versions["as_of"],
        "catalog_version": plan.versions["catalog"],
        "lead": _lead(grid, answered, cheapest, leading, works, kinds_of_work),
        "question": grid.question,
        "axes": axes,
        "cases": grid.count,
        "answered": answered,
        "best": cheapest if kinds_of_work == 1 else None,
        "best_of_each": leading,
        "front": front,
        "heat": summary.heat(axes),
        "reasons": reasons,
        # the first rows for who reads JSON; a frame or the files hold all
        "rows": summary.rows(f"select * from sweep_rows limit {ROWS_KEPT}"),
        "file": None,
        "warnings": [],
        "sources": {},
    }


def _lead(
    grid: "SweepGrid",
    answered: int,
    best: Any,
    leading: Sequence[Mapping[str, Any]],
    works: Sequence[str],
    kinds_of_work: int,
) -> str:
    moving = () if grid.listed is not None else grid.moving
    counts = ", ".join(f"{name.replace('_', ' ')}: {len(grid.values[name])}" for name in moving)
    sentence = f"{counted(grid.count, 'case')}{f' ({counts})' if counts else ''}, {answered:,} with an answer."
    if best is None:
        return f"{sentence} None has an answer; see the reasons."
    # the cheapest case of each work, by what is asked of it
    firsts: dict[str, Mapping[str, Any]] = {}
    for row in leading:
        texts = (format_count(row[name]) if isinstance(row[name], float) else str(row[name]) for name in works)
        firsts.setdefault(", ".join(texts), row)
    if grid.question == "estimate" and 1 < len(firsts) <= _MOST_WORKS_NAMED:
        cheapest = (
            f"{work} {row['cost_usd']:,.0f} USD on {row['gpus']:,.0f} × {row['gpu']}" for work, row in firsts.items()
        )
        return f"{sentence} Cheapest: {'; '.join(cheapest)}."
    if kinds_of_work > 1:
        return (
            f"{sentence} They do {kinds_of_work:,} kinds of work: the cheapest of each stands in the front of its own."
        )
    if grid.question in ("estimate", "inference"):
        option = OPTIONS[best["option"]].label
        place = f"{best['gpus']:,.0f} × {best['gpu']} at {best['provider']}, {option}"
        if grid.question == "estimate":
            return f"{sentence} Cheapest: {best['cost_usd']:,.0f} USD and {best['days']:.1f} days on {place}."
        return f"{sentence} Cheapest: {best['usd_per_mtok']:.4g} USD per million tokens on {place}."
    return (
        f"{sentence} Least to own: {best['own_npv_usd']:,.0f} USD in present value, {best['cheaper']} is cheaper there."
    )
