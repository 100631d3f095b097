"""One chunk of a sweep: what a worker is told, how it answers, and the bytes that it hands back."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered as asking_answered
from gpucost.catalog.loader import quiet
from gpucost.errors import GpuCostError, UsageError, changed
from gpucost.heap import keep_memory
from gpucost.store.files import SpareFolder, put_parquet, write_bytes
from gpucost.sweeping.columns import columns_of
from gpucost.sweeping.grid import DATES, SweepGrid

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


Columns = dict[str, Any]  # numbers as arrays, words as (codes, what they mean); the code −1 is missing


class SweepTask(NamedTuple):
    """A chunk: which cases of a grid, and the facts and versions that its answer must come from."""

    grid: SweepGrid  # every combination, or the rows of this chunk alone
    start: int
    stop: int
    versions: Mapping[str, str]
    file: str | None = None  # where the worker puts the chunk itself; None: it hands the bytes back

    @property
    def key(self) -> str:
        """Return the hash of all that the answer follows from."""
        import json

        grid = self.grid
        span = [self.start, self.stop] if grid.listed is None else None  # rows are known by what they hold
        content = json.dumps([grid.question, grid.values, span, dict(self.versions)], sort_keys=True, default=str)
        digest = sha256(content.encode())
        # in a fixed width and byte order, so that every machine counts the same hash
        for name, codes in (grid.listed or {}).items():
            digest.update(name.encode() + b"\0" + np.ascontiguousarray(codes, "<i4").tobytes())
        return digest.hexdigest()


def versions_of(catalog: "Catalog") -> dict[str, str]:
    """Return what the bytes of an answer depend on beside the cases: code, facts, calibrations, the writer of files."""
    import duckdb

    from gpucost import __version__
    from gpucost.catalog.calibrations import serving_calibration, training_calibration
    from gpucost.training.run import calibration_digest

    return {
        "gpucost": __version__,
        "catalog": catalog.version,
        "as_of": catalog.as_of.isoformat(),
        "training": calibration_digest(training_calibration(catalog)),
        "serving": calibration_digest(serving_calibration(catalog)),
        "duckdb": duckdb.__version__,  # another version may write other bytes of the same rows
    }


def work(task: SweepTask) -> bytes:
    """Answer a chunk on whatever machine this is; one whose facts or versions differ from the asker's refuses.

    A chunk that the worker puts into its file itself comes back as nothing.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:  # of Dask's nanny; a process of the user's own is left as it is
        keep_memory()
    dates = tuple(task.grid.values[name][0] if name in task.grid.values else None for name in DATES)
    # connections to the facts belong to the thread that opened them
    asker = _asker(task.grid.question, *dates, tuple(sorted(task.versions.items())), get_ident())
    data = parquet_of(answered(asker, task))
    if task.file is None:
        return data
    write_bytes(Path(task.file), data)
    return b""


def answered(asker: Any, task: SweepTask) -> Columns:
    """Return the columns of a chunk: what was asked, then what was found."""
    values = {name: values for name, values in task.grid.values.items() if name not in DATES}
    part = task.grid.part(task.start, task.stop)
    codes = {name: part[name].astype(np.int64) for name in values}
    results, case = asker.rows_of_cases(values, codes)
    arguments: Columns = {}
    for name, entries in values.items():
        codes_of_rows = codes[name][case]
        present = [entry for entry in entries if entry is not None]
        if present and all(isinstance(entry, (int, float)) and not isinstance(entry, bool) for entry in present):
            column = np.array([np.nan if entry is None else entry for entry in entries])[codes_of_rows]
        else:
            categories = sorted({str(entry) for entry in present})
            codes_of_entries = [-1 if entry is None else categories.index(str(entry)) for entry in entries]
            column = np.array(codes_of_entries, np.int64)[codes_of_rows], categories
        # a figure of the answer may bear the name of an argument, such as gpu: then both stand there
        arguments[f"asked_{name}" if name in results else name] = column
    return {**arguments, **results}


