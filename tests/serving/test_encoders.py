"""Encoders of images and tables that are looked up take memory where a model is served, and are said to be there."""

import json

import pytest

import gpucost
from gpucost.architectures.reader import architecture_of
from gpucost.physics.serving.cases import ServedReplica, build
from gpucost.physics.serving.efficiency import DEFAULTS
from gpucost.physics.serving.steps import weight_bytes

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
TOWER = {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096, "patch_size": 14, "image_size": 336}
# four matrices of attention and two of the feed-forward in each of 24 layers, and 3 colours of a patch
PARAMETERS = 24 * (4 * 1024**2 + 2 * 1024 * 4096) + 3 * 14**2 * 1024
CATALOG = gpucost.open_catalog()


def held(config):
    """Return the bytes of the weights of one replica on one H200."""
    chip = CATALOG.accelerator("h200-sxm")
    made = architecture_of(config, "m")
    return float(weight_bytes(build([ServedReplica(made, chip, CATALOG.default_system(chip.id))], DEFAULTS)[0])[0])


def test_an_encoder_takes_its_weights_at_sixteen_bits():
    seeing = {"model_type": "llava", "text_config": LLAMA, "vision_config": TOWER}
    assert held(seeing) - held(LLAMA) == pytest.approx(2 * PARAMETERS, rel=1e-9)


def test_tables_that_are_looked_up_take_memory_too():
    small = {"hidden_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2,
             "head_dim": 256, "intermediate_size": 6144, "vocab_size": 262144}  # fmt: skip
    plain, looking = (
        {"model_type": "gemma4_text", **small, "hidden_size_per_layer_input": width} for width in (0, 256)
    )
    tables = 262_144 * 256 * 8
    assert held(looking) - held(plain) > 2 * tables


def test_answers_say_what_stands_beside_the_language_model(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llava", "text_config": LLAMA, "vision_config": TOWER}))
    said = " ".join(gpucost.inference(str(file), gpu="h100-sxm", catalog=CATALOG).payload["said"])
    assert "encoders of 0.3 B" in said
    assert "an image is 576 tokens" in said  # (336 ÷ 14)²


@pytest.mark.parametrize("ask", ["inference", "fit", "throughput", "estimate", "roofline"])
def test_what_the_reader_doubts_every_answer_passes_on(tmp_path, ask):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA, "model_type": "weird9", "num_magic_layers": 7}))
    more = {"tokens": 1e9} if ask == "estimate" else {"gpus": 8} if ask in ("throughput", "roofline") else {}
    told = " ".join(getattr(gpucost, ask)(model=str(file), gpu="h100-sxm", catalog=CATALOG, **more).payload["warnings"])
    assert "weird9" in told
    assert "num_magic_layers" in told
