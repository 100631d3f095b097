"""Every model's parameters, recounted from its architecture by the package's own accounting."""

import pytest

from gpucost.catalog.models import model_rows
from gpucost.physics.transformer import active_parameters, compute_parameters, parameter_parts, stack, total_parameters
from tests.rules import for_each

from .tables import catalog, row, rows

ALL = rows("llms")

# totals of the published weight files, from the safetensors index of each repository
WEIGHTS = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-235b-a22b": 235_093_634_560,
    "deepseek-v3": 671_026_419_200,
    "gpt-oss-120b": 116_829_156_672,
    "gemma-2-27b": 27_227_128_320,
    "phi-4": 14_659_507_200,
    "bloom-176b": 176_247_271_424,
}

HARD_TO_DESCRIBE = {"opt-350m", "qwen3.5-397b-a17b", "nemotron-3-nano-30b-a3b", "nemotron-3.5-lightning-30b-a3b"} | {
    "nemotron-3-super-120b-a12b",
    "nemotron-3-ultra-550b-a55b",
    "llama-3.3-nemotron-super-49b",
    "gopher",  # relative positions: a matrix of the stream for each layer
    "chinchilla",
}
ROUNDED_OR_DISPUTED = {"gpt3-medium", "gpt3-xl", "gpt3-2.7b", "gpt3-13b", "gpt-1.7b", "kimi-k2", "kimi-k2.5"} | {
    "kimi-k2.6",
    "kimi-k2.7-code",
    "kimi-k2-thinking",
    "deepseek-v4-pro",  # 1.6T is stated, 1.573T counted
}


def shape_of(name):
    return stack([catalog().architecture(name)])


@for_each("name", WEIGHTS)
def test_recount_equals_the_weight_files(name):
    assert int(total_parameters(shape_of(name))[0]) == WEIGHTS[name]


@for_each("item", ALL, lambda item: item["id"])
def test_recount_agrees_with_the_published_number(item):
    total = float(total_parameters(shape_of(item["id"]))[0])
    if item["published_parameters"]:
        tolerance = 0.035 if item["id"] in ROUNDED_OR_DISPUTED else 0.012
        assert total == pytest.approx(float(item["published_parameters"]), rel=tolerance)


@for_each("item", ALL, lambda item: item["id"])
def test_what_no_dimension_explains_is_small_and_explained(item):
    extra, total = int(item["extra_parameters"]), float(total_parameters(shape_of(item["id"]))[0])
    limit = 0.08 if item["id"] in HARD_TO_DESCRIBE else 0.01
    assert abs(extra) <= limit * total
    assert not extra or any(word in item["notes"] for word in ("extra", "approximated", "uniform model"))


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("mixtral-8x7b", 12.9),
        ("mixtral-8x22b", 39.1),
        ("deepseek-v3", 37.5),  # 37B without the input embedding counted at half
        ("qwen3-30b-a3b", 3.35),
        ("llama-4-maverick-17b-128e", 17.2),
        ("dbrx", 36.4),
    ],
)
def test_active_parameters(name, billions):
    assert float(active_parameters(shape_of(name))[0]) / 1e9 == pytest.approx(billions, rel=0.02)


def test_compute_parameters_leave_the_input_embedding_out():
    """Llama 3 8B: 8.030B less 128,256 × 4,096."""
    assert int(compute_parameters(shape_of("llama-3-8b"))[0]) == 8_030_261_248 - 128_256 * 4_096


def test_gpt_oss_active_count_of_its_model_card():
    """5.13B active, without the input embedding (model card, Table 1)."""
    assert float(compute_parameters(shape_of("gpt-oss-120b"))[0]) / 1e9 == pytest.approx(5.13, rel=0.01)


@pytest.mark.parametrize(
    ("name", "window", "windowed", "layers"),
    [("gemma-2-9b", 4096, 21, 42), ("gemma-3-27b", 1024, 52, 62), ("gpt-oss-120b", 128, 18, 36)],
)
def test_sliding_windows(name, window, windowed, layers):
    item = row("llms", name)
    assert (int(item["window_tokens"]), int(item["window_layers"]), int(item["layers"])) == (window, windowed, layers)


def test_hybrids_name_their_linear_layers():
    assert row("llms", "qwen3.5-397b-a17b")["linear_layers"] == "45"
    assert row("llms", "nemotron-3-nano-30b-a3b")["linear_layers"] == "23"


def test_parts_add_up():
    shape = stack([catalog().architecture(item["id"]) for item in ALL])
    parts = parameter_parts(shape)
    assert sum(float(getattr(parts, name).sum()) for name in parts.names()) == pytest.approx(
        float(total_parameters(shape).sum())
    )


@pytest.mark.parametrize("size", ["7b", "8b", "13b", "70b", "405b", "124m", "175b"])
def test_bare_sizes_mean_a_model_of_that_size(size):
    stated = float(size[:-1]) * {"b": 1e9, "m": 1e6}[size[-1]]
    assert float(total_parameters(shape_of(size))[0]) == pytest.approx(stated, rel=0.05)


LICENCES = {  # of the publishers' licence files and model cards
    "llama-3-8b": "Llama 3 Community License",
    "llama-3.1-405b": "Llama 3.1 Community License",
    "llama-4-scout-17b-16e": "Llama 4 Community License",
    "deepseek-v3": "DeepSeek License 1.0",
    "deepseek-r1": "MIT",
    "qwen2.5-7b": "Apache-2.0",
    "mistral-large-2-123b": "Mistral Research License",
    "gpt-oss-120b": "Apache-2.0",
    "kimi-k2": "Modified MIT",
    "llama-3.1-nemotron-70b": None,  # not Meta's alone
    "deepseek-v3.1": None,  # another licence than that of V3
    "qwen2.5-3b": None,  # excluded from its family's
    "falcon3-10b": None,
    "palm-540b": None,  # never published
    "11b": None,  # a size
}


@for_each("name, licence", LICENCES.items(), lambda name, _: name)
def test_a_licence_is_that_of_the_longest_beginning_and_else_unknown(name, licence):
    (found,) = model_rows(catalog(), [catalog().architecture(name)])
    assert found["licence"] == licence


@for_each("item", rows("licences"), lambda item: item["begins"])
def test_a_licence_is_of_some_model_and_has_a_kind(item):
    assert any(f"{model['id']}-".startswith(f"{item['begins']}-") for model in ALL)
    assert bool(item["licence"]) == bool(item["kind"])
    assert item["licence"] or item["notes"]  # why a longer beginning is not known
