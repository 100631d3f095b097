"""The pictures of docs/accuracy.md: they show what the rows say."""

import math

import pytest

from benchmarks import accuracy, reliability
from gpucost.calibration.measurements import Item


def test_coverage_grows_with_the_level_and_is_what_the_table_says():
    rows = reliability.read(accuracy.ROWS.read_text("utf-8"))
    found = [reliability.coverage(rows, level) for level in reliability.LEVELS]
    assert found == sorted(found)
    inside = sum(row.low <= row.measured <= row.high for row in rows) / len(rows)
    assert reliability.coverage(rows, 0.8) == pytest.approx(inside, abs=0.005)


def test_a_miss_costs_ten_times_what_lies_beyond_the_end():
    hit = Item("a", "s", "m", measured=100.0, predicted=100.0, low=80.0, high=125.0)
    miss = Item("b", "s", "m", measured=160.0, predicted=100.0, low=80.0, high=125.0)
    width = math.log(125 / 80)
    assert accuracy.interval_score([hit]) == pytest.approx(width)
    assert accuracy.interval_score([miss]) == pytest.approx(width + 10 * math.log(160 / 125))


def test_every_row_is_a_point():
    text = accuracy.ROWS.read_text("utf-8")
    rows = reliability.read(text)
    assert reliability.speeds(text).count('opacity="0.45"') == len(rows) + len(reliability.GROUPS)  # and the legend
