"""How weights are stored: the format of each part, what stays wide, and the files beside a configuration."""

import json
from pathlib import Path

import pytest

from gpucost.architectures.reader import architecture_of, read_config
from gpucost.architectures.storage import format_of, kept_wide

CONFIG = {
    name: entry["config"] for name, entry in json.loads((Path(__file__).parent / "published.json").read_text()).items()
}
LLAMA = CONFIG["llama-3.1-8b"]
EMBEDDINGS = 2 * 128_256 * 4096
MATRICES = 32 * (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14_336)
NORMS = 65 * 4096


def read(**further):
    return architecture_of({**LLAMA, **further}, "llama")


@pytest.mark.parametrize(
    ("dtype", "name", "each"),
    [
        ("bfloat16", "bf16", 2),
        ("float16", "fp16", 2),
        ("float32", "fp32", 4),
        ("float8_e4m3fn", "fp8", 1),
        (None, "bf16", 2),
    ],
)
def test_plain_weights_take_the_bytes_of_their_type(dtype, name, each):
    found = read(torch_dtype=dtype)
    assert (found.native_precision, found.stored_bytes) == (name, each * 8_030_261_248)


@pytest.mark.parametrize(
    ("method", "name", "each"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 1 + 4 / 128**2),
        ({"quant_method": "fbgemm_fp8"}, "fp8", 1.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "w8a16", 1 + 3 / 128),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", 0.5 + 4 / 64),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5 + 1 / 16),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "int4",
         0.5 + 1 / 64 + 4 / (64 * 256)),
        ({"quant_method": "mxfp8"}, "fp8", 1.0),
        ({"quant_method": "nvfp4"}, "nvfp4", 0.5 + 1 / 16),
        ({"quant_method": "eetq", "weights": "int8"}, "w8a16", 1.0),
        ({"quant_method": "exl2", "bits": 4.25}, "int4", 4.25 / 8),
        ({"quant_method": "exl3", "bits": 6.0}, "w8a16", 6 / 8),
        ({"quant_method": "aqlm", "nbits_per_codebook": 16, "num_codebooks": 1, "in_group_size": 8}, "int4", 2 / 8),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, "int4",
         0.5 + 2.5 / 64),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "fp_quant", "forward_dtype": "mxfp4"}, "mxfp4", 0.5 + 1 / 32),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}}, "mxfp4",
         0.5 + 1 / 32),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8", 1.0),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {
            "group_size": 32}}}}, "int4", 0.5 + 2.5 / 32),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig"}}}, "w8a16", 1.0),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Float8WeightOnlyConfig"}}}, "fp8", 1.0),
        ({"quant_method": "quanto", "weights": "int8"}, "w8a16", 1.0),
        ({"quant_method": "gptq", "bits": 8.0, "sym": True}, "w8a16", 1.0),
        ({"quant_method": "gptq", "bits": "8", "sym": True}, "w8a16", 1.0),
        ("fp8", "fp8", 1.0),
        ({"quant_method": "spqr", "bits": 3, "group_size": 16}, "int4", 3 / 8 + (2 + 3 / 8) / 16),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", 1.0),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {
                "num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}}}},
            "int4", 0.5 + 2 / 32,
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {
                "num_bits": 4, "type": "float", "group_size": 16}}}},
            "nvfp4", 0.5 + 1 / 16,
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
                "weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}}},
            "int8", 1.0,
        ),
    ],
)  # fmt: skip
def test_quantised_layers_are_narrow_and_embeddings_head_and_norms_stay_wide(method, name, each):
    found = read(quantization_config=method)
    assert found.native_precision == name
    assert found.stored_bytes == pytest.approx(2 * (EMBEDDINGS + NORMS) + each * MATRICES, rel=1e-9)


def test_what_the_file_lists_stays_wide():
    method = {"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "re:.*self_attn.*"]}
    attention = 32 * 4096 * (2 * 4096 + 2 * 1024)
    assert read(quantization_config=method).stored_bytes == 2 * (EMBEDDINGS + NORMS) + MATRICES + attention
    assert kept_wide(["model.layers.0", "model.layers.1"], 4)["experts"] == 0.5
    assert kept_wide(["model.layers.0.mlp.gate", "model.vision_tower.x"], 4) == {}


@pytest.mark.parametrize("turned", [False, True])
def test_groups_of_layers_are_read_in_any_order(turned):
    def group(bits, *targets, kind="int", size=None):
        return {"targets": list(targets), "weights": {"num_bits": bits, "type": kind, "group_size": size}}

    def of(*groups):
        listed = list(enumerate(groups))[:: -1 if turned else 1]
        method = {"quant_method": "compressed-tensors", "config_groups": {f"g{i}": each for i, each in listed}}
        return read(quantization_config=method)

    general, own, other = (
        group(8, "Linear", kind="float"),
        group(4, "re:.*self_attn.*", size=32),
        group(8, "re:.*mlp.*"),
    )
    assert of(general).warnings == of(general, group(8, "Linear", kind="float")).warnings == ()
    mixed = of(own, general)
    assert (mixed.native_precision, mixed.stored_bytes) == ("fp8", of(general).stored_bytes)
    assert mixed.warnings == ("config_groups stores some layers as int4: all but the experts are taken as fp8",)
    assert of(own, other).native_precision == "w8a16"
    assert of(group(4, "re:.*experts.*", size=32), general).warnings == ()


def test_what_is_no_table_of_a_quantization_is_said():
    assert read(quantization_config=[8]).warnings == (
        "quantization method '[8]' is not known: weights are taken as bf16",
    )


def test_an_unknown_method_is_said_and_not_guessed():
    found = read(quantization_config={"quant_method": "squeeze9"})
    assert found.native_precision == "bf16"
    assert "squeeze9" in found.warnings[0]
    assert format_of({"quant_method": "squeeze9"}) is None


# total_size of the safetensors index of the published repository; prediction modules and encoders are beside ours
@pytest.mark.parametrize(
    ("name", "published_bytes", "within"),
    [
        ("kimi-k3", 1_560_860_324_864, 1e-3),
        ("gpt-oss-120b", 65_248_815_744, 2e-3),
        ("gpt-oss-20b", 13_761_264_768, 2e-3),
    ],
)
def test_the_bytes_of_published_weight_files(name, published_bytes, within):
    assert architecture_of(CONFIG[name], name).stored_bytes == pytest.approx(published_bytes, rel=within)


def test_deepseek_v4_stores_its_experts_in_four_bits():
    found = architecture_of(CONFIG["deepseek-v4-flash"], "v4")
    assert found.native_precision == "mxfp4"
    assert found.stored_bytes / 284e9 < 0.6


def test_files_beside_the_configuration_speak(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "torch_dtype": "bfloat16"}))
    (tmp_path / "hf_quant_config.json").write_text(
        json.dumps({"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}})
    )
    found = read_config(tmp_path)
    assert found.native_precision == "nvfp4"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": found.stored_bytes}}))
    assert read_config(tmp_path).warnings == ()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 10**10}}))
    assert "10 GB" in read_config(tmp_path).warnings[0]
