"""SQL from a stranger reads the catalog and can do nothing else."""

import time

import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import UsageError


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-01")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM offers",
        "FROM llms LIMIT 1",
        "WITH x AS (SELECT 1 AS n) SELECT * FROM x",
        "SHOW TABLES",
        "DESCRIBE offers",
        "EXPLAIN SELECT * FROM offers",
        "EXPLAIN ANALYZE SELECT 1",
        "/* a remark */ EXPLAIN SELECT 1",
        "SELECT * FROM prices_on('2025-09-01', '2025-12-31') LIMIT 1",
        "SELECT * FROM facts LIMIT 1",
    ],
)
def test_reading_is_answered(catalog, query):
    assert catalog.ask(query).rows


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE offers",
        "DELETE FROM offers",
        "INSERT INTO aliases VALUES ('a', 'b', 'c', 'd')",
        "UPDATE offers SET usd_per_hour = 1",
        "CREATE TABLE x AS SELECT 1",
        "WITH gone AS (DELETE FROM llms RETURNING *) SELECT * FROM gone",
        "EXPLAIN DROP TABLE offers",
        "EXPLAIN ANALYZE DROP TABLE offers",
        "EXPLAIN ANALYZE DELETE FROM offers",
        "SELECT 1; DROP TABLE offers",
        "COPY offers TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA threads=4",
        "SET enable_external_access = true",
        "CALL pragma_version()",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM 's3://bucket/x.parquet'",
        "SELECT * FROM query('DROP TABLE offers')",
        "SELEC 1",
        "SELECT nothing FROM offers",
        "",
        ";",
    ],
)
def test_everything_else_is_refused_in_one_sentence(catalog, query, tmp_path):
    with pytest.raises(UsageError) as error:
        catalog.ask(query.format(folder=tmp_path))
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
    assert catalog.sql("SELECT count(*) AS n FROM offers")[0]["n"] > 1700


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM range(100000000000) AS a, range(100000) AS b",
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x",
    ],
)
def test_what_never_ends_is_stopped(catalog, query):
    start = time.perf_counter()
    with pytest.raises(UsageError, match=r"stopped after 0\.5 s|memory"):
        catalog.ask(query, time_limit_s=0.5)
    assert time.perf_counter() - start < 20


def test_too_many_rows_and_too_much_memory_are_refused(catalog):
    with pytest.raises(UsageError, match="rows"):
        catalog.ask("SELECT * FROM range(3000000)")
    with pytest.raises(UsageError, match="memory"):
        catalog.ask("SELECT list(i) FROM range(100000000) AS t(i)", memory_limit_gb=0.1)


def test_columns_of_one_name_are_all_kept(catalog):
    assert catalog.ask("SELECT 1 AS a, 2 AS a").rows == [{"a": 1, "a_2": 2}]
