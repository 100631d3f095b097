"""Reading measured rows: messy words, missing columns, unknown names, and nothing measured in a prediction."""

import csv
import random

import numpy as np
import pytest

from gpucost.calibration import fits, importer, memory, training, training_rows, wording
from gpucost.calibration.measurements import read_file
from gpucost.calibration.training_rows import find_accelerator, find_architecture, size_in_name
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import training_calibration
from gpucost.errors import UsageError

MEASURED = (
    "measured_tokens_per_s_per_gpu",
    "measured_tflops_per_gpu",
    "measured_mfu_pct",
    "measured_iter_time_s",
    "measured_total_gpu_hours",
    "derived_tokens_per_s_per_gpu",
    "sanity",
    "peak_memory_gb",
)


def read_row(row, catalog):
    """Read a row as a person writes it: its words become columns first."""
    return training_rows.read_row(importer.entered(row, "training", catalog), catalog)


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


@pytest.fixture(scope="module")
def rows(catalog):
    return catalog.rows("training_measurements")[::7]


def predictions(catalog, rows):
    found = training.gather(rows, catalog, as_written=True)
    return {item.id: item.predicted for item in training.predict(found, training_calibration(catalog))}


def test_predictions_see_no_measured_column_no_id_no_source_and_no_order(catalog, rows):
    before = predictions(catalog, rows)
    changed = []
    for index, row in enumerate(rows):
        new = dict(row) | {
            "id": f"other-{index}",
            "source_name": f"somebody {index % 3}",
            "source_locator": "elsewhere",
        }
        # one measured figure is needed to compare with; it says nothing about the row
        new |= dict.fromkeys(MEASURED) | {"measured_tokens_per_s_per_gpu": 1.0 + index}
        changed.append((row["id"], new))
    random.Random(0).shuffle(changed)
    after = predictions(catalog, [new for _, new in changed])
    names = {new["id"]: old for old, new in changed}
    assert {names[name]: value for name, value in after.items()} == before


def test_a_file_gives_what_the_catalog_gives(catalog, rows, tmp_path):
    path = tmp_path / "rows.csv"
    with open(path, "w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {k: "" if v is None else int(v) if isinstance(v, bool) else v for k, v in row.items()} for row in rows
        )
    report = fits.validate_training(catalog, str(path))
    assert {item["id"]: item["predicted"] for item in report["items"]} == predictions(catalog, rows)


def test_the_report_has_the_promised_keys(catalog, rows):
    found = training.gather(rows, catalog, as_written=True)
    items = training.predict(found, training_calibration(catalog))
    report = training.report_payload(found, items)
    promised = {
        "rows",
        "predicted",
        "skipped",
        "median_abs_error_fraction",
        "p90_abs_error_fraction",
        "macro_median_abs_error_fraction",
        "interval_coverage_fraction",
        "by_source",
        "items",
    }
    assert promised <= set(report)
    assert {"id", "metric", "measured", "predicted", "low", "high"} <= set(report["items"][0])
    assert report["rows"] == report["predicted"] + len(report["skipped"]) == len(rows)
    assert all(item["low"] <= item["predicted"] <= item["high"] for item in report["items"])


MESSY = {
    "model": "my-13b",
    "gpu": "NVIDIA H100 80GB HBM3",
    "framework": "torchtune",
    "precision": "bf16 mixed",
    "seq_len": "4,096",
    "n_gpus": "",
    "tp": "",
    "pp": "n/a",
    "zero_stage": "3 (FSDP FULL_SHARD)",
    "activation_recompute": "yes (block)",
    "flash_attention": "sdpa",
    "measured_tokens_per_s_per_gpu": "1000",
}


def test_a_row_with_messy_words_and_gaps_is_still_predicted(catalog):
    read = read_row(MESSY, catalog)
    assert read.accelerator.id == "h100-sxm5-80gb"
    assert (read.layout.sharding, read.layout.recompute, read.sequence_tokens) == (3, "full", 4096)
    assert len(predictions(catalog, [MESSY])) == 1


