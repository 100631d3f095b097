"""From columns of what was asked to the inputs and tables of many comparisons, as `assemble` makes those of one.

What hangs on few arguments is worked out once for each combination of them that occurs (a server, a site, a tax law,
an offer) by the functions that a single comparison uses, and laid over the cases in the same order. Plain numbers go
straight into their inputs. A case that is refused keeps the arguments that the refusal hangs on: cases that share them
share the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError
from gpucost.money.comparison import TABLES
from gpucost.ownership import assemble, offers, plan
from gpucost.ownership.assemble import OwnershipCase
from gpucost.ownership.columns import AT_ONCE
from gpucost.ownership.plan import Assumption, Given, Registry
from gpucost.physics.hardware import capped_ratio
from gpucost.types import Accelerator

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Overlay = dict[str, Any]  # values of some inputs

_MOST_KEPT = 200_000  # results of layers, of a few hundred bytes each


class Coded(NamedTuple):
    """A column as its distinct values and which of them each case has."""

    values: Sequence[Any]
    codes: Rows

    def numbers(self) -> Array:
        """Return the column as numbers."""
        return np.array(self.values, np.float64)[self.codes]

    def of(self, rows: Rows) -> "Coded":
        """Return the column of some cases, with the values that these have."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Coded([self.values[place] for place in present.tolist()], np.ravel(codes))


class AlikeCases(NamedTuple):
    """Cases whose words are the same, with their inputs and tables as the formulas read them."""

    rows: Rows
    inputs: dict[str, Any]
    tables: dict[str, Array]


def coded(column: Array) -> Coded:
    """Return numbers as a column of their distinct values."""
    values, codes = np.unique(column, return_inverse=True)
    return Coded(values.tolist(), np.ravel(codes))


def combinations(columns: Sequence[Coded], alive: Mask) -> tuple[list[tuple[Any, ...]], Rows]:
    """Return the combinations of columns that occur, and which of them each case has; the other cases have any."""
    codes, rows = np.zeros(alive.size, np.intp), np.flatnonzero(alive)
    if not rows.size:
        return [], codes
    joined = np.zeros(rows.size, np.int64)
    for column in columns:
        joined = np.ravel(np.unique(joined * len(column.values) + column.codes[rows], return_inverse=True)[1])
    _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    codes[rows] = np.ravel(inverse)
    keys = [tuple(column.values[column.codes[row]] for column in columns) for row in rows[first].tolist()]
    return keys, codes


