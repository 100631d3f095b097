"""Sizes without a preset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.architectures.synthesise import synthesise
from gpucost.catalog import open_catalog
from gpucost.errors import UsageError
from gpucost.physics.transformer import stack, total_parameters

PRESETS = open_catalog().presets


@settings(max_examples=40, deadline=None)
@given(st.floats(2e7, 1e13))
def test_the_parameters_come_out_as_asked(parameters):
    made = synthesise("x", parameters, PRESETS)
    assert total_parameters(stack([made]))[0] == pytest.approx(parameters, rel=0.015)
    assert made.status == "synthesised"
    assert made.hidden == made.heads * made.head_dim
    assert made.heads % made.kv_heads == 0
    assert made.experts == 0


@pytest.mark.parametrize(("size", "like"), [(8.03e9, (32, 4096)), (70.55e9, (80, 8192)), (13e9, (40, 5120))])
def test_depth_and_width_are_near_those_of_llama_of_that_size(size, like):
    made = synthesise("x", size, PRESETS)
    assert made.layers == pytest.approx(like[0], rel=0.25)
    assert made.hidden == pytest.approx(like[1], rel=0.25)


def test_depth_and_width_grow_with_size_and_split_evenly():
    made = [synthesise("x", 1e9 * 1.03**power, PRESETS) for power in range(210)]
    assert all(item.layers % 4 == 0 and item.heads % 4 == 0 for item in made)
    assert [item.layers for item in made] == sorted(item.layers for item in made)
    assert [item.hidden for item in made] == sorted(item.hidden for item in made)
    assert [item.head_dim for item in made] == sorted(item.head_dim for item in made)
    assert len({(item.hidden, item.heads) for item in made}) == len({item.hidden for item in made})


def test_layers_divide_by_the_stages_of_a_pipeline():
    made = [synthesise("x", 1.2e8 * 1.03**power, PRESETS) for power in range(300)]
    assert {item.layers % 8 for item in made if item.layers >= 16} == {0}


@pytest.mark.parametrize("size", [1e6, 1e14])
def test_sizes_beyond_reason_are_refused(size):
    with pytest.raises(UsageError, match="between"):
        synthesise("x", size, PRESETS)
