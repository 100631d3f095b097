"""From a question, a plan and the catalog's facts to the inputs and tables of a comparison."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from gpucost.arguments import flag_of
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, PriceMissingError, UsageError
from gpucost.market import exchange
from gpucost.market.forward import HORIZONS_MONTHS, cards_of, path_ends, resale
from gpucost.market.supply import Providers
from gpucost.money import price_paths, tax
from gpucost.money.comparison import columns
from gpucost.ownership import offers
from gpucost.ownership import plan as plans
from gpucost.ownership.plan import Assumption, Given, PlanFile, Registry, as_given
from gpucost.physics.hardware import capped_ratio
from gpucost.types import Accelerator, Offer
from gpucost.units import HOURS_PER_MONTH, HOURS_PER_YEAR, counted, format_count, parse_count
from gpucost.workloads.counts import whole_units
from gpucost.workloads.deployment import busy_gpus, trained
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import check, needs_gpus, own_speed, step_work

# --- From a question, a plan and the catalog's facts to the inputs and tables of a comparison.

Array = NDArray[np.float64]

_OLD_RATE_DAYS = 45  # exchange rates are older than the month's end that was last shipped
_FEWEST_SELLERS = 3  # of a generation, else all chips speak
_RESALE_YEARS = 12  # of the forward curve of resale
_LEAST_USE = 1e-12  # of the hours that exist: less is none
_PATH_MONTHS = 480  # tables by month are this long; the last price holds
# months from mid-2023 on -> what an H100 was rented for
_V_ITEMS = {0: "h100_2023", 16: "h100_2024", 28: "h100_2025_trough", 33: "h100_2026_03", 36: "h100_2026_06"}
FELL = "as H100 rent fell from mid-2023 to mid-2026"
_MAY_LACK = (  # of inputs that count, what means "none" where it is empty
    "rent_committed_gpus",
    "gpu_replacement_usd",
    "rent_after_usd_per_gpu_hour",
    "min_dscr_ratio",
    "max_ltv_fraction",
)
_PRICED_BY = {"quote": "server_usd", "gpu_share": "gpu_usd", "all_in": "all_in_usd_per_gpu"}  # the price of a server
# Servers of baseboards with eight accelerators cost less above their GPUs than servers of cards do: H100 HGX quotes,
# and MI300X servers at 150,000 to 270,000 USD with GPUs at 15,000 to 26,000, are both near 1.25.
BASEBOARD_FORMS, BASEBOARD_YEAR = ("SXM", "OAM"), 2022


class OwnershipCase(Struct):
    """Everything that one comparison reads."""

    assumptions: dict[str, Assumption]
    tables: dict[str, Array]
    registry: Registry
    accelerator: Accelerator | None = None
    warnings: list[str] = field(default_factory=list)
    choices: list[offers.RentChoice] = field(default_factory=list)
    rent_offer: Offer | None = None  # behind the price as asked, where the catalog gave it
    rent_after_note: str = ""  # where the price after that contract is from
    start: date = date.max  # the day of month 0
    rented: offers.RentChoice | None = None  # that offer
    credits: Sequence[Mapping[str, Any]] = ()  # of the books, as they hold on the day below
    as_of: date = date.max
    fallback: offers.RentChoice | None = None  # rent by use, where what was asked for is a commitment
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    rent_options: list[dict[str, Any]] = field(default_factory=list)
    special: dict[str, Any] = field(default_factory=dict)
    profile: str = ""  # which one, its values, and why
    shaped: dict[str, Any] = field(default_factory=dict)

    def put(self, name: str, **fields: Any) -> None:
        """Change what is known of an input."""
        self.assumptions[name] = replace(self.assumptions[name], **fields)

    def values(self) -> dict[str, Any]:
        """Return the inputs by name."""
        return {name: assumption.value for name, assumption in self.assumptions.items()}

    def columns(self) -> dict[str, Any]:
        """Return the inputs as the formulas read them, shaped once; the case must not change any more."""
        if not self.shaped:
            self.shaped = columns(self.values())
        return self.shaped

    def rent_path(self) -> Array:
        """Return the rental price of each month ÷ that of the first, beside its yearly fall."""
        basis = self.assumptions["rent_path_basis"].value
        table = self.tables["observed_v_by_month" if basis == "observed_v" else "rent_path_by_month"]
        return np.ones_like(table) if basis in ("flat", "forward") else table

    @property
    def rent_path_is_flat(self) -> bool:
        """Tell whether the rental price stays as it is."""
        return self.assumptions["rent_path_basis"].value == "flat" and not self.number("rent_decline_fraction")

    @property
    def months(self) -> int:
        """Return the length of the comparison."""
        return int(self.number("months"))

    @property
    def bent(self) -> bool:
        """Tell whether losses carried forward make the tax of a sum another than the sum of the taxes."""
        return [self.assumptions[f"{name}_basis"].value for name in ("tax", "loss")] == ["after", "carried_forward"]

    def number(self, name: str) -> float:
        """Return a numeric input."""
        value = self.assumptions[name].value
        assert isinstance(value, (int, float)), name
        return float(value)

    def ranges(self) -> dict[str, tuple[float, float, float]]:
        """Return low, value and high of every input that counts and is uncertain."""
        ranges = {}
        for name, entry in self.assumptions.items():
            value, low, high = entry.value, entry.low, entry.high
            if entry.counts and isinstance(value, (int, float)) and low is not None and high is not None:
                low, high = min(low, value), max(high, value)
                if high > low:
                    ranges[name] = (low, float(value), high)
        return ranges


def registry_of(catalog: Catalog) -> Registry:
    """Return the inputs with the catalog's facts, kept with it."""
    if "ownership_inputs" not in catalog.derived:
        catalog.derived["ownership_inputs"] = Registry(catalog)
    registry: Registry = catalog.derived["ownership_inputs"]
    return registry