def test_only_model_gpu_and_a_figure_are_needed(catalog):
    bare = {"model": "llama-3-8b", "gpu": "A100", "measured_mfu_pct": "40"}
    found = training.gather([bare], catalog, as_written=True)
    assert found.figures[0].group == "mfu"
    assert len(found.rows) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("H100-80GB-SXM", "h100-sxm5-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("h200", "h200-sxm-141gb"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("TPU-v5p", "tpu-v5p"),
        ("Gaudi2", "gaudi2"),
        ("GB200", "gb200-nvl72-gpu"),
        ("H100 SXM5 (engineering sample)", "h100-sxm5-80gb"),
        ("MI400X", "mi440x"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),  # the host's memory names the part with 96 GB of HBM3
        ("Grace Hopper GH200", "gh200-96gb"),
        ("GH200 superchip sample", "gh200-144gb"),  # and no H20, which hides in its letters
        ("Trainium4", "trainium3"),
    ],
)
def test_chips_resolve_in_many_spellings(catalog, name, expected):
    assert find_accelerator(name, catalog, []).id == expected


def test_accelerators_left_out_follow_from_the_degrees_where_all_are_stated(catalog):
    bare = {"model": "llama-3-8b", "gpu": "A100", "tp": "4", "pp": "2", "cp": "1", "measured_mfu_pct": "40"}
    assert read_row({**bare, "dp": "8"}, catalog).layout.gpus == 64
    assert read_row({**bare, "dp": "8", "n_gpus": "128"}, catalog).layout.gpus == 128


def test_an_unknown_chip_is_marked_and_nonsense_is_refused(catalog):
    notes = []
    find_accelerator("H100 SXM5 (engineering sample)", catalog, notes)
    assert notes
    with pytest.raises(UsageError, match="accelerator '"):
        find_accelerator("abacus", catalog, [])


def test_what_cannot_be_computed_is_skipped_with_a_reason(catalog):
    odd = [
        {"id": "a", "model": "mystery", "gpu": "h100-sxm", "measured_tokens_per_s_per_gpu": 1},
        {"id": "b", "model": "llama-3-8b", "gpu": "abacus", "n_gpus": 8, "measured_tokens_per_s_per_gpu": 1},
        {"id": "c", "model": "llama-3-8b", "gpu": "h100-sxm", "n_gpus": 8},
    ]
    found = training.gather(odd, catalog, as_written=True)
    reasons = {entry["id"]: entry["reason"] for entry in found.skipped}
    assert set(reasons) == {"a", "b", "c"}
    assert "parameter count" in reasons["a"]
    assert "accelerator '" in reasons["b"]
    assert "no measured" in reasons["c"]


ROW = {"id": "a", "model": "llama-3-8b", "gpu": "h100-sxm", "n_gpus": 8, "measured_tokens_per_s_per_gpu": 9000}


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("tp", "abc", "tp is 'abc', not a number"),
        ("n_gpus", "abc", "n_gpus is 'abc', not a number"),
        ("params_b", "8,5", "params_b is '8,5', not a number"),
        ("params_b", "-8", "params_b is '-8', not a number of 0 or more"),
        ("tp", "1000000000", "tp is '1000000000', which is implausibly large"),
        ("n_layers", "31.5", "n_layers is '31.5', not a whole number"),
        ("as_of", "2024-13-01", "as_of is '2024-13-01', no day"),
    ],
)
def test_a_row_with_a_cell_that_cannot_be_is_skipped_with_its_reason(catalog, column, cell, said):
    found = training.gather([ROW | {column: cell}], catalog, as_written=True)
    assert not found.rows
    assert said in found.skipped[0]["reason"]
    assert said in memory.predict_with_range([ROW | {column: cell}], catalog)[2][0]["reason"]


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("task", "zz", "task 'zz'"),
        ("precision", "zz", "precision 'zz'"),
        ("activation_recompute", "zz", "activation_recompute 'zz'"),
        ("flash_attention", "zz", "flash_attention 'zz'"),
        ("as_of", "July 2024", "2023.5"),  # 18 months after the chip
    ],
)
def test_words_that_are_not_understood_are_noted_and_missing_ones_are_not(catalog, column, cell, said):
    assert any(said in note for note in read_row(ROW | {column: cell}, catalog).notes)
    bare = read_row(ROW, catalog).notes
    assert all(read_row(ROW | {column: empty}, catalog).notes == bare for empty in ("", None, "n/a", "unknown"))