@lru_cache(maxsize=16)
def _asker(question: str, as_of: Any, known_as_of: Any, versions: tuple[tuple[str, str], ...], thread: int) -> Any:
    """Return what answers a question's chunks in this thread, kept for its next chunk."""
    from gpucost.catalog import open_catalog

    catalog = open_catalog(as_of or dict(versions)["as_of"], known_as_of)
    # else a cluster would mix answers from different facts, and nobody would see it
    versions_here = versions_of(catalog)
    for name, value in versions:
        if versions_here[name] != value:
            raise UsageError(
                f"this worker has another {name}, {versions_here[name]}, than the machine that started the sweep,"
                f" {value}. Install the same version of gpucost and use the same price books on both."
            )
    return asker_of(question, catalog)


def asker_of(question: str, catalog: "Catalog") -> "_Asker":
    """Return what answers columns of one question's requests from a catalog."""
    askers: dict[str, type[_Asker]] = {"estimate": Trained, "inference": Served, "tco": Owned}
    return askers[question](question, catalog)


def parquet_of(columns: Columns) -> bytes:
    """Return columns as the bytes of a Parquet file; the same columns give the same bytes on every machine."""
    import duckdb
    import pandas

    frame = pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(column[0], categories=column[1])
            if isinstance(column, tuple)
            else column
            for name, column in columns.items()
        }
    )
    with SpareFolder() as folder, duckdb.connect() as connection:
        quiet(connection).execute("set threads = 1")  # several would write the rows in the order in which they end
        connection.register("chunk", frame)
        file = Path(folder, "chunk.parquet")
        put_parquet(connection, "select * from chunk", file, ", compression zstd")
        return file.read_bytes()


# --- What answers rows: the engine of each question, asked for the figures that a row holds and nothing beside them.


def refused(error: GpuCostError) -> dict[str, Any]:
    """Return the row of a case without an answer: why, what would bring one, and what that comes to."""
    nearest = {f"nearest_{name}": number for name, number in error.nearest.items()}
    return {"reason": " ".join(str(error).split()), "nearest_change": changed(error) or None, **nearest}


Rows = Sequence[Mapping[str, Any]]  # of one case