def assemble(catalog: Catalog, plan: PlanFile, flags: Mapping[str, Any], special: Mapping[str, Any]) -> OwnershipCase:
    """Join defaults, facts, the plan and the flags (which win) into one case; every input is checked on the way."""
    registry = registry_of(catalog)
    flagged = {name: value for name, value in special.items() if value is not None}
    special = {**plan.special, **flagged}
    # Inputs as stated, by the plan and over it by flags; what a flag overrules is checked, too.
    for name, value in plan.inputs.items():
        registry.read(name, value, plan.origin)
    stated = {**plans.special_inputs(plan.special), **plan.inputs, **plans.special_inputs(flagged)}
    stated.update({name: as_given(value) for name, value in flags.items() if value is not None})
    for name in stated:
        if name not in registry.inputs:
            raise plans.unknown_input(name, registry.names, "the request")
    inputs, warnings = plans.resolve_choices(registry, stated)
    warnings += catalog.taken(special.get("gpu"), special.get("refresh_gpu"))
    accelerator = catalog.accelerator(special["gpu"]) if special.get("gpu") else None

    # Defaults from the most general to the most special: usual values, place and law, the accelerator's server, the
    # profile of the cluster's size. An input that is stated overrules them all.
    defaults = dict(registry.defaults)
    for key, name, prefix in (
        ("electricity_region", "electricity_usd_per_kwh", "electricity"),
        ("grid_region", "grid_kgco2e_per_kwh", "grid_carbon"),
    ):
        if special.get(key):
            defaults[name] = registry.sourced(name, f"{prefix}.{special[key]}")
    deducted = plans.apply_regime(catalog, defaults, special.get("tax_regime"))
    warnings += plans.apply_site(registry, defaults, special.get("site"))
    if accelerator is not None:
        # price, size and power of its server
        defaults.update(offers.server_inputs(catalog, registry, accelerator))
        baseboard = accelerator.form_factor.upper().startswith(BASEBOARD_FORMS) and accelerator.year >= BASEBOARD_YEAR
        if not baseboard:
            defaults["server_overhead_ratio"] = registry.sourced(
                "server_overhead_ratio", "server_cost_overhead.default"
            )
        # the making is on record for a server of eight; one of another size has its share
        nodes_of_8 = float(defaults["gpus_per_node"].value or 8) / 8
        embodied = defaults["embodied_kgco2e_per_node"]
        if nodes_of_8 != 1 and isinstance(embodied.value, (int, float)):
            embodied_range = {key: getattr(embodied, key) for key in ("value", "low", "high")}
            scaled = {key: end * nodes_of_8 for key, end in embodied_range.items() if end is not None}
            defaults["embodied_kgco2e_per_node"] = replace(embodied, status="derived", **scaled)
        if machine_gpus := catalog.gpus_in(special["gpu"]):
            note = f"as many as one {special['gpu']} holds"
            defaults["gpus"] = replace(defaults["gpus"], value=float(machine_gpus), status="derived", note=note)
        offers.newer_chip(catalog, registry, defaults, accelerator, special.get("refresh_gpu"), inputs)
    gpus = registry.read("gpus", inputs["gpus"]).value if "gpus" in inputs else defaults["gpus"].value
    profile = plans.apply(defaults, special.get("profile"), accelerator, float(gpus or 0))
    assumptions = dict(defaults)
    for name, default in defaults.items():
        if name not in inputs:
            continue
        assumption = registry.read(name, inputs[name])
        # A value that a plan merely repeats keeps its source.
        repeats = (assumption.value, assumption.low, assumption.high) == (default.value, default.low, default.high)
        if not (repeats and not assumption.note and default.status != "given" and default.source_id):
            assumptions[name] = assumption
    case = OwnershipCase(assumptions, {}, registry, accelerator, warnings, special=dict(special), profile=profile)
    case.scenarios = plan.scenarios
    start_on = special.get("start_on") or catalog.as_of  # the day of month 0
    try:
        case.start = start_on if isinstance(start_on, date) else date.fromisoformat(str(start_on))
    except ValueError:
        raise UsageError(f"start_on = {start_on!r} is not a day. Write it as YYYY-MM-DD.") from None
    if deducted and not case.special.get("depreciation_by_year") and "depreciation_method" not in inputs:
        case.special["depreciation_by_year"] = deducted

    def rates(code: str) -> float:
        return exchange.usd_per_unit(catalog, code)

    case.rent_options = [*plan.rent_options, *offers.read_quotes(case.special.pop("quote", None) or {}, rates)]
    if case.special.get("supply"):
        case.special["supply"] = offers.supplies_in_usd(case.special["supply"], rates)
    code = str(case.special.get("currency") or "USD").upper()
    newest = exchange.newest_rate(catalog, code) if code != "USD" and case.special.get("usd_per_unit") is None else None
    if newest:
        case.special |= {"usd_per_unit": newest["usd_per_unit"], "usd_per_unit_on": str(newest["on"])}
        if (age := (catalog.as_of - newest["on"]).days) > _OLD_RATE_DAYS:
            case.warnings.append(
                f"{code}: the exchange rate is of {newest['on']}, {age} days old; give usd_per_unit for another"
            )

    # What follows from other inputs: each step reads what the one before it has put, and leaves what is stated.
    _machine_of_few(case, inputs)
    _power_cap(case)
    _derive(case, inputs)
    ends = _set_outlook(catalog, case, inputs)
    _set_resale(catalog, case)
    case.tables = {
        "residual_by_year": plans.resale_by_year(registry, case.assumptions, case.special, case.scenarios),
        "assessed_by_year": assessed(case.special),
        "depreciated_by_year": depreciated(case),
        "rent_path_by_month": _set_path(case),
        "observed_v_by_month": observed_v(registry),
        "use_by_month": use_path(case.special.get("use_path")),
        **outlook(ends),
    }
    if "server_decline_fraction" not in inputs:  # assumed: what a chip earns and what it costs fall together
        fall = min(max(case.number("rent_decline_fraction"), -0.5), 0.99)
        case.put("server_decline_fraction", value=fall, status="assumed", note="as the rental price")
    _set_rent(catalog, case, inputs)
    _set_resale_range(case, inputs)
    plans.mark_counting(registry, case.assumptions)
    _check(case)
    return case


