"""The command over the shipped catalog: formats, narrow terminals, pipes, exit codes, no home folder."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from tests.commands import in_process

RUN = ["estimate", "--model", "8b", "--tokens", "100b"]


def gpucost(*args, **environment):
    """Run the command in this process; return its exit code, stdout and stderr."""
    done = in_process(*args, **environment)
    return done.returncode, done.stdout, done.stderr


def process(*args, **environment):
    """Run the command as a user does, in a process of its own."""
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "gpucost", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**known, **environment},
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def answer():
    code, out, _ = gpucost(*RUN, "--format", "json")
    assert code == 0
    return json.loads(out)


def test_the_first_line_says_which_model_and_the_deadline_is_said_aloud():
    code, out, err = gpucost(*RUN)
    assert code == 0
    assert "8b = llama-3.1-8b" in out
    assert "30 days (assumed" in " ".join(out.split())
    assert "Traceback" not in err


def test_the_answer_holds_ranked_options_that_add_up(answer):
    assert len(answer["options"]) == 10
    assert [row["rank"] for row in answer["options"]] == list(range(1, 11))
    for row in answer["options"]:
        assert row["days"] <= 30
        assert sum(round(line["cost_usd"] * 100) for line in row["lines"]) == round(row["cost_usd"] * 100)
        assert row["cost_low_usd"] <= row["cost_usd"] <= row["cost_high_usd"]
        assert row["source_ids"]
        assert row["source_ids"][0] in answer["sources"]


@pytest.mark.parametrize(("day", "tpus"), [("2026-06-22", True), ("2026-11-22", False)])
def test_other_vendors_rank_beside_nvidia_while_their_prices_are_young_enough(day, tpus):
    """The newest prices of TPUs are of December 2024."""
    code, out, _ = gpucost(*RUN, "--as-of", day, "--top", "0", "--format", "json")
    assert code == 0
    families = {row["gpu"].split("-")[0] for row in json.loads(out)["options"]}
    assert families & {"mi300x", "mi325x", "mi355x"}
    assert any(name.startswith(("tpu", "v5", "v6")) for name in families) == tpus
    assert any(name.startswith(("trainium", "trn")) for name in families)


@pytest.mark.parametrize("columns", ["40", "60", "80", "200"])
def test_no_line_is_wider_than_the_terminal(columns):
    code, out, _ = gpucost(*RUN, "--top", "3", COLUMNS=columns)
    assert code == 0
    assert out.strip()
    assert max(len(line) for line in out.splitlines()) <= int(columns)


def test_a_pipe_gets_plain_text_and_may_close_early():
    code, out, _ = process(*RUN, NO_COLOR="1")
    assert code == 0
    assert "\x1b[" not in out
    early = subprocess.run(
        f"{sys.executable} -m gpucost {' '.join(RUN)} | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in early.stderr


def test_it_runs_without_a_home_folder():
    code, out, err = process(
        *RUN,
        "--top",
        "1",
        HOME="/nonexistent",
        XDG_CONFIG_HOME="/nonexistent/config",
        XDG_CACHE_HOME="/nonexistent/cache",
    )
    assert code == 0, err
    assert out


def test_csv_has_a_row_per_option_and_lines_in_the_long_form():
    code, out, _ = gpucost(*RUN, "--top", "3", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert len(rows) == 3
    code, out, _ = gpucost(*RUN, "--top", "3", "--format", "csv", "--lines")
    lines = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert len(lines) > 9


def test_the_explanation_shows_formula_numbers_and_source(answer):
    code, out, _ = gpucost(*RUN, "--explain", COLUMNS="160")
    assert code == 0
    for words in (
        "tokens ÷ (tokens_per_s_per_gpu × gpus) ÷ seconds_per_hour",
        "round_cents(compute_usd + evaluation_usd",
        answer["options"][0]["lines"][0]["source_id"],
    ):
        assert words in out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--tokens", "100bb"], 2, "100b or 1.5T"),
        (["--model", "lama-3-8b"], 2, "llama-3"),
        (["--gpu", "h1000"], 2, "unknown"),
        (["--provider", "lamda"], 2, "lambda"),
        (["--option", "spott"], 2, "spot"),
        (["--deadline", "2020-01-01"], 2, "not after"),
        (["--budget", "10"], 3, "budget"),
        (["--option", "spot", "--strict-prices", "--max-age", "1d"], 4, "--max-age"),
        (["--model", "llama-3.1-405b", "--tokens", "15t", "--gpu", "l40s", "--gpus", "8"], 6, "not fit"),
        (["--tokens", "100t", "--gpus", "8", "--deadline", "1d"], 6, "--deadline"),
        (["--gpus", "-8"], 2, "gpus"),
        (["--gpu", "a100", "--precision", "fp4"], 6, "--precision bf16"),
    ],
)
def test_bad_input_is_one_sentence_with_its_exit_code(args, code, words):
    found, out, err = gpucost(*RUN, *args)  # of an option that is given twice, the last counts
    assert found == code, err
    assert words in err
    assert out == ""
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_a_saved_answer_is_reproduced_and_compared(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    assert gpucost(*RUN, "--format", "json", "-o", str(first))[0] == 0
    assert gpucost(*RUN, "--gpu", "h100-sxm", "--option", "on_demand", "--format", "json", "-o", str(second))[0] == 0
    code, out, err = gpucost("saved", "rerun", str(first), "--format", "json")
    assert code == 0
    assert out.rstrip("\n") == first.read_text("utf-8").rstrip("\n")
    assert "Reproduced" in err
    code, out, _ = gpucost("compare", str(first), str(second), "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert round(sum(row["effect"] for row in found["changes"]), 2) == found["difference"]


def test_an_impossible_claim_exits_with_five():
    code, out, err = gpucost(
        "audit",
        "--model",
        "8b",
        "--tokens",
        "100b",
        "--gpu",
        "a100-80gb",
        "--gpus",
        "8",
        "--days",
        "8",
        "--cost",
        "6291",
    )
    assert code == 5
    assert "impossible" in out
    assert "impossible" in err


def test_prices_of_the_past_give_the_bill_of_the_past():
    wanted = ["--provider", "aws", "--gpu", "h100-sxm", "--option", "on_demand", "--format", "json"]
    costs = []
    for day in ("2025-03-01", "2025-09-01"):
        code, out, err = gpucost(*RUN, *wanted, "--as-of", day)
        assert code == 0, err
        rows = [
            row
            for row in json.loads(out)["options"]
            if row["instance_type"] == "p5.48xlarge" and row["region"] in ("us-east-1", None)
        ]
        costs.append(rows[0]["usd_per_gpu_hour"])
    assert costs == pytest.approx([98.32 / 8, 55.04 / 8])


def test_a_pool_of_ones_own_enters_with_both_costs(tmp_path):
    file = tmp_path / "pool.toml"
    file.write_text(
        '[[pool]]\nname = "ours"\ngpu = "h100-sxm"\ngpus = 8\navailable_gpus = 64\nincremental_usd_per_gpu_hour ='
        " 0.3\nloaded_usd_per_gpu_hour = 1.6\n"
    )
    code, out, err = gpucost(*RUN, "--gpu", "h100-sxm", "--pool", str(file), "--top", "0", "--format", "json")
    assert code == 0, err
    own = {row["tier"]: row for row in json.loads(out)["options"] if row["provider"] == "own"}
    assert set(own) == {"incremental", "loaded"}
    assert own["loaded"]["usd_per_gpu_hour"] == 1.6
    file.write_text('[[pool]]\ngpu = "h100-sxm"\nprice = 1\n')
    code, _, err = gpucost(*RUN, "--pool", str(file))
    assert code == 2
    assert "price: this key is unknown" in err


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ('gpu = "h100-sxm"\ngpus = 8\navailable_gpus = 4', "give gpus = 4"),
        ('gpu = "h100-sxm"\navailable_gpus = 4', "4 are fewer"),
        ('gpu = "l4"\nsystem = "dgx-h100"', "dgx-h100 has h100-sxm5-80gb, not 'l4'"),
        ('gpu = "h100-sxm"\n[[pools]]\nx = 1', "pools: this key is unknown; write each pool as a table [[pool]]"),
    ],
)
def test_a_pool_that_contradicts_itself_is_refused(tmp_path, said, wrong):
    file = tmp_path / "pool.toml"
    file.write_text(f"[[pool]]\nloaded_usd_per_gpu_hour = 1.6\n{said}\n")
    code, _, err = gpucost(*RUN, "--pool", str(file))
    assert (code, wrong in err) == (2, True), err


def test_a_pool_may_name_its_node_and_the_accelerator_in_it(tmp_path):
    file = tmp_path / "pool.toml"
    file.write_text('[[pool]]\ngpu = "h100"\nsystem = "dgx-h100"\navailable_gpus = 12\nloaded_usd_per_gpu_hour = 1\n')
    code, out, err = gpucost(*RUN, "--gpu", "h100-sxm", "--pool", str(file), "--top", "0", "--format", "json")
    assert code == 0, err
    assert {row["gpus"] for row in json.loads(out)["options"] if row["provider"] == "own"} == {8}
