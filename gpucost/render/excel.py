"""The workbook writer: live formulas from inputs to answers, and everything else that a finance team works with."""

from collections.abc import Mapping
from typing import Any, cast

from gpucost.answers.ownership import Mix, Tco
from gpucost.errors import UsageError
from gpucost.render.build import document
from gpucost.render.decision import decision_of
from gpucost.render.workbook import (
    calculations,
    changes,
    charts,
    cover,
    decision,
    inputs,
    lender,
    mix,
    options,
    statements,
    static,
    yearly,
)
from gpucost.render.workbook.book import Sheet, Workbook, new_workbook
from gpucost.render.workbook.live import LiveModel, compute, model_of, with_short_formulas

# what a live book need not print: the change log has each input with its source, pages by year what months hold
_UNPRINTED = frozenset(
    (inputs.NAME, calculations.NAME, cover.CHECKS, static.ASSUMPTIONS, static.SOURCES, static.SCENARIOS)
)
_MACHINERY = "Intermediate results that Sensitivity and Options read; not laid out for print."


def write_workbook(payload: Mapping[str, Any], path: str) -> None:
    """Write the workbook of an answer or of a scenario; an existing file is replaced only by a complete one."""
    try:
        import xlsxwriter  # noqa: F401 - said here, before anything is written
    except ImportError:
        raise UsageError(
            "a workbook needs the package XlsxWriter, which is not installed. Run: pip install XlsxWriter"
        ) from None
    with new_workbook(path) as book:
        _Workbook(payload, book).write()