def _machine_of_few(case: OwnershipCase, inputs: Mapping[str, Given]) -> None:
    """Let cards that are bought one by one stand in a machine of as many as are asked for, not in a server of eight."""
    gpus, node = case.number("gpus"), case.number("gpus_per_node")
    alone = case.accelerator is not None and bought_alone(case.accelerator)
    if not alone or gpus >= node or "gpus_per_node" in inputs:
        return
    if case.assumptions["server_price_basis"].value != "gpu_share":
        return
    case.put("gpus_per_node", value=gpus, status="derived", note=f"one machine with {gpus:g} cards")
    for name in ("server_max_kw", "embodied_kgco2e_per_node"):
        whole = case.assumptions[name]
        if name not in inputs and isinstance(whole.value, (int, float)):
            ends = {key: getattr(whole, key) for key in ("value", "low", "high")}
            case.put(name, **{key: end * gpus / node for key, end in ends.items() if end is not None})


def bought_alone(accelerator: Accelerator) -> bool:
    """Tell whether accelerators are cards that are bought one by one."""
    return accelerator.form_factor.startswith("PCIe") or accelerator.form_factor == "SoC"


def _power_cap(case: OwnershipCase) -> None:
    """Let a cap of the power below the usual draw cost speed: fewer of the owned hours' products, as physics has it."""
    cap, draw = case.number("power_cap_fraction"), case.number("power_fraction_active")
    if cap >= draw or cap <= 0:
        return
    slower = capped_ratio(cap, draw)
    goodput = case.assumptions["goodput_fraction"]
    if case.assumptions["rent_goodput_fraction"].value is None:
        case.put("rent_goodput_fraction", value=goodput.value, status="derived", note="that of uncapped accelerators")
    ends = {key: getattr(goodput, key) for key in ("value", "low", "high")}
    scaled = {key: end * slower for key, end in ends.items() if isinstance(end, (int, float))}
    case.put("goodput_fraction", **scaled, status="derived", note=f"× {slower:.3f}: clocks under the power cap")
    case.warnings.append(
        f"power capped at {cap:.0%} of the rating, {draw:.0%} drawn else: owned GPUs are {1 - slower:.0%} slower"
    )


