"""One chunk of a sweep: what a worker is told, how it answers, and the bytes that it hands back."""

import os
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import astuple, replace

from gpucost.arguments.reading import value_of
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered as asking_answered
from gpucost.errors import GpuCostError, UsageError, changed
from gpucost.formula.arrays import Columns as CaseColumns
from gpucost.store.files import SpareFolder, put_parquet, write_bytes
from gpucost.sweeping.columns import FilledColumns
from gpucost.sweeping.grid import DATES, SweepGrid

if TYPE_CHECKING:
    import pandas

    from gpucost.arguments import Argument
    from gpucost.catalog import Catalog
    from gpucost.market.facts import Market
    from gpucost.serving.request import InferenceRequest
    from gpucost.serving.sweep import ServedOffers
    from gpucost.types import Offer


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
        "duckdb": duckdb.__version__,
    }


def work(task: SweepTask) -> bytes:
    """Answer a chunk on whatever machine this is; one whose facts or versions differ from the asker's refuses.

    A chunk that the worker puts into its file itself comes back as nothing.
    """
    keep_memory()
    dates = tuple(task.grid.values[name][0] if name in task.grid.values else None for name in DATES)
    asker = _asker(task.grid.question, *dates, tuple(sorted(task.versions.items())), get_ident())
    data = parquet_of(answered(asker, task))
    if task.file is None:
        return data
    write_bytes(Path(task.file), data)
    return b""


@cache
def keep_memory() -> None:
    """Let this process keep up to 128 MB of memory that it has freed, where somebody told it to give all of it back.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536: every large array is then fetched from the system anew,
    and a chunk takes twice the time. What the environment said holds until `mallopt` of the C library says otherwise.
    """
    if sys.platform != "linux" or not os.environ.get("MALLOC_TRIM_THRESHOLD_", "").isdigit():
        return
    if int(os.environ["MALLOC_TRIM_THRESHOLD_"]) < _KEPT_BYTES:
        import ctypes

        with suppress(OSError, AttributeError):  # another C library has its own ways
            for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
                ctypes.CDLL(None).mallopt(option, _KEPT_BYTES if option == _TRIM_THRESHOLD else _MAPPED_BYTES)


_KEPT_BYTES, _MAPPED_BYTES = 128 << 20, 32 << 20  # 32 MB is the most that glibc takes for the second
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of <malloc.h>


def answered(asker: Any, task: SweepTask) -> Columns:
    """Return the columns of a chunk: what was asked, then what was found."""
    values = {name: values for name, values in task.grid.values.items() if name not in DATES}
    part = task.grid.part(task.start, task.stop)
    codes = {name: part[name].astype(np.int64) for name in values}
    results: Columns = asker.rows(values, codes)
    arguments = {name: _argument_column(values[name], codes[name]) for name in values}
    return {**{f"asked_{name}" if name in results else name: column for name, column in arguments.items()}, **results}


@lru_cache(maxsize=16)
def _asker(question: str, as_of: Any, known_as_of: Any, versions: tuple[tuple[str, str], ...], thread: int) -> Any:
    """Return what answers a question's chunks in this thread, kept for its next chunk."""
    from gpucost.catalog import open_catalog

    catalog = open_catalog(as_of or dict(versions)["as_of"], known_as_of)
    own_versions = versions_of(catalog)
    for name, value in versions:
        if own_versions[name] != value:
            raise UsageError(
                f"this worker has another {name}, {own_versions[name]}, than the machine that started the sweep,"
                f" {value}. Install the same version of gpucost and use the same price books on both."
            )
    return asker_of(question, catalog)


def asker_of(question: str, catalog: "Catalog") -> Any:
    """Return what answers columns of one question's requests from a catalog."""
    if question == "estimate":
        from gpucost.ask.estimate import request_of
        from gpucost.training.sweep import Sweeper

        return Sweeper(catalog, request_of)

    return Owned(question, catalog) if question == "tco" else Served(question, catalog)


def _argument_column(values: Sequence[Any], codes: Any) -> Any:
    """Return what was asked as a column: numbers where all values are, else words; None is missing."""
    values_present = [value for value in values if value is not None]
    if values_present and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in values_present
    ):
        return np.array([np.nan if value is None else value for value in values])[codes]
    categories = sorted({str(value) for value in values if value is not None})
    codes_of_values = np.array([-1 if value is None else categories.index(str(value)) for value in values], np.int64)
    return codes_of_values[codes], categories


