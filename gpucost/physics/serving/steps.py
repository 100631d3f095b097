"""Serving a transformer: the time of a forward pass, a decode step, a prompt, a wait, and the cache that fits.

A pass reads the weights that its tokens need and multiplies by them; products of few tokens are bound by the reading,
products of many by the multiplying. Attention reads the cache. Layers cost a fixed time each, ranks exchange twice per
layer, the host adds its own. All kernels take and return arrays, one element per case; `replica` is the set of
accelerators that hold one copy of the model, and every count of sequences is per replica.
"""

import numpy as np

from gpucost.physics.columns import ColumnStruct, Flags, Floats
from gpucost.physics.serving.cases import ModelWork, Options, ServingCase
from gpucost.units import GIGA, MICRO, MILLI, NANO, TERA

_BEND = 2.5  # exponent of the smooth maximum of reading and multiplying
_HOST_BEND = 3.0  # exponent of the smooth maximum of device and host
USABLE_MEMORY = 0.90  # share of the device memory that engines take by default (vLLM: gpu_memory_utilization)
TIGHT_MEMORY = 0.98  # the share that people raise it to where a model else does not fit (vLLM issue 2248, on an A2)
_CONTEXT_GB = 0.6  # driver context, communicators and libraries of one process; with one rank and no graphs 0.4
_TIGHT_CONTEXT_GB = 0.4
LARGE_MEMORY_GB = 75.0  # chips from here on read prompts in larger pieces (vLLM, arg_utils.py: 70 GiB)
PASS_TOKENS, LARGE_PASS_TOKENS, _TIGHT_PASS_TOKENS = 2048.0, 8192.0, 512.0  # tokens of one pass
_SCORED, _LARGE_SCORED, TIGHT_SCORED = 256.0, 1024.0, 4.0  # sequences whose logits one pass holds
_NODE_RANKS = 8  # ranks up to which attention data parallel gathers tokens rather than routing them
_ROUTING_LAYERS = 2.0  # dense layers with as many kernels as routing adds where none are fused: 28 beside a layer's 14
_PROMPT_CHUNK_TOKENS = 512.0  # tokens of a prompt that follow each other through pipeline stages

# --- Waiting for a free place in a batch: the part of the time to the first token that is a queue and no physics.
#
# These are textbook estimates for Poisson arrivals; real traffic is burstier, and waits far longer at the same load.


def waiting_s(load: Floats, places: Floats, service_s: Floats) -> Floats:
    """Return the mean wait for one of `places` at a load below one: Sakasegawa's approximation of M/M/c.

    W ≈ S · ρ^(√(2(c+1)) − 1) ÷ (c · (1 − ρ)): Sakasegawa 1977, "An approximation formula Lq ≃ αρ^β/(1−ρ)". With one
    place it is the M/M/1 wait, S·ρ/(1−ρ): 10 s at 50 % load wait 10 s.

    >>> waiting_s(np.array([0.5]), np.array([1.0]), np.array([10.0]))
    array([10.])
    """
    rho = np.clip(load, 0.0, 0.999)
    wait: Floats = service_s * rho ** (np.sqrt(2 * (places + 1)) - 1) / (places * (1 - rho))
    return wait


def prompt_wait_s(load: Floats, prompt_time_fraction: Floats, prompt_s: Floats) -> Floats:
    """Return the mean wait behind other prompts: Pollaczek-Khinchine with exponential lengths, ρ/(1−ρ) · S.

    ρ is the share of its time that a replica spends on prompts at this load.

    >>> prompt_wait_s(np.array([1.0]), np.array([0.5]), np.array([0.2]))
    array([0.2])
    """
    rho = np.clip(load * prompt_time_fraction, 0.0, 0.999)
    return rho / (1 - rho) * prompt_s


# --- One pass: what its products, its attention, its exchanges and the host take, and the steps made of it.


