"""One gate for files: whatever reads one takes regular files of bounded size, and says in a sentence what is wrong."""

import json
import os
import time
from math import inf, nan

import pytest

import gpucost
from gpucost import gate
from gpucost.answers.saved import read_answer
from gpucost.architectures.config import load
from gpucost.ask.tco import plan_kinds
from gpucost.bench.file import read_bench
from gpucost.calibration.measurements import read_file
from gpucost.catalog import open_catalog
from gpucost.errors import DataError, UsageError
from gpucost.invoices.commitment import read_agreements, usage_of
from gpucost.invoices.reconciliation import read_map
from gpucost.library.scenario import read_scenario
from gpucost.market.pools import read_pool
from gpucost.money.price_paths import read_months
from gpucost.ownership.offers import read_file as read_quote_file
from gpucost.ownership.offers import read_quotes
from gpucost.ownership.plan import read_plan
from gpucost.schemas.validation import read_cells
from gpucost.serving.costing import read_profile
from gpucost.serving.request import own_lengths

READERS = {
    "answer.json": read_answer,
    "scenario.toml": read_scenario,
    "config.json": load,
    "bench.json": read_bench,
    "book.toml": lambda path: open_catalog(book=path).offers(),
    "pool.toml": lambda path: read_pool(str(path), open_catalog(), open_catalog().as_of, "both"),
    "curve.csv": lambda path: read_months(path, "usd_per_gpu_hour"),
    "plan.toml": lambda path: read_plan(path, ("gpus",), plan_kinds()),
    "offers.csv": read_cells,
    "profile.csv": lambda path: read_profile(str(path)),
    "trace.csv": lambda path: own_lengths(str(path)),
    "measured.csv": read_file,
}
RATES = {"USD": 1.0}.__getitem__
TABLES = {
    "curve": (READERS["curve.csv"], "month,usd_per_gpu_hour", "1,2.35"),
    "demand": (lambda path: read_months(path, "gpus"), "month,gpus", "1,64"),
    "lengths": (READERS["trace.csv"], "prompt,output", "1000,100"),
    "measured": (read_file, "model,gpu,mfu", "8b,h100-sxm,0.4"),
    "quotes": (lambda path: read_quote_file(path, RATES), "name,usd_per_gpu_hour", "acme,2.46"),
    "usage": (lambda path: usage_of(str(path), None), "day,gpu_hours", "2026-08-01,240"),
    "agreements": (lambda path: read_agreements(str(path))[0], "name,kind,start,end,usd",
                   "a,credit,2026-01-01,2027-01-01,5"),
    "map": (lambda path: read_map(str(path)), "invoice,estimate", "GPU,compute"),
}  # fmt: skip
IN_TOML = {
    "deep": "x = " + "[" * 5000 + "]" * 5000,
    "deep table": "[" + ".".join("a" * 500) + "]",
    "digits": "x = " + "9" * 100_000,
    "fewer digits": "x = " + "9" * 1000,
    "nan": "x = nan",
    "infinite": "x = [1.0, -inf]",
    "long": 'x = "' + "y" * 200_000 + '"',
    "nul": "x = 'a\0b'",
    "broken": "x = [",
}
IN_JSON = {name: "{" + text.replace("x = ", '"x": ') + "}" for name, text in IN_TOML.items() if name != "deep table"}
IN_JSON |= {"nan": '{"x": NaN}', "infinite": '{"x": 1e999}', "list": "[1]", "many": '{"x": ' * 9000}


