"""Results in a console, a frame and a table: one line, plain columns first, no column that does not exist."""

import pickle
import sys

import pytest

import gpucost
from gpucost.errors import UnknownNameError


@pytest.fixture(scope="module")
def result():
    return gpucost.estimate("8b", "1b", top=3)


def test_the_repr_is_one_line(result):
    assert repr(result).startswith("<EstimateResult: About ")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 200


def test_a_frame_has_its_plain_columns_first(result):
    columns = list(result.to_frame().columns)
    assert columns[0] == "rank"
    nested = next(index for index, name in enumerate(columns) if "." in name)
    assert columns.index("cost_usd") < columns.index("age_days") < nested
    assert columns.index("age_days") < columns.index("lines")


def test_fields_that_do_not_exist_are_refused(result):
    assert result.written("csv", "rank,cost_usd").splitlines()[0] == "rank,cost_usd"
    with pytest.raises(UnknownNameError, match="cost_usd"):
        result.written("csv", "rank,cost_us")


def test_a_frame_holds_every_option(result):
    assert len(result.options) == 3
    assert len(result.to_frame()) == result.payload["options_found"] > 3
    asked = gpucost.inference("8b", gpu="h100-sxm", option="on_demand", top=2)
    assert len(asked.to_frame()) > len(asked.options) == 2


def test_a_frame_of_a_copy_holds_what_the_copy_holds(result):
    whole = len(result.to_frame())
    assert len(pickle.loads(pickle.dumps(result)).to_frame()) == whole
    assert len(type(result)(result.payload).to_frame()) == 3


def test_a_notebook_shows_the_first_chart_where_the_extra_is_there(result, monkeypatch):
    pytest.importorskip("vl_convert")
    assert 'src="data:image/svg+xml;base64,' in result._repr_html_()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert "<img" not in result._repr_html_()
    assert "<table" in result._repr_html_()
