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
    assert repr(result).startswith("<EstimateResult: Budget ")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 200


def test_a_frame_has_its_plain_columns_first(result):
    columns = list(result.to_frame(all=True).columns)
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


def test_a_frame_has_some_twenty_columns_unless_all_are_asked_for(result):
    short, whole = result.to_frame(), result.to_frame(all=True)
    assert len(short.columns) == 20 < len(whole.columns)
    assert set(short.columns) < set(whole.columns)
    assert {"provider", "gpu", "gpus", "cost_usd", "budget_usd", "days", "age_days"} <= set(short.columns)
    assert len(short) == len(whole)


def test_rows_have_their_keys_as_attributes(result):
    best = result.best
    assert best.cost_usd == best["cost_usd"] == result.options[0].cost_usd
    assert best.layout.tensor == best["layout"]["tensor"]
    assert {"cost_usd", "layout"} <= set(dir(best))
    with pytest.raises(AttributeError, match="cost_usd"):
        _ = best.cost_us
    assert pickle.loads(pickle.dumps(best)) == best
    assert type(result.to_dict()["options"][0]) is dict


@pytest.mark.parametrize(
    "ask",
    [
        lambda: gpucost.estimate("8b", "1b", top=30),
        lambda: gpucost.inference("8b"),
        lambda: gpucost.tco("h100-sxm", 64),
    ],
    ids=["estimate", "inference", "tco"],
)
def test_a_cell_is_one_picture_and_ten_rows(ask):
    pytest.importorskip("vl_convert")
    cell = ask()._repr_html_()
    assert len(cell.encode()) < 60_000
    assert cell.count("<tr") <= 11
    assert cell.count("<img") == 1


def test_the_facts_come_as_frames():
    prices = gpucost.prices("h100-sxm")
    assert prices["gpu"].str.contains("h100-sxm5-80gb").all()
    least = gpucost.prices("h100-sxm", by="provider")
    assert least["provider"].is_unique
    assert set(least["provider"]) <= set(prices["provider"])
    assert list(gpucost.gpus("b200")["id"]) == ["b200-sxm"]
    assert gpucost.models("llama-3.1-8b")["parameters"].tolist() == [8_030_261_248]
    assert {"source_id", "publisher"} <= set(gpucost.sources("offers").columns)
    assert len(gpucost.price_index()) > 100
    assert gpucost.sql("select 1 as one")["one"].tolist() == [1]
    with pytest.raises(gpucost.GpuCostError, match="by="):
        gpucost.prices(by="colour")


def test_python_is_told_the_names_of_python():
    with pytest.raises(gpucost.GpuCostError, match="mfu= and step_time="):
        gpucost.estimate("8b", "1b", mfu=0.3, step_time=3)


def test_a_docstring_has_each_argument_with_its_default():
    text = gpucost.estimate.__doc__
    assert "    Parameters\n    ----------\n" in text
    for argument in gpucost.estimate.question.arguments:
        assert f"    {argument.name} : " in text
    assert "overhead : SHARE, default 20%" in text
    assert "method : {full, lora, qlora, grpo}, default full" in text
