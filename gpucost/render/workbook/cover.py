"""Cover, Summary and Checks: what the book is, what it answers, and whether it holds together."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from gpucost.answers import PRICED
from gpucost.answers.common import old_prices
from gpucost.answers.ownership import TIE, Tco
from gpucost.gate import beside
from gpucost.render import evidence
from gpucost.render.workbook.book import Cell, Formula, Sheet, Workbook, address
from gpucost.render.workbook.calculations import FlowRows, balances, shown_unit, solved
from gpucost.render.workbook.changes import STATUSES
from gpucost.render.workbook.live import LiveModel

COVER, SUMMARY, CHECKS = "Cover", "Summary", "Checks"
_TOLERANCE, _NEAR = "check_tolerance", 1e-9  # name of the cell, and its value: rounding of floats stays below
_SIDES = (("Owning", "renting"), ("Renting", "owning"))
_DELIVERED = 'IF(inputs_changed>0,"The sentences above are as delivered; the figures below follow the inputs.","")'


def write_cover(
    sheet: Sheet,
    title: str,
    payload: Mapping[str, Any],
    parts: Sequence[tuple[str, Mapping[str, Any]]],
    version: str,
    master: str,
    models: Sequence[LiveModel] = (),
) -> None:
    """Write purpose, version, dates, how to use the book, and the master check."""
    sheet.title(title)
    issued: Mapping[str, str] = payload.get("issued") or {}
    days = (str(payload.get(name) or "") for name in ("as_of", "catalog_version"))
    notice = old_prices(*days) if payload.get("kind") in PRICED else ""
    # the status of an issued answer stands here with the hash by which one can check it
    facts = [
        (
            "Purpose",
            (
                "What a workload costs, on which GPUs, and whether to rent, reserve or buy; for people who "
                "must be able to change an assumption."
            ),
        ),
        *((name.capitalize() if name != "sha256" else "SHA-256", text) for name, text in issued.items() if text),
        ("Made by", f"gpucost {version}"),
        ("As of", str(payload.get("as_of") or "")),
        ("Catalog", str(payload.get("catalog_version") or "")),
        *((("Prices", notice),) if notice else ()),
    ]
    for label, text in facts:
        sheet.row(Cell(label, "head"), Cell(text, "wrap"))
    if master:
        sheet.row(Cell("Master check", "head"), Cell(Formula("master_check", master), "answer"))
        # of how many inputs nobody states a source, and how many were changed: the sheets of inputs and changes say
        statuses = [entry.status or "derived" for model in models for entry in model.inputs]
        assumed, sourced, given = (f'COUNTIF({STATUSES},"{word}")' for word in ("assumed", "sourced", "given"))
        live_count = (
            f'{assumed}&" of "&COUNTIF({STATUSES},"*")&" inputs are assumed, "&{sourced}&" have a source, "'
            f'&{given}&" were given; "&inputs_changed&" changed since"'
        )
        assumed, sourced, given = (str(statuses.count(word)) for word in ("assumed", "sourced", "given"))
        sentence = f"{assumed} of {len(statuses)} inputs are assumed, {sourced} have a source, {given} were given"
        sheet.row(Cell("Inputs", "head"), Cell(Formula(live_count, f"{sentence}; 0 changed since"), "answer"))
    sheet.skip()
    sheet.row(Cell("How to use this workbook", "heading"))
    # a book without live formulas needs other instructions
    how = [text for book, text in beside(__file__, "cover") if book == ("live" if master else "static")]
    for number, text in enumerate(how, 1):
        sheet.row(str(number), Cell(text, "wrap"))
    for name, part in parts:
        title = name if len(parts) > 1 else ""
        if part.get("kind") == "tco":
            sheet.skip()
            sheet.row(Cell(f"{evidence.TITLE}: {title}" if title else evidence.TITLE, "heading"))
            for question, text in evidence.answers(cast(Tco, part)).items():
                sheet.row(Cell(question, "cell"), Cell(text, "wrap"))
                if master and question in _NOW:
                    sheet.row("", Cell(_NOW[question], "wrap"))
        _write_remarks(sheet, title, part)
    sheet.stand_upright()
    if payload.get("kind") == "scenario":
        _write_remarks(sheet, "", {"warnings": payload.get("warnings")})


# what the cells say now, below what an auditor was told as delivered: question -> formula
_NOW = {
    "Who changed it?": Formula(
        'inputs_changed&" inputs differ from what was delivered (Change log)."',
        "0 inputs differ from what was delivered (Change log).",
    ),
    "Does it add up?": Formula(
        'IF(master_check="OK","Every check of the sheet Checks holds.","A check of the sheet Checks fails.")',
        "Every check of the sheet Checks holds.",
    ),
}


def _write_remarks(sheet: Sheet, name: str, part: Mapping[str, Any]) -> None:
    """Write what an answer says beside its figures: what was assumed aloud, its conventions and its warnings."""
    warnings = [str(text) for text in part.get("warnings") or ()]
    conventions = [str(text) for text in (*(part.get("said") or ()), part.get("conventions") or "") if text]
    remarks = [str(text) for text in part.get("remarks") or ()]
    for heading, mark, texts in (
        ("Warnings", "!", warnings),
        ("Remarks", "", remarks),
        ("Conventions", "", conventions),
    ):
        if texts:
            sheet.skip()
            sheet.row(Cell(f"{heading}: {name}" if name else heading, "heading"))
        for text in texts:
            sheet.row(mark, Cell(text, "wrap"))


def write_summary(
    sheet: Sheet, models: Sequence[LiveModel], values: Mapping[str, Mapping[str, Any]], leads: Sequence[tuple[str, str]]
) -> None:
    """Write the answers, live, beside what they were when delivered."""
    sheet.title("Summary")
    for title, lead in leads:
        sheet.row(Cell(title, "heading"))
        sheet.paragraph(lead, 4)
    if leads and models:
        sheet.row(Cell(Formula(_DELIVERED, ""), "note"))
    for model in models:
        if model.answer == "npv_saving_usd":
            # The verdict of owning against renting follows the inputs. A tie is what the draws say, which nobody can
            # repeat in a cell: it stands only as long as no input is changed.
            saved = model.cell_name(model.answer)
            own, rent, less = (
                f'TEXT({cell},"#,##0")'
                for cell in (model.cell_name("npv_own_usd"), model.cell_name("npv_rent_usd"), f"ABS({saved})")
            )
            first, then = (f'IF({saved}>0,"{for_own}","{for_rent}")' for for_own, for_rent in zip(*_SIDES, strict=True))
            tied = any(_is_tie_of_sides(lead) for title, lead in leads if title == model.title or len(leads) == 1)
            even = f"{TIE.format('buying', 'renting')}. " if tied else ""
            tie = f'IF(inputs_changed=0,"{even}","")&' if tied else ""
            text = f'{tie}{first}&" costs $"&{less}&" less than "&{then}'
            text += f'&" (present value: own $"&{own}&", rent $"&{rent}&")"'
            value = {name: float(values[model.key][name]) for name in ("npv_own_usd", "npv_rent_usd", model.answer)}
            # the same sentence in Python's words, which a cell shows until the book is recalculated
            first, then = _SIDES[0] if value[model.answer] > 0 else _SIDES[1]
            sentence = (
                f"{even}{first} costs ${abs(value[model.answer]):,.0f} less than {then} (present value: own"
                f" ${value['npv_own_usd']:,.0f}, rent ${value['npv_rent_usd']:,.0f})"
            )
            sheet.sentence(Cell(Formula(text, sentence), "decided"), 4)  # wraps within what is printed
    # then every answer: now, as delivered, and how far apart
    for model in models:
        sheet.skip()
        sheet.row(Cell(model.title, "heading"))
        sheet.heading("answer", "now", "unit", "as delivered", "change", "name")
        for name in _summary_lines(model):
            line = model.line(name)
            value = solved(line.text.replace("none()", "NA()"), values[model.key][name])[1]
            now, then = address(sheet.next_row, 1), address(sheet.next_row, 3)
            least = "<0.005" if line.measure == "USD" else "=0"  # less than a cent is what rounding leaves of nothing
            change = f'IF(ISNUMBER({now}),IF(ABS({then}){least},0,ROUND({now}/{then}-1,9)),"")'
            sheet.row(
                Cell(line.description or name.replace("_", " "), "wrap"),
                Cell(Formula(model.cell_name(name), value), "answer", shown_unit(line)),
                Cell(line.measure, "unit"),
                Cell(value, "shade", shown_unit(line)),
                Cell(Formula(change, 0.0), "plain", "fraction of one"),
                Cell(name, "unit"),
            )
    sheet.page.print_area(0, 0, max(sheet.next_row - 1, 0), 4)  # without the names that formulas use


def _is_tie_of_sides(lead: str) -> bool:
    """Tell whether an answer calls buying and renting, as asked, a toss-up."""
    before, _, after = TIE.split("{}")
    tied, mark, _ = lead.partition(after)
    return bool(mark) and tied.startswith(before) and "buying" in tied and "renting" in tied


def write_checks(
    book: Workbook,
    sheet: Sheet,
    models: Sequence[LiveModel],
    values: Mapping[str, Mapping[str, Any]],
    budgets: Collection[str],
    flows: FlowRows,
) -> None:
    """Write the checks of the book and one master check that needs them all."""
    sheet.title("Checks")
    row = sheet.row("tolerance, relative", Cell(_NEAR, "input"))
    book.define(_TOLERANCE, CHECKS, row, 1)
    master = sheet.next_row  # its formula spans the checks below it, so that they are counted first
    count = 0
    for model in models:
        count += len(_expected(model)) + len(_summary_lines(model)) + (model.key in budgets)
        count += len(balances(model, values[model.key], flows))
    first = master + 3
    span = f"{address(first, 1, fixed=True)}:{address(first + max(count, 1) - 1, 1, fixed=True)}"
    sheet.row(
        Cell("Master check", "answer"),
        Cell(
            Formula(f'IF(COUNTIF({span},"OK")=ROWS({span}),"OK","LOOK BELOW")', master_verdict(models, values)),
            "answer",
        ),
    )
    book.define("master_check", CHECKS, master, 1)
    sheet.skip()
    sheet.heading("check", "verdict", "what it compares", "one", "the other")
    for model in models:
        # what the answer says, against what the cells come to: while nothing is changed they must agree
        first_expected, names = sheet.next_row, _expected(model)
        for name in names:
            cell = model.cell_name(name)
            at = address(sheet.next_row, 3)
            scale = address(first_expected + names.index(_scale(model, name)), 3)
            near = f"ABS({cell}-{at})<={_TOLERANCE}*MAX(1,ABS({scale}))"
            agree = f"IF(inputs_changed>0,TRUE,IF(ISNUMBER({cell}),{near},FALSE))"
            sheet.row(
                f"{model.title}: {name} agrees with gpucost",
                _verdict(agree, _agrees(model, name, values[model.key])),
                "while no input is changed",
                Cell(model.expected[name], "shade"),
            )
        for name in _summary_lines(model):
            finite = f"OR(ISNUMBER({model.cell_name(name)}),ISTEXT({model.cell_name(name)}))"
            sheet.row(f"{model.title}: {name} is no error", _verdict(finite), "a wrong input would show here")
        if model.key in budgets:
            share = model.cell_name("budget_share")
            sheet.row(
                f"{model.title}: the budget spreads the whole cost",
                _verdict(f"ABS({share}-1)<={_TOLERANCE}"),
                "a longer run needs more rows on the sheet Budget",
            )
        for check in balances(model, values[model.key], flows):
            row = sheet.next_row
            texts = check.condition.format(address(row, 3), address(row, 4))
            sides = (Cell(side, "plain", "USD") for side in (check.first, check.second))
            sheet.row(f"{model.title}: {check.claim}", _verdict(texts), check.note, *sides)
    # verdicts are words, so that a print without colour says the same
    green = book.file.add_format({"font_color": "#1B6E2C"})
    red = book.file.add_format({"font_color": "#FFFFFF", "bg_color": "#C00000"})
    area = (master, 1, sheet.next_row, 1)
    sheet.page.conditional_format(*area, {"type": "cell", "criteria": "==", "value": '"OK"', "format": green})
    sheet.page.conditional_format(*area, {"type": "text", "criteria": "begins with", "value": "LOOK", "format": red})


def _expected(model: LiveModel) -> list[str]:
    """Return the lines of which the answer says a number that the cells must come to."""
    scalars = {line.name for line in model.scalars}
    return [name for name, value in model.expected.items() if name in scalars and isinstance(value, (int, float))]


def _summary_lines(model: LiveModel) -> list[str]:
    """Return the lines on the Summary; a model may leave some out, as one without a hosted price."""
    scalars = {line.name for line in model.scalars}
    return [name for name in model.shown if name in scalars]


def master_verdict(models: Sequence[LiveModel], values: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the master check says as delivered."""
    agree = all(_agrees(model, name, values[model.key]) for model in models for name in _expected(model))
    return "OK" if agree else "LOOK BELOW"


def _agrees(model: LiveModel, name: str, values: Mapping[str, Any]) -> bool:
    """Tell whether a line is what the answer says, as the check of the sheet asks."""
    then = model.expected[name]
    return bool(
        abs(float(values[name]) - then) <= _NEAR * max(1.0, abs(then), abs(model.expected[_scale(model, name)]))
    )


def _scale(model: LiveModel, name: str) -> str:
    """Return the line by whose size another is judged: of money the largest, for some is a difference of the rest."""
    amounts = [line for line in _expected(model) if line.endswith("usd")]
    return max(amounts, key=lambda line: abs(model.expected[line])) if name in amounts else name


def _verdict(condition: str, holds: bool = True) -> Formula:
    return Formula(f'IF({condition},"OK","LOOK")', "OK" if holds else "LOOK")
