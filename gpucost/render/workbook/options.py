"""The Options and Sensitivity sheets of owning and renting: every option and every input's ends, recomputed live."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from gpucost.answers.ownership import interruptible
from gpucost.render.document import heading_of
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.calculations import CASES, Case, CaseBlock, FlowRows, plain, scalar_reference
from gpucost.render.workbook.live import LiveInput, LiveModel, Value, compute, needed

# --- Options: every option live, each against its closest rival, one of them picked.

NAME = "Options"
_PER_HOUR = "USD per GPU-hour"
# what a term of rent is made of, each a cell that may be changed: its column
_TERMS = {
    "rent_usd_per_gpu_hour": "price",
    "rent_billing": "billing",
    "rent_term_months": "term",
    "rent_upfront_fraction": "upfront",
}


class _OptionColumn(NamedTuple):
    """A column of the table: its heading, width and unit; `live` is a figure that follows, `shown` where it is read."""

    heading: str
    width: int
    unit: str = ""
    live: bool = False
    shown: bool = False


COLUMNS = {
    "option": _OptionColumn("option", 20),
    "words": _OptionColumn("meaning", 20),
    "price": _OptionColumn("price, USD per GPU-hour", 11, _PER_HOUR),
    "billing": _OptionColumn("billing", 11),
    "term": _OptionColumn("term, months", 9, "months"),
    "upfront": _OptionColumn("upfront", 10, "fraction of one"),
    "worth": _OptionColumn("present value", 14, "USD in whole", live=True, shown=True),
    "level": _OptionColumn("USD per GPU-hour, levelised", 12, _PER_HOUR, live=True, shown=True),
    "cash": _OptionColumn("cash", 14, "USD in whole", live=True, shown=True),
    "rival": _OptionColumn("closest rival", 17, live=True, shown=True),
    "saves": _OptionColumn("saves against it", 14, "USD in whole", live=True, shown=True),
    "at_price": _OptionColumn("break-even price", 10, _PER_HOUR, live=True, shown=True),
    "at_use": _OptionColumn("break-even use", 10, "fraction of one", live=True, shown=True),
    "wins": _OptionColumn("wins in the draws", 10, "fraction of one", live=True, shown=True),
    "p10": _OptionColumn("saves, P10", 15, "USD in whole", live=True, shown=True),
    "p50": _OptionColumn("saves, P50", 15, "USD in whole", live=True, shown=True),
    "p90": _OptionColumn("saves, P90", 15, "USD in whole", live=True, shown=True),
    "raw_price": _OptionColumn("break-even price, also below nothing", 16, _PER_HOUR, live=True),
    "rival_use": _OptionColumn("rival moves with use", 16, "USD in whole", live=True),
    "raw_use": _OptionColumn("break-even use, also above all", 16, live=True),
    "by_price": _OptionColumn("moves with price", 16, "USD in whole", live=True),
    "by_use": _OptionColumn("moves with use", 16, "USD in whole", live=True),
    "rival_worth": _OptionColumn("rival's value", 16, "USD in whole", live=True),
}
PLACES = {name: place for place, name in enumerate(COLUMNS)}
WIDTHS = tuple(column.width for column in COLUMNS.values())
_OWNING = ("own", "own_in_cash")
_FALLEN = "_then_rent"
_MOVES = "rent_moves_usd"
_INSTRUCTIONS = (
    "Pick an option to see its break-even and odds against the cheapest other option that is not interruptible. "
    "Prices and terms may be changed; the odds come from the simulation as delivered."
)


class _CasePart(NamedTuple):
    """A part of an option: how often it counts, and its case; no case is the rent as asked."""

    weight: float
    case: int | None


class RentOptions(CaseBlock):
    """Every way to rent of one comparison, recomputed live."""

    def __init__(self, model: LiveModel, base: Mapping[str, Any], flows: FlowRows, name: str) -> None:
        self.base, self.name = base, name
        # owning first and what is nobody's rival last, so that rivals are one block of rows
        order = {"own": 0, "own_in_cash": 2}
        self.rows_of: list[Mapping[str, Any]] = sorted(
            model.ways, key=lambda row: order.get(row["name"], 3 if interruptible(row) else 1)
        )
        self.rivals = [row for row in self.rows_of if row["name"] != "own_in_cash" and not interruptible(row)]
        self.legs: dict[str, list[_CasePart]] = {}
        cases: list[Case] = []
        for row in self.rows_of:
            self.legs[row["name"]] = legs = []
            for number, leg in enumerate(row.get("legs") or ()):
                if not leg["changes"]:
                    legs.append(_CasePart(leg["weight"], None))
                    continue
                legs.append(_CasePart(leg["weight"], len(cases)))
                # A leg's terms are cells of the Options sheet; one that falls back ends with its last whole term.
                at, cells = _FIRST + self.parent(row), {}
                if number == 0:
                    cells = {key: self._cell(at, column) for key, column in _TERMS.items() if key in leg["changes"]}
                if "months" in leg["changes"]:
                    months, term = model.cell_name("months"), self._cell(at, "term")
                    cells["months"] = f"INT({months}/{term})*{term}"
                cases.append(Case(f"{row['name']} {number + 1}", leg["changes"], compute(model, leg["changes"]), cells))
        super().__init__(model, cases, ("npv_rent_usd", _MOVES), flows)

    def parent(self, row: Mapping[str, Any]) -> int:
        """Return the place of an option, or of the one that it falls back from."""
        names = [entry["name"] for entry in self.rows_of]
        parent = str(row["name"]).removesuffix(_FALLEN)
        return names.index(parent if parent in names else row["name"])

    def _cell(self, row: int, column: str) -> str:
        return f"'{self.name}'!{_at(row, column)}"


_FIRST = 18  # row of the first option: below the title, the pick and what is said of it


def _at(row: int, column: str) -> str:
    return address(row, PLACES[column], fixed=True)


def place_of(ways: "RentOptions", name: str, column: str = "worth") -> str:
    """Return where a figure of an option stands."""
    return _at(_FIRST + [row["name"] for row in ways.rows_of].index(name), column)


def _span(first: int, last: int, column: str) -> str:
    return f"{_at(first, column)}:{_at(last, column)}"


def write(book: Workbook, sheet: Sheet, ways: RentOptions) -> tuple[int, int]:
    """Write the options of one comparison; return the first and last row of the table."""
    model = ways.model
    sheet.title("Options")
    sheet.paragraph(_INSTRUCTIONS, 8)
    # the cheapest is picked as delivered; its figures stand above the table, and follow another pick
    best = min(ways.rivals, key=lambda row: row["npv_usd"])
    last = _FIRST + len(ways.rows_of) - 1
    picked = sheet.row(Cell("option picked", "head"), Cell(best["name"], "input"))
    listed = _span(_FIRST, last, "option")
    sheet.page.data_validation(picked, 1, picked, 1, {"validate": "list", "source": f"={listed}"})
    book.define(model.cell_name("option_picked"), ways.name, picked, 1)
    figures = _figures(ways)
    at = ways.rows_of.index(best)
    for name, column in COLUMNS.items():
        if column.shown:
            text = f"INDEX({_span(_FIRST, last, name)},MATCH({address(picked, 1, fixed=True)},{listed},0))"
            value = figures[at][name]
            live_cell = Cell(Formula(text, "none" if value is None else value), "answer", column.unit)
            sheet.row(Cell(column.heading, "wrap"), live_cell)
    sheet.next_row = _FIRST - 1
    sheet.heading(*(column.heading for column in COLUMNS.values()))
    for index, row in enumerate(ways.rows_of):
        # price and terms: cells to change where the option states them, else those that it takes over
        terms = [Cell(None)] * len(_TERMS)
        if row.get("usd_per_gpu_hour") is not None:
            changes, parent = row["legs"][0]["changes"], ways.parent(row)
            states_them = ways.rows_of[parent] is row
            terms = []
            for name, term_column in _TERMS.items():
                stored, unit = changes.get(name, model.starting_values()[name]), COLUMNS[term_column].unit
                if states_them and name in changes:
                    terms.append(Cell(stored, "input", unit))
                else:
                    text = model.cell_name(name) if states_them else address(_FIRST + parent, PLACES[term_column])
                    terms.append(Cell(Formula(text, stored), "plain", unit))
        texts = _texts(ways, index, last)
        cells = []
        for name, column in COLUMNS.items():
            if column.live:
                value = "none" if figures[index][name] is None else figures[index][name]
                cell = Formula(texts[name], value) if name in texts else value
                cells.append(Cell(cell, "answer" if name == "worth" else "plain", column.unit))
        sheet.row(Cell(row["name"]), Cell(row["terms"], "wrap"), *terms, *cells)
    sheet.row(
        Cell(
            "The break-even price is that of the option, or of its rival where it has none. Spot is not a rival.",
            "note",
        )
    )
    printed = sheet.next_row - 1
    # of which layer each rental price is: the list, a contract, and what is left when credits have paid
    sheet.skip()
    sheet.row(Cell("Layers of the rental prices, USD per GPU-hour, as delivered", "heading"))
    sheet.heading("option", "layer", "list", "contracted", "used", "effective")
    for row in ways.rows_of:
        price, kind = row.get("usd_per_gpu_hour"), row.get("price_kind")
        if price is None:
            continue
        list_usd = row.get("list_usd_per_gpu_hour", price if kind == "list" else None)
        prices = (list_usd, row.get("contracted_usd_per_gpu_hour"), price, row.get("effective_usd_per_gpu_hour", price))
        layer = f"{kind}, from the {row.get('price_book')} price book" if kind else row.get("note")
        layer = layer or "stated with the question"
        sheet.row(row["name"], Cell(layer, "wrap"), *(Cell(figure, "plain", _PER_HOUR) for figure in prices))
    _write_legs(book, sheet, ways)
    # intermediate results that the columns beside them read
    folded = PLACES["raw_price"], PLACES["rival_worth"]
    sheet.page.set_column(*folded, WIDTHS[-1], None, {"level": 1, "hidden": True})
    sheet.page.print_area(0, 0, printed, PLACES["wins"])  # the range of the option picked stands above
    return _FIRST, last


def _figures(ways: RentOptions) -> list[dict[str, Any]]:
    """Return what Python found for the cells of every option, by column."""
    base = ways.base
    figures: list[dict[str, Any]] = []
    for row in ways.rows_of:
        rival: Mapping[str, Any] = row.get("rival") or {}
        legs = [
            (leg.weight, base if leg.case is None else ways.cases[leg.case].values) for leg in ways.legs[row["name"]]
        ]
        moves = [weight * _worth(values, _MOVES) for weight, values in legs]
        # take or pay: the hours are owed whether they are used or not
        by_use = sum(
            0.0 if values["rent_billing"] == "take_or_pay" else move
            for move, (_, values) in zip(moves, legs, strict=True)
        )
        if not legs:  # owning moves with use by its energy; a hosted API by all that it costs
            by_use = _worth(base, "own_moves_with_use_usd") if row["name"] in _OWNING else row["npv_usd"]
        figures.append(
            {
                **dict.fromkeys(("raw_price", "rival_use", "raw_use")),
                "worth": row["npv_usd"],
                "level": row["levelised_usd_per_gpu_hour"],
                "cash": row["cash_usd"],
                "rival": rival.get("name"),
                "saves": rival.get("saving_usd"),
                "at_price": rival.get("breakeven_usd_per_gpu_hour"),
                "at_use": rival.get("breakeven_utilisation_fraction"),
                "wins": rival.get("probability_wins_fraction"),
                **{share: rival.get(f"saving_{share}_usd") for share in ("p10", "p50", "p90")},
                "by_price": moves[0] if moves and row.get("usd_per_gpu_hour") is not None else 0.0,
                "by_use": float(by_use),
                "rival_worth": row["npv_usd"] + rival.get("saving_usd", 0.0),
            }
        )
    # Then where an option and its rival cost the same, before it is asked whether that can be: −1 where nowhere.
    used = float(ways.model.starting_values()["utilisation_fraction"] or 0)
    own_moves = _worth(ways.base, "own_moves_with_price_usd")
    by_name = {row["name"]: (row, figure) for row, figure in zip(ways.rows_of, figures, strict=True)}
    for row, figure in by_name.values():
        rival, of_rival = by_name[figure["rival"]]
        ahead = figure["worth"] - figure["rival_worth"]
        # the price that moves is the option's own, else that of its rival
        priced, figured, less = row, figure, ahead
        if row.get("usd_per_gpu_hour") is None:
            priced, figured, less = rival, of_rival, -ahead
        slope = figured["by_price"]
        # rent as asked is at the market price, at which owning rents too until its cluster works
        others = {row["name"], rival["name"]} - {priced["name"]}
        if priced["name"] == "rent" and others <= set(_OWNING):
            slope -= own_moves
        price = float(priced.get("usd_per_gpu_hour") or 0)
        figure["raw_price"] = price * (1 - less / slope) if slope else -1.0
        figure["rival_use"] = of_rival["by_use"]
        moved = figure["by_use"] - of_rival["by_use"]
        figure["raw_use"] = used * (1 - ahead / moved) if moved else -1.0
    return figures


def _worth(values: Mapping[str, Any], name: str) -> float:
    """Return the present value of a monthly line."""
    return float((values[name] * values["discount_ratio"]).sum())


def _texts(ways: RentOptions, index: int, last: int) -> dict[str, str]:
    """Return the formulas of an option's row, by column."""
    # the rivals of an option: owning and all rent that is not interruptible; owning in cash is not its own rival
    model, row = ways.model, ways.rows_of[index]
    cells = {column: _at(_FIRST + index, column) for column in COLUMNS}
    low, high = (_FIRST + (row["name"] == "own_in_cash"), _FIRST + len(ways.rivals) - 1)

    def span(column: str) -> str:
        return _span(low, high, column)

    def of_rival(column: str) -> str:
        return f"INDEX({span(column)},MATCH({cells['rival_worth']},{span('worth')},0))"

    # the closest rival is the cheapest of the others: of an option that is itself among them the second, if it leads
    worth, rival_worth = cells["worth"], cells["rival_worth"]
    rival = f"MIN({span('worth')})"
    if row in ways.rivals:
        rival = f"IF({worth}={rival},SMALL({span('worth')},2),{rival})"
    # The price at which both cost the same, on the straight line through the price now: price × (1 − lead ÷ slope).
    # It is that of the option, else of its rival; where the market price moves what owning costs, too, by both slopes.
    factors = (scalar_reference(model, ways.flows, name) for name in ("own_moves_with_price_usd", "discount_ratio"))
    own_slope = f"SUMPRODUCT({','.join(factors)})"
    if row.get("usd_per_gpu_hour") is not None:
        price, lead, slope = cells["price"], f"{worth}-{rival_worth}", cells["by_price"]
        if row["name"] == "rent":
            slope = f'({slope}-IF(LEFT({cells["rival"]},3)="own",{own_slope},0))'
    else:
        price, lead, slope = of_rival("price"), f"{rival_worth}-{worth}", of_rival("by_price")
        if row["name"] in _OWNING:
            slope = f'({slope}-IF({cells["rival"]}="rent",{own_slope},0))'
    # the same for use; what is owned, or owed, costs as much whether used or not, and no use above all hours exists
    own_use, rival_use, raw_use = cells["by_use"], cells["rival_use"], cells["raw_use"]
    owned = "TRUE" if row["name"] in _OWNING else f'LEFT({cells["rival"]},3)="own"'
    straight = f'OR({model.cell_name("tax_basis")}="before",{model.cell_name("loss_basis")}="at_once")'
    use_ratio = f"(1-({worth}-{rival_worth})/({own_use}-{rival_use}))"
    valid = f"{straight},NOT(AND({owned},OR({own_use}=0,{rival_use}=0))),{raw_use}>0,{raw_use}<=1"
    return {
        **_values(ways, row),
        "level": f"{worth}/({model.cell_name('discounted_gpu_hours')}*{model.cell_name('after_tax_ratio')})",
        "rival_worth": rival,
        "rival": of_rival("option"),
        "saves": f"{rival_worth}-{worth}",
        "raw_price": f"IFERROR({price}*(1-({lead})/{slope}),-1)",
        "at_price": f'IF(AND({straight},{cells["raw_price"]}>0),{cells["raw_price"]},"none")',
        "rival_use": of_rival("by_use"),
        "raw_use": f"IFERROR({model.cell_name('utilisation_fraction')}*{use_ratio},-1)",
        "at_use": f'IF(AND({valid}),{raw_use},"none")',
    }