def _smooth_max(first: Floats, second: Floats, bend: float = _BEND) -> Floats:
    """Return (a^p + b^p)^(1/p): the larger of two times where they differ, a little more where they meet.

    >>> _smooth_max(np.array([1.0]), np.array([0.0]))
    array([1.])
    """
    # by the ratio of the two, so that no power of a small time underflows
    largest = np.maximum(np.maximum(first, second), 1e-30)
    smaller = np.minimum(first, second) / largest
    return largest * (1 + smaller**bend) ** (1 / bend)


def _fullest_part(count: Floats, parts: Floats) -> Floats:
    """Return what one of several parts holds of so many tokens or sequences, divided evenly.

    A single one is whole in one part, for which the others wait.

    >>> _fullest_part(np.array([1.0, 16.0]), np.array([8.0, 8.0]))
    array([1., 2.])
    """
    return np.maximum(count / parts, np.minimum(count, 1.0))


def distinct_experts(experts: Floats, per_token: Floats, tokens: Floats) -> Floats:
    """Return the experts of a layer that a pass of T independent tokens reads: E·(1 − (1 − k/E)^T).

    One token of Mixtral meets 2 of 8; 64 tokens meet nearly all.

    >>> distinct_experts(np.array([8.0, 8.0]), np.array([2.0, 2.0]), np.array([1.0, 64.0])).round(3)
    array([2., 8.])
    """
    count = np.maximum(experts, 1)
    miss = np.clip(1 - per_token / count, 1e-300, 1 - 1e-12)  # a token may visit all
    return experts * -np.expm1(tokens * np.log(miss))


def _seconds_to_read(values: Floats, bytes_each: Floats, case: ServingCase, fraction: Floats) -> Floats:
    """Return the time of streaming values from device memory."""
    return values * bytes_each / (case.chip.hbm_gb_per_s * GIGA * fraction)


def _quantised_read_s(values: Floats, case: ServingCase, fraction: Floats) -> Floats:
    """Return the time of reading quantised weights; where the chip must widen them, its plain arithmetic may bind."""
    widening = values * case.rates.widen_flop / (case.chip.fp32_tflops * TERA)
    return _smooth_max(_seconds_to_read(values, case.bytes.weights, case, fraction), widening)


def linear_s(case: ServingCase, tokens: Floats, scored: Floats) -> Floats:
    """Return the time of all products with weights, for `tokens` per replica of which `scored` reach the head.

    Attention and shared weights are divided over the tensor group and repeated over the data group; experts are
    divided over both. 8-bit and 4-bit peaks hold for quantised weights only; the head stays at 16 bits. Few tokens take
    the time of a whole tile of the matrix units: what binds H20, whose units are a fifth of those of an H200.
    """
    w, p, b, r, chip = case.work, case.placement, case.bytes, case.rates, case.chip
    local = _fullest_part(tokens, p.data)
    spread = p.tensor * p.data
    rows = np.maximum(local, r.tile_rows)
    plain = b.attention >= 2.0  # kept at 16 bits, where the rest is quantised
    half, narrow = chip.half_tflops * TERA * r.matrix_half, chip.matrix_tflops * TERA * r.matrix
    attention = _smooth_max(
        _seconds_to_read(w.attention / p.tensor, b.attention, case, np.where(plain, r.weights_half, r.weights)),
        2 * w.attention * rows / p.tensor / np.where(plain, half, narrow),
    )
    dense = _smooth_max(_quantised_read_s(w.dense / p.tensor, case, r.weights), 2 * w.dense * rows / p.tensor / narrow)
    # Tokens of one text choose alike: T of them meet the experts of T^exponent independent ones. All ranks together
    # hold and read each expert once, the busiest one more than its share.
    read = distinct_experts(w.expert_count, w.experts_per_token, np.maximum(tokens, 1.0) ** r.routing_exponent)
    uneven = np.where(p.expert > 1, r.imbalance, 1.0) / spread
    expert_flop = 2 * w.moe_layers * w.experts_per_token * w.expert * tokens
    experts = _smooth_max(
        _quantised_read_s(w.moe_layers * w.expert * read, case, r.experts) * uneven,
        expert_flop * uneven / (chip.matrix_tflops * TERA * r.matrix_experts),
    )
    head = _smooth_max(
        _seconds_to_read(w.head / p.tensor, b.head, case, r.weights_half),
        2 * w.head * scored / p.data / p.tensor / half,
    )
    # the offloaded share of the weights comes over the host link once per pass, while the device computes
    offloaded_bytes = case.options.offloaded * weight_bytes(case) / p.gpus
    host_link = offloaded_bytes / (chip.host_gb_per_s * GIGA)
    return np.maximum(attention + dense + np.where(w.expert_count > 0, experts, 0.0) + head, host_link)


