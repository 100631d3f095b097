"""Counting transformers, held against published totals and hand calculation."""

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.physics import transformer as tf
from gpucost.physics.blocks import cache_values
from gpucost.physics.transformer import stack
from gpucost.types import Architecture

from .cases import GPT3, LLAMA_8B, LLAMA_405B, MIXTRAL

DEEPSEEK_V3 = Architecture(
    "deepseek-v3", "", 61, 7168, 128, 128, 192, 18432, True, 129280, False,
    experts=256, experts_per_token=8, shared_experts=1, expert_ffn_hidden=2048, shared_ffn_hidden=2048,
    first_dense_layers=3, attention="mla", q_lora_rank=1536, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64,
    v_head_dim=128, mtp_layers=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "total"),
    [
        (LLAMA_8B, 8_030_261_248),  # weight files of meta-llama/Meta-Llama-3-8B
        (LLAMA_405B, 405_853_388_800),  # weight files of meta-llama/Llama-3.1-405B
        (MIXTRAL, 46_702_792_704),  # weight files of mistralai/Mixtral-8x7B-v0.1
    ],
)
def test_the_total_equals_the_published_weight_files(model, total):
    assert tf.total_parameters(stack([model]))[0] == total


def test_gpt3_has_175_billion_parameters():
    # arXiv:2005.14165, Table 2.1; positions (2048 × 12288) are a field of their own.
    assert tf.total_parameters(stack([GPT3]))[0] + 2048 * 12288 == pytest.approx(175e9, rel=0.005)


def test_active_parameters_of_mixtures():
    mixtral, deepseek = stack([MIXTRAL]), stack([DEEPSEEK_V3])
    assert tf.active_parameters(mixtral)[0] == pytest.approx(12.9e9, rel=0.002)  # arXiv:2401.04088
    assert tf.total_parameters(deepseek)[0] == pytest.approx(671e9, rel=0.001)  # arXiv:2412.19437
    assert tf.active_parameters(deepseek)[0] == pytest.approx(37e9, rel=0.02)
    assert tf.mtp_parameters(deepseek)[0] == pytest.approx(
        11.5e9, rel=0.02
    )  # README of DeepSeek-V3: 14 B with embeddings


def test_every_preset_counts_to_what_its_publisher_states():
    catalog = open_catalog()
    rows = {row["id"]: row for row in catalog.rows("llms") if row["weights_parameters"]}
    presets = [a for a in catalog.architectures() if a.name in rows]
    counted = tf.total_parameters(stack(presets))
    stated = np.array([float(rows[a.name]["weights_parameters"]) for a in presets])
    off = {a.name: (c, s) for a, c, s in zip(presets, counted, stated, strict=True) if abs(c / s - 1) > 0.05}
    assert len(presets) > 20
    assert not off or all("mtp" in str(rows[name]["notes"]).lower() or rows[name]["notes"] for name in off), off


def test_kv_cache_of_llama_and_deepseek():
    assert cache_values(LLAMA_8B, 1) == 2 * 8 * 128 * 32  # by hand: 65,536
    assert cache_values(DEEPSEEK_V3, 1) == 61 * (512 + 64)  # arXiv:2405.04434, section 2.1


def test_a_window_keeps_the_last_tokens_only():
    model = Architecture("w", "", 2, 64, 1, 1, 64, 256, True, 100, True, window_tokens=128, window_layers=1)
    assert cache_values(model, 1000) == (1000 + 128) * 2 * 64


def test_the_flop_of_gpt3_match_narayanans_formula():
    # arXiv:2104.04473, eq. 3: F = 96·B·s·L·h²·(1 + s/6h + V/16Lh) with full recomputation and no causal saving.
    s, layers, h, v = 2048.0, 96, 12288, 50257
    published = 96 * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h)) / s
    shape = stack([GPT3])
    linear = 4 * tf.layers_linear_flop(shape) + 3 * tf.logits_flop(shape)
    ours = linear + 4 * tf.attention_flop(shape, s, causal=False)
    assert ours[0] == pytest.approx(published, rel=1e-9)


def test_model_flop_of_llama_405b_are_3_8e25_for_its_run():
    # arXiv:2407.21783, section 3.1: 3.8e25 FLOP for 15.6 T tokens.
    assert tf.model_flop(stack([LLAMA_405B]), 8192.0)[0] * 15.6e12 == pytest.approx(3.8e25, rel=0.06)


def test_recomputation_adds_a_forward_pass_to_the_hardware_only():
    shape = stack([LLAMA_8B])
    none, full = (tf.hardware_flop(shape, 8192.0, code) for code in (0, 2))
    assert full[0] > none[0]
    assert (full - none)[0] == pytest.approx(tf.layers_linear_flop(shape)[0] + tf.attention_flop(shape, 8192.0)[0])


def test_rows_do_not_see_each_other():
    models = [LLAMA_8B, GPT3, MIXTRAL, DEEPSEEK_V3]
    together = tf.model_flop(stack(models), 4096.0)
    alone = [tf.model_flop(stack([model]), 4096.0)[0] for model in models]
    assert together.tolist() == alone