def test_wordings_of_published_rows_are_all_understood(catalog):
    rows = [*catalog.rows("training_measurements"), *catalog.rows("memory_measurements")]
    assert not [note for row in rows for note in wording.unknown(row)]
    assert not [note for row in catalog.rows("serving_measurements") for note in wording.unknown(row)]


def test_speed_is_derived_from_time_hours_and_rates_by_hand(catalog):
    base = {"model": "llama-2-7b", "gpu": "a100-80gb-sxm", "seq_len": 4096, "n_gpus": 8, "global_batch": 64}
    timed = training.gather([base | {"measured_iter_time_s": 16.0}], catalog, as_written=True).figures[0]
    assert timed.value == 64 * 4096 / 16 / 8
    hours = training.gather(
        [base | {"measured_total_gpu_hours": 1000.0, "total_tokens": 3.6e9}], catalog, as_written=True
    ).figures[0]
    assert hours.value == 1000
    # 312 TFLOP/s at 50 %: 156e12 ÷ (6·6,607,343,616 + 6·32·4096·4096) FLOP per token, causal
    rated = training.gather([base | {"measured_mfu_pct": 50.0}], catalog, as_written=True).figures[0]
    assert rated.value == pytest.approx(156e12 / (6 * 6_607_343_616 + 6 * 32 * 4096 * 4096), rel=1e-9)


def test_when_data_parallelism_exceeds_the_batch_the_rest_is_context(catalog):
    row = {
        "model": "llama-2-70b",
        "gpu": "h100-sxm",
        "n_gpus": 64,
        "tp": 4,
        "pp": 1,
        "seq_len": 8192,
        "global_batch": 8,
    }
    layout = read_row(row, catalog).layout
    assert (layout.data, layout.context) == (8, 2)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_file(tmp_path / "none.csv")
    path = tmp_path / "wrong.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="column"):
        read_file(path)


def test_sizes_are_read_from_names():
    assert [size_in_name(name) for name in ("Foo-70B-chat", "gpt2-124m", "x-1.5T", "plain")] == [70, 0.124, 1500, None]


def test_the_rule_of_thumb_by_hand(catalog):
    row = {
        "model": "llama-2-7b",
        "gpu": "a100-80gb-sxm",
        "seq_len": 4096,
        "n_gpus": 8,
        "measured_tokens_per_s_per_gpu": 1,
    }
    found = training.gather([row], catalog, as_written=True)
    assert np.exp(training.rule_of_thumb(found)[0]) == pytest.approx(0.4 * 312e12 / (6 * 6_738_415_616))


def test_degrees_that_do_not_multiply_out_are_mended_and_marked(catalog):
    read = read_row({"model": "llama-3-8b", "gpu": "h100-sxm", "n_gpus": 10, "tp": 4, "dp": 3}, catalog)
    assert (read.layout.gpus, read.layout.data) == (12, 3)
    assert any("accelerators" in note for note in read.notes)


JUNK = ("", "n/a", "nan", "-1", "0", "1e30", "abc", "none", "7", "64", "inf", "—", "1,024", "y", "FSDP", None, "3")


def test_junk_in_any_column_ends_in_a_figure_or_a_reason(catalog, rows):
    rng = random.Random(3)
    odd = []
    for index in range(400):
        row = dict(rng.choice(rows)) | {"id": f"odd-{index}", "measured_tokens_per_s_per_gpu": 100.0}
        for name in rng.sample([name for name in row if not name.startswith("measured") and name != "id"], 5):
            row[name] = rng.choice(JUNK)
        odd.append(row)
    found = training.gather(odd, catalog, as_written=True)
    items = training.predict(found, training_calibration(catalog))
    assert len(items) + len(found.skipped) == len(odd)
    assert all(0 < item.low <= item.predicted <= item.high < float("inf") for item in items)