def elementwise_s(case: ServingCase, tokens: Floats) -> Floats:
    """Return the time of norms, residuals, activations and routing, which read and write what products leave.

    16-bit values per token and layer: fused, a residual and its norm 8·d and a gate 3·f; each as a kernel of its own
    14·d and 5·f. Experts add the copies of their tokens: in, written and read at the products' width, 2·d, out 2·d at
    16 bits. A rank that holds a slice of every expert copies all tokens, one that holds whole experts its share.
    """
    w, p, r = case.work, case.placement, case.rates
    routed = w.moe_layers * w.experts_per_token
    gates = w.dense / np.maximum(3 * w.hidden, 1.0) + routed * w.expert / np.maximum(3 * w.hidden, 1.0)
    values = w.layers * w.hidden * np.where(r.unfused, 14.0, 8.0)
    narrow = np.where(case.chip.matrix_tflops > case.chip.half_tflops, case.bytes.weights, 2.0)
    copies = routed * w.hidden * (2.0 + narrow) / np.where(p.expert > 1, p.tensor, 1 / p.data)
    values = values + gates * np.where(r.unfused, 5.0, 3.0) / p.tensor + copies
    return tokens / p.data * _seconds_to_read(values, np.full_like(values, 2.0), case, r.elementwise)


def launched_s(case: ServingCase, layer_us: Floats) -> Floats:
    """Return the host time of launching every layer's kernels, and its collectives, one by one.

    Where no kernel computes all experts a loop visits each, whether a token does or not. A collective starts when the
    slowest of n hosts has launched it: √(2·ln n) deviations late, against those of two.
    """
    ranks = case.placement.tensor
    late = np.sqrt(np.log2(np.maximum(ranks, 2.0)))
    reduces = np.where((ranks > 1) & (layer_us > 0), 2 * case.rates.host_reduce_us * late, 0.0)
    loops = case.work.moe_layers * case.work.expert_count * case.rates.expert_loop_us
    return (case.work.layers * (layer_us + reduces) + case.work.moe_layers * _ROUTING_LAYERS * layer_us + loops) * MICRO


def keys_per_layer(work: ModelWork, context: Floats) -> Floats:
    """Return the cached tokens that one new token reads, summed over the layers; windows cap theirs."""
    return work.full_layers * context + work.window_layers * _windowed(work, context)


def _windowed(work: ModelWork, context: Floats) -> Floats:
    return np.minimum(context, np.maximum(work.window_tokens, 1.0))


def _selected(work: ModelWork, context: Floats) -> Floats:
    return np.minimum(context, np.maximum(work.selected_tokens, 1.0))


def prompt_attention_s(case: ServingCase, prompts: Floats, prompt_tokens: Floats) -> Floats:
    """Return the time of attention within prompts: causal pairs of the tokens that no prefix cache holds."""
    w, p = case.work, case.placement
    fresh = prompt_tokens * (1 - case.options.prefix_hit)
    flop = w.full_pair_flop * fresh * (prompt_tokens - fresh / 2)
    flop = flop + w.window_pair_flop * fresh * _windowed(w, prompt_tokens)
    flop = flop + w.selected_pair_flop * fresh * np.minimum(_selected(w, prompt_tokens), prompt_tokens - fresh / 2)
    return prompts / p.data * flop / p.tensor / (case.chip.half_tflops * TERA * case.rates.attention)