def _values(ways: RentOptions, row: Mapping[str, Any]) -> dict[str, str]:
    """Return present value, cash, and what moves with price and use."""
    model, flows = ways.model, ways.flows
    discount = scalar_reference(model, flows, "discount_ratio")
    if row["name"] in _OWNING:
        worth, cash = "npv_own_in_cash_usd", "own_in_cash_usd"
        if row["name"] == "own":
            worth, cash = "npv_own_usd", "own_total_usd"
        moves = f"SUMPRODUCT({scalar_reference(model, flows, 'own_moves_with_use_usd')},{discount})"
        return {
            "worth": model.cell_name(worth),
            "cash": f"SUM({scalar_reference(model, flows, cash)})",
            "by_price": "0",
            "by_use": moves,
        }
    legs = ways.legs[row["name"]]
    if not legs:  # a hosted API is paid by the token: hours × 3600 s × tokens a second ÷ a million × price
        hours = "*".join(
            model.cell_name(name)
            for name in (
                "productive_gpu_hours_per_month",
                "tokens_per_s_per_gpu",
                "api_usd_per_mtok",
                "after_tax_ratio",
            )
        )
        use = scalar_reference(model, flows, "in_use")
        worth = f"{hours}*3600/1000000*SUMPRODUCT({use},{discount})"
        return {"worth": worth, "cash": f"{hours}*3600/1000000*SUM({use})", "by_price": "0", "by_use": worth}

    return {key: of_legs(model, row["name"], key) for key in ("worth", "cash", "by_price", "by_use")}


