"""Configurations that cannot be are refused with the reason; odd ones that can be are read."""

import json
from pathlib import Path

import pytest

import gpucost
from benchmarks.fuzz.good import (
    configurations,
)
from gpucost.errors import GpuCostError, UsageError
from tests.commands import in_process


def test_an_integer_of_hundreds_of_digits_in_a_configuration_is_refused():
    from gpucost.architectures.config import Fields

    for digits in (400, 5000):
        with pytest.raises(UsageError, match="whole number"):
            Fields({"hidden_size": 10**digits}, "config.json").number("hidden_size")


def test_cycles_that_multiply_the_layers_beyond_reason_are_refused(refused):
    config = {
        "model_type": "hrm_text", "vocab_size": 2, "hidden_size": 1536, "intermediate_size": 4096, "H_cycles": 151808,
        "num_hidden_layers": 128, "num_attention_heads": 12, "head_dim": 128, "L_cycles": 3,
    }  # fmt: skip
    Path("config.json").write_text(json.dumps(config))
    assert "layers" in refused(["models", "config.json"])


def test_a_configuration_without_heads_is_refused_and_a_long_name_in_one_is_cut(refused):
    whole = {"model_type": "x" * 3000, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
             "intermediate_size": 128, "vocab_size": 100, "k" * 3000: 1}  # fmt: skip
    Path("config.json").write_text(json.dumps(whole))
    said = in_process("models", "config.json")
    assert said.returncode == 0
    assert len(said.stderr) < 1500
    Path("config.json").write_text(
        json.dumps(whole | {"model_type": "jetmoe", "num_attention_heads": 0, "num_key_value_heads": []})
    )
    assert "heads" in refused(["models", "config.json"])


def test_a_size_in_other_digits_is_no_name_of_a_model():
    with pytest.raises(UsageError, match="unknown model"):
        gpucost.estimate("\u0663b", "1b", gpu="h100-sxm", gpus=8)


@pytest.mark.parametrize("place", ["\u00b2", "-1", "x", "9" * 5000])
def test_a_layer_of_no_number_in_a_configuration_is_refused(refused, place):
    config = json.loads(configurations()[0]) | {"per_layer_config": {place: {"hidden_size": 8}}}
    Path("config.json").write_text(json.dumps(config))
    assert "layer" in refused(["models", "config.json"])


def test_a_tensor_of_a_layer_of_thousands_of_digits_is_read():
    from gpucost.architectures.storage import _LAYER

    assert _LAYER.search(f"model.layers.{'9' * 5000}.mlp") is None
    assert _LAYER.search("model.layers.61.mlp")[1] == "61"


def test_a_model_below_a_home_that_nobody_has_is_an_unknown_name():
    with pytest.raises(GpuCostError, match="nobody-of-that-name"):
        gpucost.estimate("~nobody-of-that-name/config", "1b")
