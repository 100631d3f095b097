"""What is written steers no terminal and no spreadsheet, and holds whatever names there are."""

import json

import numpy as np
import pytest

import gpucost
from gpucost.cli.messages import printable as shown


def test_what_is_said_on_stderr_steers_no_terminal():
    assert shown("no \x1b[2J, no \r, no \x07, no \x9b") == r"no \x1b[2J, no \r, no \x07, no \x9b"
    assert shown("4 × h100") == "4 × h100"


def test_fields_that_name_nothing_are_refused(refused):
    assert "--fields" in refused(["data", "sources", "--fields", " , "])


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("mix", {"constant": np.float32(8), "gpu": "h100-sxm", "months": 6, "max_on_demand": np.int64(8)}),
        ("tco", {"gpu": "h100-sxm", "gpus": np.int64(8), "draws": 0, "years": np.float32(4)}),
        ("fit", {"model": np.str_("8b"), "gpu": "h100-sxm", "micro_batch": np.array(8)}),
    ],
)
def test_numbers_of_numpy_are_written_as_numbers(name, asked):
    answer = getattr(gpucost, name)(**asked)
    assert json.loads(json.dumps(answer.to_dict()))["request"]["gpu"] == "h100-sxm"


@pytest.mark.slow
def test_a_name_like_the_address_of_a_cell_stays_a_name_in_charts(tmp_path, monkeypatch):
    import zipfile

    monkeypatch.chdir(tmp_path)
    name = "='[evil.xlsx]S'!$A$1"
    one = {"name": name, "gpu": "h100-sxm", "gpus": 8, "draws": 0, "rent": 2.35}
    gpucost.report({"name": name, "ownership": [one]}).to_excel("out.xlsx")
    with zipfile.ZipFile("out.xlsx") as book:
        charts = [book.read(part) for part in book.namelist() if part.startswith("xl/charts/chart")]
    assert any(b"evil.xlsx" in chart for chart in charts)
    assert not any(b"<c:f>='[evil" in chart or b"<c:f>'[evil" in chart for chart in charts)


def test_what_a_chart_is_called_is_well_formed_wherever_it_stands(tmp_path):
    import zipfile
    from types import SimpleNamespace
    from xml.etree import ElementTree

    import xlsxwriter

    from gpucost.render.workbook.charts import Gallery

    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as file:
        sheet = SimpleNamespace(title=lambda _: None, next_row=0, page=file.add_worksheet())
        chart = file.add_chart({"type": "line"})
        chart.add_series({"values": "=Sheet1!$A$1:$A$2"})
        Gallery(SimpleNamespace(file=file), sheet).add(chart, "\x01", "", "")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        texts = [book.read(name).decode() for name in book.namelist() if "drawings/d" in name or "charts/c" in name]
    assert len(texts) == 2
    for text in texts:
        ElementTree.fromstring(text)
        assert r"\x01" in text


def test_runs_steer_neither_terminal_nor_spreadsheet(capsys):
    from gpucost.cli.calibrate import _as_table
    from gpucost.cli.options import Output

    assert _as_table(Output("csv", None, None), [{"name": "=1+1\x1d\x1b[2J", "value": 0.123456789012345}])
    assert capsys.readouterr().out == "name,value\n'=1+1\\x1d\\x1b[2J,0.123456789012345\n"