_LEGS = ("worth", "cash", "by_price", "by_use", "year", "start")  # figures of a leg, each × its weight
_LEG_HEADS = ("present value", "cash", "moves with price", "moves with use", "cash of the first year", "at the start")


def of_legs(model: LiveModel, name: str, key: str) -> str:
    """Add up a figure of the legs of an option."""
    return f'SUMIF({model.cell_name("leg_option")},"{name}",{model.cell_name(f"leg_{key}")})'


def _write_legs(book: Workbook, sheet: Sheet, ways: RentOptions) -> None:
    """Write what each part of an option comes to, by how often it counts: the options add them up."""
    model, base = ways.model, ways.base
    sheet.skip()
    sheet.row(Cell("Parts of the ways to rent", "heading"))
    sheet.heading("option", "part", "weight", *_LEG_HEADS)
    first = sheet.next_row
    months = scalar_reference(model, ways.flows, "m")
    until = f'"<="&{model.cell_name("year_months")}'
    year = min(12, int(float(model.starting_values()["months"] or 0)))
    for row in ways.rows_of:
        for number, leg in enumerate(ways.legs[row["name"]]):
            values = base if leg.case is None else ways.cases[leg.case].values
            rate = _line_of(ways, leg.case, "discount_ratio")
            paid = _line_of(ways, leg.case, "rent_total_usd")
            moves = f"SUMPRODUCT({_line_of(ways, leg.case, _MOVES)},{rate})"
            names = (
                model.cell_name(name) if leg.case is None else ways.scalar(leg.case, name, CASES)
                for name in ("npv_rent_usd", "rent_billing")
            )
            worth, billing = names
            priced = number == 0 and row.get("usd_per_gpu_hour") is not None
            moved = _worth(values, _MOVES)
            cash = values["rent_total_usd"]
            fixed = values["rent_billing"] == "take_or_pay"
            texts = {
                "worth": (worth, float(values["npv_rent_usd"])),
                "cash": (f"SUM({paid})", float(cash.sum())),
                "by_price": (moves, moved) if priced else ("0", 0.0),
                "by_use": (f'IF({billing}="take_or_pay",0,{moves})', 0.0 if fixed else moved),
                "year": (f"SUMIF({months},{until},{paid})", float(cash[: year + 1].sum())),
                "start": (f"INDEX({paid},1)", float(cash[0])),
            }
            weight = address(sheet.next_row, 2)
            sheet.row(
                row["name"],
                str(number + 1),
                Cell(leg.weight, "shade"),
                *(
                    Cell(Formula(f"{weight}*{text}", leg.weight * value), "plain", "USD in whole")
                    for text, value in texts.values()
                ),
            )
    last = max(sheet.next_row - 1, first)
    book.define(model.cell_name("leg_option"), ways.name, first, 0, last)
    for column, key in enumerate(_LEGS, 3):
        book.define(model.cell_name(f"leg_{key}"), ways.name, first, column, last)


