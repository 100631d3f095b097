"""The roofline: what bounds an operation or each part of a step, and by how much.

Attainable FLOP/s = min(peak, intensity × bandwidth); the ridge is the intensity at which both are equal
(Williams, Waterman, Patterson 2009, figure 1). The network and the host are two more roofs: an operation takes at
least as long as its bytes need on the link, and as its launches need on the host.
"""

import numpy as np

from gpucost.answers.training import Bound
from gpucost.physics import transformer as tf
from gpucost.physics.columns import ColumnStruct, Floats, Integers
from gpucost.physics.hardware import peak_tflops
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import FULL, HALF_BYTES, LORA, Step, TrainingCase
from gpucost.units import GB, TERA

BOUNDS: tuple[Bound, ...] = ("compute", "bandwidth", "network", "host")


class Operation(ColumnStruct, frozen=True):
    """Work of an operation: FLOP, bytes through memory, bytes over a link."""

    flop: Floats
    memory_bytes: Floats
    link_bytes: Floats


class Verdict(ColumnStruct, frozen=True):
    """Where an operation stands under its roofs, at nominal peaks."""

    intensity_flop_per_byte: Floats
    ridge_flop_per_byte: Floats
    attainable_tflops: Floats
    compute_s: Floats
    bandwidth_s: Floats
    network_s: Floats
    host_s: Floats
    bound: Integers  # code into BOUNDS


def judge(work: Operation, peak_tflops: Floats, hbm_gb_per_s: Floats, link_gb_per_s: Floats, host_s: Floats) -> Verdict:
    """Compare the times that each roof alone would need; the longest bounds.

    An 8192³ product in bf16 by hand: 2·8192³ FLOP over 3·8192²·2 bytes = 2,731 FLOP per byte.

    >>> n, one = 8192.0, np.ones(1)
    >>> work = Operation(2 * n**3 * one, 3 * n**2 * 2 * one, 0 * one)
    >>> verdict = judge(work, 989.4 * one, 3350 * one, 450 * one, 0 * one)
    >>> BOUNDS[verdict.bound[0]], verdict.intensity_flop_per_byte.round(), verdict.ridge_flop_per_byte.round()
    ('compute', array([2731.]), array([295.]))
    """
    intensity = work.flop / np.maximum(
        work.memory_bytes, 1e-300
    )  # pure arithmetic: any intensity, and no division by 0
    # (roofs, cases): the longest is the bound, the first of equals in the order of BOUNDS
    times = np.stack(
        [
            work.flop / (peak_tflops * TERA),
            work.memory_bytes / (hbm_gb_per_s * GB),
            work.link_bytes / (np.maximum(link_gb_per_s, 1e-300) * GB),
            np.broadcast_to(host_s, work.flop.shape),
        ]
    )
    return Verdict(
        intensity_flop_per_byte=np.where(work.memory_bytes > 0, intensity, np.nan),
        ridge_flop_per_byte=peak_tflops * TERA / (hbm_gb_per_s * GB),
        attainable_tflops=np.minimum(peak_tflops, intensity * hbm_gb_per_s * GB / TERA),
        compute_s=times[0],
        bandwidth_s=times[1],
        network_s=times[2],
        host_s=times[3],
        bound=np.argmax(times, axis=0),
    )


def product(rows: Floats, columns: Floats, depth: Floats, value_bytes: Floats) -> Operation:
    """Return the work of a matrix product rows × depth × columns: 2·m·n·k FLOP, each matrix moved once."""
    moved = (rows * depth + depth * columns + rows * columns) * value_bytes
    return Operation(2 * rows * columns * depth, moved, np.zeros_like(moved))


