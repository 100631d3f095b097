"""The report: macro-medians, pooled sources, coverage, worked by hand."""

import pytest

from gpucost.calibration.measurements import POOLED, Item, by_source, payload, pooled_sources, statistics


def items(source, errors, half=0.15):
    return [
        Item(f"{source}{k}", source, "m", 100, 100 * (1 + e), 100 * (1 + e) * (1 - half), 100 * (1 + e) * (1 + half))
        for k, e in enumerate(errors)
    ]


def test_the_macro_median_gives_each_source_one_voice():
    many, few = items("a", [0.10] * 50), items("b", [0.30] * 5)
    assert statistics(many + few)["macro_median_abs_error_fraction"] == pytest.approx(0.20)
    assert statistics(many + few)["median_abs_error_fraction"] == pytest.approx(0.10)


def test_small_sources_are_pooled():
    rows = items("a", [0.1] * 5) + items("b", [0.2]) + items("c", [0.4])
    assert sorted(set(pooled_sources(rows))) == ["a", POOLED]
    assert statistics(rows)["macro_median_abs_error_fraction"] == pytest.approx((0.1 + 0.3) / 2)


def test_coverage_counts_measurements_inside_the_range():
    rows = items("a", [0.0, 0.1, 0.5, -0.5], half=0.2)
    assert statistics(rows)["interval_coverage_fraction"] == 0.5


def test_skipped_rows_count_for_their_source():
    rows = by_source(items("a", [0.1] * 3), [{"id": "x", "reason": "no"}], {"x": "b"})
    assert [(row["source"], row["rows"], row["skipped"]) for row in rows] == [("a", 3, 0), ("b", 1, 1)]


def test_nothing_predicted_is_none_not_zero():
    report = payload(3, [], [{"id": "x", "reason": "no"}], {"x": "b"})
    assert report["median_abs_error_fraction"] is None
    assert report["predicted"] == 0
