"""The first sheet: the page that a board reads, live, and the sheet of the figures behind its sentences."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from msgspec import Struct

from gpucost.answers.ownership import TIE, Mix, Tco
from gpucost.formula.spreadsheet import LONGEST
from gpucost.money.comparison import AT_DEBT_RATE
from gpucost.render import decision as page
from gpucost.render.decision import Decision, Kind
from gpucost.render.document import heading_of
from gpucost.render.workbook.book import MILLIONS, Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.calculations import CASES, Case, CaseBlock, FlowRows, plain, scalar_reference
from gpucost.render.workbook.live import LiveModel, compute
from gpucost.render.workbook.mix import MixCells
from gpucost.render.workbook.options import SENSITIVITY, RentOptions, SensitivityCases, of_legs, place_of

# The page words what the other sheet computes, where a reader finds each figure under its name.
NAME, FIGURES = "Decision", "Decision figures"
WIDTHS = (22, 10, 11, 10, 10, 10, 10, 13)
FIGURES_WIDTHS = (26, 50, 18, 18, 28, 16, 16, 16, 16, 16)
LAST = len(WIDTHS) - 1  # column
_SCALE, _FEW_YEARS = 73, 9  # percent: what fits across; a cash table of so many years leaves room on two pages
_CHART_ROWS, _CHART_SIZE = 24, (710, 470)
_TARGETS = ("npv_own_usd", "npv_rent_usd")
_LABEL = 11  # points of a chart's labels: 8 where the print shrinks the page
_BARS = ("end", "more", "less")
# grey for ends, Okabe and Ito's vermilion and blue for more and less, as in the charts of pages
_COLORS = {"end": "#6B7280", "more": "#D55E00", "less": "#0072B2"}
_PER_HOUR = "USD per GPU-hour"
_DAY_ZERO = date(1899, 12, 30)  # of a workbook's calendar


def _ratio_cell(model: LiveModel, case: str) -> str:
    """Return the name of the cell that says by what a case multiplies its input."""
    return model.cell_name(f"times_when_{case.replace(' ', '_')}")


class DecisionCases(CaseBlock):
    """What a board asks for, each recomputed live: rent halves, use halves, nothing is resold, servers cost more."""

    def __init__(self, model: LiveModel, flows: FlowRows) -> None:
        inputs = model.starting_values()
        cases = []
        for name, changes in page.what_if_cases(inputs).items():
            cells = {key: f"{model.cell_name(key)}*{_ratio_cell(model, name)}" for key in changes}
            cases.append(Case(name, changes, compute(model, changes), cells))
        super().__init__(model, cases, _TARGETS, flows)

    def worth(self, name: str, side: str) -> Formula:
        """Return the present value of a side under a case."""
        # the sheet of cases has a column for each, which is known by its place
        number = next(index for index, case in enumerate(self.cases) if case.label == name)
        line = f"npv_{side}_usd"
        return Formula(self.scalar(number, line, CASES), plain(self.cases[number].values[line]))


class _Figures:
    """The sheet of figures: each a row with its value and its wording, which sentences refer to."""

    def __init__(self, sheet: Sheet, scale: page.Scale) -> None:
        self.sheet, self.scale = sheet, scale
        self.rows: dict[str, int] = {}
        self.values: dict[str, Any] = {}
        self.words: dict[str, str] = {}

    def value(self, key: str) -> str:
        """Return the cell of a figure."""
        return f"'{self.sheet.name}'!{address(self.rows[key], 2, fixed=True)}"

    def here(self, key: str) -> str:
        """Return the cell of a figure as the sheet itself names it."""
        return address(self.rows[key], 2, fixed=True)

    def wording(self, key: str) -> str:
        """Return the cell of its wording."""
        return f"'{self.sheet.name}'!{address(self.rows[key], 4, fixed=True)}"

    def add(self, key: str, meaning: str, kind: Kind, text: str, value: Any) -> None:
        """Write a figure."""
        self.rows[key], self.values[key] = self.sheet.next_row, value
        known = value is not None and value == value
        self.words[key] = page.in_words(kind, value, self.scale)
        stored = value if known else "none"
        if kind == "date" and known:
            stored = float((date.fromisoformat(value) - _DAY_ZERO).days)
        unit = {"usd": "USD in whole", "share": "fraction of one", "rate": "fraction of one", "price": _PER_HOUR}.get(
            kind, ""
        )
        # The wording is `page.in_words` as a formula. FIXED writes the same digits in every language of Excel; TEXT
        # with a pattern of a date would not, for its letters are those of the language.
        cell = self.here(key)
        if kind == "date":
            in_words = f'YEAR({cell})&"-"&TEXT(MONTH({cell}),"00")&"-"&TEXT(DAY({cell}),"00")'
        elif kind == "usd":
            amount = f"FIXED(ABS({cell})/{self.scale.divisor:.0f},{self.scale.decimals})"
            in_words = f'IF({cell}<0,"-","")&"$"&{amount}&"{self.scale.unit}"'
        elif kind == "price":
            in_words = f'"$"&FIXED({cell},2)'
        elif kind in ("share", "rate"):
            in_words = f'FIXED(100*{cell},{0 if kind == "share" else 1})&"%"'
        else:
            in_words = f"FIXED({cell},0)"
        wording = cell if kind == "word" else f'IF(ISNUMBER({cell}),{in_words},"none")'
        self.sheet.row(
            key,
            meaning,
            Cell(Formula(text, stored), "plain", unit),
            Cell({"usd": "USD", "price": _PER_HOUR, "date": "day"}.get(kind, ""), "unit"),
            Formula(wording, self.words[key]),
        )

    def constant(self, key: str, meaning: str, value: float, unit: str = "", name: str = "") -> None:
        """Write a figure that no formula follows, under a name of the book where other sheets read it."""
        # grey: it may be changed, but is no input of the model
        self.rows[key], self.values[key] = self.sheet.next_row, value
        row = self.sheet.row(key, meaning, Cell(value, "shade", unit))
        if name:
            self.sheet.book.define(name, self.sheet.name, row, 2)

    def part(self, formula: Formula) -> Formula:
        """Write a part of a sentence, and return the cell that reads it."""
        row = self.sheet.row("part of a sentence", None, None, None, formula)
        return Formula(f"'{self.sheet.name}'!{address(row, 4, fixed=True)}", formula.value)

    def sentence(self, answer: Callable[[page.Wording], str]) -> Formula:
        """Return an answer as a formula, and what it says as delivered."""
        cells = _Cells(self)
        return cells.formula(answer(cells))


_MARK = "\x1f"  # around the place of a part of a formula in a text
_PIECE = 200  # characters of a part of a sentence


class _Cells:
    """A wording as formulas: a part that follows a cell stands in the text as its place among the parts."""

    def __init__(self, figures: _Figures) -> None:
        self._figures = figures
        self._parts: list[Formula] = []

    def _placed(self, part: Formula) -> str:
        """Return what stands for a part in the text, until it is joined."""
        self._parts.append(part)
        return f"{_MARK}{len(self._parts) - 1}{_MARK}"

    def of(self, key: str) -> str:
        """Return the place of a figure's wording."""
        return self._placed(Formula(self._figures.wording(key), self._figures.words[key]))

    def choose(self, key: str, test: str, then: str, other: str = "") -> str:
        """Return the place of a choice between two texts."""
        cell = self._figures.value(key)
        condition = {"positive": f"IF(ISNUMBER({cell}),{cell}>0,FALSE)", "known": f"ISNUMBER({cell})"}.get(
            test, f'{cell}="{test}"'
        )
        # both texts are nested in one formula: long ones go into cells of their own
        sides = [self._short(self.formula(text), _PIECE // 4) for text in (then, other)]
        chosen = sides[0 if page.Spoken(self._figures.values, {}).choose(key, test, "1") else 1].value
        return self._placed(Formula(f"IF({condition},{sides[0].text},{sides[1].text})", chosen))

    def formula(self, text: str) -> Formula:
        """Return a text with places as a formula that joins its parts; parts of a long one have cells of their own."""
        pieces = []
        for number, piece in enumerate(text.split(_MARK)):  # what stands between two marks is a place
            if number % 2:
                pieces.append(self._short(self._parts[int(piece)], _PIECE))
            else:
                for at in range(0, len(piece), _PIECE // 2):
                    literal = piece[at : at + _PIECE // 2]
                    pieces.append(Formula('"' + literal.replace('"', '""') + '"', literal))
        # Too long for a cell: its first parts move into a cell of their own, as many as that one holds but at least
        # two, so that each round makes it shorter.
        while len(_joined(pieces).text) > LONGEST - 1:
            many = next(n for n in range(len(pieces), 0, -1) if len(_joined(pieces[:n]).text) <= _PIECE)
            many = max(many, 2)
            pieces = [self._figures.part(_joined(pieces[:many])), *pieces[many:]]
        return _joined(pieces)

    def _short(self, formula: Formula, longest: int) -> Formula:
        return self._figures.part(formula) if len(formula.text) > longest else formula


def _joined(pieces: Sequence[Formula]) -> Formula:
    return Formula("&".join(piece.text for piece in pieces) or '""', "".join(str(piece.value) for piece in pieces))


class DecisionBook(Struct, frozen=True):
    """All that the sheet is made from."""

    model: LiveModel
    answer: Tco
    decision: Decision
    values: Mapping[str, Any]
    flows: FlowRows
    cases: DecisionCases
    ways: RentOptions | None
    swings: SensitivityCases | None
    swings_from: int  # first row of its table on the sheet Sensitivity
    codes: Mapping[str, str]  # of amounts in another currency: what they are -> the name of the cell

    def line(self, name: str) -> str:
        """Return the whole row of a monthly line, or the cell of a figure."""
        return scalar_reference(self.model, self.flows, name)


def write(book: Workbook, sheet: Sheet, figures_sheet: Sheet, of: DecisionBook) -> None:
    """Write the page and the figures behind it."""
    figures = _Figures(figures_sheet, of.decision.scale)
    figures_sheet.title(f"Figures behind the decision: {of.model.title}")
    figures_sheet.row(Cell("Every cell follows the inputs; the sheet Decision only words them.", "note"))
    # XlsxWriter writes rows in order, but sheets in any: the figures come first, for sentences refer to their rows
    _write_figures(figures, of)
    bars = _write_bridge(book, figures, of)
    _write_page(book, sheet, figures, of, bars)


# --- The figures.


def _write_figures(figures: _Figures, of: DecisionBook) -> None:
    """Write every figure that a sentence names, each as it follows from the cells of the model."""
    sheet, model, values = figures.sheet, of.model, of.values
    delivered = {key: value for key, (_, value) in of.decision.figures.items()}
    start = date.fromisoformat(of.answer["cash_flows"][0]["on"])
    name, all_months = model.cell_name, of.line("m")
    sheet.heading("figure", "meaning", "value", "unit", "in words")

    def add(key: str, meaning: str, kind: Kind, text: str, value: Any = ...) -> None:
        figures.add(key, meaning, kind, text, delivered[key] if value is ... else value)

    # EDATE keeps the last day of a month where there is no such day, as `months_after` does
    def day(key: str) -> str:
        return f"EDATE({figures.here('start')},{key})"

    figures.constant("start", "day of month 0, as a workbook counts days", float((start - _DAY_ZERO).days))

    add("months", "months compared", "count", name("months"))
    add("gpus", "GPUs", "count", name("gpus"))
    add("use", "allocated share of the hours", "share", name("utilisation_fraction"))
    add("tax_basis", "before or after tax", "word", name("tax_basis"))
    add("financing", "how the purchase is paid", "word", name("financing"))
    add("debt", "what is owed", "word", f'IF({name("financing")}="loan","loan","lease")')
    add("year_months", "months of the first year", "count", f"MIN(12,INT({name('months')}))")
    sheet.book.define(name("year_months"), sheet.name, figures.rows["year_months"], 2)
    add("year_end", "its last day", "date", day(figures.here("year_months")))
    add("end", "end of the comparison", "date", day(f"INT({name('months')})"))
    _write_ways(figures, of, all_months)
    add("own", "present value of buying", "usd", name("npv_own_usd"))
    add("rent", "present value of renting", "usd", name("npv_rent_usd"))
    add("saving", "what buying saves", "usd", name("npv_saving_usd"))
    add("irr", "return of buying, a year", "rate", name("irr_fraction"), _number(values["irr_fraction"]))
    # A break-even beyond all hours, or at a price below nothing, is none to a board.
    use, price = name("breakeven_utilisation_fraction"), name("breakeven_usd_per_gpu_hour")
    add(
        "be_use",
        "break-even utilisation",
        "rate",
        f'IF(ISNUMBER({use}),IF(AND({use}>0,{use}<=1),{use},"none"),"none")',
        _between(values["breakeven_utilisation_fraction"], 1.0),
    )
    add(
        "be_price",
        "break-even rental price",
        "price",
        f'IF(ISNUMBER({price}),IF({price}>0,{price},"none"),"none")',
        _between(values["breakeven_usd_per_gpu_hour"], float("inf")),
    )
    resale = of.line("own_resale_usd")
    add("resale", "what is got for what was bought", "usd", f"-SUM({resale})")
    # payments begin when the hardware arrives; what is owed after the comparison is settled at its end
    term = f'IF({name("financing")}="loan",{name("loan_term_months")},{name("lease_term_months")})'
    last = f"MIN(INT({name('arrival_month')}+{term}),INT({name('months')}))"
    add("debt_on", "last payment of the loan or lease", "date", f'IF({name("financing")}="cash","none",{day(last)})')
    _write_cases(figures, of)
    _write_payback(figures, of, day)


def _number(value: Any) -> float | None:
    """Return a figure of the model; None for one that is not a number."""
    return None if value != value else float(value)


def _between(value: Any, high: float) -> float | None:
    """Return a break-even that a board can reach; None for one that it cannot."""
    number = _number(value)
    return number if number is not None and 0 < number <= high else None


def _write_ways(figures: _Figures, of: DecisionBook, all_months: str) -> None:
    """Write every way that is promised, and which is the cheapest and the next."""
    sheet, model = figures.sheet, of.model
    rows = page.ways_of(of.answer)
    until = figures.here("year_months")
    sheet.heading("way", "what it is called", "present value", "cash of the year", "what to do", "cash at the start")
    first = sheet.next_row
    year = min(12, int(float(model.starting_values()["months"] or 0)))
    for row in rows:
        name = row["name"]
        worth = model.cell_name(f"npv_{name}_usd")
        if of.ways is not None:
            worth = f"'{of.ways.name}'!{place_of(of.ways, name)}"
        # what it takes in cash until the end of the first year, and of that at the start
        if name in page.NAMES:
            line = of.line(f"{name}_total_usd")
            so_far, at_start = f'SUMIF({all_months},"<="&{until},{line})', f"INDEX({line},1)"
        else:
            assert of.ways is not None
            if of.ways.legs[name]:
                so_far, at_start = of_legs(model, name, "year"), of_legs(model, name, "start")
            else:  # a hosted API is paid as it is used
                used = of.line("in_use")
                cash = f"'{of.ways.name}'!{place_of(of.ways, name, 'cash')}"
                share = f'SUMIF({all_months},"<="&{until},{used})/MAX(SUM({used}),0.000000000001)'
                so_far, at_start = f"{cash}*{share}", "0"
        paid = page.cash_so_far(row, model, of.values, year)
        sheet.row(
            name,
            page.noun(row),
            Cell(Formula(worth, row["npv_usd"]), "plain", "USD in whole"),
            Cell(Formula(so_far, paid[0]), "plain", "USD in whole"),
            page.verb(row),
            Cell(Formula(at_start, paid[1]), "plain", "USD in whole"),
        )
    last = sheet.next_row - 1

    def span(column: int) -> str:
        return f"{address(first, column, fixed=True)}:{address(last, column, fixed=True)}"

    sheet.heading("figure", "meaning", "value", "unit", "in words")
    delivered = {key: value for key, (_, value) in of.decision.figures.items()}
    best = f"MATCH(MIN({span(2)}),{span(2)},0)"
    second = f"MATCH(SMALL({span(2)},2),{span(2)},0)"
    stated = of.answer.get("confidence")
    # The draws cannot be repeated in cells: a toss-up that they call one stands while no input is changed.
    near = f"SMALL({span(2)},2)-MIN({span(2)})<{page.NOISE}*ABS(MIN({span(2)}))"
    tie = f"OR({near},inputs_changed=0)" if stated and stated["toss_up"] else near
    figures.add("best_noun", "the cheapest way", "word", f"INDEX({span(1)},{best})", delivered["best_noun"])
    figures.add("second_noun", "the next best way", "word", f"INDEX({span(1)},{second})", delivered["second_noun"])
    before, between, after = TIE.split("{}")
    ways = (figures.here(key) for key in ("best_noun", "second_noun"))
    both = f'&"{between}"&'.join(ways)
    verb = f'IF({tie},"{before}"&{both}&"{after}",INDEX({span(4)},{best}))'
    chosen: tuple[tuple[str, str, Kind, str], ...] = (
        ("best_verb", "what to do", "word", verb),
        ("best_cost", "what the cheapest way costs, present value", "usd", f"MIN({span(2)})"),
        ("best_less", "how much less than the next", "usd", f"SMALL({span(2)},2)-MIN({span(2)})"),
        ("best_year", "cash of the cheapest way in the first year", "usd", f"INDEX({span(3)},{best})"),
        ("best_start", "of it at the start", "usd", f"INDEX({span(5)},{best})"),
        ("second_year", "cash of the next best way in the first year", "usd", f"INDEX({span(3)},{second})"),
    )
    for key, meaning, kind, text in chosen:
        figures.add(key, meaning, kind, text, delivered[key])


def _write_cases(figures: _Figures, of: DecisionBook) -> None:
    """Write what happens when rent halves, and the multiples of an input at which nothing is saved."""
    for case in page.what_if_cases(of.model.starting_values()):
        meaning = f"by what the input is multiplied when {case}"
        figures.constant(case, meaning, page.case_ratio(case), "ratio", _ratio_cell(of.model, case))
    name, delivered = of.model.cell_name, {key: value for key, (_, value) in of.decision.figures.items()}
    half_own, half_rent = (of.cases.worth(page.HALF, side) for side in ("own", "rent"))
    figures.add(
        "half_price", "half the rental price", "price", f"{name('rent_usd_per_gpu_hour')}/2", delivered["half_price"]
    )
    figures.add("half_own", "buying, when rent halves", "usd", half_own.text, half_own.value)
    figures.add("half_rent", "renting, when rent halves", "usd", half_rent.text, half_rent.value)
    then = half_rent.value - half_own.value
    figures.add(
        "half_saving",
        "what buying then saves",
        "usd",
        f"{figures.here('half_rent')}-{figures.here('half_own')}",
        then,
    )
    figures.add("half_gap", "the same without its sign", "usd", f"ABS({figures.here('half_saving')})", abs(then))
    # Where the saving is a straight line in an input, two points on it tell where it is nothing (`flipping_ratio` of
    # the page has the equation); losses that wait for profits would bend it.
    straight = f'OR({name("tax_basis")}="before",{name("loss_basis")}="at_once")'
    saving = figures.here("saving")
    for key, case, meaning in (
        ("be_resale", page.RESALE, "share of the expected resale at which both cost the same"),
        ("be_server_ratio", page.PRICE, "the same, as a multiple of the price of a server"),
    ):
        own, rent = (of.cases.worth(case, side) for side in ("own", "rent"))
        ratio = page.case_ratio(case)
        moved = f"{key}_moved"
        figures.add(
            moved,
            f"what the saving changes by when {case}",
            "usd",
            f"{rent.text}-{own.text}-{saving}",
            rent.value - own.value - delivered["saving"],
        )
        multiple = f"1-{saving}*({_ratio_cell(of.model, case)}-1)/{figures.here(moved)}"
        moves = f"ROUND({figures.here(moved)},2)<>0"
        most = f"{saving}/{figures.here(moved)}*({_ratio_cell(of.model, case)}-1)<=1"
        text = f'IF(AND({straight},{moves}),IF({most},{multiple},"none"),"none")'
        inputs = of.model.starting_values()
        at_once = inputs["tax_basis"] == "before" or inputs["loss_basis"] == "at_once"
        flip = page.flipping_ratio(delivered["saving"], rent.value - own.value, ratio) if at_once else None
        figures.add(key, meaning, "share", text, flip)
    cell = figures.here("be_server_ratio")
    figures.add(
        "be_server",
        "price of a server per GPU at which both cost the same",
        "usd",
        f'IF(ISNUMBER({cell}),{cell}*{name("server_usd_per_gpu")},"none")',
        delivered["be_server"],
    )


def _write_payback(figures: _Figures, of: DecisionBook, day: Any) -> None:
    """Write the running total of what buying saves, the funding it needs, and when it has paid back.

    The funding is that of the plan as it is financed; it pays back as if it were paid in cash, as its return is.
    """
    # Two running totals stand side by side, a row a month: as it is financed, and as if it were paid in cash.
    sheet, months = figures.sheet, of.model.months
    lines = ("saving_usd", "saving_in_cash_usd")
    top = sheet.next_row + 4  # the figures, their dates, and a heading stand between
    out, so_far, below = (
        f"{address(top, column, fixed=True)}:{address(top + months, column, fixed=True)}" for column in (2, 4, 5)
    )
    delivered = {key: value for key, (_, value) in of.decision.figures.items()}
    last = f"MAX({below})"  # the last month that ends below nothing; the line through it and the next crosses zero
    at, after = f"INDEX({so_far},{last}+1)", f"INDEX({so_far},{last}+2)"
    end = of.model.cell_name("months")
    figures.add("peak", "most that is out before buying has paid back", "usd", f"MAX(0,-MIN({out}))", delivered["peak"])
    figures.add(
        "payback",
        "months until buying has paid back",
        "count",
        f'IF(MIN({so_far})>=0,"none",IF({last}>={end},"none",{last}+{at}/({at}-{after})))',
        delivered["payback"],
    )
    cell = figures.here("payback")
    figures.add(
        "payback_on",
        "the day",
        "date",
        f'IF(ISNUMBER({cell}),{day(f"ROUNDUP({cell},0)")},"none")',
        delivered["payback_on"],
    )
    sheet.heading("month", "buying saves", "so far", "paid in cash", "so far", "month, while below nothing")
    assert sheet.next_row == top, "the figures above read these rows"
    totals = [0.0, 0.0]
    for number in range(months + 1):
        row = sheet.next_row
        cells: list[Any] = []
        for place, name in enumerate(lines):
            usd = float(of.values[name][number])
            totals[place] += usd
            column = 1 + 2 * place
            running = address(row, column) if number == 0 else f"{address(row - 1, column + 1)}+{address(row, column)}"
            cells.append(Cell(Formula(f"INDEX({of.line(name)},{address(row, 0)}+1)", usd), "plain", "USD in whole"))
            cells.append(Cell(Formula(running, totals[place]), "plain", "USD in whole"))
        while_below = f"IF({address(row, 4)}<0,{address(row, 0)},0)"
        sheet.row(number, *cells, Formula(while_below, float(number) if totals[1] < 0 else 0.0))


class _Bars(Struct, frozen=True):
    """Where the cells of a chart of bars stand: the sheet, the first and last row, the column of their names."""

    sheet: str
    first: int
    last: int
    names: int


def _write_bridge(book: Workbook, figures: _Figures, of: DecisionBook) -> _Bars:
    """Write what each cost line adds on the way from renting to buying, and the bars that show it."""
    sheet, own, rent = figures.sheet, figures.here("own"), figures.here("rent")
    decision, npv = of.decision, of.answer["npv_usd"]
    # First what each cost line adds to buying, and the bar that it belongs to.
    sheet.skip()
    sheet.row(Cell("Present value by cost line: of buying as it is, of renting with the other sign", "heading"))
    sheet.heading("bar of the bridge", "cost line", "adds")
    first_line = sheet.next_row
    for line in of.answer["lines"]:
        ratio = of.line("debt_discount_ratio" if line["name"] in AT_DEBT_RATE else "discount_ratio")
        sign, usd = ("", line["npv_usd"]) if line["side"] == "own" else ("-", -line["npv_usd"])
        text = f"{sign}SUMPRODUCT({of.line(line['name'])},{ratio})"
        adds = Cell(Formula(text, usd), "plain", "USD in whole")
        sheet.row(page.concept(line["name"]), line["description"], adds)
    bar_cells, amount_cells = (
        f"{address(first_line, column, fixed=True)}:{address(sheet.next_row - 1, column, fixed=True)}"
        for column in (0, 2)
    )
    # Then the bars: each adds up its lines, but for the last, which is all that the others leave.
    sheet.skip()
    sheet.row(Cell("From renting to buying, by cost line", "heading"))
    sheet.heading(
        "cost line", "bar", "adds", "level", "in words", "hidden", *_BARS, *(f"{kind}, below 0" for kind in _BARS)
    )
    first = sheet.next_row
    end = first + len(decision.bridge) + 1
    levels = [npv["rent"]]  # after renting and each cost line
    for _, usd in decision.bridge:
        levels.append(levels[-1] + usd)
    # what is too small for a bar of its own is what all others leave, so that the bars end at buying in any case
    texts = [f"{rent}"]
    for row, (label, _) in enumerate(decision.bridge, first + 1):
        added = f"SUMIF({bar_cells},{address(row, 0)},{amount_cells})"
        texts.append(added if label != page.REST else "")
    listed = [row for row, text in enumerate(texts[1:], first + 1) if text]
    others = "-".join([f"{own}-{rent}", *(address(row, 2) for row in listed)])
    rows = [
        ("Renting", npv["rent"], rent),
        *((label, usd, texts[number] or others) for number, (label, usd) in enumerate(decision.bridge, 1)),
        ("Buying", npv["own"], own),
    ]
    pairs = [(0.0, npv["rent"]), *pairwise(levels), (0.0, npv["own"])]
    for (label, usd, text), (start_usd, end_usd) in zip(rows, pairs, strict=True):
        row = sheet.next_row
        is_end = row in (first, end)
        level = address(row, 2) if is_end else f"{address(row - 1, 3)}+{address(row, 2)}"
        before = "0" if is_end else address(row - 1, 3)
        low, high = (f"{end_of}({before},{address(row, 3)})" for end_of in ("MIN", "MAX"))
        sign = "" if is_end else f'IF({address(row, 2)}>0,"+","")&'
        words = page.in_words("usd", usd, figures.scale)
        shown = ("+" if usd > 0 and not is_end else "") + words
        amount = f"FIXED(ABS({address(row, 2)})/{figures.scale.divisor:.0f},{figures.scale.decimals})"
        wording = f'{sign}IF({address(row, 2)}<0,"-","")&"$"&{amount}&"{figures.scale.unit}"'
        down, up = min(start_usd, end_usd), max(start_usd, end_usd)
        kind = "end" if is_end else "more" if usd > 0 else "less"
        tests = {"end": None, "more": f"{address(row, 2)}>0", "less": f"{address(row, 2)}<=0"}
        # A stacked bar cannot float: a part without colour carries it from zero to its nearer end. A bar that crosses
        # zero has a part on either side, so each colour has two columns, above and below.
        hidden = max(down, 0.0) + min(up, 0.0)
        cells = [Cell(Formula(f"MAX({low},0)+MIN({high},0)", hidden), "plain", "USD in whole")]
        for below in (False, True):
            length = f"MIN({low},0)-MIN({high},0)" if below else f"MAX({high},0)-MAX({low},0)"
            size = min(down, 0.0) - min(up, 0.0) if below else max(up, 0.0) - max(down, 0.0)
            for bar in _BARS:
                if is_end != (bar == "end"):
                    cells.append(Cell(0.0, "plain", "USD in whole"))
                else:
                    formula = length if tests[bar] is None else f"IF({tests[bar]},{length},0)"
                    cells.append(Cell(Formula(formula, size if bar == kind else 0.0), "plain", "USD in whole"))
        sheet.row(
            label,
            Formula(f'{address(row, 0)}&"  "&{address(row, 4)}', f"{label}  {shown}"),
            Cell(Formula(text, usd), "plain", "USD in whole"),
            Cell(Formula(level, end_usd), "plain", "USD in whole"),
            Formula(wording, shown),
            *cells,
        )
    return _Bars(sheet.name, first, end, 1)


def _stacked_chart(book: Workbook, cells: _Bars, series: Sequence[tuple[str, int, str | None]]) -> Any:
    """Return stacked bars: of each series its name, its column, and its colour; without one it only carries others."""
    chart = book.file.add_chart({"type": "bar", "subtype": "stacked"})
    for name, column, color in series:
        chart.add_series(
            {
                "name": name,
                "categories": [cells.sheet, cells.first, cells.names, cells.last, cells.names],
                "fill": {"none": True} if color is None else {"color": color},
                "gap": 35,
                "border": {"none": True},
                "values": [cells.sheet, cells.first, column, cells.last, column],
            }
        )
    chart.set_legend({"none": True})
    return chart


def _dress(chart: Any, title: str, scale: page.Scale, size: tuple[int, int] = _CHART_SIZE) -> None:
    """Give a bridge its title, axes and size."""
    unit = f"{MILLIONS}{scale.decimals}"
    from gpucost.render.workbook.book import number_format

    chart.set_title({"name": title, "name_font": {"size": 12}})
    chart.set_y_axis(
        {"num_font": {"size": _LABEL}, "label_position": "low", "reverse": True, "major_tick_mark": "none"}
    )
    chart.set_x_axis(
        {
            "num_format": number_format(unit if scale.millions else "dollars", 0.0),
            "num_font": {"size": _LABEL},
            "label_position": "high",  # below, as the names begin above
            "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            "line": {"none": True},
        }
    )
    chart.set_size({"width": size[0], "height": size[1]})


# --- The page.


def _write_page(book: Workbook, sheet: Sheet, figures: _Figures, of: DecisionBook, bars: _Bars) -> None:
    scale, answer = of.decision.scale, of.answer
    usd = f"{MILLIONS}{scale.decimals}" if scale.millions else "dollars"
    _lay_out(sheet, of.model.title, answer, len(answer["by_year"]))
    for number, (question, answered) in enumerate(page.SENTENCES.items()):
        sheet.row(Cell(question, "question"))
        sheet.sentence(Cell(figures.sentence(answered), "said" if number else "decided"), LAST)
    if sure := page.sure_of(answer):
        sheet.row(Cell(page.SURE, "question"))
        sheet.sentence(Cell(sure, "said"), LAST)
    sheet.skip()
    chance = answer["probability_buy_wins_fraction"]
    facts: list[tuple[str, Cell]] = [
        ("Buying, present value", _of(figures, "own", usd)),
        ("Renting, present value", _of(figures, "rent", usd)),
        ("Buying saves", _of(figures, "saving", usd)),
        (
            "IRR of buying" + (", paid in cash" if answer.get("financing") else ""),
            _of(figures, "irr", "fraction of one"),
        ),
        (
            "Payback, months" + (", paid in cash" if answer.get("financing") else ""),
            Cell(Formula(figures.wording("payback"), figures.words["payback"]), "figure"),
        ),
        ("Peak funding until payback", _of(figures, "peak", usd)),
        ("Break-even utilisation", _of(figures, "be_use", "fraction of one")),
        (
            "Break-even rent, USD per GPU-hour",
            Cell(Formula(figures.wording("be_price"), figures.words["be_price"]), "figure"),
        ),
    ]
    # in another currency, where the question asked for one: cells of the sheet Currency
    for label, name in of.codes.items():
        side = "npv_own" if label.startswith("Buying") else "npv_rent"
        money = answer["currency"]
        assert money is not None
        foreign: float = money[side]  # type: ignore[literal-required]
        facts.append((label, Cell(Formula(name, foreign), "figure", "USD in whole")))
    if chance is not None:
        facts.append(("Buying beats renting, of draws", Cell(chance, "figure", "fraction of one")))
    _key_figures(sheet, facts)
    sheet.skip()
    # in the columns of the bridge: what carries a bar, then the colours above zero, then those below
    series: list[tuple[str, int, str | None]] = [("", 5, None)]
    series += [(kind, 6 + place, _COLORS[kind]) for place, kind in enumerate(_BARS)]
    series += [(kind, 9 + place, _COLORS[kind]) for place, kind in enumerate(_BARS)]
    chart = _stacked_chart(book, bars, series)
    _dress(chart, "From renting to buying, present value by cost line", scale)
    _place_chart(sheet, chart, "Bridge from the present value of renting to that of buying, by cost line")
    _write_risks(sheet, figures, of, usd)
    _write_reversals(sheet, figures, of)
    sheet.page.set_h_pagebreaks([sheet.next_row])  # the first sheet of paper decides, the second gives the figures
    # both sides under what a board asks for
    sheet.row(Cell("What if: present values, the rest as planned", "heading"))
    _table_head(sheet, "case", "", "", "", ">buying", ">renting", ">buying saves", "cheaper")
    cases = page.what_if_cases(of.model.starting_values())
    for name, own, rent in of.decision.what_if:
        if name in cases:
            sides = [of.cases.worth(name, side) for side in ("own", "rent")]
        else:  # the plan itself
            sides = [Formula(figures.value("own"), own), Formula(figures.value("rent"), rent)]
        at = [address(sheet.next_row, column) for column in (4, 5, 6)]
        sheet.row(
            name,
            None,
            None,
            None,
            *(Cell(side, "right", usd) for side in sides),
            Cell(Formula(f"{at[1]}-{at[0]}", sides[1].value - sides[0].value), "right", usd),
            Formula(f'IF({at[2]}>0,"buying","renting")', "buying" if sides[1].value > sides[0].value else "renting"),
        )
    sheet.skip()
    _write_years(sheet, figures, of, usd)
    _write_dates(sheet, figures, of)
    _write_owners(sheet, answer)
    sheet.skip()
    sheet.paragraph(answer["conventions"], LAST, "source")


def _lay_out(sheet: Sheet, title: str, answer: Any, years: int) -> None:
    """Begin a page: two sheets of paper upright, narrow enough that 11 points stay above 8."""
    sheet.page.set_portrait()
    sheet.page.set_margins(left=0.5, right=0.5, top=0.5, bottom=0.7)
    if years <= _FEW_YEARS:
        sheet.page.set_print_scale(_SCALE)
    else:  # more than two pages hold at that size
        sheet.page.fit_to_pages(1, 2)
    issued = answer.get("issued") or {}
    sheet.row(Cell(title, "title"))
    stamp = f"{issued['status'].capitalize()} by {issued['by'] or 'nobody named'}, {issued['on']}. " if issued else ""
    origin = f"{stamp}As of {answer['as_of']}. Present values in USD; catalog {answer['catalog_version']}."
    sheet.row(Cell(origin, "note"))


def _of(figures: _Figures, key: str, unit: str) -> Cell:
    """Return a key figure that follows its cell on the sheet of figures."""
    value = figures.values[key]
    return Cell(Formula(figures.value(key), "none" if value is None else value), "figure", unit)


def _key_figures(sheet: Sheet, facts: Sequence[tuple[str, Cell]]) -> None:
    """Write key figures, two in a row."""
    half = -(-len(facts) // 2)  # read down the left side, then down the right
    for number in range(half):
        left, right = facts[number], facts[number + half] if number + half < len(facts) else None
        cells: list[Any] = [Cell(left[0], "key"), Cell("", "key"), left[1], None]
        if right is not None:
            cells += [Cell(right[0], "key"), Cell("", "key"), Cell("", "key"), right[1]]
        sheet.row(*cells)


def _place_chart(sheet: Sheet, chart: Any, description: str) -> None:
    """Put a chart across the page."""
    sheet.page.insert_chart(sheet.next_row, 0, chart, {"description": description, "object_position": 1})
    sheet.skip(_CHART_ROWS)


def _write_risks(sheet: Sheet, figures: _Figures, of: DecisionBook, usd: str) -> None:
    """Write the three inputs that move the saving most, by size as it is now."""
    if of.swings is None or not of.swings.spans:
        return
    spans, first = of.swings.spans, of.swings_from
    last = first + len(spans) - 1

    def column(number: int) -> str:
        return f"'{SENSITIVITY}'!{address(first, number, fixed=True)}:{address(last, number, fixed=True)}"

    data = figures.sheet
    data.skip()
    data.row(Cell("What moves the saving most", "heading"))
    data.heading("input", "from … to", "moves by", "flips the decision", "who answers")
    top = data.next_row
    # all inputs with ends, by how far they move the saving now: the page takes the first three of them
    answer_line = of.model.answer
    for number, span in enumerate(spans):
        low, base, high = (
            float(of.swings.cases[case].values[answer_line]) for case in (2 * number + 1, 0, 2 * number + 2)
        )
        at = [f"'{SENSITIVITY}'!{address(first + number, place, fixed=True)}" for place in (5, 6, 7)]
        entry = span.entry
        flips_sign = min(low, high) * base < 0 or max(low, high) * base < 0
        data.row(
            heading_of(entry.name),
            page.range_of(entry.name, float(entry.low or 0), float(entry.high or 0), entry.unit),
            Cell(Formula(f"ABS({at[2]}-{at[0]})", abs(high - low)), "plain", "USD in whole"),
            Formula(f'IF(OR({at[0]}*{at[1]}<0,{at[2]}*{at[1]}<0),"yes","no")', "yes" if flips_sign else "no"),
            page.owner_of(of.answer, entry.name),
        )

    def figure_column(number: int) -> str:
        end = address(top + len(spans) - 1, number, fixed=True)
        return f"'{data.name}'!{address(top, number, fixed=True)}:{end}"

    # the row of that rank by how far it moves the saving now, from a column of either sheet
    def ranked(cells: str, rank: int) -> str:
        return f"INDEX({cells},MATCH(LARGE({figure_column(2)},{rank}),{figure_column(2)},0))"

    sheet.row(Cell("Three risks: what moves the saving most", "heading"))
    _table_head(sheet, "input", "from … to", "", "", ">saved, low", ">saved, high", ">flips it", "who answers")
    # the same ranking as delivered, for the values that a cell shows until the book is recalculated
    order = sorted(range(len(spans)), key=lambda number: -spans[number].width)
    for rank, number in enumerate(order[:3], 1):
        entry = spans[number].entry
        low, base, high = (
            float(of.swings.cases[case].values[answer_line]) for case in (2 * number + 1, 0, 2 * number + 2)
        )
        flips = "yes" if low * base < 0 or high * base < 0 else "no"
        span_text = page.range_of(entry.name, float(entry.low or 0), float(entry.high or 0), entry.unit)
        owner = page.owner_of(of.answer, entry.name)
        sheet.row(
            Cell(Formula(ranked(figure_column(0), rank), heading_of(entry.name)), "cell"),
            Cell(Formula(ranked(figure_column(1), rank), span_text), "plain"),
            None,
            None,
            Cell(Formula(ranked(column(5), rank), low), "right", usd),
            Cell(Formula(ranked(column(7), rank), high), "right", usd),
            Cell(Formula(ranked(figure_column(3), rank), flips), "right"),
            Cell(Formula(ranked(figure_column(4), rank), owner), "words"),
        )
    sheet.skip()


def _table_head(sheet: Sheet, *heads: str) -> None:
    """Write the heading row of a table on the page; ">" before a heading puts it over figures, on the right."""
    # a heading reaches over the columns behind it that have none
    rooms: list[float] = []
    for number, text in enumerate(heads):
        if text or not rooms:
            rooms.append(0.0)
        rooms[-1] += sheet.widths[number]
    shown = [text for text in heads if text]
    lines = max(-(-len(text) // max(int(room) - 2, 1)) for text, room in zip(shown, rooms, strict=True))
    sheet.page.set_row(sheet.next_row, 15 * min(lines, 3))
    roomy = [number + 1 < len(heads) and not heads[number + 1] for number in range(len(heads))]
    cells = []
    for text, before, has_room in zip(heads, ("", *heads), roomy, strict=False):
        style = "head line" if has_room else "head"
        if text.startswith(">"):
            style = "head right"
        elif text and before.startswith(">"):  # words beside figures keep their distance from theirs
            style = "head words"
        cells.append(Cell(text.removeprefix(">"), style))
    sheet.row(*cells)


def _write_reversals(sheet: Sheet, figures: _Figures, of: DecisionBook) -> None:
    """Write where the decision turns, and where things stand now."""
    sheet.row(Cell("What would change our mind", "heading"))
    _table_head(sheet, "Buying beats renting while", "", "", "", "this", "", "", ">now")
    keys = ("be_price", "be_use", "be_resale", "be_server")
    name = of.model.cell_name
    now = (name("rent_usd_per_gpu_hour"), name("utilisation_fraction"), "1", name("server_usd_per_gpu"))
    saving = figures.value("saving")
    always = page.never(of.decision)
    plain_scale = page.Scale(False, 0)
    for row, key, cell in zip(of.decision.reversals, (*keys, ""), (*now, ""), strict=False):
        if not key:  # the length of the comparison: no formula finds its turn, so it stands as delivered
            flips: Any = page.in_words(row.kind, row.flips, plain_scale) if row.flips is not None else always
            cells: tuple[Any, Any] = (f"{flips} (as delivered)", Cell(Formula(name("months"), row.now), "right"))
        else:
            at = figures.value(key)
            # the price of a server is no amount of millions, whatever the scale of the page
            wording = f'"$"&FIXED({at},0)' if key == "be_server" else figures.wording(key)
            words = page.in_words(row.kind, figures.values[key], plain_scale)
            text = f'IF(ISNUMBER({at}),{wording},IF({saving}>0,"{page.ALWAYS[0]}","{page.ALWAYS[1]}"))'
            unit = {"price": "USD per hour, cents", "share": "fraction of one", "rate": "fraction of one"}.get(
                row.kind, "dollars"
            )
            cells = (
                Formula(text, words if figures.values[key] is not None else always),
                Cell(Formula(cell, row.now), "right", unit),
            )
        sheet.row(Cell(row.condition), None, None, None, Cell(cells[0], "plain"), None, None, cells[1])
    sheet.skip()


def _write_years(sheet: Sheet, figures: _Figures, of: DecisionBook, usd: str) -> None:
    """Write the cash of both sides by year."""
    months = of.line("m")
    lines = [of.line(f"{side}_total_usd") for side in ("own", "rent")]
    start = date.fromisoformat(of.answer["cash_flows"][0]["on"])
    length = len(of.answer["cash_flows"]) - 1
    sheet.row(Cell("Cash by year", "heading"))
    _table_head(sheet, "period", "", "", "", ">buying", ">renting", ">buying saves")
    first = sheet.next_row
    figures.sheet.skip()
    figures.sheet.heading("year", "of cash", "its last month")
    for row in of.answer["by_year"]:
        number = row["year"]
        # the end of each year is a cell, so that no figure stands inside a formula
        end = page.month_on(start, min(12 * number, length))
        label = f"start, {end}" if number == 0 else f"year {number}, to {end}"
        at = [address(sheet.next_row, column) for column in (4, 5)]
        ends_at = figures.sheet.row(f"year {number}", None, Cell(12.0 * number, "shade"))
        ends_on, before_it = (f"'{figures.sheet.name}'!{address(at, 2, fixed=True)}" for at in (ends_at, ends_at - 1))
        texts = [
            f'SUMIF({months},"<="&{ends_on},{line})' + (f'-SUMIF({months},"<="&{before_it},{line})' if number else "")
            for line in lines
        ]
        values = (row["own_total_usd"], row["rent_total_usd"])
        sheet.row(
            label,
            None,
            None,
            None,
            *(Cell(Formula(text, value), "right", usd) for text, value in zip(texts, values, strict=True)),
            Cell(Formula(f"{at[1]}-{at[0]}", values[1] - values[0]), "right", usd),
        )
    # the sum reads the months themselves, not the years above it: a gap between them would show
    totals = [
        (f"SUM({line})", float(of.values[f"{side}_total_usd"].sum()))
        for line, side in zip(lines, ("own", "rent"), strict=True)
    ]
    at = [address(sheet.next_row, column) for column in (4, 5)]
    assert first < sheet.next_row
    sheet.row(
        Cell("all of it", "answer"),
        Cell("", "answer"),
        Cell("", "answer"),
        Cell("", "answer"),
        *(Cell(Formula(*total), "answer", usd) for total in totals),
        Cell(Formula(f"{at[1]}-{at[0]}", totals[1][1] - totals[0][1]), "answer", usd),
    )
    sheet.skip()


def _write_dates(sheet: Sheet, figures: _Figures, of: DecisionBook) -> None:
    """Write what ends when: the figures live, contracts as delivered."""
    sheet.row(Cell("When it ends", "heading"))
    _table_head(sheet, "date", "what happens", "", "", "", "", "", "")
    start = of.answer["cash_flows"][0]["on"]
    sheet.row(start, "start")
    owed = figures.values["debt_on"] is not None
    at, day = figures.value("debt_on"), figures.wording("debt_on")
    debt = Formula(
        f'IF(ISNUMBER({at}),"last payment of the "&{figures.wording("debt")},"")',
        f"last payment of the {figures.words['debt']}" if owed else "",
    )
    for key, event in (
        ("year_end", "end of the first year of cost"),
        ("payback_on", "buying has paid back"),
        ("debt_on", debt),
        ("end", "end of the comparison"),
    ):
        on_day = Formula(figures.wording(key), figures.words[key])
        if key == "debt_on":  # nothing is owed on what is paid in cash: the row stays empty until that is changed
            on_day = Formula(f'IF(ISNUMBER({at}),{day},"")', on_day.value if owed else "")
        sheet.row(on_day, event)
    for row in of.answer.get("contract_ends") or ():
        sheet.row(row["ends_on"], f"{row['option'].replace('_', ' ')} ends (as delivered), then {row['then']}")
    sheet.skip()


def _write_owners(sheet: Sheet, answer: Any) -> None:
    """Write which role answers for which inputs; the names are filled in by hand."""
    sheet.row(Cell("Who owns which assumption", "heading"))
    _table_head(sheet, "role", "answers for", "", ">inputs", ">no source", "name", "", "agreed on")
    for row in page.owners(answer):
        sheet.row(
            row["role"],
            row["inputs_of"],
            None,
            Cell(row["count"], "right"),
            Cell(row["assumed"], "right"),
            Cell("", "input"),
            Cell("", "input"),
            Cell("", "input"),
        )


# --- The page of a mix: its cost follows the sheet of its cash.


def write_mix_page(book: Workbook, sheet: Sheet, answer: Mix, cells: MixCells) -> None:
    """Write the page of a mix; its present value follows the sheet of its cash."""
    cost_cell = cells.cost
    wording = page.mix_page(answer)
    scale = wording.scale
    usd = f"{MILLIONS}{scale.decimals}" if scale.millions else "dollars"
    _lay_out(sheet, "The cheapest mix of capacity", answer, len(wording.years))
    for number, (question, text) in enumerate(wording.answers.items()):
        sheet.row(Cell(question, "question"))
        sheet.sentence(Cell(text, "said" if number else "decided"), LAST)
    sheet.row(Cell(Formula(f'IF(ROUND({cost_cell}/{cells.delivered}-1,6)<>0,"{page.MIX_MOVED}","")', ""), "note"))
    alone = answer["best_pure_usd"]
    facts = [("The mix now, present value", Cell(Formula(cost_cell, answer["cost_usd"]), "figure", usd))]
    facts += [("The mix as delivered", Cell(answer["cost_usd"], "figure", usd))]
    if alone is not None:
        facts += [("Best single option, as delivered", Cell(alone, "figure", usd))]
        facts += [
            (
                "The mix now saves",
                Cell(Formula(f"{cells.alone}-{cost_cell}", alone - answer["cost_usd"]), "figure", usd),
            )
        ]
    known = ("The mix, present value in USD", "Best single option", "The mix saves")
    facts += [(label, Cell(text, "figure")) for label, text in wording.figures.items() if label not in known]
    _key_figures(sheet, facts)
    sheet.skip()
    top = sheet.next_row + _CHART_ROWS + 2
    parts = [*wording.parts, ("The mix", answer["cost_usd"])]
    parts += [("best single option", alone)] if alone is not None else []
    # the table below the chart: where each bar begins carries it, what it costs is drawn
    cells_of_chart = _Bars(sheet.name, top, top + len(parts) - 1, 0)
    chart = _stacked_chart(book, cells_of_chart, [("", 5, None), ("", 4, _COLORS["less"])])
    _dress(chart, "What the mix is made of, present value", scale)
    _place_chart(sheet, chart, "What each supply costs, up to the mix, and the best single option beside it")
    sheet.row(Cell("What the mix is made of, as delivered", "heading"))
    _table_head(sheet, "supply", "", "", "", ">costs", ">begins at", ">share of the mix")
    assert sheet.next_row == top, "the chart reads these rows"
    level = 0.0
    for label, cost in parts:
        ends = label in ("The mix", "best single option")
        share = Cell(cost / answer["cost_usd"], "right", "fraction of one") if answer["cost_usd"] else None
        sheet.row(label, None, None, None, Cell(cost, "right", usd), Cell(0.0 if ends else level, "right", usd), share)
        level += 0.0 if ends else cost
    sheet.skip()
    for title, head, rows in (
        ("What moves the cost, the plan held", "case", wording.what_if),
        ("Cash by year", "period", wording.years),
    ):
        if title == "Cash by year":
            sheet.page.set_h_pagebreaks([sheet.next_row])
        sheet.row(Cell(title, "heading"))
        _table_head(sheet, head, "", "", "", ">the mix")
        for label, cost in rows:
            sheet.row(label, None, None, None, Cell(cost, "right", usd))
        sheet.skip()
    sheet.row(Cell("What would change our mind: the limits that bind", "heading"))
    _table_head(sheet, "limit", "", ">USD per GPU-month", "note", "", "", "", "")
    for bound in answer["marginal_values"][:3]:
        worth = Cell(bound["usd_per_gpu_month"], "right", "USD in whole")
        sheet.row(bound["constraint"].replace("_", " "), None, worth, bound["note"])
    sheet.skip()
    _write_owners(sheet, answer)