def latency_s(case: ServingCase) -> Floats:
    """Return the fixed time of a pass: kernels of every layer, routing, latent and linear mixers, stages."""
    w, r = case.work, case.rates
    layers = w.layers * (r.layer_us + w.latent * r.latent_layer_us) + w.linear_layers * r.linear_layer_us
    routed = w.moe_layers * np.where(r.unfused, _ROUTING_LAYERS * r.layer_us, r.expert_layer_us)
    return (layers + routed + (case.placement.pipeline - 1) * r.stage_us) * MICRO


def exchange_s(case: ServingCase, tokens: Floats) -> Floats:
    """Return the time of a pass's collectives: two all-reduces per layer, or two exchanges per layer of experts.

    All-reduce: latency·(1 + growth·(log2 n − 1)) + 2·(n−1)/n · message ÷ bandwidth (Thakur et al. 2005).
    Attention data parallel gathers every token on all ranks, or where ranks hold whole experts sends it to those of
    its experts, and back instead.
    """
    w, p, r, chip = case.work, case.placement, case.rates, case.chip
    local = _fullest_part(tokens, p.data)
    message = local * w.hidden * 2.0  # 16-bit values
    rate = chip.link_gb_per_s * GIGA * r.link
    doublings = np.log2(np.maximum(p.tensor, 2.0))
    ring = (
        r.allreduce_us * MICRO * (1 + r.allreduce_growth * (doublings - 1))
        + 2 * (p.tensor - 1) / p.tensor * message / rate
    )
    reduced = np.where(p.tensor > 1, 2 * w.layers * ring, 0.0)
    ranks = p.tensor * p.data
    reached = np.minimum(w.experts_per_token, ranks) * (ranks - 1) / np.maximum(ranks, 1)
    # copies of a token that leave for other ranks: for those of its experts, or for all
    copies = np.where((p.expert > 1) | (ranks > _NODE_RANKS), reached, ranks - 1)
    swap = r.exchange_us * MICRO + r.exchange_exposed * copies * message / rate
    return reduced + np.where((p.data > 1) & (w.expert_count > 0), 2 * w.moe_layers * swap, 0.0)


class StepParts(ColumnStruct, frozen=True):
    """Seconds of one decode step by what they go to; `total_s` is what a sequence waits for its next token."""

    linear_s: Floats
    attention_s: Floats
    latency_s: Floats
    exchange_s: Floats
    host_s: Floats
    prompt_s: Floats
    total_s: Floats


def decode_step(case: ServingCase, sequences: Floats, context: Floats, prompt_s: Floats | float = 0.0) -> StepParts:
    """Return the time of one decode step of `sequences` with `context` cached tokens each.

    With pipeline stages each holds its part of the sequences, and a token passes all stages. Speculation scores
    draft + 1 tokens per sequence in one step. Host work hides behind the device in modern engines.
    """
    w, p, r, o = case.work, case.placement, case.rates, case.options
    staged = _fullest_part(sequences, p.pipeline)  # sequences that are in one stage
    scored = staged * (1 + o.draft_tokens)
    linear = linear_s(case, scored, scored) + elementwise_s(case, scored)

    # Attention reads the cache of all running sequences: of full attention all tokens, of a window its own, of a
    # selection only the selected ones.
    local, divided = staged / p.data, np.minimum(p.tensor, w.cache_heads)
    windowed, selected = _windowed(w, context), _selected(w, context)
    within = w.window_values * windowed + w.selected_values * selected
    values = w.full_values * context + within + w.state_values
    reading = _seconds_to_read(local * values / divided, case.bytes.cache, case, r.cache)
    # Hugging Face joins the new token's keys and values to the old ones in a new tensor, and repeats each for every
    # query head that shares it (transformers, DynamicCache.update and repeat_kv): read and written once, then written
    # and read as often as heads share them.
    keys, pairs = w.full_values + w.window_values, w.full_decode_flop + w.window_decode_flop
    shared = np.where(keys > 0, pairs / np.maximum(2 * keys, 1.0), 1.0)  # query heads of a key: FLOP ÷ 2 per value
    copied = 1 + r.cache_copies * (2 + 2 * shared)
    # Arithmetic binds where many heads share what is read: latent attention multiplies in the compressed space.
    flop = w.full_decode_flop * context + w.window_decode_flop * windowed
    flop = local * (flop + w.selected_decode_flop * selected) / p.tensor
    attention = _smooth_max(reading * copied, flop / (case.chip.half_tflops * TERA * r.matrix_half))
    serial_s = keys_per_layer(w, context) * r.serial_key_ns * NANO  # keys that one block walks in turn
    attention = np.maximum(attention, serial_s)

    uneven = fullest_rank(case)
    linear, attention = linear * uneven, attention * uneven
    latency, exchange = latency_s(case), exchange_s(case, scored)
    device = (linear + attention + latency + exchange) * r.engine * (1 + o.draft_tokens * o.draft_cost)
    host = r.host_ms * MILLI + r.sequence_us * staged / p.data * MICRO + launched_s(case, r.host_layer_us)
    # overlapped, the longer of host and device counts; an early engine does one after the other
    step = np.where(r.overlapped, _smooth_max(device, host, _HOST_BEND), device + host)
    step = step + r.served_ms * MILLI + r.served_sequence_us * staged / p.data * MICRO
    return StepParts(
        linear_s=linear * r.engine,
        attention_s=attention * r.engine,
        latency_s=latency * r.engine,
        exchange_s=exchange * r.engine,
        host_s=step - device,  # what waiting for the host adds
        prompt_s=np.broadcast_to(np.asarray(prompt_s, dtype=np.float64), step.shape),
        total_s=step + prompt_s,
    )