def _derive(case: OwnershipCase, inputs: Mapping[str, Given]) -> None:
    """Fill in the terms that follow from the length of the comparison, once that makes sense."""
    months = case.number("months")
    if months != int(months):
        raise UsageError(f"months = {months:g} is not a whole number of months. Write years = 4 or months = 48.")
    lead = case.number("lead_time_months")
    if lead >= months:
        raise UsageError(
            f"the accelerators arrive after {lead:.0f} months, when the {months:.0f} months compared are over. Compare"
            " more years, or shorten the lead time."
        )
    used = case.assumptions["utilisation_fraction"]
    least = min(case.number(used.name), np.inf if used.low is None else used.low)
    if least < _LEAST_USE:
        more = "more tokens" if used.status == "derived" else "a share above 0, such as 70%, and a low end above 0"
        raise UsageError(
            f"utilisation is {least:g}: no hours would be used, so nothing is rented or owned. Give {more}."
        )
    left = max(1, months - int(lead))  # a loan ends with the comparison at the latest
    terms = {name: float(min(case.number(name), left)) for name in ("loan_term_months", "lease_term_months")}
    for name, value in {"residual_at_years": months / 12, **terms}.items():
        if name not in inputs:
            case.put(name, value=value, status="derived", low=None, high=None)


def _set_resale(catalog: Catalog, case: OwnershipCase) -> None:
    """Take resale values from the forward curve of cards, or from the curve that was bought, where that is asked for.

    A server is sold at the share of today's price that the market pays for its cards at that age.
    """
    path, curve = case.special.pop("resale_path", None), case.special.get("rent_curve")
    bought = price_paths.read_resale(str(curve)) if curve else None
    if bought is not None:
        _no_other_resale(case, "the column resale_fraction of rent_curve")
        case.special["residual_by_year"] = bought
    if path != "forward":
        return
    _no_other_resale(case, "resale_path = forward")
    cards = cards_of(catalog.rows("accelerators"))
    chip = case.accelerator
    card = next((card for card in cards if chip is not None and card.gpu == chip.id), None)
    if card is None:
        name = chip.id if chip is not None else "an accelerator without a name"
        raise PriceMissingError(
            f"resale_path = forward: no dated street price of {name} is known. Leave it out, or give residual_by_year."
        )
    ends = [resale(cards, card, 12 * year) for year in range(1, _RESALE_YEARS + 1)]
    case.special["residual_by_year"] = [min(middle / card.street_usd, 1.0) for _, middle, _ in ends]
    years = max(1, round((case.months - case.number("lead_time_months")) / 12))
    low, middle, high = ends[min(years, _RESALE_YEARS) - 1]
    case.put(
        "residual_scale_ratio",
        low=min(low / middle, 1.0),
        high=max(high / middle, 1.0),
        status="derived",
        note=f"forward curve of {len(cards) - 1} other cards: at {years} years {low / card.street_usd:.0%},"
        f" {middle / card.street_usd:.0%}, {high / card.street_usd:.0%} of today's street price, P10, P50, P90",
    )


def _no_other_resale(case: OwnershipCase, origin: str) -> None:
    if stated := next((name for name in ("residual_by_year", "residual_curve") if case.special.get(name)), None):
        raise UsageError(f"{origin}: resale is also stated by {stated}. Keep one.")


def assessed(special: Mapping[str, Any]) -> Array:
    """Return what hardware is assessed at for property tax, by year."""
    # assumed: half of the price after a year, a tenth less every year
    shares = special.get("assessed_by_year") or [0.5, 0.4, 0.3, 0.2, 0.1]
    return np.array(shares[: price_paths.TABLE_YEARS])


def use_path(text: str | None) -> Array:
    """Return how the use moves, by month."""
    return plans.use_by_month(text, _PATH_MONTHS)


def outlook(ends: Sequence[tuple[float, float]]) -> dict[str, Array]:
    """Return the 10th and 90th percentile of the rental price by month; the last horizon holds for later months."""
    months = np.arange(_PATH_MONTHS)
    anchors = [0, *HORIZONS_MONTHS[: len(ends)]]
    tables = {}
    for number, name in enumerate(("rent_low_by_month", "rent_high_by_month")):
        # between two horizons the price moves by the same share every month
        logs = np.interp(months, anchors, [0.0, *(np.log(end[number]) for end in ends)])
        tables[name] = np.exp(logs)
    return tables


def depreciated(case: OwnershipCase) -> Array:
    """Return the share that is deducted by the end of each year."""
    method = str(case.assumptions["depreciation_method"].value)
    macrs = [case.registry.fact(f"macrs5_halfyear.year_{year}")["typical"] for year in range(1, 7)]
    if case.special.get("depreciation_by_year"):
        shares = np.array(case.special["depreciation_by_year"][: price_paths.TABLE_YEARS])
        if abs(shares.sum() - 1) > 1e-6:
            raise UsageError(f"depreciation_by_year: the shares add up to {shares.sum():g}, not to 1.")
        listed = ", ".join(f"{100 * share:.3g}%" for share in shares)
        stated = case.assumptions["depreciation_method"]
        regime = case.special.get("tax_regime")
        note = f"{listed} in years 1 to {shares.size}" if shares.size > 1 else f"{listed} in year 1"
        note += f", tax regime {str(regime).lower()}" if regime else ""
        case.put(stated.name, value="by_year", status="given", note=note)
    elif method == "by_year":
        raise UsageError("depreciation_method = 'by_year' needs depreciation_by_year, the shares such as [0.5, 0.5].")
    elif method == "straight_line":
        shares = tax.straight_line(case.number("depreciation_years"))
    else:
        shares = np.array(macrs) if method == "macrs5" else tax.bonus(case.number("bonus_fraction"), macrs)
    booked = tax.depreciated_by_year(shares)
    return np.concatenate((booked, np.ones(max(2, 21 - booked.size))))  # 20 years and the start, all of it deducted