def one_sentence(error):
    text = str(error.value)
    assert error.value.exit_code == 2
    assert "\n" not in text
    assert len(text) < 600, text[:900]


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_gets_a_sentence_at_once(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    for put in (None, "/dev/zero", "folder", "missing"):
        if put:
            path.unlink(missing_ok=True)
            path.symlink_to(put)
        if put == "folder" and name != "book.toml":  # a book may be a folder
            (tmp_path / "folder").mkdir()
        elif put == "folder":
            continue
        with pytest.raises(UsageError) as error:
            READERS[name](path)
        one_sentence(error)


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"a,b\n1,\x00\n", b"\x1f\x8b\x08"], ids=["bytes", "nul", "gzip"])
@pytest.mark.parametrize("name", [name for name in READERS if name != "book.toml"])
def test_what_is_no_text_gets_a_sentence(tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    with pytest.raises(UsageError) as error:
        READERS[name](tmp_path / name)
    one_sentence(error)


@pytest.mark.parametrize("text", IN_TOML.values(), ids=IN_TOML)
@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".toml")])
def test_toml_of_absurd_depth_length_or_numbers_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=name.split(".")[0]) as error:
        READERS[name](tmp_path / name)
    one_sentence(error)


@pytest.mark.parametrize(  # of a model's configuration a number is refused where its key is read
    ("name", "text"),
    [
        (name, text)
        for name in READERS
        for kind, text in IN_JSON.items()
        if name.endswith(".json") and (name, kind) != ("config.json", "nan")
    ],
)
def test_json_of_absurd_depth_length_or_numbers_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=name.split(".")[0]) as error:
        READERS[name](tmp_path / name)
    one_sentence(error)


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".json")])
def test_a_key_of_json_that_is_there_twice_is_refused(tmp_path, name):
    (tmp_path / name).write_text('{"a": {"x": 1, "y": 2, "x": 3}}')
    with pytest.raises(UsageError, match="the key 'x' appears twice; keep one") as error:
        READERS[name](tmp_path / name)
    one_sentence(error)


@pytest.mark.parametrize(("read", "header", "row"), TABLES.values(), ids=TABLES)
def test_a_table_whose_cells_do_not_fit_its_header_is_refused_at_its_line(tmp_path, read, header, row):
    path = tmp_path / "table.csv"
    last = header.rpartition(",")[2]
    for text, said in (
        (f"{header}\n{row},000\n", "table.csv:2: holds"),
        (f"{header},\n\n{row}\n{row},000\n", "table.csv:4: holds"),
        (f"{header},{last}\n{row},7\n", f"table.csv:1:{last}: the column appears twice"),
        (f"{header}\n{row}\n".replace(",", ";"), "table.csv:1: its columns are separated by semicolons"),
    ):
        path.write_text(text)
        with pytest.raises(DataError) as error:
            read(path)
        assert said in str(error.value)
        one_sentence(error)
    path.write_text(f"{header},,\n\n{row},,,\n")
    read(path)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("quotes", "name,usd_per_gpu_hour\n\n\nacme,cheap\n", "table.csv:4:usd_per_gpu_hour"),
        ("demand", "month,gpus\n1,8\n\n\n3,8\n", "table.csv:5:month"),
        ("agreements", '\nname,kind,start,end,usd\n"a\nb",credit,soon,2027-01-01,5\n', "table.csv:3:start"),
        ("demand", "month,year,demand\n1,2026,10\n", "table.csv:1: has no column gpus"),
        ("demand", "Month,GPUs\n1,10\n", "needed are month, gpus. Write month for Month"),
        ("demand", "month,gpus\n1,\u0664\n", "table.csv:2:gpus"),
        ("demand", "month,tokens\n1,64\n", "table.csv:1:tokens: is a column of another unit than gpus"),
        ("curve", "month,eur_per_gpu_hour\n1,2\n", "another unit than usd_per_gpu_hour"),
        ("curve", "month,Price (€)\n1,2\n", "another unit than usd_per_gpu_hour"),
        ("curve", "month,usd_per_gpu_month\n1,2\n", "another unit than usd_per_gpu_hour"),
        ("usage", "Day,gpu_hours\n2026-08-01,240\n", "and rows. Write day for Day"),
        ("usage", "month,gpus\n2026-08,10\n", "and rows$"),
        ("usage", "day,time,gpus\n2026-08-01,2026-09-01,1\n", "has the columns time and day, which may differ"),
        ("usage", "time,gpus,gpu_hours\n2026-08-01,1,2\n", "has the columns gpus and gpu_hours"),
    ],
)
def test_a_fault_of_a_table_is_named_by_its_line(tmp_path, name, text, where):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DataError, match=where):
        TABLES[name][0](tmp_path / "table.csv")


