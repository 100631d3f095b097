"""Collectives: hand-worked times, and what must hold for any network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost.physics import collectives as net
from gpucost.physics.hardware import hardware_columns

from .cases import H100, NODE

ONE = np.ones(1)


def ideal_links(scaleup=1.0, scaleout=1.0):
    return net.links(hardware_columns([H100], [NODE]), scaleup * ONE, scaleout * ONE, 0 * ONE, 0 * ONE)


def seconds(function, ranks, stride, size, **links):
    group = net.tier(ideal_links(**links), ranks * ONE, stride * ONE)
    return float(function(group, size * ONE)[0])


def test_an_all_reduce_inside_a_node_by_hand():
    # 2 · 7/8 · 1 GB ÷ 450 GB/s
    assert seconds(net.all_reduce_s, 8, 1, 1e9) == pytest.approx(2 * 7 / 8 / 450)


def test_a_ring_across_nodes_uses_the_cards_of_all_its_ranks():
    # 16 ranks on two nodes: 8 × 50 GB/s = 400 GB/s, below the link's 450.
    assert seconds(net.ring_s, 16, 1, 1e9) == pytest.approx(15 / 16 / 400)


def test_ranks_that_are_a_node_apart_have_one_card_each():
    assert seconds(net.ring_s, 4, 8, 1e9) == pytest.approx(3 / 4 / 50)


def test_gathers_over_few_ranks_of_a_link_fill_less_of_it_than_all_reduces():
    # H200 node, 1 GiB (models/measurements/collectives.csv): gathers over 2 and 4 ranks reach 272 and 325 of 344 GB/s.
    two, four, eight = (seconds(net.ring_s, n, 1, 1e9) * n / (n - 1) for n in (2, 4, 8))
    assert eight / two == pytest.approx(272 / 344, rel=0.04)
    assert eight / four == pytest.approx(325 / 344, rel=0.02)
    assert seconds(net.all_reduce_s, 2, 1, 1e9) == pytest.approx(1 / 450)


def test_the_link_caps_what_many_cards_could_do():
    assert seconds(net.ring_s, 16, 1, 1e9, scaleout=4.0) == pytest.approx(15 / 16 / 450)


def test_a_token_leaves_for_each_other_node_once():
    # 16 ranks on two nodes, 8 copies: 2·(1 − 1/2⁸) nodes visited, half of them the own one.
    group = net.tier(ideal_links(), 16 * ONE, ONE)
    time = net.expert_exchange_s(group, 1e9 * ONE, 8 * ONE, ideal_links())
    inside, outside = 8 * 7 / 8 / 450, 2 * (1 - 1 / 2**8) / 2 / 50
    assert time[0] == pytest.approx(max(inside, outside))


@given(st.sampled_from([1]), st.floats(1.0, 1e12))
def test_one_rank_has_no_communication(ranks, size):
    link = ideal_links()
    group = net.tier(link, ranks * ONE, ONE)
    assert net.ring_s(group, size * ONE)[0] == 0
    assert net.all_reduce_s(group, size * ONE)[0] == 0
    assert net.point_to_point_s(group, size * ONE)[0] == 0
    assert net.expert_exchange_s(group, size * ONE, 8 * ONE, link)[0] == 0


@given(
    st.integers(1, 4096),
    st.sampled_from([1, 2, 4, 8, 64]),
    st.floats(1e3, 1e11),
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
    st.floats(1.0, 4.0),
)
def test_a_faster_network_is_never_slower(ranks, stride, size, up, out, factor):
    slow = seconds(net.all_reduce_s, ranks, stride, size, scaleup=up, scaleout=out)
    assert seconds(net.all_reduce_s, ranks, stride, size, scaleup=up * factor, scaleout=out) <= slow * (1 + 1e-12)
    assert seconds(net.all_reduce_s, ranks, stride, size, scaleup=up, scaleout=out * factor) <= slow * (1 + 1e-12)


@given(st.integers(2, 512), st.floats(1e3, 1e10), st.floats(1.0, 10.0))
def test_a_larger_message_is_never_faster(ranks, size, factor):
    assert seconds(net.ring_s, ranks, 1, size * factor) >= seconds(net.ring_s, ranks, 1, size)
