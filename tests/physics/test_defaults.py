"""What a run takes where nobody says: the published recipe of a model, else a rule."""

import pytest

from gpucost.catalog import open_catalog
from gpucost.physics.training.defaults import default_batch, default_sequence

PUBLISHED = {  # model: tokens of a sequence, sequences of a step
    "deepseek-v3": (4096, 15360),  # arXiv:2412.19437, section 4.2
    "opt-175b": (2048, 1024),  # arXiv:2205.01068, table 1: 2M tokens
    "bloom-176b": (2048, 2048),  # arXiv:2211.05100, table 3
    "pythia-12b": (2048, 1024),  # arXiv:2304.01373, section 2.2
    "llama-2-70b": (4096, 1024),  # arXiv:2307.09288, section 2.2: 4M tokens
}


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_recipe_is_the_default(catalog, name):
    model = catalog.architecture(name)
    sequence = default_sequence(model)
    assert (sequence, default_batch(model, sequence)) == PUBLISHED[name]


def test_another_sequence_keeps_the_tokens_of_a_step(catalog):
    assert default_batch(catalog.architecture("deepseek-v3"), 8192) == 15360 // 2
    assert default_batch(catalog.architecture("deepseek-v3"), 4096, "lora") == 128


def test_a_model_whose_recipe_is_not_known_follows_the_rule(catalog):
    assert default_batch(catalog.architecture("llama-3.1-8b"), 8192) == 512