def frame_of(columns: Columns) -> "pandas.DataFrame":
    """Return columns as a data frame; words become categories."""
    import pandas

    columns_of_frame = {}
    for name, column in columns.items():
        if not isinstance(column, tuple):
            columns_of_frame[name] = column
            continue
        codes, categories = column
        columns_of_frame[name] = pandas.Categorical.from_codes(codes, categories=categories)
    return pandas.DataFrame(columns_of_frame)


def parquet_of(columns: Columns) -> bytes:
    """Return columns as the bytes of a Parquet file; the same columns give the same bytes on every machine."""
    import duckdb

    frame = frame_of(columns)
    with SpareFolder() as folder, duckdb.connect() as connection:
        connection.execute("set threads = 1; set enable_progress_bar = false")
        connection.register("chunk", frame)
        file = Path(folder, "chunk.parquet")
        put_parquet(connection, "select * from chunk", file, ", compression zstd")
        return file.read_bytes()


# --- Questions that are asked case by case: the figures of each answer that a row of a sweep holds.


def _served(payload: Mapping[str, Any]) -> dict[str, Any]:
    return dict(payload["options"][0])


def _owned(payload: Mapping[str, Any]) -> dict[str, Any]:
    worth, even = payload["npv_usd"], payload["breakeven"]
    return {
        **payload,
        "cheaper": "own" if worth["saving"] > 0 else "rent",
        "own_npv_usd": worth["own"],
        "rent_npv_usd": worth["rent"],
        "saving_usd": worth["saving"],
        **{f"breakeven_{name}": even[name] for name in ("utilisation_fraction", "usd_per_gpu_hour", "months")},
    }


_FLAT = {"inference": _served, "tco": _owned}


def refused(error: GpuCostError) -> dict[str, Any]:
    """Return the row of a case without an answer: why, and what would bring one."""
    return {"reason": " ".join(str(error).split()), "nearest_change": changed(error) or None}