def _line_of(ways: RentOptions, case: int | None, name: str) -> str:
    return scalar_reference(ways.model, ways.flows, name) if case is None else ways.line(case, name)


# --- Sensitivity: each input at its low and high end, recomputed by live formulas.
#
# The Cases sheet holds the calculation once per case (one column a case); where the model has monthly lines, the Case
# flows sheet holds those that a case moves, one block a case.

SENSITIVITY = "Sensitivity"
_MOST_INPUTS, _MOST_INPUTS_MONTHLY = 10, 6  # inputs that move the answer most; monthly lines are many cells a case
_HEADINGS = (
    "input",
    "meaning",
    "unit",
    "low",
    "high",
    *(f"answer at {at}" for at in ("low", "base", "high")),
    "low − base",
    "high − base",
)
LABELS, CHANGES = 1, (8, 9)  # columns of a chart's names and bars


class _InputSwing(Struct, frozen=True):
    """What one input does to the answer."""

    entry: LiveInput
    low: Case
    high: Case
    width: float


def spans(model: LiveModel) -> list[_InputSwing]:
    """Recompute the answer at both ends of every input that has them, widest first."""
    spans = []
    reached = needed(model, model.answer)
    for entry in model.inputs:
        if entry.low is None or entry.high is None or entry.low == entry.high or entry.name not in reached:
            continue
        # the whole model is evaluated at both ends, since one cannot tell beforehand which inputs move it most
        cases = [
            Case(f"{heading_of(entry.name)}, {end}", {entry.name: value}, compute(model, {entry.name: value}))
            for end, value in (("low", entry.low), ("high", entry.high))
        ]
        width = abs(float(cases[1].values[model.answer]) - float(cases[0].values[model.answer]))
        if width > 0:  # also leaves out what is not a number
            spans.append(_InputSwing(entry, cases[0], cases[1], width))
    return sorted(spans, key=lambda span: (-span.width, span.entry.name))