def fullest_rank(case: ServingCase) -> Floats:
    """Return the load of the fullest rank of attention data parallel against the mean, for which all others wait.

    The largest of n independent loads lies √(2·ln n) deviations above their mean; the ratio holds for eight ranks.
    """
    deviations = np.sqrt(np.log2(np.maximum(case.placement.data, 1.0)) / np.log2(_NODE_RANKS))
    load: Floats = 1 + (case.rates.data_imbalance - 1) * deviations
    return load


def tokens_per_step(options: Options) -> Floats:
    """Return the tokens that a step yields per sequence with d drafted tokens kept with probability a each.

    (1 − a^(d+1)) ÷ (1 − a): Leviathan et al. 2023, arXiv:2211.17192, eq. 1.
    """
    probability = np.clip(options.acceptance, 0.0, 1 - 1e-9)
    return (1 - probability ** (options.draft_tokens + 1)) / (1 - probability)


def prompt_s(case: ServingCase, prompt_tokens: Floats, prompts: Floats | float = 1.0) -> Floats:
    """Return the time to read prompts that nobody else delays: the time to the first token, without a queue.

    Chunks of a prompt follow each other through pipeline stages: (stages − 1 + chunks) ÷ (stages · chunks).
    """
    p, r = case.placement, case.rates
    # an engine reads the last token of a prompt at least, which gives the first one of the output
    fresh = np.maximum(prompt_tokens * (1 - case.options.prefix_hit), 1.0)
    count = np.broadcast_to(np.asarray(prompts, dtype=np.float64), fresh.shape)
    tokens = count * fresh
    work = linear_s(case, tokens, count) + elementwise_s(case, tokens)
    work = work + prompt_attention_s(case, count, prompt_tokens) + exchange_s(case, tokens)
    chunks = np.maximum(tokens / _PROMPT_CHUNK_TOKENS, 1.0)
    staged = work * (p.pipeline - 1 + chunks) / (p.pipeline * chunks) if np.any(p.pipeline > 1) else work
    device = (staged + latency_s(case)) * r.prefill * r.engine
    host_ms = r.host_ms + r.served_ms + r.arrival_ms * count
    return _smooth_max(device, launched_s(case, r.prompt_layer_us), _HOST_BEND) + host_ms * MILLI


