"""What one layer costs for one micro-batch on one accelerator: products, attention, traffic, and exchanges.

Each function takes a case and the tokens of a micro-batch and returns seconds; nothing here knows the schedule.
"""

import numpy as np

from gpucost.physics import collectives as net
from gpucost.physics import transformer as tf
from gpucost.physics.columns import ColumnStruct, Floats
from gpucost.physics.hardware import HardwareColumns, half_peak_tflops, peak_tflops
from gpucost.physics.training.cases import FP4, FP8, FP32, FULL, HALF_BYTES, INT8, LORA, QLORA, TrainingCase
from gpucost.physics.training.efficiency import Efficiencies
from gpucost.physics.training.memory_recipe import FROZEN_BYTES
from gpucost.units import GB, TERA

_UNIT_VALUES = 8  # of 16 bits: matrix units read rows of a multiple of 16 bytes
_FLASH_HEAD_DIM = 48.0  # head dimension at which fused attention reaches half of its long-head speed
_UNPACKED_BYTES = FROZEN_BYTES["qlora"] + 2 * HALF_BYTES  # moved to unpack a weight: read, written, read again
_DISPATCHED_BYTES = (1 + 3 * HALF_BYTES) / 4  # tokens leave for experts at 8 bits; results and gradients travel at 16
MERGED_BYTES = 16.0  # moved per value and step of a ring: outputs added in fp32 (2 + 4 + 4), gradients in 16 bits
_SCAN_KEYS = 2048.0  # sequence at which fused attention takes as long as a scan
_SCAN_MATRICES = 3.3  # widths of a state-space mixer's matrices, of its inner width: two in, one out, states and steps
_ACTIVATION_SHARE = 0.15  # traffic of one feed-forward value against that of one residual value

# Products ----------------------------------------------------------------------------------------------------------


class LayerRates(ColumnStruct, frozen=True):
    """Reachable rates: FLOP/s of products at the layout's precision and at 16 bits or more, bytes/s of the memory."""

    matrix_flop_per_s: Floats
    half_flop_per_s: Floats
    flash_flop_per_s: Floats
    bytes_per_s: Floats


def rates(case: TrainingCase) -> LayerRates:
    """Return the reachable rates: dense peak × the fitted share, for the layout's precision and for 16 bits or more.

    A base quantised and prepared by Hugging Face's peft (prepare_model_for_kbit_training) computes in fp32: norms,
    residual and attention, and its products too where bitsandbytes is left at its default compute type.
    """
    e, precision = case.efficiency, case.layout.precision
    ratio = np.ones(len(case))
    for code, share in ((FP8, e.fp8_ratio), (INT8, e.int8_ratio), (FP4, e.fp4_ratio)):
        ratio = np.where(precision == code, share, ratio)
    half, whole = half_peak_tflops(case.hardware, precision) * TERA, case.recipe.full_precision
    # a chip without an fp32 peak runs what is asked in fp32 at 16 bits
    single = peak_tflops(case.hardware, np.full(len(case), FP32)) * TERA * e.matrix * e.full_precision_ratio
    whole = whole & np.isfinite(single)
    return LayerRates(
        matrix_flop_per_s=np.where(whole, single, peak_tflops(case.hardware, precision) * TERA * e.matrix * ratio),
        half_flop_per_s=np.where(whole, single, half * e.matrix),
        flash_flop_per_s=np.where(whole, single, half * e.flash),
        bytes_per_s=case.hardware.hbm_gb_per_s * GB * e.copy,
    )


def _value_bytes(case: TrainingCase) -> Floats:
    """Return the bytes of a value between products: 2, or 4 where all is computed in fp32."""
    return np.where(case.recipe.full_precision, 2 * HALF_BYTES, HALF_BYTES)