def _set_outlook(catalog: Catalog, case: OwnershipCase, inputs: Mapping[str, Given]) -> list[tuple[float, float]]:
    """Let the rental price move within the forward curve of the chip, whose changes fade, where nothing else is stated.

    Its middle is the price of today; the ends are what earlier chips did at that age. Return the ends by horizon.
    """
    if case.accelerator is None:
        return []
    provider = case.special.get("provider")
    kind = Providers(catalog.rows("providers")).kind(str(provider)) if provider else "cloud"
    ends = path_ends(catalog, case.accelerator.id, kind) or path_ends(catalog, case.accelerator.id)
    stated = {"rent_path_basis", "rent_decline_fraction"} & set(inputs)
    if stated or case.special.get("rent_path"):
        return ends
    if not ends:
        # No forward curve: the price moves as list prices of the chip's generation did, within what rents have shown.
        if case.assumptions["rent_path_basis"].value != "flat":
            return []
        chip = next(row for row in catalog.rows("accelerators") if row["id"] == case.accelerator.id)
        rows = {row["generation"]: row for row in catalog.rows("list_declines")}
        row = rows.get(str(chip["architecture"]).split()[0])
        if row is None or row["sellers"] < _FEWEST_SELLERS:
            row = rows[None]
        rents_moved = case.registry.fact("rental_price_decline")
        low, fall, high = (1 - row[f"{end}_ratio"] for end in ("high", "typical", "low"))
        whose = f"{row['generation']} at {row['sellers']}" if row["generation"] else f"all chips at {row['sellers']}"
        case.put(
            "rent_decline_fraction",
            value=fall,
            low=min(low, rents_moved["low"], fall),
            high=max(high, rents_moved["high"], fall),
            status="derived",
            source_id=rents_moved["source_id"],
            note=f"list prices of {whose} sellers moved by {_moved(fall)} a year ({_moved(high)} to {_moved(low)}); "
            f"the range also covers past market rents",
        )
        return []
    spread = ", ".join(
        f"{months} months {low - 1:+.0%} to {high - 1:+.0%}"
        for months, (low, high) in zip(HORIZONS_MONTHS, ends, strict=True)
    )
    case.put("rent_path_basis", value="forward", status="derived", note="gpucost prices forward")
    case.put(
        "rent_outlook_ratio",
        status="derived",
        note=f"forward curve of the chip: the price of today in the middle, 10th to 90th percentile after {spread}",
    )
    case.put("rent_decline_fraction", value=0.0, low=None, high=None, status="derived", note="the forward curve moves")
    return ends


def _moved(fall: float) -> str:
    """Write a fall of a price as its move; one that rounds to nothing has no sign.

    >>> _moved(0.004), _moved(0.25), _moved(-0.1)
    ('0%', '-25%', '+10%')
    """
    return f"{-fall:+.0%}" if round(100 * fall) else "0%"


def _set_path(case: OwnershipCase) -> Array:
    """Return the forward curve that is given, and let its first month be the price; no curve is flat."""
    special = case.special
    if special.get("rent_path") == "decline" and case.number("rent_decline_fraction") == 0:
        decline = case.registry.fact("rental_price_decline")
        newest = case.registry.fact(f"rental.{list(_V_ITEMS.values())[-1]}")
        case.put(
            "rent_decline_fraction",
            value=past_fall(case.registry),
            low=decline["low"],
            high=decline["high"],
            status="derived",
            source_id=newest["source_id"],
            note=FELL,
        )
    if case.assumptions["rent_path_basis"].value != "curve":
        return price_paths.flat(_PATH_MONTHS)
    if not special.get("rent_curve"):
        raise UsageError("rent_path = 'curve' needs rent_curve, a CSV with the columns month and usd_per_gpu_hour.")
    prices = price_paths.read_curve(str(special["rent_curve"]), _PATH_MONTHS)
    case.put("rent_usd_per_gpu_hour", value=float(prices[0]), status="given", note="first month of the curve")
    return np.asarray(prices / prices[0])


def past_fall(registry: Registry) -> float:
    """Return the yearly fall from the first price of H100 rent to the last: 8.00 in mid-2023, 2.65 in mid-2026."""
    first, last = (registry.fact(f"rental.{list(_V_ITEMS.values())[end]}")["typical"] for end in (0, -1))
    return float(1 - (last / first) ** (12 / max(_V_ITEMS)))