def step_work(case: TrainingCase, step: Step) -> dict[str, Operation]:
    """Return the work of each part of a step on one accelerator: what its roofs are held against.

    Exchanges count the bytes that they move per accelerator and step, overlapped or not.
    """
    s, layout, recipe, e = case.shape, case.layout, case.recipe, case.efficiency
    micro_batches = layout.micro_batches
    tokens = layout.micro_batch * recipe.sequence_tokens / layout.context * micro_batches  # of a step, on this rank
    layers = s.layers / layout.pipeline
    full = layout.recompute == FULL
    zero = np.zeros(len(case))

    # Products: forward, and backward to inputs and weights; adapters need no gradients of the frozen weights.
    passes = np.where(recipe.method >= LORA, 2.0, 3.0) + full
    linear = tf.layers_linear_flop(s) / s.layers / layout.tensor
    dense, expert = training.gpu_parameters(case)
    rounds = micro_batches * passes  # in each of which the weights are read once
    moe = s.moe_layers / s.layers
    active = s.experts_per_token * s.expert_ffn_hidden + s.shared_experts * s.shared_ffn_hidden
    feed_forward = (1 - moe) * s.ffn_hidden + moe * active  # values per token and layer, before the tensor split
    # attention and feed-forward each read and write the stream, and the feed-forward's own values twice
    values = tokens * (4 * s.hidden + 2 * feed_forward) * layers / layout.tensor

    # Attention: fused, queries, keys, values and outputs pass memory; unfused, the scores do, again and again.
    share = tokens / layout.tensor / layout.pipeline
    core = tf.attention_flop(s, recipe.attended_tokens, recipe.causal) * share * np.where(layout.flash, 3.5, 3.0)
    scores = np.where(
        layout.flash,
        4 * (tf.query_width(s) + tf.kv_values_per_token(s)) * tokens * layers / layout.tensor * HALF_BYTES,
        s.heads / layout.tensor * tokens * recipe.attended_tokens * HALF_BYTES * e.softmax_passes * layers,
    )

    # What was timed as traffic is turned back into its bytes.
    traffic = step.elementwise_s * case.hardware.hbm_gb_per_s * GB * e.copy / e.kernel_ratio
    update = step.optimizer_s * case.hardware.hbm_gb_per_s * GB * e.copy
    vocabulary = s.vocab / np.where(recipe.vocabulary_split, layout.tensor, 1.0) / layout.pipeline

    # Exchanges, as `physics/training/layer.py` and `steps.py` time them.
    row = tokens * s.hidden * HALF_BYTES
    again = np.where(full, 6.0, 4.0)  # all-reduces of a layer: two forward, two backward, two repeated
    keys = tokens * tf.kv_values_per_token(s) * HALF_BYTES / np.minimum(layout.tensor, s.kv_heads)
    ranks, shards = layout.data * layout.context, layout.shards
    copies, gradient = ranks / shards, np.where(shards < ranks, HALF_BYTES, recipe.gradient_bytes)
    # weights gathered twice and gradients reduced in every micro-batch, or both once per step
    data_bytes = np.where(layout.sharding >= 3, (2 * HALF_BYTES + gradient) * micro_batches, HALF_BYTES + gradient)
    summed_bytes = 2 * (copies - 1) / copies * gradient * micro_batches / shards  # between groups of hybrid sharding
    row_exchanged = again * (layout.expert - 1) / layout.expert * row / layout.tensor  # with the other expert ranks
    volumes = {
        "tensor_s": again * 2 * (layout.tensor - 1) / layout.tensor * row * layers,
        "context_s": 3 * (layout.context - 1) * keys * layers,
        "expert_s": row_exchanged * s.experts_per_token * layers * s.moe_layers / s.layers,
        "pipeline_s": 2 * layout.virtual_stages * row / layout.tensor * (layout.pipeline > 1),
        "data_s": np.where(
            recipe.method >= LORA,
            0.0,  # gradients of adapters are small enough to leave out
            (data_bytes * (shards - 1) / shards + summed_bytes) * (dense + expert),
        ),
    }
    return {
        "matrix_s": Operation(linear * tokens * layers * passes, (dense * rounds + values * passes) * HALF_BYTES, zero),
        "attention_s": Operation(core, scores, zero),
        "elementwise_s": Operation(zero, traffic, zero),
        "logits_s": Operation(6 * s.hidden * vocabulary * tokens, vocabulary * tokens * e.loss_bytes, zero),
        "optimizer_s": Operation(zero, update, zero),
        **{name: Operation(zero, zero, volume) for name, volume in volumes.items()},
    }


def part_bounds(case: TrainingCase, step: Step) -> dict[str, Integers]:
    """Return for each part of a step what bounds it, as codes into BOUNDS."""
    ones = np.ones(len(case))
    peak = np.where(np.isnan(case.hardware.half_tflops), 1.0, case.hardware.half_tflops) * ones
    low = peak_tflops(case.hardware, case.layout.precision) * ones
    bounds = {}
    for name, work in step_work(case, step).items():
        # only products run at the layout's own precision; what surrounds them stays at 16 bits
        roof = np.where(np.isnan(low), peak, low) if name == "matrix_s" else peak
        verdict = judge(work, roof, case.hardware.hbm_gb_per_s * ones, case.hardware.scaleup_gb_per_s * ones, 0 * ones)
        bounds[name] = verdict.bound
    # no roof of the device bounds these
    for name in ("host_s", "overhead_s", "offload_s"):
        bounds[name] = np.full(len(case), BOUNDS.index("host"))
    return bounds