def prompts_share_s(
    case: ServingCase, sequences: Floats, context: Floats, prompt_tokens: Floats, output_tokens: Floats
) -> Floats:
    """Return the time that prompts add to a decode step at a steady state: sequences ÷ output prompts start per step.

    Engines that fuse both phases pay for what the prompt's tokens add to the step's products; others stop decoding
    while they read it. A sequence does not wait for its own prompt.
    """
    starting = sequences / output_tokens  # prompts per step; fewer than one: a prompt in some of the steps
    together = np.maximum(starting, 1.0)
    separate = prompt_s(case, prompt_tokens, together)
    fresh = np.maximum(prompt_tokens * (1 - case.options.prefix_hit), 1.0) * together
    staged = _fullest_part(sequences, case.placement.pipeline)
    products = linear_s(case, staged + fresh, staged + together) - linear_s(case, staged, staged)
    products = products + elementwise_s(case, fresh)
    sent = exchange_s(case, staged + fresh) - exchange_s(case, staged)
    pairs = prompt_attention_s(case, together, prompt_tokens)
    joined = (np.maximum(products, 0) + np.maximum(sent, 0) + pairs) * case.rates.prefill * case.rates.engine
    joined = joined / case.placement.pipeline + case.rates.arrival_ms * MILLI * together
    added = np.where(case.rates.fused, joined, separate) * (starting / together)
    added = added * fullest_rank(case)
    return np.where(prompt_tokens > 0, added, 0.0)


def weight_bytes(case: ServingCase) -> Floats:
    """Return the bytes of the weights of one replica, repeated over the data group where attention is.

    What is looked up and the encoders of images and sound stand beside the layers, at the head's bytes.
    """
    w, b, p = case.work, case.bytes, case.placement
    shared = (w.attention * b.attention + w.dense * b.weights + (2 * w.head + w.beside) * b.head) * p.data
    return shared + w.moe_layers * w.expert_count * w.expert * b.weights


def cache_bytes_per_sequence(case: ServingCase, context: Floats) -> Floats:
    """Return the cache of one sequence over all ranks; heads fewer than ranks are repeated."""
    w = case.work
    repeated = np.maximum(case.placement.tensor / w.cache_heads, 1.0)
    # values of all tokens, of a selection too; those of a window; recurrent state
    everything = (w.full_values + w.selected_values) * context
    values = everything + w.window_values * _windowed(w, context) + w.state_values
    return values * case.bytes.cache * repeated


def workspace_bytes(case: ServingCase, *, tight: bool = False) -> Floats:
    """Return what an accelerator holds beside weights and cache: the process, one pass's activations, its logits.

    A pass of T tokens keeps about six 16-bit values of the model's width and three of the widest layer's, experts'
    copies included; the logits of S sequences are kept twice in fp32. Llama 3 8B on a card of 24 GB by hand:
    0.6 + 2,048 · (6 · 4,096 + 3 · 14,336) · 2 B + 256 · 128,256 · 8 B = 0.6 + 0.28 + 0.26 = 1.14 GB; on 80 GB, where
    a pass is four times as large, 0.6 + 1.11 + 1.05 = 2.76 GB. `tight` is what is left where memory is short.
    """
    w, tensor = case.work, case.placement.tensor
    large = case.chip.memory_gb >= LARGE_MEMORY_GB
    tokens = _TIGHT_PASS_TOKENS if tight else np.where(large, LARGE_PASS_TOKENS, PASS_TOKENS)
    scored = TIGHT_SCORED if tight else np.where(large, _LARGE_SCORED, _SCORED)
    width = np.maximum(w.hidden, 1.0)
    # values of the widest layer from its weights: three matrices of width × width of the feed-forward each
    routed = w.experts_per_token * (width + w.expert / width)
    values = 6 * width + (w.dense / width / np.maximum(w.layers, 1.0) + routed) / tensor
    logits = scored * w.head / width * 8.0 / tensor
    return (_TIGHT_CONTEXT_GB if tight else _CONTEXT_GB) * GIGA + tokens * values * 2.0 + logits


