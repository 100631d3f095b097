"""The Options sheet of owning and renting: every option live, each against its closest rival, one of them picked."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.calculations import Rows, scalar_reference
from gpucost.render.workbook.cases import CASES, Case, Cases
from gpucost.render.workbook.live import LiveModel, compute

NAME = "Options"
# what a term of rent is made of, each a cell that may be changed
_TERMS = {"rent_usd_per_gpu_hour": "USD per GPU-hour", "rent_billing": "", "rent_term_months": "months",
          "rent_upfront_fraction": "fraction of one"}  # fmt: skip
_HEADS = ("option", "what it is", "price, USD per GPU-hour", "billing", "term, months", "upfront", "present value",
          "USD per GPU-hour, levelised", "cash", "closest rival", "saves against it", "break-even price",
          "break-even use", "wins in the draws", "saves, P5", "saves, P50", "saves, P95", "moves with price",
          "moves with use", "rival's value")  # fmt: skip
(_OPTION, _WORDS, _PRICE, _BILLING, _TERM, _UPFRONT, WORTH, _LEVEL, _CASH, _RIVAL, _SAVES, _AT_PRICE, _AT_USE, _WINS,
 _P5, _P50, _P95, _BY_PRICE, _BY_USE, _RIVAL_WORTH) = range(len(_HEADS))  # fmt: skip
WIDTHS = (26, 32, 12, 13, 10, 10, 16, 14, 16, 24, 16, 12, 11, 11, 15, 15, 15, 16, 16, 16)
_SHOWN = (WORTH, _LEVEL, _CASH, _RIVAL, _SAVES, _AT_PRICE, _AT_USE, _WINS, _P5, _P50, _P95)
_UNITS = {_PRICE: "USD per GPU-hour", WORTH: "USD in whole", _LEVEL: "USD per GPU-hour", _CASH: "USD in whole",
          _SAVES: "USD in whole", _AT_PRICE: "USD per GPU-hour", _AT_USE: "fraction of one", _WINS: "fraction of one",
          _P5: "USD in whole", _P50: "USD in whole", _P95: "USD in whole", _BY_PRICE: "USD in whole",
          _BY_USE: "USD in whole", _RIVAL_WORTH: "USD in whole", _UPFRONT: "fraction of one"}  # fmt: skip
_OWN = ("own", "own_in_cash")
_FALLEN = "_then_rent"
_MOVES = "rent_moves_usd"
_HOW = (
    "Pick an option: its break-even and its odds follow, against the cheapest of the others that can be counted on. "
    "Prices and terms of the options may be changed; the odds are those of the draws as delivered."
)


class Leg(NamedTuple):
    """A part of an option: how often it counts, and its case; no case is the rent as asked."""

    weight: float
    case: int | None


class Ways(Cases):
    """Every way to rent of one comparison, recomputed live."""

    def __init__(self, model: LiveModel, base: Mapping[str, Any], flows: Rows, name: str) -> None:
        self.base, self.name = base, name
        self.rows_of = _ordered(model.ways)
        self.rivals = [row for row in self.rows_of if row["name"] != "own_in_cash" and not _spot(row)]
        self.legs: dict[str, list[Leg]] = {}
        cases: list[Case] = []
        for row in self.rows_of:
            self.legs[row["name"]] = legs = []
            for number, leg in enumerate(row.get("legs") or ()):
                if not leg["changes"]:
                    legs.append(Leg(leg["weight"], None))
                    continue
                legs.append(Leg(leg["weight"], len(cases)))
                cells = self._cells(model, row, leg["changes"], number)
                cases.append(Case(f"{row['name']} {number + 1}", leg["changes"], compute(model, leg["changes"]), cells))
        super().__init__(model, cases, ("npv_rent_usd", _MOVES), flows)

    def _cells(
        self, model: LiveModel, row: Mapping[str, Any], changes: Mapping[str, Any], number: int
    ) -> dict[str, str]:
        """Return where a leg's terms stand on the Options sheet; what falls back ends with its last whole term."""
        at = _FIRST + self.parent(row)
        cells = {}
        if number == 0:
            listed = enumerate(_TERMS)
            cells = {name: self._cell(at, _PRICE + place) for place, name in listed if name in changes}
        if "months" in changes:
            months, term = model.cell_name("months"), self._cell(at, _TERM)
            cells["months"] = f"INT({months}/{term})*{term}"
        return cells

    def parent(self, row: Mapping[str, Any]) -> int:
        """Return the place of an option, or of the one that it falls back from."""
        names = [entry["name"] for entry in self.rows_of]
        parent = str(row["name"]).removesuffix(_FALLEN)
        return names.index(parent if parent in names else row["name"])

    def _cell(self, row: int, column: int) -> str:
        return f"'{self.name}'!{address(row, column, fixed=True)}"


