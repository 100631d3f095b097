"""Joined chunks as a file: the cells of a CSV follow the one rule of cells."""

import csv

import duckdb
import pandas
import pytest

import gpucost
from gpucost.errors import UsageError
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


@pytest.mark.parametrize("name", ["q[1]", "a*b?", "n\\t", "q[|\\", "a[1]*\\b"])
def test_a_folder_of_chunks_may_hold_any_signs(name, tmp_path):
    (tmp_path / "q1").mkdir()  # which a pattern would find
    kept = tmp_path / name
    found = gpucost.sweep(model="8b", gpu="h100-sxm", gpus="8:16:x2", tokens="10b", into=str(kept))
    assert len(found.to_frame()) == 2
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize("own", [True, False])
def test_a_sweep_that_fails_removes_no_folder_but_the_one_it_made(own, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    if own:
        kept.mkdir()

    def fails(task):
        raise UsageError("no chunk")

    monkeypatch.setattr("gpucost.sweeping.chunks.work", fails)
    with pytest.raises(UsageError, match="no chunk"):
        gpucost.sweep(model="8b", gpu="h100-sxm", gpus="8", tokens="10b", into=str(kept))
    assert kept.exists() == own