def free_memory_bytes(case: ServingCase, *, tight: bool = False) -> Floats:
    """Return what weights and workspace leave for the cache in one replica; negative where the weights do not fit."""
    resident = weight_bytes(case) * (1 - case.options.offloaded)
    share = TIGHT_MEMORY if tight else USABLE_MEMORY
    return case.placement.gpus * (case.chip.memory_gb * GIGA * share - workspace_bytes(case, tight=tight)) - resident


def capacity_sequences(case: ServingCase, prompt_tokens: Floats, output_tokens: Floats) -> Floats:
    """Return the sequences whose cache fits at once; 0 if weights do not fit.

    Sequences are half-way through their output on average; engines that never evict one set its whole cache aside
    (TensorRT-LLM's GUARANTEED_NO_EVICT, its default). Where the share of the memory that engines take by default
    holds fewer than a few, people raise it and shorten a pass: then up to TIGHT_SCORED run. A local engine takes
    what it needs.
    """
    bytes_per_sequence = _running_bytes(case, prompt_tokens, output_tokens)
    tight = np.maximum(np.floor(free_memory_bytes(case, tight=True) / bytes_per_sequence), 0.0)
    few = np.where(case.rates.frugal, tight, np.minimum(tight, TIGHT_SCORED))
    return np.maximum(usual_sequences(case, prompt_tokens, output_tokens), few)


def usual_sequences(case: ServingCase, prompt_tokens: Floats, output_tokens: Floats) -> Floats:
    """Return the sequences whose cache fits at once in the share of the memory that engines take by default."""
    bytes_per_sequence = _running_bytes(case, prompt_tokens, output_tokens)
    return np.maximum(np.floor(free_memory_bytes(case) / bytes_per_sequence), 0.0)


def _running_bytes(case: ServingCase, prompt_tokens: Floats, output_tokens: Floats) -> Floats:
    """Return the cache that one running sequence takes of a replica."""
    written = output_tokens * np.where(case.rates.reserving, 1.0, 0.5)
    tokens = prompt_tokens + written + case.options.longer_tokens
    return np.maximum(cache_bytes_per_sequence(case, tokens), 1.0)


class Steady(ColumnStruct, frozen=True):
    """A replica under a steady load: per sequence, per replica, and where the time goes."""

    sequences: Floats
    tpot_s: Floats  # what a user waits between two tokens, prompts of others included
    ttft_s: Floats  # without a queue
    output_tokens_per_s: Floats
    prompt_time_fraction: Floats  # share of the time that goes to prompts
    step: StepParts


def first_token_s(case: ServingCase, prompt_tokens: Floats) -> Floats:
    """Return the time to the first token without a queue: the prompt's own, and a server's from request to engine."""
    return prompt_s(case, prompt_tokens) + case.rates.first_ms * MILLI


def steady(
    case: ServingCase,
    sequences: Floats,
    prompt_tokens: Floats,
    output_tokens: Floats,
    *,
    mixed: Flags | bool = True,
    ttft_s: Floats | None = None,
) -> Steady:
    """Return the speed of a replica that always runs `sequences`, each replaced by a new one when it ends.

    Per token a sequence waits for a step and for the prompts of the others; the replica also spends the own prompts.
    `ttft_s` is the time to the first token where it is known already: it does not hang on the batch.
    """
    context = prompt_tokens + output_tokens / 2 + case.options.longer_tokens
    per_step = tokens_per_step(case.options)
    share = prompts_share_s(case, sequences, context, prompt_tokens, output_tokens / per_step)
    share = np.where(mixed, share, 0.0)
    # the wait of the others: one of n sequences reads its own prompt in an n-th of the cases
    running_fraction = np.maximum(sequences - 1, 0.0) / np.maximum(sequences, 1.0)
    step = decode_step(case, sequences, context, share * running_fraction)
    step_with_prompt = step.total_s - step.prompt_s + share
    return Steady(
        sequences=sequences,
        tpot_s=step.total_s / per_step,
        ttft_s=first_token_s(case, prompt_tokens) if ttft_s is None else ttft_s,
        output_tokens_per_s=sequences * per_step / step_with_prompt,
        prompt_time_fraction=share / step_with_prompt,
        step=step,
    )