class OwnershipFacts:
    """What comparisons look up in a catalog, kept by what it hangs on."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self.registry = catalog, Registry(catalog)
        self.defaults = {name: self.registry.default(name) for name in self.registry.names}
        self._kept: dict[tuple[Any, ...], Any] = {}

    def kept(self, key: tuple[Any, ...], work: Callable[[], Any]) -> Any:
        """Return what was worked out for a key, an error as well."""
        if key not in self._kept:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            try:
                self._kept[key] = work()
            except GpuCostError as error:
                self._kept[key] = error
        return self._kept[key]

    def accelerator(self, gpu: Any) -> Accelerator | None:
        """Return an accelerator that is named; an unknown one is an error."""
        return None if gpu is None else self.catalog.accelerator(gpu)

    def of_server(self, gpu: Any) -> dict[str, Assumption]:
        """Return the defaults with the server of an accelerator."""
        entries = dict(self.defaults)
        if (chip := self.accelerator(gpu)) is not None:
            assemble.set_server(self.catalog, self.registry, entries, chip)
        return entries

    def with_newer(self, gpu: Any, refresh_gpu: Any, inputs: Mapping[str, Any]) -> dict[str, Assumption]:
        """Return the same with the newer chip of a replacement."""
        entries, chip = dict(self.of_server(gpu)), self.accelerator(gpu)
        if chip is not None:
            offers.newer_chip(self.catalog, self.registry, entries, chip, refresh_gpu, inputs)
        return entries


def changed(after: Mapping[str, Assumption], before: Mapping[str, Assumption]) -> Overlay:
    """Return the values of the inputs that were put anew."""
    return {name: entry.value for name, entry in after.items() if entry is not before[name]}


class ManyCases:
    """Cases that state the same arguments, as columns of inputs; words are places among their choices."""

    def __init__(
        self,
        facts: OwnershipFacts,
        count: int,
        inputs: Mapping[str, Coded],
        special: Mapping[str, Coded],
    ) -> None:
        self.facts, self.registry, self.count = facts, facts.registry, count
        self.special = special
        self.values: dict[str, Any] = {}  # a number, or one for each case
        self.tables: dict[str, tuple[list[Array], Rows]] = {}
        self.refused: list[tuple[Any, ...] | None] = [None] * count  # what the refusal of a case hangs on
        self.alive = np.ones(count, bool)
        self.inputs = {**self._inputs_of_special(), **inputs}
        first = {name: Given(column.values[column.codes[0]]) for name, column in self.inputs.items()}
        self.stated, _ = plan.resolve_choices(self.registry, first)  # a choice that follows is stated, too
        self._assemble()

    def _inputs_of_special(self) -> dict[str, Coded]:
        """Return the inputs that convenient names stand for."""
        found: dict[str, Coded] = {}
        for name, column in self.special.items():
            if name == "rent_curve" and "rent_path" in self.special:  # says itself how the rent moves
                continue
            rows = [plan.special_inputs({name: value}) for value in column.values]
            found |= {key: Coded([row[key].value for row in rows], column.codes) for key in rows[0] if key in rows[-1]}
        return found

    # --- Cases, their columns and what is laid over them.

    def refuse(self, cases: Mask, stage: str, *columns: Coded) -> None:
        """Refuse some cases for a reason that hangs on the named columns alone."""
        for row in np.flatnonzero(cases & self.alive).tolist():
            self.refused[row] = (stage, *(column.values[column.codes[row]] for column in columns))
        self.alive &= ~cases

    def column(self, name: str) -> Array:
        """Return an input of every case."""
        return np.broadcast_to(np.asarray(self.values[name], np.float64), (self.count,))

    def word(self, name: str, choice: str) -> Mask:
        """Tell which cases have a word for an input."""
        return np.equal(self.column(name), self.registry.choices[name].index(choice))

    def asked(self, name: str) -> Coded:
        """Return what was said under a special name; None where nothing was."""
        return self.special.get(name) or Coded([None], np.zeros(self.count, np.intp))

    def _number(self, name: str, value: Any) -> float:
        if value is None:
            return np.nan
        return float(self.registry.choices[name].index(value) if name in self.registry.choices else value)

    def put(self, name: str, column: Any, cases: Mask | None = None) -> None:
        """Set an input, of some cases alone where they are told."""
        self.values[name] = column if cases is None else np.where(cases, column, self.column(name))

    def lay(self, overlays: Sequence[Overlay], codes: Rows) -> None:
        """Lay overlays over the cases; the code of a case says which one is its own."""
        for name in dict.fromkeys(name for overlay in overlays for name in overlay):
            has = np.array([name in overlay for overlay in overlays])
            numbers = np.array([self._number(name, overlay.get(name)) for overlay in overlays])
            if has.all() and np.array_equal(numbers, np.full_like(numbers, numbers[0]), equal_nan=True):
                self.put(name, float(numbers[0]))
            else:
                self.put(name, numbers[codes], None if has.all() else has[codes])

    def layer(self, stage: str, columns: Sequence[Coded], work: Callable[..., Any]) -> tuple[list[Any], Rows]:
        """Work out each combination of some columns that occurs, and refuse the cases of those that are errors."""
        keys, codes = combinations(columns, self.alive)
        found = [self.facts.kept((stage, *key), partial(work, *key)) for key in keys]
        errors = np.array([isinstance(one, GpuCostError) for one in found], bool)
        if errors.any():
            self.refuse(errors[codes] & self.alive, stage, *columns)
            kept = np.cumsum(~errors) - 1
            codes = np.maximum(kept, 0)[codes]
            found = [one for one in found if not isinstance(one, GpuCostError)]
        return found, codes

    # --- The order of `assemble`.

    def _assemble(self) -> None:
        facts, stated, gpu = self.facts, self.stated, self.asked("gpu")
        self.lay([{name: entry.value for name, entry in facts.defaults.items()}], np.zeros(self.count, np.intp))
        self.layer("gpu", [gpu], facts.accelerator)
        for key in ("electricity_region", "grid_region"):
            self._over(key, [self.asked(key)], lambda value, key=key: self._regional(key, value))
        self._over("tax_regime", [self.asked("tax_regime")], lambda regime: self._regime(regime)[0])
        self._over("site", [self.asked("site")], self._site)
        self._over("server", [gpu], lambda gpu: changed(facts.of_server(gpu), facts.defaults))
        if "refresh_gpu" in self.special:
            self._over(f"newer {'refresh_month' in stated}", [gpu, self.asked("refresh_gpu")], self._newer)
        steps: tuple[Callable[..., None], ...] = (
            self._profile,
            self._lay_inputs,
            self._machine_of_few,
            self._power_cap,
            self._derive,
            self._market,
            self._make_tables,
            self._rent,
            self._check,
        )
        for step in steps:
            if self.alive.any():
                step()

    def _over(self, stage: str, columns: Sequence[Coded], work: Callable[..., Overlay]) -> None:
        self.lay(*self.layer(stage, columns, work))

    def _regional(self, key: str, region: Any) -> Overlay:
        entries = dict(self.facts.defaults)
        assemble.set_region(self.registry, entries, {key: region})
        return changed(entries, self.facts.defaults)

    def _regime(self, regime: Any) -> tuple[Overlay, list[float] | None, dict[str, Assumption]]:
        entries = dict(self.facts.defaults)
        deducted = plan.apply_regime(self.facts.catalog, entries, regime)
        return changed(entries, self.facts.defaults), deducted, entries

    def _site(self, site: Any) -> Overlay:
        entries = dict(self.facts.defaults)
        plan.apply_site(self.registry, entries, site)
        return changed(entries, self.facts.defaults)

    def _newer(self, gpu: Any, refresh_gpu: Any) -> Overlay:
        return changed(self.facts.with_newer(gpu, refresh_gpu, self.stated), self.facts.of_server(gpu))

    def _profile(self) -> None:
        """Lay the profile of each size over the defaults; it hangs on the size by a few limits alone."""
        default = self.facts.defaults["gpus"].value
        gpus = self.inputs.get("gpus") or Coded([default], np.zeros(self.count, np.intp))

        def work(gpu: Any, profile: Any, count: Any) -> Overlay:
            size, chip = float(self.registry.read("gpus", Given(count)).value or 0), self.facts.accelerator(gpu)
            entries = self.facts.kept(("of server", gpu), lambda: self.facts.of_server(gpu))
            usual = plan.usual_profile(chip, size) if chip is not None else ""
            small = size <= float(entries["gpus_per_node"].value or 0)

            def laid() -> Overlay:
                after = dict(entries)
                plan.apply(after, profile, chip, size)
                return changed(after, entries)

            overlay: Overlay = self.facts.kept(("of profile", gpu, profile, usual, small), laid)
            if isinstance(overlay, GpuCostError):
                raise overlay
            return overlay

        self._over("profile", [self.asked("gpu"), self.asked("profile"), gpus], work)

    def _lay_inputs(self) -> None:
        """Lay what was stated over the defaults; a value that an input cannot have is refused."""
        chosen = {name: entry.value for name, entry in self.stated.items() if name not in self.inputs}
        self.lay([chosen], np.zeros(self.count, np.intp))
        for name in self.registry.names:
            if name not in self.inputs:
                continue
            column = self.inputs[name]
            read = [self._read(name, value) for value in column.values]
            errors = np.array([isinstance(one, GpuCostError) for one in read])
            self.refuse(errors[column.codes], f"input {name}", column)
            overlays = [{} if isinstance(one, GpuCostError) else {name: one} for one in read]
            self.lay(overlays, column.codes)

    def _read(self, name: str, value: Any) -> Any:
        """Return a value as an input takes it, or the error that it is none."""
        return self.facts.kept(("input", name, value), lambda: self.registry.read(name, Given(value)).value)

    def _machine_of_few(self) -> None:
        """Let cards that are bought one by one stand in a machine of as many as are asked for."""
        gpu = self.asked("gpu")
        if "gpus_per_node" in self.stated:
            return
        alone = np.array([self._is_alone(name) for name in gpu.values], bool)[gpu.codes]
        gpus, node = self.column("gpus"), self.column("gpus_per_node")
        few = alone & (gpus < node) & self.word("server_price_basis", "gpu_share") & self.alive
        if not few.any():
            return
        self.put("gpus_per_node", gpus, few)
        for name in ("server_max_kw", "embodied_kgco2e_per_node"):
            if name not in self.stated:
                self.put(name, self.column(name) * gpus / node, few)

    def _is_alone(self, gpu: Any) -> bool:
        chip = self.facts.kept(("gpu", gpu), lambda: self.facts.accelerator(gpu))
        return isinstance(chip, Accelerator) and assemble.bought_alone(chip)

    def _power_cap(self) -> None:
        """Let a cap of the power below the usual draw cost speed."""
        cap, draw = self.column("power_cap_fraction"), self.column("power_fraction_active")
        capped = (cap < draw) & (cap > 0) & self.alive
        if not capped.any():
            return
        slower = np.ones(self.count)
        for row in np.flatnonzero(capped).tolist():
            slower[row] = capped_ratio(float(cap[row]), float(draw[row]))
        goodput, rented = self.column("goodput_fraction"), self.column("rent_goodput_fraction")
        self.put("rent_goodput_fraction", goodput, capped & np.isnan(rented))
        self.put("goodput_fraction", goodput * slower, capped)

    def _derive(self) -> None:
        """Fill what follows from other inputs unless it was given."""
        months, lead = self.column("months"), self.column("lead_time_months")
        used = self.column("utilisation_fraction")
        self.refuse(months != np.floor(months), "months", coded(months))
        self.refuse(lead >= months, "lead time", coded(months), coded(lead))
        self.refuse(used < assemble.LEAST_USE, "no use", coded(used))
        term = np.minimum(36.0, np.maximum(1.0, months - np.trunc(lead)))
        follows = {"residual_at_years": months / 12, "loan_term_months": term, "lease_term_months": term}
        for name, value in follows.items():
            if name not in self.stated:
                self.put(name, value if np.ptp(value) else float(value[0]))

    def _entries(self, changes: Mapping[str, Any]) -> dict[str, Assumption]:
        """Return what was stated over the defaults, as the first case has it, with some values changed."""
        entries = dict(self.facts.defaults)
        for name, given in self.stated.items():
            value = self._read(name, given.value)
            if not isinstance(value, GpuCostError):
                entries[name] = replace(entries[name], value=value, low=None, high=None, status="given")
        for name, value in changes.items():
            entries[name] = replace(entries[name], value=value)
        return entries

    def _market(self) -> None:
        """Lay how the rental price moves: by the forward curve, a path or a curve that was bought."""

        def work(gpu: Any, provider: Any, path: Any, curve: Any) -> tuple[Overlay, list[Any], Array, Any]:
            special = {"provider": provider, "rent_path": path, "rent_curve": curve}
            special = {name: value for name, value in special.items() if value is not None}
            entries = self._entries({})
            case = OwnershipCase(
                dict(entries), {}, self.registry, self.facts.accelerator(gpu), special=special, start=self._start
            )
            ends = assemble.set_outlook(self.facts.catalog, case, self.stated)
            assemble.set_resale(self.facts.catalog, case)
            moves = assemble.set_path(case)
            return changed(case.assumptions, entries), ends, moves, case.special.get("residual_by_year")

        named = sorted({"rent_path_basis", "rent_decline_fraction"} & set(self.stated))
        basis = [self.stated[name].value for name in named]
        columns = [self.asked(name) for name in ("gpu", "provider", "rent_path", "rent_curve")]
        found, codes = self.layer(f"market {named} {basis}", columns, work)
        if not found:
            return
        self.lay([one[0] for one in found], codes)
        outlooks = [assemble.outlook(one[1]) for one in found]
        for name in outlooks[0]:
            self.tables[name] = ([one[name] for one in outlooks], codes)
        self.tables["rent_path_by_month"] = ([one[2] for one in found], codes)
        self._bought = Coded([one[3] for one in found], codes)  # resale values by year of a curve that was bought

    @property
    def _start(self) -> Any:
        return self.facts.catalog.as_of

    def _make_tables(self) -> None:
        """Make the tables that the formulas look up, each once for what it hangs on."""
        none = Coded([None], np.zeros(self.count, np.intp))
        given = self.word("residual_basis", "given").any()
        ages = coded(np.array(self.column("residual_at_years"))) if given else none
        curves = Coded([None if one is None else tuple(one) for one in self._bought.values], self._bought.codes)

        def resale(by_year: Any, age: Any) -> Array:
            entries = self._entries({} if age is None else {"residual_at_years": age})
            special = {} if by_year is None else {"residual_by_year": list(by_year)}
            return plan.resale_by_year(self.registry, entries, special, {})

        self._table("residual_by_year", f"resale {given}", [curves, ages], resale)
        method = str(self.stated["depreciation_method"].value) if "depreciation_method" in self.stated else ""
        names = [name for name in ("depreciation_years", "bonus_fraction") if name in self.inputs]

        def depreciated(regime: Any, *numbers: Any) -> tuple[Overlay, Array]:
            _, deducted, entries = self._regime(regime)
            stated = self._entries(dict(zip(names, numbers, strict=True)))
            entries |= {name: stated[name] for name in self.stated}
            special = {"tax_regime": regime} if regime else {}
            if deducted and not method:
                special["depreciation_by_year"] = deducted
            case = OwnershipCase(dict(entries), {}, self.registry, special=special)
            table = assemble.depreciated(case)
            return changed(case.assumptions, entries), table

        columns = [self.asked("tax_regime"), *(self.inputs[name] for name in names)]
        found, codes = self.layer(f"depreciation {method} {names}", columns, depreciated)
        if found:
            self.lay([one[0] for one in found], codes)
            self.tables["depreciated_by_year"] = ([one[1] for one in found], codes)
        if "server_decline_fraction" not in self.stated:
            fall = np.minimum(np.maximum(self.column("rent_decline_fraction"), -0.5), 0.99)
            self.put("server_decline_fraction", fall if np.ptp(fall) else float(fall[0]))
        self._table("use_by_month", "use path", [self.asked("use_path")], assemble.use_path)
        self._table("assessed_by_year", "assessed", [none], lambda _: assemble.assessed({}))
        self._table("observed_v_by_month", "observed", [none], lambda _: assemble.observed_v(self.registry))

    def _table(self, name: str, stage: str, columns: Sequence[Coded], work: Callable[..., Array]) -> None:
        self.tables[name] = self.layer(stage, columns, work)

    def _rent(self) -> None:
        """Lay the rental price and terms of the provider named, else of the first offer that one can order."""
        gpu, provider, option = self.asked("gpu"), self.asked("provider"), self.asked("option")
        nameless = np.array([one is None for one in provider.values])[provider.codes]
        odd = np.array([one not in (None, "on_demand") for one in option.values])[option.codes]
        self.refuse(odd & nameless, "option without a provider", option)
        open_price = np.isnan(self.column("rent_usd_per_gpu_hour")) & self.alive
        nobody = np.array([one is None for one in gpu.values])[gpu.codes]
        self.refuse(open_price & nobody, "rent", gpu)
        open_price &= self.alive
        if not open_price.any():
            return

        def work(gpu: Any, gpus: float, node: float, provider: Any, region: Any, option: Any) -> Overlay:
            chip = self.facts.accelerator(gpu)
            assert chip is not None
            renter = offers.Renter(self.facts.catalog, chip, int(gpus), int(node), self._start)
            if provider:
                offers.by_use(renter, provider)  # may refuse what is interrupted without an end
                choice = offers.rent_of_provider(renter, provider, region, option)
            else:
                choice = offers.market_rent(renter)
            return choice.changes()

        others, self.alive = self.alive & ~open_price, open_price
        sizes = [coded(np.array(self.column(name))) for name in ("gpus", "gpus_per_node")]
        found, codes = self.layer("rent", [gpu, *sizes, provider, self.asked("region"), option], work)
        for name in found[0] if found else ():
            if name not in self.stated:
                numbers = np.array([self._number(name, one[name]) for one in found])
                self.put(name, numbers[codes], self.alive)
        self.alive |= others

    def _check(self) -> None:
        """Refuse what cannot be priced, as a single comparison does."""
        gpu = self.asked("gpu")
        for name in ("server_usd", "gpu_usd", "all_in_usd_per_gpu"):
            basis = next(basis for basis, needed in assemble.PRICED_BY.items() if needed == name)
            lacks = self.word("server_price_basis", basis) & np.isnan(self.column(name))
            self.refuse(lacks, f"no {name}", gpu)
        self.refuse(np.isnan(self.column("server_max_kw")), "no power", gpu)
        for name, when in self.registry.conditions.items():
            missing = np.isnan(self.column(name)) if name not in assemble.MAY_LACK else np.zeros(self.count, bool)
            if missing.any():
                counts = np.any([self.word(when.input, choice) for choice in when.choices], axis=0)
                self.refuse(missing & counts, f"no {name}", gpu)
        by_tokens = self.word("income_basis", "per_mtok") & np.isnan(self.column("tokens_per_s_per_gpu"))
        self.refuse(by_tokens, "tokens per second")
        if not self.alive.any():
            return
        leased = self.word("financing", "operating_lease") & (self.column("refresh_month") != 0)
        self.refuse(leased, "refresh of a lease")
        self._check_paths()
        share = self.column("rent_upfront_fraction")
        self.refuse((share != 0) & (self.column("rent_term_months") == 0), "upfront", coded(np.array(share)))

    def _check_paths(self) -> None:
        """Refuse a use of nothing or beyond what there is, and payments beyond the price."""
        used, months, path = self.column("utilisation_fraction"), self.column("months"), self.asked("use_path")
        tables, codes = self.tables["use_by_month"]
        highest = np.array([np.maximum.accumulate(table) for table in tables])
        spread = highest - np.array([np.minimum.accumulate(table) for table in tables])
        last = np.minimum(np.where(self.alive, months, 1), highest.shape[1]).astype(np.intp) - 1
        most = used * highest[codes, last]
        strange = ((most < assemble.LEAST_USE) | (most > 1 + 1e-9)) & self.alive
        if strange.any():
            self.refuse(strange, "use", path, coded(np.array(used)), coded(np.array(months)))
        paid = self.word("rent_billing", "per_use") & (self.column("rent_upfront_fraction") != 0)
        self.refuse(paid & (spread[codes, last] != 0), "use that is paid upfront")
        draws = [self.column(f"power_{name}") for name in ("fraction_idle", "fraction_active", "cap_fraction")]
        idle = draws[0] > np.minimum(draws[1], draws[2])
        if idle.any():
            self.refuse(idle, "idle", *(coded(np.array(draw)) for draw in draws))
        floor, cap = self.column("rent_floor_ratio"), self.column("rent_cap_ratio")
        self.refuse((cap > 0) & (cap < floor), "cap below floor")
        both = self.column("deposit_fraction") + self.column("retention_fraction")
        self.refuse(both > 1, "more than the price")

    def words(self) -> NDArray[np.int64]:
        """Return a number for each case that is the same where all of its words are."""
        joined = np.zeros(self.count, np.int64)
        for name, choices in self.registry.choices.items():
            joined = joined * (len(choices) + 1) + np.nan_to_num(self.column(name), nan=len(choices)).astype(np.int64)
        return joined


# --- Cases whose words are the same, for the formulas.


def alike(parts: Sequence[tuple[Rows, ManyCases]]) -> Iterator[AlikeCases]:
    """Yield the cases that were not refused by their words, those of like length together.

    A part is cases that state the same arguments, and their rows; cases of several parts are evaluated together.
    """
    places = [np.flatnonzero(many.alive) for _, many in parts]
    part = np.repeat(np.arange(len(parts)), [of_part.size for of_part in places])
    place = np.concatenate(places)
    words = np.concatenate([many.words()[of_part] for of_part, (_, many) in zip(places, parts, strict=True)])
    months = np.concatenate([many.column("months")[of_part] for of_part, (_, many) in zip(places, parts, strict=True)])
    order = np.lexsort((part, months, words))
    for group in np.split(order, np.flatnonzero(np.diff(words[order])) + 1):
        for start in range(0, group.size, AT_ONCE):
            some = group[start : start + AT_ONCE]
            some = some[np.argsort(part[some], kind="stable")]
            cuts = np.flatnonzero(np.diff(part[some])) + 1
            pieces = [(*parts[part[piece[0]]], place[piece]) for piece in np.split(some, cuts)] if some.size else []
            if pieces:
                yield _joined([(rows[chosen], many, chosen) for rows, many, chosen in pieces])


def _joined(pieces: Sequence[tuple[Rows, ManyCases, Rows]]) -> AlikeCases:
    """Return cases of several parts as one: inputs that all share stay one number, tables likewise."""
    first, sizes = pieces[0][1], [chosen.size for _, _, chosen in pieces]
    inputs: dict[str, Any] = {}
    for name in first.values:
        listed = [many.values[name] for _, many, _ in pieces]
        choices = first.registry.choices.get(name)
        if choices:
            inputs[name] = choices[int(listed[0][pieces[0][2][0]] if np.ndim(listed[0]) else listed[0])]
        elif any(map(np.ndim, listed)):
            columns = [
                value[chosen] if np.ndim(value) else np.full(chosen.size, value)
                for value, (_, _, chosen) in zip(listed, pieces, strict=True)
            ]
            inputs[name] = np.concatenate(columns).astype(np.float64).reshape(-1, 1)
        elif len(set(listed)) == 1 or all(value != value for value in listed):
            inputs[name] = np.full((1, 1), listed[0], np.float64)
        else:
            inputs[name] = np.repeat(np.array(listed, np.float64), sizes).reshape(-1, 1)
    inputs["months"] = np.broadcast_to(inputs["months"], (sum(sizes), 1))  # so that there is a row for each case
    tables = {name: _table_of(name, pieces) for name in TABLES}
    return AlikeCases(np.concatenate([rows for rows, _, _ in pieces]), inputs, tables)


def _table_of(name: str, pieces: Sequence[tuple[Rows, ManyCases, Rows]]) -> Array:
    """Return the table of some cases: one for all, or a row for each."""
    distinct: list[Array] = []
    known: dict[int, int] = {}  # by identity: tables are made once for what they hang on
    codes = []
    for _, many, chosen in pieces:
        listed, of_case = many.tables[name]
        of_case = of_case[chosen]
        present, inverse = np.unique(of_case, return_inverse=True)
        numbers = []
        for code in present.tolist():
            table = listed[code]
            if id(table) not in known:
                same = (place for place, other in enumerate(distinct) if np.array_equal(other, table))
                known[id(table)] = next(same, len(distinct))
                if known[id(table)] == len(distinct):
                    distinct.append(table)
            numbers.append(known[id(table)])
        codes.append(np.array(numbers)[np.ravel(inverse)])
    return distinct[0] if len(distinct) == 1 else np.stack(_as_long(distinct))[np.concatenate(codes)]


def _as_long(tables: Sequence[Array]) -> list[Array]:
    """Return tables made as long as the longest: the last value holds, as where they are looked up."""
    most = max(len(table) for table in tables)
    return [np.concatenate((table, np.full(most - len(table), table[-1]))) for table in tables]
