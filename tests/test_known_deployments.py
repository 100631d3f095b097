"""Common questions whose answers people outside have published, or that a datasheet answers by hand."""

import pytest

import gpucost
from gpucost.physics.serving.cases import ServedReplica, build
from gpucost.physics.serving.efficiency import DEFAULTS
from gpucost.physics.serving.steps import cache_bytes_per_sequence, weight_bytes
from gpucost.workloads.training import make_workload, sizes


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def smallest(catalog, model, gpu, precision):
    found = gpucost.fit(model, gpu, serving=True, precision=precision, tpot="none", ttft="none", catalog=catalog)
    return next(row["gpus"] for row in found.payload["options"] if "mig" not in row["gpu"])


SGLANG = "SGLang documentation, DeepSeek V3/V3.1/R1 usage: recommended configurations (docs.sglang.io, 2026)"
SERVED = [  # model, accelerator, precision, fewest, who serves it so
    ("deepseek-v3", "h200-sxm", "fp8", 8, f"{SGLANG}: 8 × H200"),
    ("deepseek-v3", "h100-sxm", "fp8", 16, f"{SGLANG}: 2 × 8 × H100"),
    ("deepseek-v3", "h200-sxm", "bf16", 16, f"{SGLANG}: BF16 on 2 × 8 × H200"),
    ("deepseek-v3", "a100-80gb-sxm", "int4", 8, f"{SGLANG}: AWQ on 8 × A100"),
    ("deepseek-v3", "a100-80gb-sxm", "int8", 16, f"{SGLANG}: INT8 on 16 × A100"),
    (
        "deepseek-v3",
        "b200-sxm",
        "nvfp4",
        4,
        "vLLM recipes (docs.vllm.ai), DeepSeek-V3: FP4 on 4 × B200",
    ),
    ("gpt-oss-120b", "h100-sxm", "auto", 1, "gpt-oss model card, arXiv:2508.10925: one 80 GB accelerator"),
    ("gpt-oss-20b", "rtx-4080", "auto", 1, "gpt-oss model card, arXiv:2508.10925: within 16 GB"),
    (
        "llama-3.1-405b",
        "h100-sxm",
        "fp8",
        8,
        "vllm-project/vllm issue 6746: FP8 on 8 × H100, 57.75 GiB each",
    ),
    (
        "llama-3.1-405b",
        "h100-sxm",
        "bf16",
        16,
        "arXiv:2407.21783, section 6.1: BF16 on 16 × H100, two nodes",
    ),
    ("llama-3.3-70b", "rtx-3090", "int4", 2, "kaitchup.substack.com, Llama 3.1 70B: 2 × 24 GB cards"),
    ("llama-3.1-8b", "rtx-4080", "fp16", 1, "16.06 GB of weights in the 17.2 GB of a card of 16 GiB: one user"),
    ("llama-3.1-8b", "t4", "fp16", 2, "meta-llama/llama3 issue 95: 15.5 GB do not fit the 15 GiB of a T4"),
    (
        "llama-2-7b",
        "t4",
        "fp16",
        1,
        "vllm-project/vllm issue 2248: 16 GB at --gpu-memory-utilization 0.98",
    ),
]


@pytest.mark.parametrize(("model", "gpu", "precision", "fewest", "source"), SERVED)
def test_a_model_is_served_on_as_many_as_people_serve_it_on(catalog, model, gpu, precision, fewest, source):
    assert smallest(catalog, model, gpu, precision) == fewest, source


def deployment(catalog, model, precision):
    chip = catalog.accelerator("h100-sxm")
    placed = ServedReplica(catalog.architecture(model), chip, catalog.default_system(chip.id), format=precision)
    return build([placed], DEFAULTS)[0]


@pytest.mark.parametrize(
    ("model", "precision", "gb", "source"),
    [
        # nine files of 4.89 to 4.97 GB, the last smaller
        ("llama-3.1-70b", "int4", 39.77, "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4, model files"),
        ("llama-3.1-70b", "bf16", 141.1, "70.55e9 parameters of 2 bytes (model card)"),
        ("deepseek-v3", "fp8", 671.0, "671e9 parameters of one byte (arXiv:2412.19437); embeddings are wider"),
    ],
)
def test_weights_are_as_large_as_their_files(catalog, model, precision, gb, source):
    held = float(weight_bytes(deployment(catalog, model, precision))[0]) / 1e9
    assert held == pytest.approx(gb, rel=0.01), source


def test_the_cache_of_a_token_is_counted_by_hand(catalog):
    """Llama 3.1 70B: 2 · 80 layers · 8 heads · 128 · 2 B = 327,680 B (arXiv:2407.21783, table 3)."""
    import numpy as np

    one = cache_bytes_per_sequence(deployment(catalog, "llama-3.1-70b", "bf16"), np.ones(1))
    assert float(one[0]) == 327_680


def test_the_training_of_gpt_3_takes_the_flop_of_its_paper(catalog):
    """arXiv:2005.14165, table D.1: 3.14e23 FLOP for 175B parameters and 300B tokens, without attention."""
    workload = make_workload(catalog.architecture("gpt-3-175b"), sequence_tokens=2048)
    assert sizes(workload).model_flop_per_token * 300e9 == pytest.approx(3.14e23, rel=0.05)


def test_8_billion_parameters_on_100_billion_tokens_take_months_on_a_node_of_a100(catalog):
    """6 · 8.03e9 · 100e9 = 4.82e21 FLOP; 8 × 312 TFLOP/s at 30 to 55 % (usual MFU) take 41 to 74 days."""
    run = gpucost.estimate("llama-3.1-8b", "100b", gpu="a100-80gb-sxm", gpus=8, catalog=catalog, with_facts=False)
    assert 41 < run.best["days"] < 74


def test_llama_2_70b_takes_about_the_hours_of_its_model_card(catalog):
    """Meta, Llama 2 model card: 1,720,320 A100-80GB hours for 2T tokens; restarts and evaluation are in them."""
    timed = gpucost.throughput("llama-2-70b", "a100-80gb-sxm", 2048, global_batch=1024, catalog=catalog)
    assert 2e12 / timed.tokens_per_s_per_gpu / 3600 == pytest.approx(1_720_320, rel=0.30)
