"""The structs of serving: what a model asks for, what a chip offers, how a replica is spread and what it adds."""

import numpy as np

from gpucost.physics import transformer
from gpucost.physics.columns import Columns, Floats, Gathered
from gpucost.physics.serving.efficiency import EngineRates
from gpucost.physics.transformer import Attending, Shape


class Work(Attending, frozen=True):
    """What a model asks for: parameters by part, cached values, FLOP of attention."""

    layers: Floats
    hidden: Floats
    attention: Floats  # parameters of the projections, all layers
    dense: Floats  # feed-forward parameters that every token meets: dense, shared, router, others
    expert: Floats  # parameters of one routed expert
    moe_layers: Floats
    expert_count: Floats
    experts_per_token: Floats
    head: Floats  # output projection
    beside: Floats  # tables that are looked up, and encoders of images and sound
    latent: Floats  # 1 for multi-head latent attention
    cache_heads: Floats  # ranks over which the cache can be divided


class Chip(Columns, frozen=True):
    """What an accelerator offers to a replica in its system."""

    hbm_gb_per_s: Floats
    half_tflops: Floats
    matrix_tflops: Floats  # peak at which quantised products run
    fp32_tflops: Floats  # peak outside the matrix units
    memory_gb: Floats
    link_gb_per_s: Floats  # per accelerator and direction, over the slowest link of the tensor group
    host_gb_per_s: Floats


class Bytes(Columns, frozen=True):
    """Bytes per value of each kind."""

    weights: Floats
    attention: Floats
    head: Floats
    cache: Floats


class Placement(Columns, frozen=True):
    """How a replica is spread: tensor × data × pipeline accelerators; experts over tensor × data of them."""

    tensor: Floats
    data: Floats  # attention data parallel: each rank holds whole attention weights and its own sequences
    pipeline: Floats
    expert: Floats  # 1 where experts are split by tensor, more where ranks hold whole experts

    @property
    def gpus(self) -> Floats:
        """Accelerators of a replica."""
        return self.tensor * self.data * self.pipeline


class Options(Columns, frozen=True):
    """What a deployment adds: cached prefixes, drafted tokens, weights left in host memory."""

    prefix_hit: Floats  # share of prompt tokens found in the prefix cache
    draft_tokens: Floats  # tokens proposed per step; 0 without speculation
    acceptance: Floats  # probability that a proposed token is kept
    draft_cost: Floats  # time of proposing one token, as a share of a step
    offloaded: Floats  # share of the weights read from host memory at each step
    longer_tokens: Floats  # that a running sequence holds beyond mean prompt and half the mean output: long ones stay


class ServingCase(Gathered, frozen=True):
    """Models on chips, their placement, formats, options and the efficiencies that hold there."""

    work: Work
    chip: Chip
    bytes: Bytes
    placement: Placement
    options: Options
    rates: EngineRates


def plain_options(count: int) -> Options:
    """Return options without caching, speculation or offload."""
    zero = np.zeros(count)
    return Options(zero, zero, zero, zero, zero, zero)


def work_of(shape: Shape) -> Work:
    """Count what serving needs of a model.

    Latent attention decodes in the compressed space: per key 2·heads·(2·rank + rope) FLOP (DeepSeek-V2,
    arXiv:2405.04434, section 2.1.2); its cache is one latent per token, which no rank can divide.
    """
    parts, moe = transformer.parameter_parts(shape), shape.moe_layers
    routed = np.where(moe > 0, parts.routed_experts / np.maximum(moe * shape.experts, 1), 0.0)
    return Work(
        layers=shape.layers,
        hidden=shape.hidden,
        attention=parts.attention,
        dense=parts.dense_ffn + parts.shared_experts + parts.router + np.maximum(parts.extra, 0.0),
        expert=routed,
        moe_layers=moe,
        expert_count=shape.experts,
        experts_per_token=np.where(moe > 0, shape.visited_weights / np.maximum(moe * routed, 1), 0.0),
        head=shape.embedding_weights,
        beside=shape.position_parameters + shape.tower_parameters,
        latent=shape.mla.astype(np.float64),
        cache_heads=np.where(shape.mla, 1.0, np.maximum(shape.kv_heads, 1)),
        **{name: getattr(shape, name) for name in Attending.names()},
    )