@pytest.mark.parametrize("name", ["price", "usd", "rent_usd_per_gpu_hour", "USD per GPU hour"])
def test_a_curve_whose_column_has_a_name_of_its_own_is_read(tmp_path, name):
    (tmp_path / "table.csv").write_text(f"month,{name}\n1,2.5\n")
    assert TABLES["curve"][0](tmp_path / "table.csv").tolist() == [2.5]


@pytest.mark.parametrize(
    ("read", "header", "most"),
    [
        (lambda path: read_quotes({str(path): None}, RATES), "name,usd_per_gpu_hour", 1000),
        (read_file, "model,gpu", 5_000),
    ],
    ids=["quotes", "measured"],
)
def test_more_rows_than_can_be_answered_in_time_are_refused(tmp_path, read, header, most):
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n" + "".join(f"q{n},2\n" for n in range(most)))
    assert len(read(path)) == most
    path.write_text(f"{path.read_text()}one,2\n")
    with pytest.raises(UsageError, match=f"{most + 1:,} .*{most:,}") as error:
        read(path)
    one_sentence(error)


def test_a_file_beyond_its_limit_is_refused_and_the_setting_raises_it(tmp_path, monkeypatch):
    path = tmp_path / "profile.csv"
    path.write_text("1,\n" * 24 + "# " + " " * 100)
    monkeypatch.setenv("GPUCOST_LIMIT_TEXT_FILE_BYTES", "50")
    with pytest.raises(UsageError, match="limit_text_file_bytes raises that"):
        gate.read_bytes(path)
    monkeypatch.setenv("GPUCOST_LIMIT_TEXT_FILE_BYTES", "5000")
    assert len(gate.read_bytes(path)) == path.stat().st_size
    monkeypatch.setenv("GPUCOST_LIMIT_TEXT_FILE_BYTES", "1e99")
    with pytest.raises(UsageError, match="up to 256,000,000 bytes"):
        gate.read_bytes(path)


@pytest.mark.parametrize(
    "text",
    [
        "pool = 3", "pool = [1]", "[[pool]]\ngpu = 3\nloaded_usd_per_gpu_hour = 1",
        "[[pool]]\nsystem = 3\nloaded_usd_per_gpu_hour = 1",
        "[[pool]]\ngpu = 'h100-sxm'\nloaded_usd_per_gpu_hour = 1\nobserved_on = 'soon'",
        "[[pool]]\nname = 'a'\ngpu = 'h100-sxm'\nloaded_usd_per_gpu_hour = 1\n" * 2,
        "[[pool]]\ngpu = 'h100-sxm'\nloaded_usd_per_gpu_hour = 1\nobserved_on = 2026-01-01T10:00:00",
    ],
)  # fmt: skip
def test_a_pool_of_other_types_gets_a_sentence(tmp_path, text):
    (tmp_path / "pool.toml").write_text(text)
    with pytest.raises(UsageError) as error:
        READERS["pool.toml"](tmp_path / "pool.toml")
    one_sentence(error)


def test_the_day_of_a_pool_may_be_a_text_and_lies_not_ahead(tmp_path):
    path, catalog = tmp_path / "pool.toml", open_catalog(as_of="2026-11-20")
    for day, age in (('"2026-11-10"', 10), ("2026-11-10", 10), ('"2026-11-20"', 0)):
        path.write_text(f'[[pool]]\ngpu = "h100-sxm"\nloaded_usd_per_gpu_hour = 1\nobserved_on = {day}\n')
        (offer,), _ = read_pool(str(path), catalog, catalog.as_of, "both")
        assert offer.age_days == age
    path.write_text(path.read_text().replace("11-20", "12-01"))
    with pytest.raises(DataError, match="observed_on: 2026-12-01 lies after 2026-11-20"):
        read_pool(str(path), catalog, catalog.as_of, "both")