def scenarios(model: LiveModel, spans: list[_InputSwing]) -> Mapping[str, Mapping[str, Value]]:
    """Return what each scenario changes: as the answer states it, else every input's better or worse end."""
    if model.scenarios is not None:
        return model.scenarios
    # every input at the end that helps, and every one at the end that hurts: further than any real case, on purpose
    better, worse = {}, {}
    for span in spans:
        low, high = (float(case.values[model.answer]) for case in (span.low, span.high))
        ends = (span.entry.low, span.entry.high)
        better[span.entry.name], worse[span.entry.name] = ends if (low < high) == model.lower_is_better else ends[::-1]
    return {"favourable": better, "adverse": worse}


class SensitivityCases(CaseBlock):
    """The recomputation of one model at the ends of the inputs that move its answer most."""

    def __init__(self, model: LiveModel, spans: list[_InputSwing], base: Mapping[str, Any], flows: FlowRows) -> None:
        self.spans = spans[: _MOST_INPUTS_MONTHLY if model.monthly else _MOST_INPUTS]
        ends = [case for span in self.spans for case in (span.low, span.high)]
        super().__init__(model, [Case("base", {}, base), *ends], [model.answer], flows)

    def answer(self, case: int) -> Cell:
        """Return a cell that shows the answer of one case."""
        line = self.model.line(self.model.answer)
        value = plain(self.cases[case].values[line.name])
        return Cell(Formula(self.scalar(case, line.name, CASES), value), "plain", line.measure)