def test_a_hybrid_model_is_known_by_its_name_however_its_blocks_are_counted(catalog):
    # Nemotron 3 Nano: 52 blocks of one mixer each on its card, written as 29 layers here.
    notes: list[str] = []
    row = {"model": "Nemotron-3-Nano-30B-A3B", "n_layers": "52", "hidden": "2688", "n_experts": "128"}
    assert find_architecture(row, catalog, notes).linear_layers == 23


def test_a_row_that_says_its_chip_is_limited_runs_at_less_power(catalog):
    def chip(gpu, notes):
        return read_row({"model": "llama-3-8b", "gpu": gpu, "n_gpus": 8, "notes": notes}, catalog).accelerator

    assert chip("H100-80GB-SXM", "8xH100 (Meta H100 variant likely)").tdp_w == 500
    assert chip("H100-80GB-SXM", "NVIDIA published").tdp_w == 700
    full, limited = chip("B200", ""), chip("B200", "8x POWER-LIMITED B200")
    assert limited.tdp_w == pytest.approx(0.75 * full.tdp_w)


def test_a_local_batch_gives_the_global_one(catalog):
    row = {"model": "llama-3-8b", "gpu": "H100-80GB-SXM", "n_gpus": 64, "tp": 2, "pp": 1, "framework": "torchtitan"}
    read = read_row(row | {"notes": "FSDP, local batch size 2"}, catalog)
    assert (read.layout.data, read.layout.micro_batch, read.layout.global_batch) == (32, 2, 64)
    stated = read_row(row | {"notes": "local batch size 2", "global_batch": 256}, catalog)
    assert stated.layout.global_batch == 256


def test_tuning_on_questions_packs_them_and_mlperf_does_not(catalog):
    row = {"model": "llama-3-8b", "gpu": "H100-80GB-SXM", "n_gpus": 8, "tp": 1, "task": "lora", "framework": "NeMo"}
    packed, benchmark = (read_row(row | {"notes": words}, catalog) for words in ("", "MLPerf Training v4.1"))
    assert packed.document_tokens < 500
    assert packed.adapter_share < benchmark.adapter_share
    assert benchmark.document_tokens == np.inf
    assert read_row(row | {"document_tokens": 3000}, catalog).document_tokens == 3000


def test_deepspeed_fuses_attention_and_megatron_deepspeed_does_not(catalog):
    row = {"model": "llama-2-70b", "gpu": "A100-80GB-SXM", "n_gpus": 64, "as_of": "2024-06"}
    apart, both = (read_row(row | {"framework": f}, catalog) for f in ("NGC DeepSpeed", "Megatron-DeepSpeed"))
    assert apart.flash
    assert not both.flash


def test_large_runs_of_before_2023_are_of_the_stacks_of_their_time(catalog):
    def software(year):
        return read_row({"model": "opt-175b", "gpu": "a100-sxm4-80gb", "n_gpus": 992, "as_of": year}, catalog)

    assert software("2021-11").software == "unknown"
    assert not software("2021-11").flash
    assert software("2024-11").software == "vendor"


def test_a_run_that_states_no_batch_had_that_of_its_model(catalog):
    row = {"model": "deepseek-v3", "gpu": "h800-sxm", "n_gpus": 2048, "seq_len": 4096, "precision": "fp8"}
    row |= {"tp": 1, "pp": 16, "ep": 64, "micro_batch": 1, "zero_stage": "1", "activation_recompute": "none"}
    assert read_row({**row, "total_tokens": 14.8e12}, catalog).layout.global_batch == 15360  # its report's
    assert read_row({**row, "total_tokens": 14.8e12, "global_batch": 4096}, catalog).layout.global_batch == 4096
    assert read_row(row, catalog).layout.global_batch != 15360  # a benchmark has its own


def test_a_run_that_its_source_prints_again_counts_once(catalog):
    rows = catalog.rows("training_measurements")
    again = {row["id"]: str(row["sanity"]).removeprefix(fits.AGAIN) for row in rows if fits.AGAIN in str(row["sanity"])}
    counted = {row["id"] for row in fits.published(catalog)}
    assert len(again) > 10
    assert counted == {row["id"] for row in rows} - set(again)
    figures = {row["id"]: row["measured_iter_time_s"] for row in rows}
    assert all(first in counted and figures[one] == figures[first] for one, first in again.items())
