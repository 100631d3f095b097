"""Queries that are strange are refused with a sentence, or answered."""

from datetime import time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from tests.commands import in_process


def test_what_a_query_hands_over_has_a_place_in_json():
    from gpucost.render.json import plain

    given = [Decimal("1.5"), time(7), timedelta(days=1), b"x", UUID(int=1)]
    assert plain(given) == [1.5, "07:00:00", "1 day, 0:00:00", "78", "00000000-0000-0000-0000-000000000001"]


def test_what_breaks_inside_the_process_of_a_query_is_no_fault_of_the_query():
    from gpucost.catalog.sandbox import bounds, run

    with pytest.raises(RuntimeError, match="TypeError"):
        run({"no_such": 1}, "select 1", bounds())


def test_a_row_that_gathers_millions_of_values_is_refused(refused):
    assert "limit_query_row_bytes" in refused(["sql", "select list(range) from range(1000000)"])


def test_a_query_over_a_folder_that_cannot_be_is_the_users_to_mend():
    done = in_process("sql", "select 1", GPUCOST_STORE="x" * 5000)
    assert done.returncode == 2
    assert "internal error" not in done.stderr
    assert "too long" in done.stderr


def test_a_query_with_less_memory_than_the_facts_take_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = in_process("sql", "select count(*) from offers", GPUCOST_LIMIT_QUERY_MEMORY_GB="0.0001")
    assert (done.returncode, done.stdout) == (2, "")
    assert "of memory" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_columns_of_a_query_are_named_as_they_like():
    query = 'select 1 as "=1+1 \x1b[31m", 2=2, \'three\' as "a:2", 4 as "k@u"'
    assert in_process("sql", query).stdout.split()[-4:] == ["1", "yes", "three", "4"]
    assert in_process("sql", query, "--format", "csv").stdout == "'=1+1 \\x1b[31m,(2 = 2),a:2,k@u\n1,true,three,4\n"
    assert "\x1b" not in in_process("sql", "explain select '\x1b[31m' as a").stdout
