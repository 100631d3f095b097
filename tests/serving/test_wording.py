"""Published rows as they come: messy words, missing columns, layouts that name accelerators twice."""

import pytest

from gpucost.calibration import importer, serving, serving_rows
from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from gpucost.physics.serving.calibration import SCHEME

CATALOG = open_catalog()


def read_row(row, catalog):
    """Read a row as a person writes it: its words become columns first."""
    return serving_rows.read_row(importer.entered(row, "serving", catalog), catalog)


def row(**more):
    return {
        "id": "x",
        "model": "Llama-3.1-8B",
        "gpu": "H100-80GB-SXM",
        "n_gpus": "1",
        "engine": "vLLM 0.9",
        "scenario": "fixed-concurrency",
        "isl": "1024",
        "osl": "256",
        "batch_or_concurrency": "16",
        "tpot_ms": "12",
        "core": "1",
        **more,
    }


@pytest.mark.parametrize(
    ("text", "year", "engine"),
    [
        ("vLLM 0.5.4", 2024.7, "vllm-2024"),
        ("vllm v0.6.3.post1", 2026, "vllm-2025"),
        ("vLLM (2023, per the paper)", 2026, "vllm-2023"),
        ("vllm nightly-5b8c30d", 2026.2, "vllm"),
        ("vLLM 0.10.1 ROCm 6.4", 2025.8, "vllm"),
        ("SGLang (lmsysorg/sglang:latest), PD disaggregated", 2025.7, "sglang"),
        ("TRT-LLM 0.17", 2025.2, "trtllm"),
        ("llama.cpp b6767 (llama-bench -fa 1)", 2025.8, "llama.cpp"),
        ("PyTorch 2.9, CUDA graph", 2026, "plain"),
        ("PyTorch 2.9, eager", 2026, "eager"),
        ("something new", 2026, "unknown"),
        (None, 2026, "unknown"),
    ],
)
def test_engines_and_their_eras(text, year, engine):
    assert importer.engine(text, year) == engine


def test_a_row_with_only_names_and_one_figure_is_predicted():
    found = serving.gather([{"model": "llama-3-8b", "gpu": "H100", "tpot_ms": 9.0}], CATALOG, as_written=True)
    assert not found.skipped
    assert len(serving.predict(found, SCHEME.load([]))[0]) == 1


def test_unknown_model_and_chip_resolve_to_their_kin_with_a_mark():
    read = read_row(row(model="NewLab-Omni-33B-A3B", gpu="NVIDIA H100 80GB HBM3 (SXM)"), CATALOG)
    assert read.deployment.architecture.experts > 0
    assert any("in size" in note for note in read.notes)


def test_stated_dimensions_build_an_unknown_model():
    """30.5 B of which 3.3 B active, expert width 768: 128 experts, 8 per token (Qwen3-30B-A3B's own numbers)."""
    dims = {
        "params_b": 30.5,
        "active_params_b": 3.35,
        "n_layers": 48,
        "hidden": 2048,
        "n_heads": 32,
        "n_kv_heads": 4,
        "head_dim": 128,
        "ffn_hidden": 768,
        "vocab": 151936,
    }
    read = read_row(row(model="SomeLab-X", **{k: str(v) for k, v in dims.items()}), CATALOG)
    assert read.deployment.architecture.experts == pytest.approx(128, abs=1)
    assert read.deployment.architecture.experts_per_token == pytest.approx(8, abs=1)


def test_degrees_that_name_the_same_accelerators_twice_are_read_once():
    note = "attention data parallel 1; gemm nvfp4; moe nvfp4; moe tp 4; aggregated serving"
    read = read_row(
        row(model="openai/gpt-oss-120b", gpu="H200-141GB-SXM", n_gpus="16", tp="16", ep="4", notes=note), CATALOG
    )
    assert (read.deployment.tensor, read.deployment.expert, read.deployment.gpus) == (4, 4, 4)
    assert any("twice" in text for text in read.notes)


def test_degrees_that_do_not_divide_the_heads_are_wide_expert_parallel():
    read = read_row(row(model="deepseek-ai/DeepSeek-R1", gpu="GB200", n_gpus="36", tp="36"), CATALOG)
    assert (read.deployment.tensor, read.deployment.data) == (1, 36)


def test_time_to_first_token_under_load_is_never_an_item():
    found = serving.gather(
        [row(ttft_ms="900"), row(id="y", scenario="single-stream", batch_or_concurrency="1", ttft_ms="30")],
        CATALOG,
        as_written=True,
    )
    assert [(f.metric, found.rows[f.row].id) for f in found.shown] == [("ttft_ms", "x")]
    assert ("ttft_ms", "y") in [(f.metric, found.rows[f.row].id) for f in found.figures]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gpu": ""}, "accelerator"),
        ({"model": ""}, "model"),
        ({"tpot_ms": ""}, "measured"),
        ({"model": "mystery"}, "mystery"),
    ],
)
def test_what_cannot_be_read_is_skipped_with_its_reason(change, words):
    found = serving.gather([row(**change)], CATALOG, as_written=True)
    assert len(found.skipped) == 1
    assert words in found.skipped[0]["reason"]


def test_unreadable_numbers_are_missing_never_zero():
    read = read_row(row(isl="n/a", batch_or_concurrency="nan"), CATALOG)
    assert read.batch is None
    assert read.group == "saturation"
    with pytest.raises(UsageError):
        read_row({"model": "llama-3-8b"}, CATALOG)