def observed_v(registry: Registry) -> Array:
    """Return the shape of H100 rental prices from mid-2023 (month 0) to mid-2026, as if it came again."""
    prices = [registry.fact(f"rental.{item}")["typical"] for item in _V_ITEMS.values()]
    return price_paths.through(list(_V_ITEMS), prices, _PATH_MONTHS)


def _set_rent(catalog: Catalog, case: OwnershipCase, inputs: Mapping[str, Given]) -> None:
    """Choose the rental price: as given, of the provider named, else of the first offer that one can order."""
    special, gpu = case.special, case.accelerator
    provider, gpus, node = special.get("provider"), int(case.number("gpus")), int(case.number("gpus_per_node"))
    if special.get("option") not in (None, "on_demand") and not provider:
        raise UsageError(
            f"--option {special['option']} names a price of a provider: add --provider, or leave it out for the "
            "first offer on demand."
        )
    # A price that is stated is not looked for; what follows it and stands beside it is.
    priced = "rent_usd_per_gpu_hour" in inputs or case.assumptions["rent_usd_per_gpu_hour"].value is not None
    if gpu is None and not priced:
        raise PriceMissingError("no rental price: give --rent 2.35, or name the accelerator with --gpu.")
    if gpu is None:
        return
    renter = offers.Renter(catalog, gpu, gpus, node, case.start)
    case.credits, case.as_of = catalog.credits, catalog.as_of
    case.fallback = offers.by_use(renter, provider)
    if priced:
        case.choices = offers.other_choices(renter, provider) if provider else []
        return
    if provider:
        choice = offers.rent_of_provider(renter, provider, special.get("region"), special.get("option"))
    else:
        choice = offers.market_rent(renter)
    case.choices = offers.other_choices(renter, provider, choice.offer)
    case.rent_offer, case.rented = choice.offer, choice
    case.put(
        "rent_usd_per_gpu_hour",
        value=choice.usd_per_gpu_hour,
        low=choice.low,
        high=choice.high,
        status=choice.status,
        source_id=choice.source_id,
        note=choice.note,
        observed=choice.observed_on,
    )
    for name, value in choice.changes().items():
        if name != "rent_usd_per_gpu_hour" and name not in inputs:
            case.put(name, value=value, status=choice.status, source_id=choice.source_id, observed=choice.observed_on)
    case.rent_after_note = choice.after_note


def _set_resale_range(case: OwnershipCase, inputs: Mapping[str, Given]) -> None:
    """Scale the shipped range of resale values at the end into a range of the scale."""
    if "residual_scale_ratio" in inputs or case.special.get("residual_by_year") or case.special.get("residual_curve"):
        return
    years = (case.months - case.number("lead_time_months")) / 12
    rows = [case.registry.fact(f"residual_value.year_{year}") for year in range(1, 7)]
    low, middle, high = (
        price_paths.value_at(price_paths.curve([row[key] for row in rows]), years) for key in ("low", "typical", "high")
    )
    if middle > 0:
        case.put(
            "residual_scale_ratio",
            value=1.0,
            low=low / middle,
            high=high / middle,
            status="sourced",
            source_id=rows[0]["source_id"],
            observed=str(rows[0].get("observed") or ""),
            note=f"resale at {years:.3g} years: {low:.2f}, {middle:.2f}, {high:.2f} of the price",
        )