def write_sensitivity(sheet: Sheet, blocks: list[SensitivityCases]) -> dict[str, tuple[int, int]]:
    """Write the Sensitivity sheet; return for each model the first and last row of its table, for the chart."""
    sheet.title("Sensitivity")
    sheet.row(
        "Each input alone at its low and high end, recomputed live (sheet Cases). The ends come from the inputs' "
        "sources, as delivered."
    )
    places = {}
    for block in blocks:
        line = block.model.line(block.model.answer)
        sheet.skip()
        sheet.row(Cell(f"{block.model.title}: {line.description or line.name} ({line.measure})", "heading"))
        sheet.heading(*_HEADINGS)
        first = sheet.next_row
        for number, span in enumerate(block.spans):
            row = sheet.next_row
            cells = [block.answer(2 * number + 1), block.answer(0), block.answer(2 * number + 2)]
            low, base, high = (plain(cell.value.value) for cell in cells)
            unit = span.entry.unit
            sheet.row(
                heading_of(span.entry.name),
                Cell(span.entry.description or span.entry.name.replace("_", " "), "wrap"),
                unit,
                Cell(span.entry.low, "plain", unit),
                Cell(span.entry.high, "plain", unit),
                *cells,
                Cell(Formula(f"{address(row, 5)}-{address(row, 6)}", low - base), "plain", line.measure),
                Cell(Formula(f"{address(row, 7)}-{address(row, 6)}", high - base), "plain", line.measure),
            )
        if block.spans:
            places[block.model.key] = (first, sheet.next_row - 1)
        else:
            sheet.row("No input has stated ends.")
    return places
