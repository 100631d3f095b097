"""Joined chunks as a file: the cells of a CSV follow the one rule of cells."""

import csv

import duckdb
import pandas

from gpucost.render.table_csv import cell
from gpucost.sweeping.chunks import join


def test_every_cell_of_a_joined_csv_is_written_as_any_other_csv_writes_it(tmp_path):
    signs = [chr(code) for code in (*range(1, 0x3000), 0xFEFF, 0x1F600) if chr(code) not in "\n\r"]
    texts = [text for sign in signs for text in (sign, f"{sign}evil", f"a{sign}b")]
    rows = pandas.DataFrame({"model": texts})
    with duckdb.connect() as connection:
        connection.from_df(rows).write_parquet(str(tmp_path / "chunk.parquet"))
    join([tmp_path / "chunk.parquet"], str(tmp_path / "out.csv"), ".csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["model"] for row in csv.DictReader(file)] == [cell(text) for text in texts]
