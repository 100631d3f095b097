"""Names of models and chips as people type them: as on Hugging Face, in ollama, with suffixes, or half remembered."""

from pathlib import Path

import pytest

from gpucost.catalog import open_catalog
from gpucost.errors import AmbiguousNameError, UnknownNameError
from tests.rules import for_each

TYPED = [line.split(" = ") for line in (Path(__file__).parent / "typed_names.txt").read_text().splitlines()]


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


@for_each("typed, id_", TYPED, lambda typed, id_: typed)
def test_a_typed_model_is_a_preset_of_its_dimensions(catalog, typed, id_):
    assert catalog.architecture(typed).name == id_


@pytest.mark.parametrize(
    ("typed", "id_"),
    [
        ("RTX PRO 6000 Max-Q", "rtx-pro-6000-bw-max-q"),
        ("Quadro RTX 8000", "quadro-rtx-8000"),
        ("RTX 8000", "quadro-rtx-8000"),
        ("4080 Super", "rtx-4080-super"),
        ("RTX 4080", "rtx-4080"),
        ("RTX 5880 Ada", "rtx-5880-ada"),
        ("M3 Ultra", "apple-m3-ultra-80c"),
        ("Jetson Orin", "jetson-agx-orin-64gb"),
        ("Jetson AGX Orin 64GB", "jetson-agx-orin-64gb"),
        ("b300", "b300-sxm"),
        ("Ascend 910B", "ascend-910b"),
    ],
)
def test_a_typed_chip_is_found(catalog, typed, id_):
    assert catalog.accelerator(typed).id == id_


@pytest.mark.parametrize(
    ("kind", "typed", "why"),
    [
        ("accelerator", "Groq LPU", "of HBM"),
        ("accelerator", "Cerebras WSE-3", "of HBM"),
        ("accelerator", "Ascend 310P", "too little"),
        ("accelerator", "SambaNova SN40L", "be checked"),
        ("architecture", "gpt-4o", "how large"),
        ("architecture", "claude-sonnet-4", "how large"),
        ("architecture", "nvidia/Llama-3.1-Nemotron-Ultra-253B-v1", "its config"),
        ("architecture", "stable-diffusion-xl", "no decoder-only"),
    ],
)
def test_what_no_row_can_answer_is_said_to_be_so(catalog, kind, typed, why):
    with pytest.raises(UnknownNameError, match=why) as error:
        getattr(catalog, kind)(typed)
    assert not error.value.candidates


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("qwen3.5-30b", "qwen3.5-27b"),
        ("Qwen3.5-14B", "qwen3.5-9b"),
        ("llama-3.1-100b", "llama-3.1-70b"),
        ("glm-6", "glm-5"),
        ("gemma-3-30b", "gemma-3-27b"),
        ("granite-9-8b", "granite-3.1-8b"),
    ],
)
def test_a_hint_is_of_the_same_family_and_near_in_size(catalog, typed, near):
    with pytest.raises(UnknownNameError, match="unknown") as error:
        catalog.architecture(typed)
    assert near in error.value.candidates
    family = near.split("-")[0].rstrip("0123456789.")
    assert error.value.candidates[0].startswith(family)


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma", "deepseek", "phi"])
def test_a_bare_family_of_models_lists_its_members(catalog, family):
    with pytest.raises(AmbiguousNameError, match=family):
        catalog.architecture(family)


@pytest.mark.parametrize("family", ["H100", "h200", "Hopper", "Blackwell", "MI300X", "A100"])
def test_a_name_means_the_same_chips_of_every_kind_of_record(catalog, family):
    chips = {found.id for found in catalog.accelerators(family)}
    assert {system.accelerator_id for system in catalog.systems(family)} <= chips
    assert {offer.gpu for offer in catalog.offers(gpu=family)} <= chips