def _check(case: OwnershipCase) -> None:
    """Refuse what cannot be priced, and say what looks odd."""
    basis = str(case.assumptions["server_price_basis"].value)
    needed = _PRICED_BY[basis]
    for name, flag in ((needed, "--set " + needed + "=280000"), ("server_max_kw", "--set server_max_kw=10.2")):
        if case.assumptions[name].value is None:
            raise PriceMissingError(f"{name} is not known for this accelerator. Give it: {flag}, or in the plan file.")
    for name, entry in case.assumptions.items():
        when = case.registry.conditions.get(name)
        if entry.counts and entry.value is None and when and name not in _MAY_LACK:
            raise UsageError(f"{name} is needed with {when}. Give it in the plan file or with --set.")
    if case.assumptions["income_basis"].value == "per_mtok" and case.assumptions["tokens_per_s_per_gpu"].value is None:
        raise UsageError(
            "income_basis = 'per_mtok' needs tokens_per_s_per_gpu, or a workload (--model with --tokens-per-month)."
        )
    if case.assumptions["financing"].value == "operating_lease" and case.number("refresh_month"):
        raise UsageError(
            "refresh: leased machines go back to the lessor. Leave refresh out, or choose another financing."
        )
    # the utilisation moves by the path of use: something must be used, and no more than there is
    used, path = case.number("utilisation_fraction"), case.tables["use_by_month"][: case.months]
    if used * path.max() < _LEAST_USE:
        raise UsageError(
            f"use_path: nothing is used in the {counted(case.months, 'month')} compared, so nothing is rented or owned."
            " Set a share above 0%, or compare more months."
        )
    if used * path.max() > 1 + 1e-9:
        raise UsageError(
            f"use_path: month {int(np.argmax(path)) + 1} uses {used * path.max():.0%} of the hours that exist: "
            f"{path.max():.0%} of a utilisation of {used:.0%}. Lower one of them, or own more GPUs."
        )
    per_use = case.assumptions["rent_billing"].value == "per_use"
    if per_use and case.number("rent_upfront_fraction") and np.ptp(path):
        raise UsageError("use_path: rent by use that is paid upfront needs a constant use. Leave one of them out.")
    idle = case.number("power_fraction_idle")
    busy = min(case.number("power_fraction_active"), case.number("power_cap_fraction"))
    if idle > busy:
        raise UsageError(
            f"power_fraction_idle: idle accelerators cannot draw more, {idle:.0%} of the rated maximum, than allocated"
            f" ones, {busy:.0%}. Lower it, or raise power_fraction_active and power_cap_fraction."
        )
    if 0 < case.number("rent_cap_ratio") < case.number("rent_floor_ratio"):
        raise UsageError(
            "rent_cap_ratio: the cap of the rental price is below its floor. Change rent_floor_ratio, or it."
        )
    if case.number("deposit_fraction") + case.number("retention_fraction") > 1:
        raise UsageError("deposit_fraction and retention_fraction: together they are more than the price.")
    if case.bent and (any(len(entry.get("parts") or ()) > 1 for entry in case.rent_options)):
        case.warnings.append("blends of rent are left out where losses are carried forward: their tax is no sum")
    rented = case.assumptions["rent_upfront_fraction"]
    offers.check_upfront({**case.values(), rented.name: max(case.number(rented.name), rented.high or 0.0)}, "rent")
    gpus, node = case.number("gpus"), case.number("gpus_per_node")
    if gpus % node and basis != "all_in":
        case.warnings.append(
            f"{gpus:,.15g} GPUs are not whole servers of {node:g}: "
            f"priced in proportion, while buying means {-(-gpus // node) * node:g}"
        )


# --- From a workload to utilisation and tokens per second: the one place where owning meets the physics.

_USUAL_UTILISATION = 0.7  # what replicas are sized for where nothing is said
MOST_NODES = 128  # clusters that are tried where none is given


# from (catalog, what was asked) to tokens per second and GPU when serving, and GPUs per server
ServingSpeed = Callable[["Catalog", Mapping[str, Any]], tuple[Given, float]]


def inputs_of(
    catalog: Catalog, workload: Mapping[str, Any], inputs: Mapping[str, Any], serving_speed: ServingSpeed
) -> dict[str, Given]:
    """Turn a workload into inputs: runs of training (model, tokens, runs_per_year), or tokens to serve per month."""
    # productive hours ÷ hours of the cluster: failures and restarts take the others
    goodput = _value(catalog, inputs, "goodput_fraction")
    if goodput is None:
        goodput = float(registry_of(catalog).fact("goodput_fraction")["typical"])
    if _value(catalog, inputs, "utilisation_fraction") == 0:
        raise UsageError("utilisation is 0: a workload needs hours to run in. Give the share that it may use at most.")
    if workload.get("tokens_per_month") is not None:
        return _served(catalog, workload, inputs, goodput, serving_speed)
    if not workload.get("tokens"):
        raise UsageError("a training workload needs --tokens and --runs-per-year beside --model.")
    return _trained(catalog, workload, inputs, goodput)


def _value(catalog: Catalog, inputs: Mapping[str, Any], name: str) -> float | None:
    """Return an input that was given, read as the comparison reads it; None where it was not."""
    value = as_given(inputs.get(name)).value
    return None if value is None else float(registry_of(catalog).number(name, value, "workload"))