def product_s(
    rows: Floats,
    columns: Floats,
    depth: Floats,
    flop_per_s: Floats,
    rate: LayerRates,
    e: Efficiencies,
    groups: Floats | float = 1.0,
    lost: Floats | None = None,  # rows of each group; those of plain products where none are said
) -> Floats:
    """Return the time of a product rows × depth × columns, in `groups` with weights of their own.

    Compute, 2·(m + g·m0)·(n + w0)·(k + w0) ÷ rate, and memory traffic, combined as √(a² + b²): tiles and waves round
    each dimension up (m0 per group, w0), and a narrow product is bound by its bytes. Ragged groups lose more rows each.
    """
    compute = (  # the dimensions rounded up
        2
        * (rows + groups * (e.matrix_tokens if lost is None else lost))
        * (columns + e.matrix_width)
        * (depth + e.matrix_width)
        / flop_per_s
    )
    values = rows * (depth + columns) + groups * depth * columns
    moved = values * HALF_BYTES / rate.bytes_per_s
    both: Floats = np.hypot(compute, moved)
    return both


def layer_products_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's products in one pass over a micro-batch."""
    s, e, t = case.shape, case.efficiency, case.layout.tensor
    h, peak = s.hidden, rate.matrix_flop_per_s
    wide = np.where(s.gated, 2.0, 1.0)  # gate and up are one product
    # the mixer's weights as two products of equal size, one into its heads and one out of them
    attention = 2 * product_s(tokens, _mixer_weights(s) / (2 * h * t), h, peak, rate, e)
    width = s.ffn_hidden / t
    dense = np.where(
        s.ffn_hidden > 0,
        product_s(tokens, wide * width, h, peak, rate, e) + product_s(tokens, h, width, peak, rate, e),
        0.0,
    )
    moe = s.moe_layers / s.layers
    if not np.any(moe > 0):
        return attention + dense

    # A mixture: routed experts on the busiest rank, and shared ones. With expert parallelism a rank keeps
    # experts ÷ expert of them whole and receives its share of the tokens; without it, every rank keeps a tensor slice
    # of all experts.
    layout = case.layout
    spread = layout.expert > 1
    rows = tokens * s.experts_per_token / np.where(spread, layout.tensor, 1.0)
    expert_width = s.expert_ffn_hidden / np.where(spread, 1.0, layout.tensor)
    local = np.maximum(s.experts / layout.expert, 1.0)
    grouped = peak * e.grouped_ratio  # products of all local experts as one kernel
    routed = product_s(rows, wide * expert_width, h, grouped, rate, e, local, e.expert_tokens)
    routed = routed + product_s(rows, h, expert_width, grouped, rate, e, local, e.expert_tokens)
    shared_width = s.shared_experts * s.shared_ffn_hidden / layout.tensor
    shared = product_s(tokens, wide * shared_width, h, peak, rate, e)
    shared = shared + product_s(tokens, h, shared_width, peak, rate, e)
    busiest = routed * np.where(spread, e.expert_imbalance, 1.0)
    mixture = busiest + np.where(s.shared_experts > 0, shared, 0.0)
    return attention + (1 - moe) * dense + moe * mixture


def _mixer_weights(shape: tf.Shape) -> Floats:
    """Return the weights of one mean layer's mixer; what state-space layers hold beyond attention's stands apart."""
    beyond = np.where(shape.linear_layers > 0, shape.extra_parameters, 0.0)
    return tf.attention_matrix_parameters(shape) + beyond / shape.layers


