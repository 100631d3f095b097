"""What one sequence keeps of its tokens, each law worked out by hand from the modelling code of transformers."""

import json
from pathlib import Path

import pytest

from gpucost.architectures.reader import architecture_of
from gpucost.physics.blocks import blocks_of, cache_values, state_values

CONFIG = {
    name: entry["config"] for name, entry in json.loads((Path(__file__).parent / "published.json").read_text()).items()
}
N = 131_072
BY_HAND = {
    "llama-3.1-8b": 32 * 2 * 8 * 128 * N,  # grouped
    "gpt-neo-2.7b": 16 * 2 * 2560 * (N + 256),  # every second layer within 256 tokens
    "mistral-7b-v0.1": 32 * 2 * 8 * 128 * 4096,  # all within the window
    "phi-3-mini": 32 * 2 * 32 * 96 * 2047,
    "gemma-2-27b": 23 * 2 * 16 * 128 * (N + 4096),
    "gemma-3-27b": 2 * 16 * 128 * (10 * N + 52 * 1024),  # one global layer after every five local ones
    "command-a": 2 * 8 * 128 * (16 * N + 48 * 4096),
    "gpt-oss-120b": 2 * 8 * 64 * (18 * N + 18 * 128),
    "llama-4-scout": 2 * 8 * 128 * (12 * N + 36 * 8192),  # chunks
    "olmo-3-7b": 2 * 32 * 128 * (8 * N + 24 * 4096),
    "qwen2.5-7b": 28 * 2 * 4 * 128 * N,  # names a window, and does not use it
    "deepseek-v3": 61 * 576 * N,  # one latent and one rotary key
    "deepseek-v3.2": 61 * (576 + 128) * N,  # and the indexer's key
    "glm-5": 78 * (576 + 128) * N,
    "glm-5.2": (78 * 576 + 21 * 128) * N,  # layers 0, 1, 2, 6, 10 … 74 run the indexer, the others share
    "glm-4.7-flash": 47 * 576 * N,
    "longcat-flash": 28 * 2 * 576 * N,  # two attentions a layer
    # 21 layers of 4:1 with an indexer, 20 of 128:1, a window of 128 everywhere; the key is the value
    "deepseek-v4-flash": 21 * (512 + 128) * (N // 4) + 20 * 512 * (N // 128) + 43 * 512 * 128,
    "mimo-v2-flash": 9 * 4 * (192 + 128) * N + 39 * 8 * (192 + 128) * 128,  # other heads within the window
    # 16 heads of 256 within 1,024 tokens; 4 of 512 in the global layers, whose values are cached though they are keys
    "gemma-4-31b": 50 * 2 * 16 * 256 * 1024 + 10 * 2 * 4 * 512 * N,
    "gemma-4-e2b": 12 * 2 * 256 * 512 + 3 * 2 * 512 * N,  # 15 of 35 layers own a cache
    "gemma-3n-e4b": 2 * 2 * 256 * (4 * N + 16 * 512),  # 20 of 35 layers own a cache
    "llama-3.2-11b-vision": 32 * 2 * 8 * 128 * N,  # cross-attention layers keep nothing of the text
    "recurrentgemma-2b": 8 * 2 * 256 * 2048,
    "qwen3-next-80b-a3b": 12 * 2 * 2 * 256 * N,
    "kimi-linear": 7 * 576 * N,
    "kimi-k3": 24 * 576 * N,
    "jamba-1.5-mini": 4 * 2 * 8 * 128 * N,
    "minimax-01": 10 * 2 * 8 * 128 * N,
    "nemotron-3-nano-30b-a3b": 6 * 2 * 2 * 128 * N,
    "nemotron-nano-9b-v2": 4 * 2 * 8 * 128 * N,
    "falcon-h1-7b": 44 * 2 * 2 * 128 * N,
    "zamba2-2.7b": 9 * 2 * 32 * 160 * N,  # the shared block keeps a cache at each of its nine uses
    "jetmoe-8b": 24 * 2 * 16 * 128 * N,  # keys and values are shared by the attention experts
    "falcon-7b": 32 * 2 * 64 * N,  # one head
    "lfm2-1.2b": 6 * 2 * 8 * 64 * N,
    "ax-k2-light": 48 * (128 + 32 + 128) * N,  # latent, rotary key, indexer's key
    "hy-4": (34 * 576 + 10 * 128) * N,  # layers 0, 1, 5, 9 … 33 run the indexer
    "dots-3-note": 13 * (576 + 128) * N + 33 * (1024 + 64) * 512,
    "mistral-large-4": (54 * 576 + 18 * 512 + 72 * 128) * N,  # every fourth layer has no rotary key
    # the last 36 layers read the latents of layers 34 and 35, and keep the keys of their own indexers
    "mistral-large-4-shared-latents": (27 * 576 + 9 * 512 + 72 * 128) * N,
    "minimax-m3": (60 * 2 * 4 * 128 + 56 * 128) * N,
    "glm-5.3-flash": 11 * (512 + 2 * 128 + 1) * N,  # no rotary key; keys and gates of the pooled indexer
    "qwen4-exp": 10 * (2 * 2 * 256 + 256) * N,
    "zaya1-8b": 40 * 2 * 2 * 128 * N,
    "hrm-text-1b": 128 * 2 * 12 * 128 * N,  # 16 layers in each of 8 passages
    "inkling": 2 * 128 * (11 * 8 * N + 55 * 16 * 512),
    "inkling-2": 2 * 128 * 8 * (8 * N + 40 * 1024),
    "muse-spark": 2 * 16 * 64 * (16 * N + 46 * 2048),
    "bamba-9b": 3 * 2 * 8 * 128 * N,
    "modernbert-decoder": 2 * 12 * 64 * (8 * N + 14 * 64),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_cache_of_one_sequence_by_hand(name):
    assert cache_values(architecture_of(CONFIG[name], name), N) == BY_HAND[name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        # 36 layers of 32 heads of 128 × 128, and three past inputs of a convolution over 8,192 channels
        ("qwen3-next-80b-a3b", 36 * (32 * 128 * 128 + 3 * 8192)),
        # 28 layers of 8,192 channels with 16 states each, and three past inputs
        ("jamba-1.5-mini", 28 * 8192 * (16 + 3)),
        ("llama-3.1-8b", 0),
    ],
)
def test_recurrent_state_does_not_grow_and_is_counted_apart(name, values):
    assert state_values(architecture_of(CONFIG[name], name)) == values


def test_layers_that_share_an_earlier_cache_have_no_keys_of_their_own():
    owners = [
        block for block in blocks_of(architecture_of(CONFIG["gemma-3n-e4b"], "g")) if block.reaches[0].cached_values
    ]
    assert sum(block.count for block in owners) == 20
