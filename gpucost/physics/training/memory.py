"""Memory of training on the fullest GPU: weights, gradients, optimizer states, activations, logits, buffers.

The allocator's peak is the largest of five moments of a step, each counted from what is alive then:

    loss       weights + states + activations + logits and their gradient
    backward   weights + states + activations + one layer rebuilt and its temporaries
    end        weights + states + all gradients + one layer
    update     weights + states + all gradients + the update's temporaries
    forward    weights + states + activations + logits + the 16-bit copies that autocast caches until the loss is there

Between them gradients grow and activations shrink linearly, so that the ends are the extremes. The prediction is
`torch.cuda.max_memory_allocated`; what the process and fragmentation take besides is in `usable_bytes`.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from gpucost.physics.columns import ColumnStruct, Flags, Floats, Integers, LayoutColumns, constant, pick
from gpucost.physics.training import memory_recipe
from gpucost.physics.training.cases import FULL, LORA, QLORA, Recipe
from gpucost.physics.training.memory_activations import LayerBytes, layer_bytes
from gpucost.physics.training.memory_recipe import FROZEN_BYTES, FUSED, TRAINER, MemoryRecipe
from gpucost.physics.transformer import Shape, ffn_matrices, mtp_parameters, parameter_parts, total_parameters
from gpucost.units import GIB

MOMENTS = ("loss", "backward", "end", "update", "forward")
_WORKSPACE_BYTES = 7e7  # two 32 MiB workspaces of the matrix library
# By style: fp32 softmax, its gradient and a copy; fused kernels work in place; a compiled loss stays in 16 bits; a
# trainer holds one more fp32 copy. Slope of Hugging Face's longest contexts over cards of 16 to 80 GB: 2.5 MB a token
# of Llama 3.1 8B, 16 × 128,256 B and the activations (unsloth.ai/blog/llama3-3, 2024-12).
LOGIT_BYTES = np.array([8.0, 12.0, 4.0, 12.0, 12.0, 12.0, 12.0, 16.0])
_FORWARD_LOGIT_BYTES = 8.0  # fp32 logits and their softmax, before anything flows back
# Measured on H200 (models/measurements/limits.csv): the driver keeps 0.64 GB and the process 0.81 GB outside the
# allocator, which gave up with 0.5 to 6 % more reserved than its peak.
CONTEXT_BYTES = 1.5e9
FRAGMENTATION_RATIO = 1.06


class MemoryColumns(ColumnStruct, frozen=True):
    """Bytes on the fullest GPU at the moment of the peak, by component."""

    weights_bytes: Floats
    gradients_bytes: Floats
    optimizer_bytes: Floats
    activations_bytes: Floats
    logits_bytes: Floats
    buffers_bytes: Floats  # gathered shards, reduction buckets, 16-bit copies, workspaces
    temporary_bytes: Floats  # one layer's rebuilt activations and backward temporaries, the update's
    total_bytes: Floats
    moment: Integers  # code into MOMENTS
    first_stage: Flags  # the fullest GPU holds the first pipeline stage


class Holdings(ColumnStruct, frozen=True):
    """Parameters that one GPU of a pipeline stage holds, before sharding over data-parallel ranks."""

    trained: Floats
    trained_shard: Floats  # trained ÷ the ranks that shard them
    frozen: Floats  # in frozen_bytes
    frozen_shard: Floats
    frozen_dense: Floats  # embeddings and head that stay in 16 bits
    block: Floats  # matrices of one layer
    matrices: Floats  # of all layers of the stage
    ends: Floats  # embedding and head


def adapter_parameters(shape: Shape, rank: ArrayLike, share: ArrayLike = 1.0) -> Floats:
    """Return the parameters of low-rank adapters on every matrix of the layers: r·(inputs + outputs).

    LoRA (Hu et al. 2021, arXiv:2106.09685, section 4.1). Llama 3 8B at rank 16 by hand: per layer
    16·(8192 + 5120 + 5120 + 8192 + 3·18432) = 1,310,720; 32 layers: 41,943,040.

    >>> from gpucost.physics.transformer import stack
    >>> from gpucost.types import Architecture
    >>> llama = stack([Architecture("llama-3-8b", "", 32, 4096, 32, 8, 128, 14336, True, 128256, False)])
    >>> adapter_parameters(llama, 16)
    array([41943040.])
    """
    h, q, kv = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    latent = shape.kv_lora_rank + shape.qk_rope_dim
    per_head = shape.qk_nope_dim + shape.v_head_dim
    queries = np.where(shape.q_lora_rank > 0, h + 2 * shape.q_lora_rank, h) + shape.heads * (
        shape.qk_nope_dim + shape.qk_rope_dim
    )
    mla = queries + h + latent + shape.kv_lora_rank + shape.heads * per_head + shape.heads * shape.v_head_dim + h
    attention = np.where(shape.mla, mla, 2 * (h + q) + 2 * (h + kv))
    moe, matrices = shape.moe_layers, ffn_matrices(shape)
    dense = (shape.layers - moe) * matrices * (h + shape.ffn_hidden)
    routed = shape.experts * (h + shape.expert_ffn_hidden) + shape.shared_experts * (h + shape.shared_ffn_hidden)
    # inputs + outputs of all matrices; queries, keys, values and output of an attention, as latents or as heads
    ends = shape.layers * attention + dense + moe * matrices * routed
    return np.asarray(rank, dtype=np.float64) * np.asarray(share, dtype=np.float64) * ends


def holdings(shape: Shape, layout: LayoutColumns, recipe: MemoryRecipe, first: Flags, last: Flags) -> Holdings:
    """Return what one GPU of a stage holds. `first` and `last` say which ends of the model the stage has.

    Routed experts are divided by the expert-parallel degree (by the tensor degree where that is 1), the rest by the
    tensor degree; data-parallel ranks that hold the same parameters share their states, under hybrid sharding those of
    a group.
    """
    parts, split = parameter_parts(shape), layout.tensor
    layers = np.ceil(shape.layers / layout.pipeline) / shape.layers  # share of the layers on the fullest stage
    head = shape.vocab * shape.hidden * last * (1 - shape.tied_embeddings * first)  # a tied one is the embedding
    ends = (parts.input_embedding * first + head) / pick(recipe.vocabulary_split, split, 1.0)
    spread = np.where(layout.expert > 1, layout.expert, layout.tensor)
    both = parts.input_embedding + parts.output_embedding + parts.routed_experts
    dense, routed = (total_parameters(shape) - both) / split, parts.routed_experts / spread
    unsharded = ends + mtp_parameters(shape) / split * last
    ranks = layout.shards
    expert_ranks = np.where(layout.expert > 1, np.maximum(ranks * layout.tensor / layout.expert, 1.0), ranks)
    full, of_layers = dense + routed, dense * layers
    # experts are sharded over fewer ranks: only those that hold the same ones
    base, shard = full * layers, of_layers / ranks + routed * layers / expert_ranks
    tuned = recipe.method >= LORA
    if not np.any(tuned):
        none = np.zeros_like(base)
        return Holdings(base + unsharded, shard + unsharded / ranks, none, none, none, full / shape.layers, base, ends)
    adapters = adapter_parameters(shape, recipe.adapter_rank, recipe.adapter_share) * layers / split
    return Holdings(
        np.where(tuned, adapters, base + unsharded),
        np.where(tuned, adapters / ranks, shard + unsharded / ranks),
        np.where(tuned, base, 0.0),
        np.where(tuned, shard, 0.0),
        np.where(tuned, ends, 0.0),
        full / shape.layers,
        base,
        ends,
    )


class Lasting(ColumnStruct, frozen=True):
    """What stays through the whole step."""

    weights: Floats
    optimizer: Floats
    gradients: Floats  # all of them, once they are there
    kept_gradients: Floats  # those that are there already when the last forward pass begins


def _lasting(layout: LayoutColumns, recipe: MemoryRecipe, stage: Holdings) -> Lasting:
    """Return weights, states and gradients on one GPU (ZeRO, arXiv:1910.02054, figure 1).

    Stage 1 shares the states over the ranks, 2 the gradients too, 3 the weights too. Fused frameworks keep a
    gradient buffer through the step, plain ones after the first micro-batch; plain all-reduce keeps buckets beside
    the gradients unless these live in them. Under autocast (fp32 weights) stage 2 gathers 16-bit copies.
    """
    tuned = recipe.method >= LORA
    sharding = np.where(layout.data * layout.context > 1, layout.sharding, 0)  # one rank has nobody to share with
    states = np.where(sharding >= 1, stage.trained_shard, stage.trained) * recipe.state_bytes
    trained = np.where(sharding >= 3, stage.trained_shard, stage.trained)
    weight_bytes = pick(tuned, recipe.adapter_bytes, recipe.weight_bytes)
    weights = weight_bytes * trained
    if np.any(copied := (weight_bytes == 4) & ~tuned):
        # the fp32 shard, and 16-bit copies of everything
        gathered = 4 * stage.trained_shard + 2 * stage.trained
        weights = np.where((sharding == 2) & copied, gathered, weights)
    if np.any(tuned):
        frozen = np.where(sharding >= 3, stage.frozen_shard, stage.frozen)
        dense = np.where(sharding >= 3, stage.frozen_dense / layout.shards, stage.frozen_dense)
        trained_so = (recipe.style == TRAINER) | recipe.full_precision
        widened = trained_so & (recipe.method == QLORA)  # peft, prepare_model_for_kbit_training
        weights = weights + recipe.frozen_bytes * frozen + np.where(widened, 4, 2) * dense
    gradient = pick(tuned, recipe.adapter_bytes, recipe.gradient_bytes)
    plain = (layout.data * layout.context > 1) & (sharding <= 1) & (recipe.style != FUSED)
    gradients = gradient * np.where(sharding >= 2, stage.trained_shard, stage.trained)
    if np.any(stays := (sharding >= 3) & (layout.pipeline > 1)):  # a stage keeps what it gathered until the step ends
        weights = weights + np.where(stays, 2 * stage.matrices, 0.0)
        gradients = np.where(stays, gradient * stage.trained, gradients)
    # What of them is there when the last forward pass begins: a fused buffer always, others after the first
    # micro-batch.
    doubled = np.where(plain & ~recipe.gradient_views, 2.0, 1.0)
    kept_fraction = np.where((recipe.style == FUSED) & ~tuned | plain, 1.0, 0.0)
    kept_fraction = np.where(layout.micro_batches > 1, doubled, kept_fraction)
    offloaded = recipe.offload_states
    none = np.zeros_like(weights)
    return Lasting(
        pick(recipe.offload_weights, none, weights),
        pick(offloaded, none, states),
        pick(offloaded, none, gradients * doubled),
        pick(offloaded, none, gradients * kept_fraction),
    )


def in_flight(layout: LayoutColumns, first: Flags) -> Floats:
    """Return the micro-batches whose activations a stage holds under 1F1B: p on the first, one on the last.

    Interleaving adds (p − 1)/(p·v) on the first stage (arXiv:2205.05198, section 4.2.3).
    """
    p, v = layout.pipeline, layout.virtual_stages
    # no stage holds more micro-batches than there are
    several = np.minimum(p, layout.micro_batches) * np.where(v > 1, 1 + (p - 1) / (p * v), 1.0)
    return np.where(first, several, 1.0)


class Stages(Struct, frozen=True):
    """Pipeline stages of layouts and what they hold: the first stage of each, then the last where there are several."""

    row: Integers  # the layout that a stage belongs to
    layout: LayoutColumns
    first: Flags
    last: Flags
    parameters: Holdings
    lasting: Lasting
    rows: int  # layouts

    def take(self, rows: Integers) -> "Stages":
        """Return the stages of the layouts that `rows` names, in increasing order."""
        position = np.full(self.rows, -1)
        position[rows] = np.arange(len(rows))
        mine = np.flatnonzero(position[self.row] >= 0)
        return Stages(
            position[self.row[mine]],
            self.layout.take(mine),
            self.first[mine],
            self.last[mine],
            self.parameters.take(mine),
            self.lasting.take(mine),
            len(rows),
        )

    def moments(self, shape: Shape, recipe: MemoryRecipe, layer: LayerBytes) -> tuple[tuple[Floats | float, ...], ...]:
        """Return what is alive at each of the five moments beside weights and states.

        Of each: gradients, activations, logits, buffers, temporaries; per stage, in bytes.
        """
        layout, parameters, last = self.layout, self.parameters, self.last
        layers = np.ceil(shape.layers / layout.pipeline) * in_flight(layout, self.first)  # over all micro-batches alive
        tokens = layout.micro_batch * recipe.sequence_tokens / layout.context
        tuned = recipe.method >= LORA
        full_training = pick(tuned, 0.0, 1.0)
        sharded = (layout.sharding >= 3) & (layout.data * layout.context > 1)

        # Activations: what the layers saved, and the input of the head; adapters leave the final norm in fp32.
        final = pick(tuned, 8.0, 4.0) * shape.hidden * tokens / pick(layout.sequence_parallel, layout.tensor, 1.0)
        activations = tokens * layer.saved * layers + final * last
        unpacked = pick(  # the largest matrix of a quantised base, while it is multiplied by
            recipe.method == QLORA,
            pick(recipe.full_precision, 8, 4)
            * shape.hidden
            * np.maximum(shape.ffn_hidden, shape.hidden)
            / layout.tensor,
            0.0,
        )
        rebuilt = tokens * (layer.whole - layer.saved + layer.working) + unpacked

        # Logits: of all tokens, or of one chunk with the softmax of the others where that is kept for backward.
        rows = pick(recipe.loss_chunk_tokens > 0, np.minimum(tokens, recipe.loss_chunk_tokens), tokens)
        width = shape.vocab / pick(recipe.vocabulary_split, layout.tensor, 1.0) * last
        softmax = pick(recipe.loss_chunk_kept, 4 * (tokens - rows), 0.0)
        logits = width * (rows * LOGIT_BYTES[recipe.style] + softmax)
        forward_logits = width * rows * np.minimum(_FORWARD_LOGIT_BYTES, LOGIT_BYTES[recipe.style])

        # A chunked loss makes the head's gradient, and that of its input, within the forward pass.
        head = shape.hidden * width
        wire = np.where(sharded, 2.0, recipe.gradient_bytes)
        head_gradient = full_training * (recipe.loss_chunk_tokens > 0) * (wire * head + 2 * shape.hidden * tokens)

        # Buffers: 16-bit copies under autocast, of which recomputation keeps one layer's; what is gathered from shards
        # or fetched from the host, and the gradients of one block on their way back, in 16 bits and in fp32.
        cached = recipe.cast_bytes * (layout.sharding < 2) * full_training
        casts = cached * (np.where(layout.recompute == FULL, parameters.block, parameters.matrices) + head)
        cached_casts = cached * (recipe.style >= memory_recipe.AUTOCAST) * (parameters.matrices + head)
        fetched = 2.0 * (sharded | recipe.offload_weights)
        gathered_blocks = fetched * pick(tuned, recipe.frozen_bytes / 2, 1.0) * parameters.block
        gathered = fetched * parameters.ends + gathered_blocks
        reducing = gathered + (2 + 4) * full_training * sharded * parameters.block

        present, gradients = self.lasting.kept_gradients, self.lasting.gradients
        started = present + np.where(present > 0, 0.0, head_gradient)
        update = recipe.step_bytes * np.where(layout.sharding >= 1, parameters.trained_shard, parameters.trained)
        update = pick(recipe.offload_states, 0.0, update)
        return (
            (started, activations, logits, casts + gathered, 0.0),
            # the next block is gathered while one is reduced
            (started, activations, 0.0, casts + reducing + gathered_blocks, rebuilt),
            (gradients, activations / np.maximum(layers, 1), 0.0, reducing, rebuilt),
            (gradients, 0.0, 0.0, 0.0, update),
            (present, activations, forward_logits, cached_casts, 0.0),
        )

    def fullest(self, stage_bytes: Floats) -> Floats:
        """Return the largest value among the stages of each layout."""
        # the first stages of all layouts come first, in order, then the last ones of those that have several
        most, again = stage_bytes[: self.rows].copy(), self.row[self.rows :]
        most[again] = np.maximum(most[again], stage_bytes[self.rows :])
        return most

    @property
    def least_bytes(self) -> Floats:
        """Weights, states and all gradients: what no recomputation lowers."""
        return self.fullest(self.lasting.weights + self.lasting.optimizer + self.lasting.gradients)

    def peak_bytes(self, shape: Shape, recipe: MemoryRecipe, layer: LayerBytes) -> Floats:
        """Return the peak on the fullest stage: `training_memory(...).total_bytes` alone."""
        most = np.zeros(len(self.row))
        for gradients, activations, logits, buffers, temporary in self.moments(shape, recipe, layer):
            most = np.maximum(most, gradients + activations + logits + buffers + temporary)
        return self.fullest(self.lasting.weights + self.lasting.optimizer + most + _WORKSPACE_BYTES)


def stages_of(shape: Shape, layout: LayoutColumns, recipe: MemoryRecipe) -> Stages:
    """Return the first stage of every layout and the last one where there are several."""
    single = layout.pipeline <= 1
    row = np.concatenate([np.arange(len(layout)), np.flatnonzero(~single)])
    first = np.arange(len(row)) < len(layout)
    last = single[row] | ~first
    stage_layout = layout.take(row)
    parameters = holdings(shape, stage_layout, recipe, first, last)
    lasting = _lasting(stage_layout, recipe, parameters)
    return Stages(row, stage_layout, first, last, parameters, lasting, len(layout))


def _stage_memory(
    shape: Shape, layout: LayoutColumns, recipe: MemoryRecipe, first: Flags, last: Flags
) -> MemoryColumns:
    """Return the peak of one pipeline stage: the largest of the five moments, with its components."""
    count = len(first)
    parameters = holdings(shape, layout, recipe, first, last)
    lasting = _lasting(layout, recipe, parameters)
    stage = Stages(np.arange(count), layout, first, last, parameters, lasting, count)
    moments = stage.moments(shape, recipe, layer_bytes(shape, layout, recipe))
    table = np.empty((len(moments), len(moments[0]), count))  # moments × components × cases; some parts are one number
    for row, parts in enumerate(moments):
        for column, part in enumerate(parts):
            table[row, column] = part
    moment: Integers = np.argmax(table.sum(axis=1), axis=0)
    gradients, activations, logits, buffers, temporary = np.take_along_axis(table, moment[None, None, :], axis=0)[0]
    buffers = buffers + _WORKSPACE_BYTES
    total = lasting.weights + lasting.optimizer + gradients + activations + logits + buffers + temporary
    weights, states = np.broadcast_to(lasting.weights, count), np.broadcast_to(lasting.optimizer, count)
    return MemoryColumns(
        weights,
        gradients,
        states,
        activations,
        logits,
        buffers,
        temporary,
        total,
        moment,
        np.broadcast_to(first, count),
    )


def training_memory(shape: Shape, layout: LayoutColumns, recipe: MemoryRecipe | Recipe) -> MemoryColumns:
    """Return the memory of training on the fullest GPU, by component; shape and recipe of length one hold for all.

    Fullest is the larger of the first stage (embedding, most micro-batches in flight) and the last (head, logits).

    >>> from gpucost.physics.columns import layout_columns
    >>> from gpucost.physics.training.memory_recipe import memory_recipe
    >>> from gpucost.physics.transformer import stack
    >>> from gpucost.types import Architecture, Layout
    >>> llama = stack([Architecture("llama-2-7b", "", 32, 4096, 32, 32, 128, 11008, True, 32000, False)])
    >>> memory = training_memory(llama, layout_columns([Layout(gpus=1)]), memory_recipe(4096))
    >>> states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    >>> print(float((states / 1e9).round(1)[0]))  # 16 bytes × 6.74 B
    107.8
    """
    memory = recipe if isinstance(recipe, MemoryRecipe) else from_training(recipe)
    count = max(len(shape), len(layout), len(memory))
    if len(layout) < count:
        layout = layout.take(np.zeros(count, dtype=np.int64))
    single = layout.pipeline <= 1
    everywhere = np.ones(count, dtype=np.bool_)
    first = _stage_memory(shape, layout, memory, everywhere, single)
    if bool(np.all(single)):
        return first
    last = _stage_memory(shape, layout, memory, single, everywhere)
    fuller = last.total_bytes > first.total_bytes
    return MemoryColumns(
        **{name: np.where(fuller, getattr(last, name), getattr(first, name)) for name in MemoryColumns.names()}
    )


def from_training(recipe: Recipe, software: str = "unknown") -> MemoryRecipe:
    """Return the memory side of a timing recipe: AdamW in mixed precision, adapters and software as stated.

    Full training keeps what fused kernels keep, adapters what a trainer does unless a vendor's stack runs them.
    """
    base = memory_recipe.memory_recipe(np.asarray(recipe.sequence_tokens, dtype=np.float64))
    values = {name: getattr(base, name) for name in MemoryRecipe.names()}
    count = len(base)
    values["method"] = constant(recipe.method, count, np.int64)
    adapters = FUSED if software in memory_recipe.FUSED_STACKS else TRAINER
    values["style"] = np.where(values["method"] >= LORA, adapters, FUSED)
    values["frozen_bytes"] = np.where(values["method"] == QLORA, FROZEN_BYTES["qlora"], FROZEN_BYTES["lora"])
    values["state_bytes"] = np.where(
        values["method"] >= LORA, memory_recipe.adapter_state_bytes(), values["state_bytes"]
    )
    values["offload_states"] = constant(recipe.offload > 0, count, np.bool_)
    values["offload_weights"] = constant(recipe.offload > 1, count, np.bool_)
    values["adapter_rank"] = constant(recipe.adapter_rank, count)
    values["adapter_share"] = constant(recipe.adapter_share, count)
    values["full_precision"] = constant(recipe.full_precision, count, np.bool_)
    return MemoryRecipe(**values)


def usable_bytes(memory_gib: ArrayLike) -> Floats:
    """Return what the allocator's peak may reach: the device's memory less the process's own, less fragmentation.

    (memory − 1.5 GB) ÷ 1.06. H100 80 GB (79.65 GiB by nvidia-smi): (85.52 − 1.5) ÷ 1.06 = 79.3 GB.

    >>> usable_bytes(np.array([79.65])).round(-8) / 1e9
    array([79.3])
    """
    return np.maximum(np.asarray(memory_gib, dtype=np.float64) * GIB - CONTEXT_BYTES, 0.0) / FRAGMENTATION_RATIO