def _served(
    catalog: Catalog,
    workload: Mapping[str, Any],
    inputs: Mapping[str, Any],
    goodput: float,
    serving_speed: ServingSpeed,
) -> dict[str, Given]:
    """Serve so many tokens a month: at a stated speed per GPU, else at the one that `serving_speed` finds."""
    tokens = parse_count(workload["tokens_per_month"], "tokens_per_month")
    inputs_of_load: dict[str, Given] = {}
    step, speed = 1.0, _value(catalog, inputs, "tokens_per_s_per_gpu")
    if speed is None:
        inputs_of_load["tokens_per_s_per_gpu"], step = serving_speed(catalog, workload)
        speed = float(inputs_of_load["tokens_per_s_per_gpu"].value)
    elif idle := next((name for name in ("prompt_tokens", "output_tokens") if workload.get(name) is not None), None):
        raise UsageError(
            f"{flag_of(idle)}: tokens_per_s_per_gpu is given, the speed for prompt and reply. Leave one out."
        )
    busy = float(busy_gpus(tokens, HOURS_PER_MONTH, np.array(speed), goodput))
    gpus, busy_fraction = _value(catalog, inputs, "gpus"), _value(catalog, inputs, "utilisation_fraction")
    if gpus is None:
        most = busy_fraction or _USUAL_UTILISATION
        gpus = whole_units(busy / most, step)
        inputs_of_load["gpus"] = Given(
            gpus, source=f"whole servers of {step:g} GPUs, at most {most:.0%} used", status="derived"
        )
    if busy / gpus > (most := busy_fraction or 1.0):
        raise UsageError(
            f"the load needs {busy / gpus:.0%} of {gpus:g} GPUs (asked: at most {most:.0%}): give at least"
            f" {whole_units(busy / most, step):g}, or a higher --utilisation."
        )
    how = "tokens per month ÷ (tokens per second × goodput)"
    return {**inputs_of_load, "utilisation_fraction": Given(busy / gpus, source=how, status="derived")}


def _trained(
    catalog: Catalog, workload: Mapping[str, Any], inputs: Mapping[str, Any], goodput: float
) -> dict[str, Given]:
    """Train so often a year: GPU-hours from the physics of the best layout, an open stack, end to end."""
    if not workload.get("gpu"):
        raise UsageError("a workload needs the accelerator: --gpu h100-sxm.")
    often = workload.get("runs_per_year")
    runs = 1.0 if often is None else float(often)
    if runs <= 0:
        raise UsageError(f"runs_per_year = {runs:g} must be positive. Leave it out for one run.")
    system = catalog.default_system(catalog.accelerator(str(workload["gpu"])).id)
    fixed = _value(catalog, inputs, "gpus")
    measured_speed = own_speed(
        workload.get("mfu"), _value(catalog, inputs, "tokens_per_s_per_gpu"), workload.get("step_time")
    )
    needs_gpus(measured_speed, fixed)
    tokens = parse_count(workload["tokens"], "--tokens")
    busy_fraction = _value(catalog, inputs, "utilisation_fraction") or 1.0
    architecture, key = catalog.architecture(str(workload["model"])), key_of(catalog, str(workload["gpu"]))

    def shares_of(counts: Any) -> tuple[Any, tuple[Any, Any, Any], Any]:
        """Return the share of the hours that each size of cluster uses, its speeds, and which of them suffice."""
        job, speeds = trained(
            catalog,
            architecture,
            [key] * counts.size,
            counts.astype(np.int64),
            tokens=tokens,
            own_speed=measured_speed,
        )
        if measured_speed is not None:
            check(measured_speed, [key.accelerator], float(counts[0]), step_work(job))
        speed = speeds.tokens_per_s_per_gpu
        share = busy_gpus(runs * tokens, HOURS_PER_YEAR, speed, goodput) / counts
        suffices = np.nonzero(np.isfinite(share) & (share <= busy_fraction))[0]
        return share, (speed, speeds.tokens_per_s_per_gpu_low, speeds.tokens_per_s_per_gpu_high), suffices

    servers = system.gpus * np.arange(1.0, MOST_NODES + 1)
    counts = np.array([fixed]) if fixed else servers
    share, (typical, low, high), fitting = shares_of(counts)
    if not fitting.size:
        finite = np.nonzero(np.isfinite(share))[0]
        # A number of GPUs that is too small is answered by the smallest that would do; a measured speed holds for one.
        enough = servers[shares_of(servers)[2]] if fixed and measured_speed is None else servers[:0]
        if not finite.size:
            raise NothingFitsError(
                f"the model fits none of {counts[0]:g} to {counts[-1]:g} GPUs. Take a larger --gpus."
            )
        best = int(finite[int(np.argmin(share[finite]))])
        more = f"give at least {enough[0]:g}" if enough.size else "give more --gpus"
        subject = f"the runs need {share[best]:.0%} of the hours of {counts[best]:g} GPUs"
        if counts.size > 1:
            subject = f"even {counts[best]:g} GPUs would be {share[best]:.0%} used"
        raise UsageError(
            f"{subject} (asked: at most {busy_fraction:.0%}): {more}, fewer runs or a higher --utilisation."
        )
    i = int(fitting[0])
    ends = sorted(min(float(share[i] * typical[i] / speed[i]), 1.0) for speed in (low, high))
    text = f"{runs:g} runs a year of {workload['model']} on {format_count(tokens)} tokens"
    text += "" if measured_speed is None else f", at your own speed ({measured_speed.flag})"
    return {
        "gpus": Given(float(counts[i]), source="given" if fixed else f"smallest cluster for {text}", status="derived"),
        "utilisation_fraction": Given(float(share[i]), ends[0], ends[1], text, "derived"),
        "tokens_per_s_per_gpu": Given(float(typical[i]), float(low[i]), float(high[i]), text, "derived"),
    }