def _stated(values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Return what a row states: argument `name` is `values[name][codes[name][row]]`, None is not said."""
    return {name: value for name in values if (value := values[name][codes[name][row]]) is not None}


class Singles:
    """Answers columns of questions one by one from one catalog."""

    def __init__(self, question: str, catalog: "Catalog") -> None:
        self.question, self.catalog = question, catalog

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the answer; argument `name` of row i is `values[name][codes[name][i]]`."""
        table = FilledColumns(self.question, len(next(iter(codes.values()), (0,))))
        for row in range(table.count):  # without arguments one question, which says what it lacks
            table.put_row(row, self._one(_stated(values, codes, row)))
        return table.columns()

    def _one(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            extra = {"draws": 0} if self.question == "tco" else {"top": 1}
            payload = asking_answered(self.question, {**asked, **extra}, self.catalog)[0].payload
        except GpuCostError as error:
            return refused(error)
        return _FLAT[self.question](payload)


class Served(Singles):
    """Answers columns of serving requests with their first options: cases that differ in plain numbers together."""

    _APART = ("images", "image_size", "steps")

    def __init__(self, question: str, catalog: "Catalog") -> None:
        super().__init__(question, catalog)
        self._tasks: dict[str, bool] = {}
        self._markets: OrderedDict[Any, tuple[Market, Any]] = OrderedDict()
        self._offered: OrderedDict[Any, ServedOffers] = OrderedDict()

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the answer; argument `name` of row i is `values[name][codes[name][i]]`."""
        from gpucost.serving.sweep import UNSAID, VARIED

        count = len(next(iter(codes.values()), (0,)))
        table, arguments = FilledColumns(self.question, count), QUESTIONS[self.question].fields
        fields = {arguments[field].name: field for field in VARIED}
        numbers = {
            name: _numbers_of(arguments[field], values[name], UNSAID.get(field))
            for name, field in fields.items()
            if name in values
        }
        plain = {name: ~np.isnan(column)[codes[name]] for name, column in numbers.items()}
        kinds = [np.where(plain[name], -1, codes[name]) if name in plain else codes[name] for name in values]

        for members in _alike(kinds, count):
            varied = {fields[name]: numbers[name][codes[name][members]] for name in plain if plain[name][members[0]]}
            for row in self._together(_stated(values, codes, members[0]), varied, members, table).tolist():
                table.put_row(row, self._one(_stated(values, codes, row)))
        return table.columns()

    def _together(self, asked: Mapping[str, Any], varied: Mapping[str, Any], members: Any, table: FilledColumns) -> Any:
        """Answer cases that differ in what is `varied` alone; return those that are to be asked one by one."""
        from gpucost.ask.inference import request_of
        from gpucost.serving.sweep import VARIED

        if self._is_task(str(asked.get("model"))) or any(name in asked for name in self._APART):
            return members
        try:
            request = request_of(self.catalog, **asked)
            offers = self._offers_of(request)
        except GpuCostError:  # whatever the numbers are; a single answer says it in full
            one = self._one(asked)
            if "reason" not in one:
                return members
            table.put(members, [one], np.zeros(len(members), np.int64))
            return members[:0]
        fixed = {name: getattr(request, name) for name in VARIED}
        fixed = {name: np.inf if number is None else float(number) for name, number in fixed.items()}
        if any(fixed[name] != column[0] for name, column in varied.items()):
            return members
        cases = {name: varied.get(name, np.full(len(members), number)) for name, number in fixed.items()}
        results = offers.first_options(CaseColumns(cases))
        found, missed = np.flatnonzero(results.offer >= 0), np.flatnonzero(results.reason >= 0)
        for name, column in results.numbers.items():
            table.filled[name][members[found]] = column[found]
        places, of = np.unique(results.offer[found], return_inverse=True)
        sold = [offers.market.facts.offers[place] for place in places.tolist()]
        form = request.written_in(offers.architecture)
        table.put(members[found], [{**_told(offer), "precision": form} for offer in sold], of)
        table.put(members[missed], [refused(error) for error in results.reasons], results.reason[missed])
        return members[results.odd]

    def _is_task(self, model: str) -> bool:
        from gpucost.serving.tasks import task_row

        if model not in self._tasks:
            self._tasks[model] = task_row(self.catalog, model) is not None
        return self._tasks[model]

    def _offers_of(self, request: "InferenceRequest") -> "ServedOffers":
        """Return what serves requests that differ in what is varied alone; markets and offers once met are kept."""
        from gpucost.catalog.calibrations import serving_calibration
        from gpucost.serving.run import OF_MARKET, looked_at
        from gpucost.serving.sweep import UNSAID, VARIED, ServedOffers

        unsaid = tuple(name for name in VARIED if name not in UNSAID and getattr(request, name) is None)
        key = *astuple(replace(request, **dict.fromkeys(VARIED))), unsaid
        if key not in self._offered:
            of_market = tuple(getattr(request, name) for name in OF_MARKET)
            architecture = self.catalog.architecture(request.model)
            if of_market not in self._markets:
                self._markets[of_market] = looked_at(request, self.catalog)
            market, offers = self._markets[of_market]
            calibration = serving_calibration(self.catalog)
            self._offered[key] = ServedOffers(request, architecture, market, offers, calibration)
        for kept in (self._markets, self._offered):
            if len(kept) > _OFFERS_KEPT:
                kept.popitem(last=False)
        return self._offered[key]


_OFFERS_KEPT = 512  # sets of offers, and models on them, at 0.2 to 0.6 MB


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _told(offer: "Offer") -> dict[str, Any]:
    """Return what a row says of an offer."""
    from gpucost.market.terms import seller

    age = {"price_observed_on": offer.observed_on.isoformat(), "age_days": offer.age_days}
    return {**seller(offer), **age}


def _numbers_of(argument: "Argument", values: Sequence[Any], unsaid: float | None) -> Any:
    """Return the numbers that values of an argument mean, and what not saying it means; NaN for none that is plain.

    Zero is a number where not saying it means one: elsewhere it has a meaning of its own.
    """
    numbers = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        with suppress(GpuCostError):
            read: Any = unsaid if value is None else value_of(argument, value)
            if _is_plain(read) and (read > 0 or (read == 0 and unsaid is not None)):
                numbers[place] = read
    return numbers


def _alike(kinds: Sequence[Any], count: int) -> Iterator[Any]:
    """Yield the rows that are equal in all columns of codes."""
    keys = np.stack(kinds, axis=1) if kinds else np.zeros((count, 0))
    group = np.ravel(np.unique(keys, axis=0, return_inverse=True)[1])
    order = np.argsort(group, kind="stable")
    if count:
        yield from np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


class Owned(Singles):
    """Answers columns of comparisons together; a column beside the arguments is an input of the plan."""

    def __init__(self, question: str, catalog: "Catalog") -> None:
        from gpucost.sweeping.owned import OwnedColumns

        super().__init__(question, catalog)
        self._together = OwnedColumns(catalog)

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the answer; argument `name` of row i is `values[name][codes[name][i]]`."""
        from gpucost.sweeping.owned import asked_of

        found = FilledColumns(self.question, len(next(iter(codes.values()), (0,))))

        def alone(row: int) -> dict[str, Any]:
            return self._one(asked_of(_stated(values, codes, row), self._together.arguments))

        self._together.find(values, codes, found, alone)
        return found.columns()