class _Asker(ABC):
    """Answers columns of a question's requests from one catalog; equal ones are asked once."""

    def __init__(self, question: str, catalog: "Catalog") -> None:
        self.question, self.catalog = question, catalog

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> Columns:
        """Return the columns of the answer; argument `name` of case i is `values[name][codes[name][i]]`."""
        return self.rows_of_cases(values, codes)[0]

    def rows_of_cases(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> tuple[Columns, Any]:
        """Return the columns, and of each row its case: one row a case, within a service level one an accelerator."""
        # without arguments one question, which says what it lacks
        codes_of_cases = np.stack([*codes.values()], axis=1) if codes else np.zeros((1, 0), np.int64)
        first, question_of = np.unique(codes_of_cases, axis=0, return_index=True, return_inverse=True)[1:]
        question_of = np.ravel(question_of)  # of each case
        stated = [
            {name: value for name in values if (value := values[name][codes[name][row]]) is not None}
            for row in first.tolist()
        ]
        answers = self.answers(stated)
        # the rows of all answers stand below each other; each case repeats those of its question
        rows = [row for answer in answers for row in answer]
        counts = np.array([len(answer) for answer in answers], np.int64)
        begins = np.cumsum(counts) - counts
        counts_of_cases = counts[question_of]
        case = np.repeat(np.arange(len(counts_of_cases)), counts_of_cases)
        place_in_case = np.arange(len(case)) - np.repeat(np.cumsum(counts_of_cases) - counts_of_cases, counts_of_cases)
        return columns_of(self.shown(values), rows, begins[question_of][case] + place_in_case), case

    def shown(self, values: Mapping[str, Sequence[Any]]) -> Sequence[str]:
        """Return which figures rows show: those of the question."""
        return (self.question,)

    @abstractmethod
    def answers(self, stated: Sequence[dict[str, Any]]) -> list[Rows]:
        """Return the rows of each question, or the one that says why it has none."""


def _together(
    stated: Sequence[dict[str, Any]],
    read: Callable[[dict[str, Any]], Any],
    work: Callable[[list[Any]], Sequence[Any]],
    row_of: Callable[[Any], Mapping[str, Any]],
) -> list[Rows]:
    """Return the rows of questions that are read one by one and answered together; either may refuse them."""
    requests: list[Any] = []
    for arguments in stated:
        try:
            requests.append(read(arguments))
        except GpuCostError as error:
            requests.append(error)
    # what could be read goes to the engine at once, which times columns
    places = [place for place, request in enumerate(requests) if not isinstance(request, GpuCostError)]
    outcomes = work([requests[place] for place in places])
    rows = [refused(request) if isinstance(request, GpuCostError) else {} for request in requests]
    for place, outcome in zip(places, outcomes, strict=True):
        rows[place] = refused(outcome) if isinstance(outcome, GpuCostError) else dict(row_of(outcome))
    return [[row] for row in rows]


class Trained(_Asker):
    """Answers training requests with their first options."""

    def answers(self, stated: Sequence[dict[str, Any]]) -> list[Rows]:
        """Return the figures of each question, or why it has none; a deadline or a budget missed has no numbers."""
        from gpucost.ask.estimate import request_of
        from gpucost.training.run import FirstOption, first_options

        def row_of(first: FirstOption) -> Mapping[str, Any]:
            offer = first.offer
            figures_of_offer = {name: getattr(offer, name) or None for name in _OF_OFFER}
            age = {"price_observed_on": offer.observed_on.isoformat(), "age_days": offer.age_days}
            return {**first.numbers, **figures_of_offer, **age}

        rows = _together(
            stated,
            lambda arguments: request_of(arguments, self.catalog.as_of),
            lambda requests: first_options(requests, self.catalog),
            row_of,
        )
        # one sentence for all cases: how far each missed it stands in its other columns
        missed = (_MISSED.get(str(row.get("nearest_change")).partition("=")[0]) for (row,) in rows)
        return [[{**row, "reason": why}] if why else [row] for (row,), why in zip(rows, missed, strict=True)]


_OF_OFFER = ("provider", "instance_type", "region", "option", "gpu")
_MISSED = {"deadline": "no offer meets the deadline", "budget": "no offer keeps the budget"}


_LEVEL = ("slo_ttft", "slo_tpot")
_OF_TASKS = ("images", "image_size", "steps")  # arguments of models that see or draw


class Served(_Asker):
    """Answers serving requests with their first options, within a service level with those of every accelerator."""

    def __init__(self, question: str, catalog: "Catalog") -> None:
        super().__init__(question, catalog)
        self._is_task: dict[str, bool] = {}  # by model: whether it writes no tokens, or sees images

    def shown(self, values: Mapping[str, Sequence[Any]]) -> Sequence[str]:
        """Return which figures rows show: those of a service level where any case asks for one."""
        levelled = any(value is not None for name in _LEVEL for value in values.get(name, ()))
        return (self.question, "inference level") if levelled else (self.question,)

    def answers(self, stated: Sequence[dict[str, Any]]) -> list[Rows]:
        """Return the figures of each question, or why it has none."""
        from gpucost.ask.inference import request_of
        from gpucost.serving.run import first_option, level_options
        from gpucost.serving.tasks import task_row

        def rows_of(arguments: Mapping[str, Any]) -> Rows:
            model = str(arguments.get("model"))
            if model not in self._is_task:
                self._is_task[model] = task_row(self.catalog, model) is not None
            # such a model's first option comes with the whole answer alone
            if self._is_task[model] or any(name in arguments for name in _OF_TASKS):
                return [asking_answered("inference", {**arguments, "top": 1}, self.catalog).payload["options"][0]]
            request = request_of(self.catalog, **arguments)
            if not request.has_level:
                return [first_option(request, self.catalog)]
            options = level_options(request, self.catalog)
            return [
                {**row, "replica_requests_per_s": row["requests_per_s"], "place": place}
                for place, row in enumerate(options, 1)
            ]

        rows: list[Rows] = []
        for arguments in stated:
            try:
                rows.append(rows_of(arguments))
            except GpuCostError as error:
                rows.append([refused(error)])
        return rows


class Owned(_Asker):
    """Answers comparisons of owning with renting; a column beside the arguments is an input of the plan."""

    def answers(self, stated: Sequence[dict[str, Any]]) -> list[Rows]:
        """Return the figures of each question, or why it has none."""
        from gpucost.ask.tco import case_of
        from gpucost.ownership.figures import compared

        names = {argument.name for argument in QUESTIONS["tco"].arguments}

        def read(arguments: dict[str, Any]) -> Any:
            inputs = {name: arguments.pop(name) for name in [*arguments] if name not in names}
            return case_of({**arguments, **({"set": inputs} if inputs else {})}, self.catalog)

        return _together(stated, read, compared, dict)