_FIRST = 18  # row of the first option: below the title, the pick and what is said of it


def _ordered(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Put owning first and what is nobody's rival last, so that rivals are one block."""
    place = {"own": 0, "own_in_cash": 2}
    return sorted(rows, key=lambda row: place.get(row["name"], 3 if _spot(row) else 1))


def _spot(row: Mapping[str, Any]) -> bool:
    return str(row["name"]).startswith("spot")


def write(book: Workbook, sheet: Sheet, ways: Ways) -> tuple[int, int]:
    """Write the options of one comparison; return the first and last row of the table."""
    model = ways.model
    sheet.title("Options")
    sheet.paragraph(_HOW, 8, 130)
    best = min(ways.rivals, key=lambda row: row["npv_usd"])
    last = _FIRST + len(ways.rows_of) - 1
    picked = sheet.row(Cell("option picked", "head"), Cell(best["name"], "input"))
    listed = f"={address(_FIRST, _OPTION, fixed=True)}:{address(last, _OPTION, fixed=True)}"
    sheet.page.data_validation(picked, 1, picked, 1, {"validate": "list", "source": listed})
    book.define(model.cell_name("option_picked"), ways.name, picked, 1)
    found = _figures(ways)
    at = ways.rows_of.index(best)
    for column in _SHOWN:
        span = f"{address(_FIRST, column, fixed=True)}:{address(last, column, fixed=True)}"
        text = f"INDEX({span},MATCH({address(picked, 1, fixed=True)},{listed[1:]},0))"
        value = found[at][column]
        shown = Cell(Formula(text, "none" if value is None else value), "answer", _UNITS.get(column, ""))
        sheet.row(Cell(_HEADS[column], "plain"), shown)
    sheet.next_row = _FIRST - 1
    sheet.heading(*_HEADS)
    for place, row in enumerate(ways.rows_of):
        _line(sheet, ways, place, row, found[place], last)
    sheet.row(
        Cell("Prices are those of the option, or of its rival where it has none. Spot is nobody's rival.", "note")
    )
    _layers(sheet, ways.rows_of)
    sheet.page.set_column(_BY_PRICE, _RIVAL_WORTH, WIDTHS[-1], None, {"level": 1, "hidden": True})
    sheet.page.print_area(0, 0, sheet.next_row, _P95)
    return _FIRST, last


def _layers(sheet: Sheet, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write of which layer each rental price is: the list, a contract, and what is left when credits have paid."""
    sheet.skip()
    sheet.row(Cell("Layers of the rental prices, USD per GPU-hour, as delivered", "heading"))
    sheet.heading("option", "layer", "list", "contracted", "used", "effective")
    for row in rows:
        used = row.get("usd_per_gpu_hour")
        if used is None:
            continue
        kind, book = row.get("price_kind"), row.get("price_book")
        listed = row.get("list_usd_per_gpu_hour", used if kind == "list" else None)
        figures = (listed, row.get("contracted_usd_per_gpu_hour"), used, row.get("effective_usd_per_gpu_hour", used))
        words = f"{kind}, of the book {book}" if kind else row.get("note") or "stated with the question"
        sheet.row(row["name"], Cell(words, "wrap"), *(Cell(figure, "plain", _UNITS[_PRICE]) for figure in figures))


def _line(sheet: Sheet, ways: Ways, place: int, row: Mapping[str, Any], found: list[Any], last: int) -> None:
    texts = _texts(ways, place, last)
    cells = [Cell(row["name"]), Cell(row["terms"], "wrap"), *_terms(ways, row)]
    for column in range(WORTH, len(_HEADS)):
        value = "none" if found[column] is None else found[column]
        shown = Formula(texts[column], value) if column in texts else value
        cells.append(Cell(shown, "answer" if column == WORTH else "plain", _UNITS.get(column, "")))
    sheet.row(*cells)


def _terms(ways: Ways, row: Mapping[str, Any]) -> list[Cell]:
    """Return price and terms: cells to change where the option states them, else those that it takes over."""
    if row.get("usd_per_gpu_hour") is None:
        return [Cell(None)] * len(_TERMS)
    changes, parent = row["legs"][0]["changes"], ways.parent(row)
    own = ways.rows_of[parent] is row
    cells = []
    for place, (name, unit) in enumerate(_TERMS.items()):
        stored = changes.get(name, ways.model.starting_values()[name])
        if own and name in changes:
            cells.append(Cell(stored, "input", unit))
        else:
            text = ways.model.cell_name(name) if own else address(_FIRST + parent, _PRICE + place)
            cells.append(Cell(Formula(text, stored), "plain", unit))
    return cells


def _figures(ways: Ways) -> list[list[Any]]:
    """Return what Python found for the cells of every option, by column."""
    base = ways.base
    found: list[list[Any]] = []
    for row in ways.rows_of:
        rival: Mapping[str, Any] = row.get("rival") or {}
        figures: list[Any] = [None] * len(_HEADS)
        legs = [
            (leg.weight, base if leg.case is None else ways.cases[leg.case].values) for leg in ways.legs[row["name"]]
        ]
        moves = [weight * _worth(values, _MOVES) for weight, values in legs]
        by_use = sum(0.0 if values["rent_billing"] == "take_or_pay" else move
                     for move, (_, values) in zip(moves, legs, strict=True))  # fmt: skip
        if not legs:
            by_use = _worth(base, "own_moves_with_use_usd") if row["name"] in _OWN else row["npv_usd"]
        figures[WORTH:] = [
            row["npv_usd"], row["levelised_usd_per_gpu_hour"], row["cash_usd"], rival.get("name"),
            rival.get("saving_usd"), rival.get("breakeven_usd_per_gpu_hour"),
            rival.get("breakeven_utilisation_fraction"), rival.get("probability_wins_fraction"),
            rival.get("saving_p5_usd"), rival.get("saving_p50_usd"), rival.get("saving_p95_usd"),
            moves[0] if moves and row.get("usd_per_gpu_hour") is not None else 0.0, float(by_use),
            row["npv_usd"] + rival.get("saving_usd", 0.0),
        ]  # fmt: skip
        found.append(figures)
    return found


def _worth(values: Mapping[str, Any], name: str) -> float:
    return float((values[name] * values["discount_ratio"]).sum())


def _texts(ways: Ways, place: int, last: int) -> dict[int, str]:
    """Return the formulas of an option's row, by column."""
    model, row = ways.model, ways.rows_of[place]
    here = {column: address(_FIRST + place, column, fixed=True) for column in range(len(_HEADS))}
    low, high = (_FIRST + (row["name"] == "own_in_cash"), _FIRST + len(ways.rivals) - 1)

    def span(column: int) -> str:
        return f"{address(low, column, fixed=True)}:{address(high, column, fixed=True)}"

    def of_rival(column: int) -> str:
        return f"INDEX({span(column)},MATCH({here[_RIVAL_WORTH]},{span(WORTH)},0))"

    worth = here[WORTH]
    among = row in ways.rivals
    rival = f"MIN({span(WORTH)})"
    if among:
        rival = f"IF({worth}={rival},SMALL({span(WORTH)},2),{rival})"
    straight = f'OR({model.cell_name("tax_basis")}="before",{model.cell_name("loss_basis")}="at_once")'
    return {
        **_values(ways, row),
        _LEVEL: f"{worth}/({model.cell_name('discounted_gpu_hours')}*{model.cell_name('after_tax_ratio')})",
        _RIVAL_WORTH: rival,
        _RIVAL: of_rival(_OPTION),
        _SAVES: f"{here[_RIVAL_WORTH]}-{worth}",
        _AT_PRICE: _at_price(ways, here, row, of_rival, straight),
        _AT_USE: _at_use(model, here, row, of_rival, straight),
    }


def _at_price(ways: Ways, here: Mapping[int, str], row: Mapping[str, Any], of_rival: Any, straight: str) -> str:
    """Return the rental price at which an option and its rival cost the same."""
    lines = (scalar_reference(ways.model, ways.flows, name) for name in ("own_moves_with_price_usd", "discount_ratio"))
    moved = f"SUMPRODUCT({','.join(lines)})"
    if row.get("usd_per_gpu_hour") is not None:
        price, worth, other, slope = here[_PRICE], here[WORTH], here[_RIVAL_WORTH], here[_BY_PRICE]
        if row["name"] == "rent":
            slope = f'({slope}-IF(LEFT({here[_RIVAL]},3)="own",{moved},0))'
    else:
        price, worth, other, slope = of_rival(_PRICE), here[_RIVAL_WORTH], here[WORTH], of_rival(_BY_PRICE)
        if row["name"] in _OWN:
            slope = f'({slope}-IF({here[_RIVAL]}="rent",{moved},0))'
    text = f"{price}*(1-({worth}-{other})/{slope})"
    return f'IFERROR(IF(AND({straight},{text}>0),{text},"none"),"none")'


def _at_use(model: LiveModel, here: Mapping[int, str], row: Mapping[str, Any], of_rival: Any, straight: str) -> str:
    """Return the utilisation at which an option and its rival cost the same."""
    mine, other = here[_BY_USE], of_rival(_BY_USE)
    owned = "TRUE" if row["name"] in _OWN else f'LEFT({here[_RIVAL]},3)="own"'
    text = f"{model.cell_name('utilisation_fraction')}*(1-({here[WORTH]}-{here[_RIVAL_WORTH]})/({mine}-{other}))"
    valid = f"{straight},NOT(AND({owned},OR({mine}=0,{other}=0))),{text}>0,{text}<=1"
    return f'IFERROR(IF(AND({valid}),{text},"none"),"none")'


def _values(ways: Ways, row: Mapping[str, Any]) -> dict[int, str]:
    """Return present value, cash, and what moves with price and use."""
    model, flows = ways.model, ways.flows
    discount = scalar_reference(model, flows, "discount_ratio")
    if row["name"] in _OWN:
        worth, cash = (("npv_own_usd", "own_total_usd") if row["name"] == "own"
                       else ("npv_own_in_cash_usd", "own_in_cash_usd"))  # fmt: skip
        moves = f"SUMPRODUCT({scalar_reference(model, flows, 'own_moves_with_use_usd')},{discount})"
        return {WORTH: model.cell_name(worth), _CASH: f"SUM({scalar_reference(model, flows, cash)})",
                _BY_PRICE: "0", _BY_USE: moves}  # fmt: skip
    legs = ways.legs[row["name"]]
    if not legs:  # a hosted API is paid by the token
        hours = "*".join(model.cell_name(name) for name in ("productive_gpu_hours_per_month", "tokens_per_s_per_gpu",
                                                             "api_usd_per_mtok", "after_tax_ratio"))  # fmt: skip
        use = scalar_reference(model, flows, "in_use")
        worth = f"{hours}*3600/1000000*SUMPRODUCT({use},{discount})"
        return {WORTH: worth, _CASH: f"{hours}*3600/1000000*SUM({use})", _BY_PRICE: "0", _BY_USE: worth}

    def each(text: Any) -> str:
        return "+".join(f"({leg.weight!r})*{text(leg.case)}" for leg in legs)

    def moving(case: int | None) -> str:
        rate = discount if case is None else ways.line(case, "discount_ratio")
        return f"SUMPRODUCT({_line_of(ways, case, _MOVES)},{rate})"

    def by_use(case: int | None) -> str:
        billing = model.cell_name("rent_billing") if case is None else ways.scalar(case, "rent_billing", CASES)
        return f'IF({billing}="take_or_pay",0,{moving(case)})'

    def worth_of(case: int | None) -> str:
        return model.cell_name("npv_rent_usd") if case is None else ways.scalar(case, "npv_rent_usd", CASES)

    return {
        WORTH: each(worth_of),
        _CASH: each(lambda case: f"SUM({_line_of(ways, case, 'rent_total_usd')})"),
        _BY_PRICE: f"{legs[0].weight!r}*{moving(legs[0].case)}" if row.get("usd_per_gpu_hour") is not None else "0",
        _BY_USE: each(by_use),
    }


def _line_of(ways: Ways, case: int | None, name: str) -> str:
    return scalar_reference(ways.model, ways.flows, name) if case is None else ways.line(case, name)
