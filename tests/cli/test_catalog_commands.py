"""The list commands as a user meets them."""

import csv
import functools
import io
import json
import os
import subprocess
import sys

import pytest

from gpucost.answers import SCHEMA_VERSION
from gpucost.catalog import open_catalog
from tests.commands import in_process

pytestmark = pytest.mark.later

KEYS_OF_PRICES = {
    "offer_id", "offer_kind", "provider", "instance_type", "region", "option", "tier", "billing", "term_months", "gpu",
    "gpus", "usd_per_hour",
    "usd_per_gpu_hour", "valid_from", "observed_on", "recorded_on", "age_days", "source_id",
}  # fmt: skip
KEYS_OF_GPUS = {
    "id",
    "vendor",
    "memory_gib",
    "hbm_gb_per_s",
    "bf16_tflops",
    "fp8_tflops",
    "tdp_w",
    "confidence",
    "source_id",
}


def process(*arguments):
    """Run the command as a process of its own, without a terminal."""
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "gpucost", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=clean, encoding="utf-8")


opened = functools.cache(open_catalog)


def gpucost(*arguments, **environment):
    """Run the command in this process, over a catalog that is loaded once for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpucost.catalog.open_catalog", opened)
        return in_process(*arguments, **environment)


def rows(*arguments):
    result = gpucost(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_every_list_states_the_same_frame(tmp_path):
    """Lists of chips, settings, snapshots and faults bear one schema version and the same keys around their rows."""
    wrong = tmp_path / "offers.csv"
    wrong.write_text("provider,gpu\n", "utf-8")
    lists = ("gpus",), ("config",), ("prices", "snapshots", "--store", str(tmp_path)), ("data", "check", str(wrong))
    frames = [json.loads(in_process(*one, "--format", "json").stdout) for one in lists]
    shared = {"schema_version", "catalog_version", "as_of", "warnings", "rows"}
    assert all(shared <= set(frame) for frame in frames)
    assert {frame["schema_version"] for frame in frames} == {SCHEMA_VERSION}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("gpus",),
        ("data", "systems"),
        ("models",),
        ("prices",),
        ("data", "sources"),
        ("prices", "history", "--provider", "lambda"),
        ("sql", "SELECT 1 AS one"),
    ],
)
def test_every_list_comes_in_four_formats(command, tmp_path):
    answer = rows(*command)
    assert {"schema_version", "catalog_version", "as_of", "rows", "warnings"} <= set(answer)
    assert answer["rows"]
    table = gpucost(*command)
    assert table.returncode == 0
    assert "\x1b" not in table.stdout
    found = list(csv.DictReader(io.StringIO(gpucost(*command, "--format", "csv").stdout)))
    assert len(found) == len(answer["rows"])
    assert gpucost(*command, "--format", "md").stdout.startswith("| ")
    path = tmp_path / "out.json"
    assert gpucost(*command, "--format", "json", "-o", str(path)).stdout == ""
    assert json.loads(path.read_text("utf-8"))["rows"] == answer["rows"]


def test_the_keys_of_prices_and_gpus():
    prices = rows("prices", "--gpu", "h100-sxm", "--as-of", "2026-11-01")
    assert prices["as_of"] == "2026-11-01"
    assert set(prices["rows"][0]) >= KEYS_OF_PRICES
    assert all(isinstance(row["usd_per_gpu_hour"], float) and row["offer_kind"] == "offer" for row in prices["rows"])
    ranked = [row["usd_per_gpu_hour"] for row in prices["rows"] if row["rankable"]]
    assert ranked == sorted(ranked)
    chip = next(row for row in rows("gpus")["rows"] if row["id"] == "h100-sxm5-80gb")
    assert set(chip) >= KEYS_OF_GPUS
    # NVIDIA's H100 data sheet: 3.35 TB/s, 989.4 TFLOPS dense bf16, 700 W
    assert (chip["hbm_gb_per_s"], round(chip["bf16_tflops"]), chip["tdp_w"]) == (3350, 989, 700)


@pytest.mark.slow
def test_prices_of_aws_in_the_past_and_as_they_were_known():
    arguments = ("--provider", "aws", "--gpu", "H100 SXM5 80GB", "--region", "us-east-1", "--option", "on-demand")

    def price(*days):
        return [
            row["usd_per_hour"]
            for row in rows("prices", *arguments, *days)["rows"]
            if row["instance_type"] == "p5.48xlarge"
        ]

    assert price("--as-of", "2025-03-01") == [98.32]
    assert price("--as-of", "2025-09-01") == [55.04]
    assert price("--as-of", "2026-11-01") == [55.04]
    assert price("--as-of", "2025-09-01", "--known-as-of", "2025-05-31") == [98.32]
    diff = rows("prices", "diff", "2025-03-01", "2025-09-01", *arguments)["rows"]
    change = next(row for row in diff if row["instance_type"] == "p5.48xlarge")
    assert (change["old_usd_per_gpu_hour"], change["new_usd_per_gpu_hour"], change["change"]) == (
        12.29,
        6.88,
        "cheaper",
    )
    history = rows("prices", "history", *arguments)["rows"]
    seen = [row["usd_per_hour"] for row in history if row["instance_type"] == "p5.48xlarge"]
    assert set(seen) == {98.32, 55.04}
    assert len(seen) >= 4
    assert seen == sorted(seen, reverse=True)  # the cut of June 2025, and nothing else


def test_max_age_leaves_old_prices_out_and_says_so():
    everything, fresh = rows("prices", "--gpu", "a100"), rows("prices", "--gpu", "a100", "--max-age", "120d")
    assert len(fresh["rows"]) < len(everything["rows"])
    assert all(row["age_days"] <= 120 for row in fresh["rows"])
    assert any("left out" in warning for warning in fresh["warnings"])
    assert any("old for" in warning for warning in everything["warnings"])


def test_fields_pick_and_order_the_columns():
    assert (
        process("gpus", "h100-sxm", "--fields", "bf16_tflops,id", "--format", "csv").stdout
        == "bf16_tflops,id\n989.4,h100-sxm5-80gb\n"
    )


@pytest.mark.parametrize("max_age", ["3650d", "1d"])
def test_any_key_of_a_row_is_a_field_with_and_without_rows(max_age):
    asked = ("--provider", "aws", "--gpu", "h100-sxm", "--as-of", "2026-11-20", "--max-age", max_age)
    found = process("prices", *asked, "--fields", "offer_id,price_kind", "--format", "csv")
    assert (found.returncode, found.stdout.splitlines()[0]) == (0, "offer_id,price_kind")
    assert (len(found.stdout.splitlines()) == 1) == (max_age == "1d")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prices", "--gpu", "h10O"), ("'h10O'", "h100", "gpucost gpus")),
        (("prices", "--provider", "lamda"), ("unknown provider 'lamda'", "'lambda'")),
        (("prices", "--option", "spott"), ("--option: unknown", "'spot'")),
        (("prices", "--region", "us-east-11"), ("unknown region", "'us-east-1'")),
        (("prices", "--as-of", "yesterday"), ("cannot read 'yesterday' as a day", "YYYY-MM-DD")),
        (("prices", "--max-age", "old"), ("cannot read 'old'",)),
        (("prices", "diff", "2026-01-01", "2025-01-01"), ("lies after",)),
        (("prices", "diff", "2026-02-29", "2026-03-01"), (": first: cannot read '2026-02-29' as a day",)),
        (("gpus", "--fields", "bf16"), ("unknown column 'bf16'", "'bf16_tflops'")),
        (("gpus", "--formt", "json"), ("No such option", "--format")),
        (("gpsu",), ("No such command", "gpus")),
        (("models", "./nothing.json"), ("nothing.json", "cannot read")),
        (("gpus", "-o", "/nonexistent/folder/x.csv"), ("/nonexistent/folder",)),
        (("gpus", "-o", "/"), ("is a directory",)),
        (("sql", "DROP TABLE offers"), ("DROP is refused",)),
        (("data", "sources", "--table", "nothing"), ("unknown table",)),
        (("prices", "--gpu", ""), ("is empty",)),
        (("gpus", ""), ("is empty",)),
        (("prices", "--limit", "0"), ("--limit",)),
        (("sql",), ("QUERY",)),
        (("sql", "--question", "cheapest"), ("unknown question", "'cheapest-on-demand'")),
        (("data", "check", "/nonexistent.csv"), ("cannot read",)),
        (("data", "check", "--table", "offers"), ("--table says what FILE holds",)),
        (("gpus", "h100", "--vendor", "amd"), ("no matching row has it; they have: NVIDIA.",)),
        (("gpus", "h100", "--vendor", "amdd"), ("unknown vendor 'amdd'. Did you mean 'AMD'?",)),
        (("data", "systems", "p5.48xlarge", "--provider", "gcp"), ("no matching row has it; they have: aws.",)),
        (("models", "8b", "--family", "Qwen3"), ("no matching row has it; they have: Llama 3.1.",)),
        (("gpus", "h100", "--gpu", "a100"), ("not both: h100,a100",)),
        (("validate", "--kind", "memory", "--calibration", __file__), ("--calibration needs",)),
        (("sql", "--time-limit", "5000", "SELECT 1"), ("--time-limit: '5000'",)),
        (("tco", "--gpu", "h100-sxm", "--rent", "2.35/h"), ("--rent: cannot read '2.35/h'. Write US dollars",)),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(arguments, words):
    result = gpucost(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_an_existing_file_survives_a_failure(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("precious")
    assert gpucost("gpus", "nonsense", "-o", str(path)).returncode == 2
    assert path.read_text() == "precious"
    assert gpucost("gpus", "h100-sxm", "--format", "csv", "-o", str(path)).returncode == 0
    assert path.read_text().startswith("id,")
    assert [item.name for item in tmp_path.iterdir()] == ["out.csv"]


def test_text_that_looks_like_a_formula_is_defused_in_csv():
    out = gpucost("sql", "SELECT '=1+1' AS a, '@x' AS b, '-1' AS c, -1 AS d", "--format", "csv").stdout
    assert out.splitlines()[1] == "'=1+1,'@x,'-1,-1"
    wide = gpucost("sql", "SELECT '＝1+1' AS a, '＠x' AS b, 'a＝1' AS c", "--format", "csv").stdout
    assert wide.splitlines()[1] == "'＝1+1,'＠x,a＝1"


def test_narrow_terminals_and_no_color():
    wide = gpucost("prices", "--gpu", "h100-sxm", "--limit", "5").stdout
    narrow = gpucost("prices", "--gpu", "h100-sxm", "--limit", "5", COLUMNS="50").stdout
    assert max(map(len, narrow.splitlines())) <= 50 < max(map(len, wide.splitlines()))
    assert "A wider terminal also shows: " in narrow
    assert "\x1b" not in gpucost("gpus", "h100", NO_COLOR="1").stdout


def test_a_closed_pipe_is_no_error():
    result = subprocess.run(
        f"{sys.executable} -m gpucost prices --format csv | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert result.stdout.startswith("offer_id,")
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr


def test_completion_offers_commands_and_options():
    words = {"_GPUCOST_COMPLETE": "bash_complete", "COMP_WORDS": "gpucost pri", "COMP_CWORD": "1"}
    assert (
        "prices"
        in subprocess.run(
            [sys.executable, "-m", "gpucost"], capture_output=True, text=True, env={**os.environ, **words}
        ).stdout
    )
    assert "_GPUCOST_COMPLETE=bash_source" in gpucost("config", "--help").stdout


def test_a_model_from_a_size_and_from_a_file(tmp_path):
    made = rows("models", "11b")["rows"][0]
    assert made["status"] == "synthesised"
    assert made["parameters"] == pytest.approx(11e9, rel=0.02)
    config = {
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert rows("models", str(tmp_path / "config.json"))["rows"][0]["parameters"] == 6_738_415_616  # Llama 7B


def test_one_model_stands_in_full_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    one, several = (in_process("models", name).stdout for name in ("gpt-oss-120b", "llama-3"))
    assert ["native", "precision", "mxfp4"] in [line.split() for line in one.splitlines()]
    assert "A wider terminal" not in one
    hidden = several.partition("A wider terminal also shows: ")[2]
    assert "native precision" in " ".join(hidden.split())


@pytest.mark.slow
def test_sql_answers_and_reads_a_query_from_a_file_and_from_stdin(tmp_path):
    (tmp_path / "q.sql").write_text("SELECT 2 AS two")
    assert rows("sql", "--file", str(tmp_path / "q.sql"))["rows"] == [{"two": 2}]
    questions = [row["question"] for row in rows("sql", "--question", "list")["rows"]]
    assert rows("sql", "--question", questions[0])["rows"]  # tests/catalog/test_sandbox.py asks them all
    piped = subprocess.run(
        [sys.executable, "-m", "gpucost", "sql", "-", "--format", "csv"],
        input="SELECT 3 AS three",
        capture_output=True,
        text=True,
    )
    assert piped.stdout == "three\n3\n"
    long = subprocess.run(
        [sys.executable, "-m", "gpucost", "sql", "-"], input="SELECT 1 AS x" + " " * 100_000 + "WHERE false",
        capture_output=True, text=True,
    )  # fmt: skip
    assert (long.returncode, long.stdout) == (2, "")
    assert "more than 100,000 characters" in long.stderr
    assert "query" in gpucost("sql").stderr.lower()


def test_nested_columns_of_sql_and_names_with_commas_are_all_written(tmp_path):
    query = "SELECT [{'a': 1}] AS x, {'b': 1} AS s, 2 AS \"s.b\", round(1.234, 2), repeat('y', 40000) AS long"
    lines = list(csv.reader(io.StringIO(gpucost("sql", query, "--format", "csv").stdout)))
    assert dict(zip(*lines, strict=True)) | {"long": ""} == {
        "x": '[{"a": 1}]', "s": '{"b": 1}', "s.b": "2", "round(1.234, 2)": "1.23", "long": ""
    }  # fmt: skip
    assert gpucost("sql", query, "-o", str(tmp_path / "x.xlsx")).returncode == 0
    import openpyxl

    written = list(openpyxl.load_workbook(tmp_path / "x.xlsx").active.iter_rows(max_col=5, values_only=True))
    *cells, long = next(line for line in written if line[0] == '[{"a": 1}]')
    assert cells == ['[{"a": 1}]', '{"b": 1}', 2, 1.23]
    assert long.endswith("y… (cut: 40,000 characters)")


def test_a_sheet_takes_no_more_columns_than_it_has(tmp_path):
    wide = "SELECT " + ", ".join(f"1 AS c{number}" for number in range(16_385))
    (tmp_path / "wide.sql").write_text(wide)
    refused = gpucost("sql", "--file", str(tmp_path / "wide.sql"), "-o", str(tmp_path / "x.xlsx"))
    assert refused.returncode == 2
    assert "16,384 columns" in refused.stderr


def test_several_accelerators_stand_side_by_side_with_their_memories():
    """64 K registers of 4 bytes on each of 132 multiprocessors of an H100 are 33 MiB."""
    from click.testing import CliRunner

    from gpucost.cli import cli

    text = CliRunner().invoke(cli, ["gpus", "h100-sxm,a100-80gb-sxm"], env={"COLUMNS": "80"}).stdout
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    assert "33 MiB" in rows["registers"]
    assert rows["shared memory"].count("MiB") == 2
    assert list(rows).index("registers") < list(rows).index("shared memory") < list(rows).index("L2 or last cache MB")
    assert max(map(len, text.splitlines())) <= 80


def test_memories_say_what_sources_measured_and_what_is_computed():
    """An H100 SXM: 128 bytes × 132 multiprocessors × 1.755 GHz; 4,528.92 GiB/s of L2, 219 and 291 cycles by source.

    Its 67 TFLOP/s in FP32 are 33.5e12 multiply-adds a second, each of which reads three operands of 4 bytes.
    """
    from click.testing import CliRunner

    from gpucost.cli import cli

    done = CliRunner().invoke(cli, ["gpus", "h100,mi300x,rtx-4090"], env={"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    below = {}  # the GB/s and the cycles of each memory stand below its size
    for line in lines:
        name = line[:20].strip()
        level = level if name in ("GB/s", "cycles") else name  # noqa: F821 # the first line is a heading
        below[level, name] = line
    assert f"{128 * 132 * 1.755:,.0f} computed" in below["shared memory", "GB/s"]
    assert f"{67e12 / 2 * 12 / 1e9:,.0f} computed" in below["registers", "GB/s"]
    assert f"{4528.92 * 1.073741824:,.0f} of 8,986" in below["L2 or last cache MB", "GB/s"]
    assert "219–291" in below["L2 or last cache MB", "cycles"]
    assert "900" in below["memory GiB", "cycles"]
    assert "2,750 of 3,350" in below["memory GiB", "GB/s"]
    assert below["registers", "cycles"].count("not known") == 3
    assert max(map(len, lines)) <= 80
    assert "memory_speeds" in done.stderr
    assert "h100-sxm5-80gb" in done.stderr


def test_generations_follow_one_another_with_their_ratios():
    """From V100 to A100 to H100, dense: 125 in fp16, 312 and 989.4 TFLOP/s in bf16; NVLink 150, 300, 450 GB/s."""
    made = {row["id"]: row for row in rows("gpus", "--generations")["rows"]}
    hopper = made["h100-sxm5-80gb"]
    assert made["v100-sxm2-16gb"]["half_precision"] == "fp16"
    assert made["a100-sxm4-80gb"]["half_ratio"] == pytest.approx(312 / 125)
    assert hopper["half_ratio"] == pytest.approx(989.4 / 312)
    assert hopper["scaleup_ratio"] == pytest.approx(1.5)
    assert made["rtx-4090"]["scaleup_ratio"] is None  # without a link: unknown, not nought
    assert made["mi300x"]["tdp_ratio"] == pytest.approx(750 / 560)
    assert made["gaudi2"]["half_ratio"] is None  # the first of its line
    text = gpucost("gpus", "--generations", "--vendor", "nvidia", COLUMNS="80").stdout
    assert "989 ×3.2" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "NVLink4 450" in text
    assert "a100-sxm4-80gb" in gpucost("gpus", "--generations", "--vendor", "nvidia", COLUMNS="120").stdout


def test_a_command_that_moved_answers_by_its_old_name_and_says_the_new_one():
    from gpucost.cli import MOVED

    for name, (group, command) in MOVED.items():
        old, new = gpucost(name, "--help"), gpucost(group, command, "--help")
        assert (old.returncode, new.returncode, new.stderr) == (0, 0, "")
        assert f"gpucost {group} {command}" in old.stderr
        assert old.stdout.splitlines()[2:] == new.stdout.splitlines()[2:]
