"""Results in a console, a frame and a table: one line, plain columns first, no column that does not exist."""

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