def parts_of(payload: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the answers in a payload with their titles: a scenario holds several, anything else is one."""
    if payload.get("kind") == "scenario":
        return [(str(part["name"]), part["payload"]) for part in payload["parts"]]
    return [(document(payload).title, payload)]


class _Workbook:
    """Collects the models of all parts, then writes the sheets."""

    def __init__(self, payload: Mapping[str, Any], book: Workbook) -> None:
        self.payload, self.book = payload, book
        self.parts = parts_of(payload)
        self.sources: dict[str, Mapping[str, Any]] = {}
        self.models: list[LiveModel] = []
        self.draws: dict[str, Any] = {}  # what was drawn of a model's inputs
        self.statement_layouts: dict[str, statements.StatementLayout] = {}
        self.size_tables: list[tuple[str, int, int]] = []
        self.currencies: dict[str, Mapping[str, Any]] = {}  # what a model's answer says in another currency
        self.lenders: dict[str, Mapping[str, Any]] = {}  # what its lender asks
        self.ways: list[options.RentOptions] = []
        self.option_tables: list[tuple[str, str, int, int, float]] = []  # sheet and rows of each table of options
        self.statics = []
        self.native_charts: list[static.NativeChart] = []  # charts of answers without a model
        self.ownership_answers: dict[str, Any] = {}  # the answer behind each model of owning
        self.pages: dict[str, Sheet] = {}  # the sheet that a board reads, by model or title of a mix
        self.decisions: dict[str, decision.DecisionCases] = {}
        self.currency_cells: dict[str, dict[str, str]] = {}  # names of cells with present values in another currency
        self.swings: dict[str, options.SensitivityCases] = {}
        for number, (title, part) in enumerate(self.parts, 1):
            self.sources |= part["sources"]
            model = model_of(part, title, number if len(self.parts) > 1 else 0)
            if model is not None:
                model = with_short_formulas(model)
                self.models.append(model)
                if part.get("kind") == "tco":
                    self.ownership_answers[model.key] = part
                self.draws[model.key] = part.get("monte_carlo")
                if part.get("currency"):
                    self.currencies[model.key] = part["currency"]
                if part.get("lender") and part["lender"]["years"]:
                    self.lenders[model.key] = part["lender"]
            elif part.get("kind") != "estimate":
                self.statics.append((title, part))
        self.book.live = bool(self.models)
        self.values = {model.key: compute(model) for model in self.models}
        self.spans = {model.key: options.spans(model) for model in self.models}
        self.flows = calculations.plan_rows(self.models)

    def write(self) -> None:
        """Write every sheet and close the file."""
        # Sheets stand in the order in which they are made; XlsxWriter flushes each row as it is written. The sheet of a
        # board is made first, for that is where one looks, and filled when all that it refers to has its place.
        self._front()
        self._live()
        places = self._analysis()
        offers = self._tables()
        self._charts(places, offers)
        self._decisions(places[1])
        self._back()
        for name in _UNPRINTED & self.book.sheets.keys() if self.models else ():
            self.book.sheets[name].leave_unprinted()
        self.book.close()

    def _front(self) -> None:
        """Write what a reader opens first: the page of a board, the cover and the summary."""
        from gpucost import __version__

        mixes = [title for title, part in self.statics if part.get("kind") == "mix"]
        for key in (*self.ownership_answers, *mixes):
            name = decision.NAME if len(self.ownership_answers) + len(mixes) == 1 else f"{decision.NAME} {key}"
            self.pages[key] = self.book.sheet(_sheet_name(name, 0).removeprefix("0 "), decision.WIDTHS)

        title = str(self.payload.get("name") or document(self.payload).title)
        sheet = self.book.sheet(cover.COVER, (16, 110))
        master = cover.master_verdict(self.models, self.values) if self.models else ""
        cover.write_cover(sheet, title, self.payload, self.parts, __version__, master, self.models)
        leads = [(name, document(part).lead) for name, part in self.parts]
        summary = self.book.sheet(cover.SUMMARY, (66, 18, 22, 18, 10, 36))
        cover.write_summary(summary, self.models, self.values, [pair for pair in leads if pair[1]])

    def _live(self) -> None:
        """Write the inputs and all that follows from them: calculations, months, statements, what a lender asks."""
        if not self.models:
            return
        scenarios = {model.key: options.scenarios(model, self.spans[model.key]) for model in self.models}
        inputs.write(self.book, self.models, scenarios, self.sources)
        sheet = self.book.sheet(calculations.NAME, (30, 46, 26, 18, 90))
        calculations.write(self.book, sheet, self.models, self.values, self.flows)
        changes.write(self.book, self.book.sheet(changes.NAME, changes.WIDTHS), self.models, self.sources)
        if self.flows:
            yearly.write(self.book.sheet(yearly.NAME, (46, 14)), self.models, self.values, self.flows)
            sheet = self.book.sheet(calculations.FLOWS, (30, 40, 12, 8, 18))
            calculations.write_flows(self.book, sheet, self.models, self.values, self.flows)
        if with_books := [model for model in self.models if model.periods]:
            self.statement_layouts = statements.write(
                self.book, self.book.sheet(statements.NAME, (46, 26)), with_books, self.values, self.flows
            )
        for model in self.models:
            if model.key in self.lenders:
                name = lender.NAME if len(self.parts) == 1 else f"{lender.NAME} {model.key}"
                lent, figures = self.lenders[model.key], self.values[model.key]
                lender.write(self.book, self.book.sheet(name, lender.WIDTHS), model, figures, self.flows, lent)
        if any(model.tables for model in self.models):
            sheet = self.book.sheet(calculations.TABLES, (18,) * 12)
            calculations.write_tables(self.book, sheet, self.models)
            sheet.leave_unprinted()

    def _analysis(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write budgets and sensitivities; return where charts find the rows of both, by model."""
        if not self.models:
            return {}, {}
        budgets: dict[str, Any] = {}
        runs = [model for model in self.models if statements.is_run(model)]
        if runs or self.statement_layouts:
            sheet = self.book.sheet(statements.BUDGET, (34, 26, 16, 16, 16, 16, 16))
            sheet.title("Budget")
            for model in self.models:
                if statement := self.statement_layouts.get(model.key):
                    statements.write_owning(self.book, sheet, model, statement, self.draws.get(model.key))
            if runs:
                as_of = str(self.payload.get("as_of") or "")
                budgets = statements.write_budget(self.book, sheet, runs, self.values, as_of)
            else:  # only a run's table has words in the second column
                sheet.fold_names()
        sheet = self.book.sheet(options.SENSITIVITY, (32, 28, 13, 13, 13, 16, 16, 16, 16, 16))
        blocks = [
            options.SensitivityCases(model, self.spans[model.key], self.values[model.key], self.flows)
            for model in self.models
        ]
        self.swings = {block.model.key: block for block in blocks}
        for model in self.models:
            if model.key in self.ownership_answers:
                self.decisions[model.key] = decision.DecisionCases(model, self.flows)
            if model.ways:
                name = options.NAME if len(self.parts) == 1 else f"{options.NAME} {model.key}"
                self.ways.append(options.RentOptions(model, self.values[model.key], self.flows, name))
        # The cases are recomputed on two sheets at the end of the book, which these sheets read: where each quantity
        # will stand there is decided now.
        self.cases: list[calculations.CaseBlock] = [*blocks, *self.ways, *self.decisions.values()]
        row = flow_row = 3  # below the sheets' titles and the sentence under them
        for block in self.cases:
            row, flow_row = block.plan(row), block.plan_flows(flow_row + 1)
        return budgets, options.write_sensitivity(sheet, blocks)

    def _tables(self) -> tuple[int, int, list[str]] | None:
        """Write options, offers and answers without a model; return the rows and columns of the offers."""
        offers_range = None
        for ways in self.ways:
            # where bars of the chart begin below nothing, its axis must not begin at zero
            rows = options.write(self.book, self.book.sheet(ways.name, options.WIDTHS), ways)
            lowest = min(float(row["npv_usd"]) for row in ways.model.ways)
            self.option_tables.append((ways.model.title, ways.name, *rows, lowest))
        live = {model.title for model in self.models if model.ways}  # their options have a live sheet
        offered = [(title, part) for title, part in self.parts if part.get("options") and title not in live]
        if offered:
            static.write_options(self.book, self.book.sheet(static.OPTIONS, (30, 26, 20, 20, 20, 20, 20, 20)), offered)
            offers_range = static.write_offers(self.book, self.book.sheet(static.OFFERS), offered)
        if levelled := [part for part in offered if part[1].get("kind") == "inference" and part[1].get("levels")]:
            static.write_levels(self.book.sheet(static.LEVELS, (16,) * 21), levelled)
        for model in self.models:
            if currency := self.currencies.get(model.key):
                name = statements.CURRENCY if len(self.parts) == 1 else f"{statements.CURRENCY} {model.key}"
                months = model.compared_months
                self.currency_cells[model.key] = statements.write_currency(
                    self.book.sheet(name, (34, 16)), model, self.values[model.key], self.flows, currency, months
                )
        if any(len(part.get("scaling") or ()) > 1 for _, part in self.parts):
            self.size_tables = static.write_sizes(self.book.sheet(static.SIZES, (18,) * 8), self.parts)
        if any(part.get("scenarios") for _, part in self.parts):
            sheet = self.book.sheet(static.SCENARIOS, (24, 48, 20, 20, 20, 20, 12))
            static.write_scenarios(self.book, sheet, self.parts, self.models)
        for number, (title, part) in enumerate(self.statics, 1):
            sheet = self.book.sheet(_sheet_name(title, number), (24, 18, 18, 18, 18, 18, 18, 18))
            self.native_charts += static.write_document(self.book, sheet, document(part))
            if part.get("kind") == "mix":
                name = mix.NAME if len(self.statics) == 1 else _sheet_name(f"{mix.NAME} {title}", number)
                cost = mix.write_mix(self.book.sheet(name, mix.WIDTHS), part)
                decision.write_mix_page(self.book, self.pages[title], cast(Mix, part), cost)
        return offers_range

    def _charts(self, places: tuple[dict[str, Any], dict[str, Any]], offers: tuple[int, int, list[str]] | None) -> None:
        """Write the gallery: each chart reads cells of the sheets before it."""
        budgets, swings = places
        if not (offers or self.native_charts or self.option_tables or self.size_tables or self.models):
            return
        gallery = charts.Gallery(self.book, self.book.sheet(charts.NAME))
        if offers:
            gallery.offers(*offers)
        for chart in self.native_charts:
            gallery.picture(chart)
        for option_table in self.option_tables:
            gallery.ways(*option_table)
        for size_table in self.size_tables:
            gallery.sizes(*size_table)
        for model in self.models:
            if model.key in swings:
                base = calculations.plain(self.values[model.key][model.answer])
                gallery.tornado(model, base, *swings[model.key])
            if model.key in budgets:
                gallery.budget(model, *budgets[model.key])
            if statement := self.statement_layouts.get(model.key):
                gallery.years(model, statement)

    def _decisions(self, swings: Mapping[str, tuple[int, int]]) -> None:
        """Write the page that a board reads for every comparison of owning and renting."""
        for model in self.models:
            if model.key not in self.ownership_answers:
                continue
            answer = cast(Tco, self.ownership_answers[model.key])
            decided = decision_of(answer)
            assert decided is not None, "a model of owning has the formulas of this version"
            name = decision.FIGURES if len(self.ownership_answers) == 1 else f"{decision.FIGURES} {model.key}"
            behind = decision.DecisionBook(
                model,
                answer,
                decided,
                self.values[model.key],
                self.flows,
                self.decisions[model.key],
                next((ways for ways in self.ways if ways.model is model), None),
                self.swings.get(model.key),
                swings.get(model.key, (0, 0))[0],
                self.currency_cells.get(model.key, {}),
            )
            figures = self.book.sheet(name, decision.FIGURES_WIDTHS)
            decision.write(self.book, self.pages[model.key], figures, behind)
            figures.leave_unprinted()

    def _back(self) -> None:
        """Write what everything rests on: assumptions, sources, checks, and hidden the cases recomputed."""
        if self.models or any(part.get("assumptions") for _, part in self.parts):
            sheet = self.book.sheet(static.ASSUMPTIONS, (26, 34, 16, 28, 14, 14, 11, 46, 19, 60))
            static.write_assumptions(self.book, sheet, self.parts, self.models, self.sources)
        if self.sources:
            static.write_sources(self.book, self.book.sheet(static.SOURCES, (28, 24, 44, 60, 12, 12, 40)), self.sources)
        if not self.models:
            return
        budgets = {model.key for model in self.models if statements.is_run(model)}
        sheet = self.book.sheet(cover.CHECKS, (70, 16, 50, 18, 18))
        cover.write_checks(self.book, sheet, self.models, self.values, budgets, self.flows)
        sheet = self.book.sheet(calculations.CASES, (30, 18, 3, *(16,) * 21))
        sheet.title("The whole calculation, case by case")
        sheet.row(_MACHINERY)
        sheet.hide()
        for block in self.cases:
            block.write(sheet)
        if self.flows:
            width = calculations.month_width(self.models, self.values) + 3  # cents
            months = max(model.months for model in self.models)
            sheet = self.book.sheet(calculations.CASE_FLOWS, (30, 14, *(width,) * (months + 1)))
            sheet.title("Monthly lines, case by case")
            sheet.row(_MACHINERY)
            sheet.hide()
            for block in self.cases:
                block.write_flows(sheet)


def _sheet_name(title: str, number: int) -> str:
    r"""Make a legal sheet name: at most 31 characters, none of []:*?/\.

    >>> _sheet_name("mix: 2027/28", 1)
    '1 mix 2027 28'
    """
    cleaned = "".join(" " if sign in "[]:*?/\\'" else sign for sign in f"{number} {title}")
    return " ".join(cleaned.split())[:31]