def layer_scan_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's state-space scan, forward and backward, with what is repeated.

    In chunks of products it costs what fused attention costs over 2,048 keys (arXiv:2405.21060, section 9.3); its
    width is a third of what the mixer's matrices are wide together.
    """
    s, layout = case.shape, case.layout
    width = _mixer_weights(s) / (_SCAN_MATRICES * s.hidden) * s.linear_layers / s.layers
    # 2·keys·width a token under the causal mask, and backward two and a half times that, as fused attention
    flop = 2 * _SCAN_KEYS * width * tokens / layout.tensor * np.where(layout.recompute == FULL, 4.5, 3.5)
    return flop / (rate.half_flop_per_s * case.efficiency.scan_fraction)


def dispatch_ratio(case: TrainingCase) -> Floats:
    """Return the time of what brings tokens to experts on other ranks against that of a fused dispatcher."""
    return np.where(case.layout.expert > 1, case.efficiency.dispatch_ratio, 1.0)


def layer_attention_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's attention core, forward and backward, with what is repeated.

    Fused: half the square under the causal mask, 1 forward and 2.5 backward (arXiv:2307.08691, section 3.1.2), at a
    rate that grows with the head dimension and with the keys met at a time: under a ring (arXiv:2310.01889) those of
    one rank, and each further step adds its part to what is there, forward and backward. Unfused: the whole square,
    three passes, and the score matrix moved through memory again and again; heads whose width is no multiple of
    eight values miss the matrix units (NVIDIA, Matrix Multiplication Background, section 2.2) and multiply in fp32,
    whose units take any width.
    """
    s, e, layout, recipe = case.shape, case.efficiency, case.layout, case.recipe
    sequence, head = recipe.attended_tokens, np.maximum(tf.query_width(s) / s.heads, 1.0)
    full, some = layout.recompute == FULL, layout.recompute > 0
    # of the mean layer: `attention_flop` counts all layers
    share = tokens / layout.tensor / s.layers
    block = sequence / layout.context  # keys that a rank's queries meet at a time
    reach = block / (block + e.flash_tokens) * head / (head + _FLASH_HEAD_DIM)
    fused = tf.attention_flop(s, sequence, recipe.causal) * share * np.where(full, 4.5, 3.5)
    merged = (layout.context - 1) * share * s.layers * tf.query_width(s) * MERGED_BYTES
    fused_s = fused / (rate.flash_flop_per_s * reach) + merged / rate.bytes_per_s
    if np.all(layout.flash):
        return fused_s

    # Unfused: scores of a × s values a token are written and read by softmax, mask and dropout.
    square = tf.attention_flop(s, sequence, False) * share * np.where(some, 4.0, 3.0)
    passes = e.softmax_passes * np.where(recipe.library_scores, e.library_scores_ratio, 1.0)
    moved = _value_bytes(case) * passes * np.where(some, 4 / 3, 1.0)
    scores = s.heads / layout.tensor * tokens * sequence * moved
    vector = peak_tflops(case.hardware, np.full(len(case), FP32)) * TERA * e.matrix
    units = rate.half_flop_per_s / (1 + e.matrix_width / head)  # narrow heads fill tiles badly
    lanes = ((head % _UNIT_VALUES > 0) | recipe.full_precision) & (vector > 0)  # which take any width
    units = np.where(lanes, np.minimum(vector, rate.half_flop_per_s), units)
    unfused_s = square / units + scores / rate.bytes_per_s
    return np.where(layout.flash, fused_s, unfused_s)


def layer_sinks_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return what one mean layer's attention takes more where windows with learned sinks have no fused kernel.

    The whole square of scores is computed and masked, three passes, and moved through memory again and again.
    """
    s, e, layout, recipe = case.shape, case.efficiency, case.layout, case.recipe
    if not np.any(s.sink_layers):
        return np.zeros(len(case))
    share = e.sinks_apart * s.sink_layers / s.layers * tokens / layout.tensor * recipe.attended_tokens
    again = np.where(layout.recompute > 0, 4 / 3, 1.0)
    # 12: two products of 2 FLOP, forward and twice backward
    flop, scores = 12 * tf.query_width(s) * share * again, s.heads * share * HALF_BYTES * e.softmax_passes * again
    return flop / rate.half_flop_per_s + scores / rate.bytes_per_s


def layer_elementwise_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of one mean layer's norms, activations, rotations and residuals, forward and backward.

    Traffic: passes · 2 bytes · (residual width + 0.15 · feed-forward values). Without sequence parallelism half of
    the residual's traffic (norms, dropout) is repeated on every tensor rank (arXiv:2205.05198, section 4.2).
    """
    s, e, layout = case.shape, case.efficiency, case.layout
    moe = s.moe_layers / s.layers
    active = s.experts_per_token * s.expert_ffn_hidden + s.shared_experts * s.shared_ffn_hidden
    ffn = ((1 - moe) * s.ffn_hidden + moe * active) * np.where(s.gated, 1.5, 1.0) / layout.tensor
    residual = s.hidden * np.where(layout.sequence_parallel, 1 / layout.tensor, 0.5 + 0.5 / layout.tensor)
    routed = moe * dispatch_ratio(case) * e.expert_traffic * s.experts_per_token * s.hidden / layout.tensor
    # tokens are permuted on their way to experts and back: the width once for each expert visited
    values = e.elementwise_passes * (residual + _ACTIVATION_SHARE * ffn + routed)
    again = np.where(layout.recompute == FULL, 4 / 3, 1.0)
    moved = tokens * _value_bytes(case) * values * again
    return (moved + cast_bytes(case, tokens, active)) / rate.bytes_per_s


