"""A figure becomes a column by one row of the table of columns, in every medium."""

from itertools import pairwise
from pathlib import Path

import openpyxl
import pytest

from gpucost.answers.common import figures
from gpucost.answers.training import RunOutcome
from gpucost.gate import beside
from gpucost.render import document as documents
from gpucost.render import html, markdown, text
from gpucost.render.build import document
from gpucost.render.excel import write_workbook
from tests.render import answers

ROWS = beside(documents.__file__, "columns")


@pytest.mark.slow
def test_one_row_makes_a_figure_a_column_of_every_medium(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    payload = answers.training()
    key, heading = "checkpoint_interval_hours", "checkpoint interval"
    assert key in payload["options"][0]

    def shown() -> dict[str, str]:
        made = document(payload)
        path = tmp_path / "book.xlsx"
        write_workbook(payload, str(path))
        sheet = openpyxl.load_workbook(path, data_only=True)["Offers"]
        return {
            "text": text.write(made, width=400, color=False, unicode=True, all_sections=True),
            "markdown": markdown.write(made),
            "page": html.fragment(made),
            "workbook": str([cell.value for row in sheet.iter_rows(max_row=8) for cell in row]),
        }

    assert not [medium for medium, body in shown().items() if heading in body]
    monkeypatch.setattr(documents, "beside", lambda module, name: [*ROWS, ["estimate", key, "", "", "", ""]])
    assert not [medium for medium, body in shown().items() if heading not in body]


def test_a_figure_of_the_bill_is_in_an_answer_once_its_type_names_it() -> None:
    class More(RunOutcome):
        work_hours: float

    columns = {name: [1.0] for name in RunOutcome.__annotations__} | {"work_hours": [49.1], "unnamed_hours": [2.0]}
    assert figures(More, columns, 0)["work_hours"] == 49.1
    assert "unnamed_hours" not in figures(More, columns, 0)


def test_a_column_stands_once_in_its_list_and_its_units_and_places_can_be_read() -> None:
    assert ROWS[0] == ["list", "column", "heading", "unit", "unit_column", "leaves"]
    assert len({(row[0], row[1]) for row in ROWS[1:]}) == len(ROWS) - 1
    lists = [row[0] for row in ROWS[1:]]
    assert len(set(lists)) == 1 + sum(one != other for one, other in pairwise(lists))  # together
    for name in set(lists):
        for column in documents.columns_of(name):
            assert column.priority >= 0
            assert column.title
