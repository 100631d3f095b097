"""The Statements sheet: cash, profit and loss, balance sheet by fiscal year, quarters and months folded beneath."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from gpucost.money.statements import ROWS, Row
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address, shown_usd
from gpucost.render.workbook.calculations import FIRST_MONTH, FLOWS, Rows
from gpucost.render.workbook.live import LiveModel

NAME = "Statements"
_FIRST = 2  # column of the first period
_WIDTH = 16
_LEVELS = 3  # years, quarters, months


class Place(NamedTuple):
    """Where the statements of a model stand: the row of each line, the columns of the years compared, the figures."""

    rows: dict[str, int]
    years: dict[int, str]
    figures: dict[tuple[str, int], float]
    unit: str


class Span(NamedTuple):
    """A column of the sheet: a fiscal year, quarter or month, its level in the outline, and the months in it."""

    title: str
    first: int
    last: int
    level: int


def spans(model: LiveModel) -> list[Span]:
    """Return years, each followed by its quarters and these by their months, as far as the sheet of months reaches."""
    return list(_inside(model, range(len(model.periods)), 0))


def _inside(model: LiveModel, months: Iterable[int], level: int) -> Iterator[Span]:
    for title, part in groupby(months, lambda month: model.periods[month][level]):
        members = list(part)
        yield Span(title, members[0], members[-1], level)
        if level < _LEVELS - 1:
            yield from _inside(model, members, level + 1)


def write(
    book: Workbook, sheet: Sheet, models: list[LiveModel], values: Mapping[str, Mapping[str, Any]], flows: Rows
) -> dict[str, Place]:
    """Write the statements of every model that has books, all live; return where they stand."""
    sheet.title("Statements by fiscal year")
    sheet.row("Fold out the years above the columns to see quarters and months; costs are positive.")
    places = {}
    for model in models:
        columns = spans(model)
        years = {
            at: span.title
            for at, span in enumerate(columns, _FIRST)
            if not span.level and span.first <= model.compared_months
        }
        unit = shown_usd(float(abs(values[model.key]["assets_usd"]).max()))
        place = places[model.key] = Place({}, years, {}, unit)
        for column, span in enumerate(columns, _FIRST):
            beyond = span.first > model.compared_months
            fold = {"level": min(span.level + beyond, _LEVELS), "hidden": True} if span.level or beyond else {}
            sheet.page.set_column(column, column, _WIDTH, None, fold)
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        for block, rows in groupby(ROWS, lambda row: row.block):
            sheet.skip()
            sheet.heading(f"{block}, {unit.removesuffix(' in whole')}", "name", *(span.title for span in columns))
            for row in rows:
                _line(sheet, model, row, columns, values[model.key], flows, place)
        _check(book, sheet, model, columns, place)
    sheet.page.freeze_panes(0, _FIRST)
    sheet.page.repeat_columns(0, _FIRST - 1)
    sheet.page.fit_to_pages(1, 0)
    return places


def _line(
    sheet: Sheet, model: LiveModel, row: Row, columns: list[Span], values: Mapping[str, Any], flows: Rows, place: Place
) -> None:
    place.rows[row.name] = sheet.next_row
    total = row.name in ("cash_own_usd", "book_own_usd", "end_assets_usd", "end_debts_usd", "end_equity_usd")
    cells = []
    for at, span in enumerate(columns, _FIRST):
        parts = [_term(model, flows, name, how, span) for _, name, how in row.terms]
        text = "".join(f"{'-' if sign < 0 else '+'}{part}" for (sign, _, _), part in zip(row.terms, parts, strict=True))
        found = sum(sign * _value(values[name], how, span) for sign, name, how in row.terms)
        place.figures[row.name, at] = found
        cells.append(Cell(Formula(text.lstrip("+"), found), "answer" if total else "plain", place.unit))
    sheet.row(Cell(row.description, "answer" if total else "plain"), Cell(row.name, "unit"), *cells)


def _term(model: LiveModel, flows: Rows, name: str, how: str, span: Span) -> str:
    row = flows[model.key, name]

    def at(month: int) -> str:
        return address(row, FIRST_MONTH + month, fixed=True)

    if how == "end":
        return f"'{FLOWS}'!{at(span.last)}"
    if how == "change":
        before = f"'{FLOWS}'!{at(span.first - 1)}" if span.first else "0"
        return f"('{FLOWS}'!{at(span.last)}-{before})"
    return f"SUM('{FLOWS}'!{at(0 if how == 'so_far' else span.first)}:{at(span.last)})"


def _value(line: Any, how: str, span: Span) -> float:
    if how == "end":
        return float(line[span.last])
    if how == "change":
        return float(line[span.last] - (line[span.first - 1] if span.first else 0.0))
    return float(line[0 if how == "so_far" else span.first : span.last + 1].sum())


def _check(book: Workbook, sheet: Sheet, model: LiveModel, columns: list[Span], place: Place) -> None:
    """Write how far the balance sheet is from balancing, over all periods."""

    def across(name: str) -> str:
        first, last = (address(place.rows[name], column, fixed=True) for column in (_FIRST, _FIRST + len(columns) - 1))
        return f"{first}:{last}"

    assets, debts, equity = (across(f"end_{name}_usd") for name in ("assets", "debts", "equity"))
    text = f"SUMPRODUCT(ABS({assets}-{debts}-{equity}))"
    row = sheet.row("assets less debts less equity, over all periods", None, Cell(Formula(text, 0.0), "plain", "USD"))
    book.define(model.cell_name("unbalanced_usd"), NAME, row, _FIRST)


def books(models: list[LiveModel]) -> Iterator[LiveModel]:
    """Return the models that have books."""
    return (model for model in models if model.periods)
