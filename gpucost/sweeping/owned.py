"""Comparisons of owning with renting in a sweep: columns of arguments to columns of figures."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpucost.ask import QUESTIONS
from gpucost.errors import GpuCostError
from gpucost.sweeping.columns import FilledColumns
from gpucost.units import HOURS_PER_MONTH

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.ownership.many import AlikeCases, Coded, ManyCases

Rows = NDArray[np.intp]
Key = tuple[Any, ...]

_CHOSEN = ("financing", "rent_path")  # arguments that are words of inputs
_OF_LOAD = (
    "model",
    "gpu",
    "tokens",
    "mfu",
    "step_time",
    "runs_per_year",
    "tokens_per_month",
    "prompt_tokens",
    "output_tokens",
)
_INPUTS_OF_LOAD = ("gpus", "utilisation_fraction", "goodput_fraction", "tokens_per_s_per_gpu")
_MOST_REFUSALS = 100_000  # kept, by what they hang on


class OwnedColumns:
    """Works out many comparisons from one catalog; what it looked up serves the next ones."""

    def __init__(self, catalog: "Catalog") -> None:
        from gpucost.ownership.many import OwnershipFacts

        self.catalog, self.facts = catalog, OwnershipFacts(catalog)
        self.arguments = {argument.name: argument for argument in QUESTIONS["tco"].arguments}
        self._refusals: dict[Key, Mapping[str, Any]] = {}

    def find(
        self,
        values: Mapping[str, Sequence[Any]],
        codes: Mapping[str, Rows],
        found: FilledColumns,
        alone: Callable[[int], Any],
    ) -> None:
        """Find the rows of a chunk; `alone` answers the question of one row."""
        from gpucost.ownership.many import alike

        count = len(next(iter(codes.values()), (0,)))
        stated = {name: StatedColumn(values[name], self._read(name, values[name]), codes[name]) for name in values}
        faulty = np.zeros(count, bool)
        shapes = np.zeros((count, len(values)), np.int64)
        for place, (name, column) in enumerate(stated.items()):
            faulty |= np.array([isinstance(value, GpuCostError) for value in column.read], bool)[column.codes]
            shapes[:, place] = np.array(self._shape(name, column.raw), np.int64)[column.codes]
        for row in np.flatnonzero(faulty).tolist():
            found.put_row(row, alone(row))
        rest = np.flatnonzero(~faulty)
        if not rest.size:
            return
        _, group = np.unique(shapes[rest], axis=0, return_inverse=True)
        group = np.ravel(group)
        order, parts = np.argsort(group, kind="stable"), []
        for members in np.split(rest[order], np.flatnonzero(np.diff(group[order])) + 1):
            columns = {name: column.of(members) for name, column in stated.items()}
            given = {name: column for name, column in columns.items() if column.first is not None}
            parts += self._alike(given, members, found, alone)
        for cases in alike(parts) if parts else ():
            self._put(cases, found, alone)

    def _read(self, name: str, values: Sequence[Any]) -> list[Any]:
        """Read the values of an argument or of an input of the plan; one that cannot be read is its error."""
        read = []
        for value in values:
            try:
                read.append(None if value is None else self._value(name, value))
            except GpuCostError as error:
                read.append(error)
        return read

    def _value(self, name: str, value: Any) -> Any:
        from gpucost.arguments.reading import value_of
        from gpucost.ask.tco import plan_kinds
        from gpucost.ownership.plan import special_value

        if name in self.arguments:
            return value_of(self.arguments[name], value)
        return special_value(name, value, "--set", plan_kinds())

    def _is_word(self, name: str) -> bool:
        return name in _CHOSEN or name in self.facts.registry.choices

    def _shape(self, name: str, values: Sequence[Any]) -> list[int]:
        """Return the same number for values that pose the same question but for a number or a name in it."""
        if self._is_word(name):
            return [0 if value is None else place for place, value in enumerate(values, 1)]
        if name == "rent":  # a price, or quotes
            return [0 if value is None else 1 if isinstance(value, (int, float)) else 2 for value in values]
        return [int(value is not None) for value in values]

    def _alike(
        self, stated: Mapping[str, "StatedColumn"], rows: Rows, found: FilledColumns, alone: Callable[[int], Any]
    ) -> list[tuple[Rows, "ManyCases"]]:
        """Return rows that state the same arguments as cases; those that are refused find their reason here."""
        from gpucost.ask.tco import refuse_idle_load, said
        from gpucost.ownership.many import ManyCases

        first = {name: column.first for name, column in stated.items()}
        shape = tuple((name, first[name] if self._is_word(name) else "") for name in sorted(first))
        quoted = "rent" in first and not isinstance(first["rent"], (int, float))
        if quoted or {"plan", "currency"} & set(first) or {"rent_path", "rent_decline_fraction"} <= set(first):
            for row in rows.tolist():
                found.put_row(row, alone(row))
            return []
        try:
            special, flags, _ = said({**dict.fromkeys(self.arguments), **asked_of(first, self.arguments)})
            refuse_idle_load(special)
            inputs, beside = self._columns(stated, flags, special)
            keys, alive = self._lay_load(inputs, beside, rows.size)
            self._refuse(rows[~alive], [(shape, *key) for key in keys], found, alone)
            if not alive.any():
                return []
            kept = np.flatnonzero(alive)
            inputs, beside = (
                {name: column.of(kept) for name, column in columns.items()} for columns in (inputs, beside)
            )
            rows = rows[kept]
            many = ManyCases(self.facts, rows.size, inputs, beside)
        except GpuCostError:  # of all alike: arguments or inputs that exclude each other
            self._refuse(rows, [(shape,)] * rows.size, found, alone)
            return []
        places = np.flatnonzero(~many.alive)
        self._refuse(rows[places], [(shape, *(many.refused[place] or ())) for place in places.tolist()], found, alone)
        return [(rows, many)] if many.alive.any() else []

    def _columns(
        self, stated: Mapping[str, "StatedColumn"], flags: Mapping[str, Any], special: Mapping[str, Any]
    ) -> tuple[dict[str, "Coded"], dict[str, "Coded"]]:
        """Return what was stated as columns: of inputs, and of what stands beside them."""
        from gpucost.ownership.many import Coded

        inputs, beside = {}, {}
        for name, column in stated.items():
            argument, values = self.arguments.get(name), column.read
            called = (argument.field or argument.name) if argument else name
            if name == "hours_per_month" and argument:
                called, values = "utilisation_fraction", [v if v is None else v / HOURS_PER_MONTH for v in values]
            if name == "rent":
                called, values = "rent_usd_per_gpu_hour", [v[""] if isinstance(v, dict) else v for v in values]
            if called in special:
                beside[called] = Coded(values, column.codes)
            elif called in flags:
                inputs[called] = Coded(values, column.codes)
        return inputs, beside

    def _lay_load(
        self, inputs: dict[str, "Coded"], beside: Mapping[str, "Coded"], count: int
    ) -> tuple[list[Key], NDArray[np.bool_]]:
        """Turn workloads into inputs, each once; return what refusals hang on, and which rows have none."""
        from gpucost.ask.tco import workload_flags
        from gpucost.ownership.many import Coded, combinations
        from gpucost.ownership.plan import PlanFile

        alive = np.ones(count, bool)
        if not {"model", "tokens_per_month"} & set(beside):
            return [], alive
        of_load = {name: beside[name] for name in _OF_LOAD if name in beside}
        of_inputs = {name: inputs[name] for name in _INPUTS_OF_LOAD if name in inputs}
        keys, codes = combinations([*of_load.values(), *of_inputs.values()], alive)

        def loaded(key: Key) -> dict[str, Any]:
            special = dict(zip(of_load, key, strict=False))
            flags = dict(zip(of_inputs, key[len(of_load) :], strict=True))
            return workload_flags(self.catalog, PlanFile(), flags, special)

        names = (*of_load, *of_inputs)
        made = [self.facts.kept(("workload", names, *key), partial(loaded, key)) for key in keys]
        errors = np.array([isinstance(one, GpuCostError) for one in made], bool)
        answered = [one for one in made if not isinstance(one, GpuCostError)]
        places = np.maximum(np.cumsum(~errors) - 1, 0)
        for name in answered[0] if answered else ():
            inputs[name] = Coded([one[name].value for one in answered], places[codes])
        alive = ~errors[codes]
        return [("workload", *keys[code]) for code in codes[~alive].tolist()], alive

    def _put(self, cases: "AlikeCases", found: FilledColumns, alone: Callable[[int], Any]) -> None:
        from gpucost.ownership.columns import figures

        columns, endless = figures(cases.inputs, cases.tables)
        answered = endless < 0
        rows = cases.rows[answered]
        found.put_columns(rows, {name: column[answered] for name, column in columns.items()})
        found.put_words("cheaper", rows, ("rent", "own"), np.asarray(columns["saving_usd"] > 0, np.int64)[answered])
        keys = [("formula", place) for place in endless[~answered].tolist()]  # whose text is the reason
        self._refuse(cases.rows[~answered], keys, found, alone)

    def _refuse(self, rows: Rows, keys: Sequence[Key], found: FilledColumns, alone: Callable[[int], Any]) -> None:
        """Say why rows have no answer; those with the same key share the refusal of the first, which is asked alone."""
        for row, key in zip(rows.tolist(), keys, strict=True):
            answer = self._refusals.get(key) or alone(row)
            found.put_row(row, answer)
            if "reason" in answer:
                if len(self._refusals) >= _MOST_REFUSALS:
                    self._refusals.clear()
                self._refusals[key] = answer


class StatedColumn(NamedTuple):
    """An argument of some rows: its distinct values as they were given and as they were read, and each row's own."""

    raw: Sequence[Any]
    read: Sequence[Any]
    codes: Rows

    def of(self, rows: Rows) -> "StatedColumn":
        """Return the argument of some rows, with the values that these have."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        raw, read = ([values[place] for place in present.tolist()] for values in (self.raw, self.read))
        return StatedColumn(raw, read, np.ravel(codes))

    @property
    def first(self) -> Any:
        """The value of the first row, as it was given."""
        return self.raw[self.codes[0]]


def asked_of(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked as a single question takes it: inputs of the plan as `set`."""
    asked = {name: value for name, value in row.items() if name in arguments}
    inputs = {name: value for name, value in row.items() if name not in arguments}
    return {**asked, **({"set": inputs} if inputs else {})}