def cast_bytes(case: TrainingCase, tokens: Floats, active: Floats) -> Floats:
    """Return the bytes that one mean layer moves to cast the operands of its 8-bit and 4-bit products.

    Every product takes its input and the gradient of its output at the lower precision, so that the widths on both
    sides of each matrix are read, scaled and written; `active` is the width of the experts that a token visits.
    """
    s, layout = case.shape, case.layout
    narrow = (layout.precision == FP8) | (layout.precision == FP4)
    if not np.any(narrow):
        return np.zeros(len(case))
    moe, wide = s.moe_layers / s.layers, np.where(s.gated, 2.0, 1.0)
    visits = (1 - moe) * (s.ffn_hidden > 0) + moe * (s.experts_per_token + s.shared_experts)
    ffn = 2 * visits * s.hidden + (1 + wide) * ((1 - moe) * s.ffn_hidden + moe * active)
    # widths of queries, keys, values and output from their weights; the stream on the other side of in and out
    attention = tf.attention_matrix_parameters(s) / s.hidden + 2 * s.hidden
    moved: Floats = np.where(narrow, case.efficiency.cast_bytes * tokens * (attention + ffn) / layout.tensor, 0.0)
    return moved


def logits_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of the output projection and the loss of one micro-batch, forward and backward, at 16 bits."""
    s, e, layout = case.shape, case.efficiency, case.layout
    share = s.vocab / np.where(case.recipe.vocabulary_split, layout.tensor, 1.0)
    again = case.recipe.loss_repeated
    passes = np.where(case.recipe.method >= LORA, 2.0, 3.0) + again
    product = product_s(tokens, share, s.hidden, rate.half_flop_per_s, rate, e) * passes
    time: Floats = product + tokens * share * e.loss_bytes * np.where(again, 4 / 3, 1.0) / rate.bytes_per_s
    return time


def layer_adapter_s(case: TrainingCase, rate: LayerRates, tokens: Floats) -> Floats:
    """Return the time of one layer's adapters: two skinny products per target and pass, bound by their traffic.

    QLoRA unpacks the frozen weights in every pass: their own bytes are read, two each written and read again.
    """
    s, e, layout, recipe = case.shape, case.efficiency, case.layout, case.recipe
    tuned = recipe.method >= LORA
    if not np.any(tuned):
        return np.zeros(len(case))
    weights = tf.layers_linear_flop(s) / 2 / s.layers / layout.tensor  # that a token meets, of the mean layer
    ends = recipe.adapter_share * 2 * weights / s.hidden  # inputs and outputs of the adapted matrices
    again = np.where(layout.recompute == FULL, 4 / 3, 1.0)
    traffic = tokens * _value_bytes(case) * e.adapter_passes * ends * again
    flop = 6 * tokens * ends * recipe.adapter_rank * again
    passes = np.where(layout.recompute == FULL, 3.0, 2.0)
    unpacked = np.where(recipe.method == QLORA, weights * _UNPACKED_BYTES * passes, 0.0)
    # products of a rank of 16 reach a quarter of the rate of wide ones: an assumption
    time = (traffic + unpacked) / rate.bytes_per_s + flop / (0.25 * rate.half_flop_per_s)
    return np.where(tuned, time, 0.0)


def layer_adapter_host_us(case: TrainingCase) -> Floats:
    """Return the host time of one layer's adapters: each of its matrices' is several kernels beside their own."""
    matrices = 4 + np.where(case.shape.gated, 3.0, 2.0)
    return np.where(
        case.recipe.method >= LORA, case.recipe.adapter_share * matrices * case.efficiency.adapter_host_us, 0.0
    )


# Exchanges ---------------------------------------------------------------------------------------------------------


def case_links(case: TrainingCase) -> net.Links:
    """Return the links at the fractions that collectives reach."""
    return links_of(case.hardware, case.efficiency)


def links_of(hardware: HardwareColumns, e: Efficiencies) -> net.Links:
    """Return the links of accelerators at those fractions; cards without one exchange over PCIe."""
    # a node without a link states PCIe's rate, or none, as that of its link
    inside = np.where(hardware.scaleup_gb_per_s > hardware.pcie_gb_per_s, e.scaleup, e.pcie)
    return net.links(hardware, inside, e.scaleout, e.scaleup_latency_us, e.scaleout_latency_us)


def layer_tensor_s(case: TrainingCase, link: net.Links, tokens: Floats) -> Floats:
    """Return the exposed time of one layer's tensor-parallel exchanges: two all-reduces each way, two more repeated.

    With sequence parallelism each is an all-gather and a reduce-scatter of the same volume (arXiv:2205.05198). The
    gradients of inputs are reduced, half of the backward volume, behind the products of weights' gradients; a frozen
    layer has none and waits (Megatron-Core, core/tensor_parallel/layers.py: LinearWithFrozenWeight).
    """
    group, exposed = net.tier(link, case.layout.tensor, np.ones(len(case))), case.efficiency.tensor_exposed
    count = np.where(case.layout.recompute == FULL, 6.0, 4.0)
    bare = np.where(case.recipe.method >= LORA, 1 - exposed, 0.0)
    return (exposed * count + bare) * net.all_reduce_s(group, tokens * case.shape.hidden * HALF_BYTES)


def layer_context_s(case: TrainingCase, link: net.Links, tokens: Floats, attention_s: Floats) -> Floats:
    """Return the exposed time of one layer's context-parallel ring: keys and values forward, twice that backward.

    The ring hides behind the attention that it feeds (arXiv:2310.01889, section 3); what is longer is exposed.
    """
    layout, s = case.layout, case.shape
    group = net.tier(link, layout.context, layout.tensor)
    # keys and values of the whole sequence pass every rank; a rank of the tensor group has its heads of them
    message = layout.context * tokens * tf.kv_values_per_token(s) * HALF_BYTES / np.minimum(layout.tensor, s.kv_heads)
    return exposed_s(3 * net.ring_s(group, message), attention_s, case.efficiency.interference)


def layer_expert_s(case: TrainingCase, link: net.Links, tokens: Floats) -> Floats:
    """Return the exposed time of one mean layer's expert exchange: dispatch and combine, forward and backward."""
    layout, s = case.layout, case.shape
    group = net.tier(link, layout.expert, np.ones(len(case)))
    eight = (layout.precision == FP8) | (layout.precision == FP4)
    row = tokens / layout.tensor * s.exchanged_width * np.where(eight, _DISPATCHED_BYTES, HALF_BYTES)
    count = np.where(layout.recompute == FULL, 6.0, 4.0) * s.moe_layers / s.layers
    e = case.efficiency
    exchange = net.expert_exchange_s(group, row, s.experts_per_token, link)
    # under a pipeline the exchange of one micro-batch hides behind the computing of another
    exposed = np.where(layout.pipeline > 1, e.alltoall_pipelined, e.alltoall_exposed)
    return exposed * count * exchange * dispatch_ratio(case)


def exposed_s(exchange: Floats, compute: Floats, interference: Floats) -> Floats:
    """Return what an exchange adds to the compute it overlaps: the excess, and a slow-down while both run."""
    return np.maximum(exchange - compute, 0.0) + interference * np.minimum(exchange, compute)