@pytest.mark.slow
def test_a_saved_workbook_never_takes_a_formula_from_the_file(tmp_path):
    """A text that would end its quotes, and a power tower: the workbook holds the formulas of this version only."""
    saved = json.loads(gpucost.tco("h100-sxm", 8, draws=0).to_json())
    del saved["seal"]
    hostile = ['"x\\"&WEBSERVICE(\\"http://x\\")&\\""', "9**9**9**9", "'a'*10**10", "=cmd|'/c calc'!A1"]
    for row, text in zip(saved["model"]["derived"], hostile, strict=False):
        row["formula"] = text
    (tmp_path / "saved.json").write_text(json.dumps(saved))
    gpucost.report(str(tmp_path / "saved.json")).write(str(tmp_path / "saved.xlsx"))
    import zipfile

    with zipfile.ZipFile(tmp_path / "saved.xlsx") as book:
        sheets = b"".join(book.read(name) for name in book.namelist() if "sheet" in name)
    assert b"<f>" in sheets
    assert b"WEBSERVICE" not in sheets
    assert b"9**9" not in sheets


def test_what_no_value_may_hold_is_named_by_its_place_wherever_it_stands():
    value = {"a": [1, {"b": inf}], "k" * 50: "x\0", "n\0" * 30: 1, "c": 10**400, "d": {1}}
    faults = list(gate.faults(value))
    assert [place for place, _ in faults] == ["a[1].b", "k" * 50, "n\0" * 20, "c", "d"]
    reasons = zip(("inf", "NUL", "NUL", "300 digits", "{1}"), faults, strict=True)
    assert all(named in reason for named, (_, reason) in reasons)
    assert [place for place, _ in gate.faults(nan)] == [""]
    assert list(gate.faults([[]])) == []


@pytest.mark.parametrize(("levels", "faulty"), [(64, False), (65, True)])
def test_nesting_is_refused_from_the_same_level_whatever_holds_it(levels, faulty):
    for wrap in (lambda inner: [inner], lambda inner: {"a": inner}):
        value = 1
        for _ in range(levels):
            value = wrap(value)
        assert any("too deeply" in reason for _, reason in gate.faults(value)) == faulty


def test_millions_of_items_are_looked_at_in_little_memory():
    import tracemalloc

    value = [0.5] * 300_000
    tracemalloc.start()
    try:
        assert list(gate.faults(value)) == []
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_header_of_many_columns_is_read_in_time_that_grows_with_it(tmp_path):
    names = ",".join(f"c{number}" for number in range(200_000))
    (tmp_path / "wide.csv").write_text(f"{names}\n1\n", encoding="utf-8")
    started = time.process_time()
    header, rows = gate.read_table(tmp_path / "wide.csv")
    assert (len(header), len(rows)) == (200_000, 1)
    assert time.process_time() - started < 5  # each name against all: minutes


@pytest.mark.parametrize("digits", ["4_1", "\u0664", "1__0"])
@pytest.mark.parametrize(("name", "row"), [
    ("curve", "1,{}"), ("demand", "1,{}"), ("lengths", "{},100"),
    ("quotes", "acme,{}"), ("usage", "2026-08-01,{}"), ("agreements", "a,credit,2026-01-01,2027-01-01,{}"),
])  # fmt: skip
def test_a_number_of_a_table_has_neither_underscores_nor_foreign_digits(tmp_path, name, row, digits):
    read, header, _ = TABLES[name]
    file = tmp_path / f"{name}.csv"
    file.write_text(f"{header}\n{row.format(digits)}\n", "utf-8")
    with pytest.raises((DataError, UsageError), match=digits):
        read(file)


def test_a_weight_of_an_hour_has_neither_underscores_nor_foreign_digits(tmp_path):
    for digits in ("1_0", "\u0664"):
        (tmp_path / "profile.csv").write_text("weight\n" + "1\n" * 23 + f"{digits}\n", "utf-8")
        with pytest.raises(DataError, match=f"'{digits}' is not a number"):
            read_profile(str(tmp_path / "profile.csv"))
