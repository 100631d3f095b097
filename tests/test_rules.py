"""A rule over rows fails by name where one row breaks it, and where it is asked of none."""

import pytest

from tests.rules import for_each


def rule_over(rows):
    @for_each("name, size", rows, lambda name, size: f"row {name}")
    def test_size(name, size, tmp_path):
        if size is None:
            pytest.skip("unknown")
        assert size > 0
        assert tmp_path.is_dir()

    return test_size


def test_it_holds_where_it_holds_for_every_row(tmp_path):
    rule_over([("a", 1), ("b", None), ("c", 2)])(tmp_path=tmp_path)


def test_every_row_that_breaks_it_is_named(tmp_path):
    with pytest.raises(pytest.fail.Exception) as told:
        rule_over([("a", 1), ("b", 0), ("c", "x")])(tmp_path=tmp_path)
    assert [line.split(":")[0] for line in str(told.value).splitlines() if line.startswith("row ")] == [
        "row b",
        "row c",
    ]


@pytest.mark.parametrize("rows", [[], [("a", None)]])
def test_a_rule_that_is_asked_of_no_row_fails(rows, tmp_path):
    with pytest.raises(pytest.fail.Exception, match="no row"):
        rule_over(rows)(tmp_path=tmp_path)
