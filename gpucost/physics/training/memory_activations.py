"""What one layer keeps for its backward pass, per token, by the software that runs it.

Counted from the tensors that autograd saves, not fitted: each law below lists them, and the tests hold the sums
against the formula of Korthikanti et al. 2022 (arXiv:2205.05198, eq. 2-6) and against measured peaks.
With b·s tokens, hidden width h, a heads of d, kv heads, feed-forward width f, tensor degree t, all values 2 bytes:

    norms        input and output of both norms                                8h
                 + what a style keeps besides (fp32 copies, one cast per product)
    attention    queries, keys, values, output                                 2(q + k + v + o)
                 without a fused kernel also the scores                        2 a s (5 a s with dropout, 6 a s eager)
    feed-forward gate, up and their product                                    6f (eager keeps silu(gate) too: 8f)
                 not gated: before and after the activation                    4f
    dropout      one-byte masks after attention and feed-forward               2h
"""

import numpy as np

from gpucost.physics.columns import ColumnStruct, Floats, LayoutColumns
from gpucost.physics.training.memory_recipe import FUSED, LIBRARY, LORA, MemoryRecipe
from gpucost.physics.transformer import Shape, output_width, query_width

# Columns: fused, compiled, compiled_model, eager, autocast, library, library_autocast, trainer.
# Bytes per hidden value that both norms of a layer keep, with the inputs of the products behind them. RMS norm:
#   fused, compiled, eager   input 2 + output 2, twice
#   autocast                 fp32 input 4 + fp32 normalised 4 + 16-bit output 2, twice
#   library                  fp32 input 4 + 16-bit normalised 2 + output 2, twice
#   library_autocast         fp32 input 4 + fp32 normalised 4, twice; a cast of its own for q, k, v, gate and up: 5 × 2
# Layer norm is one kernel everywhere: input 2 + output 2, twice; under autocast fp32 input 4 + 16-bit output 2.
_RMS_BYTES = np.array([8.0, 8.0, 8.0, 8.0, 20.0, 16.0, 26.0, 16.0])
_LAYER_NORM_BYTES = np.array([8.0, 8.0, 8.0, 8.0, 12.0, 8.0, 12.0, 8.0])
# A fused QKV projection keeps queries and keys before the rotation as well; compiled code was seen with and without.
_ROTATION_COPIES = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
_GATED_BYTES = np.array([6.0, 6.0, 6.0, 8.0, 8.0, 8.0, 8.0, 8.0])
# Not gated: before and after the activation. Libraries write GELU out: x, x/2, tanh, 1 + tanh and the product,
# with the power and what follows it in fp32 under autocast.
_PLAIN_BYTES = np.array([4.0, 4.0, 4.0, 4.0, 4.0, 10.0, 16.0, 10.0])
_SCORE_BYTES = np.array([2.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 6.0])  # softmax output; eager: in fp32, and its 16-bit copy
_CHECKPOINT_BYTES = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 4.0, 2.0])  # one layer input; libraries' residuals are fp32
_LAYER_NORM_CHECKPOINT_BYTES = np.array([2.0, 2.0, 2.0, 2.0, 4.0, 2.0, 4.0, 2.0])
_ATTENTION_ADAPTERS = 0.5  # below this share the adapters are taken to sit on queries and values alone


class LayerBytes(ColumnStruct, frozen=True):
    """Bytes per token of one GPU's share of one layer."""

    saved: Floats  # kept from forward to backward under the layout's recomputation
    whole: Floats  # kept while the layer's own backward runs: all of it
    working: Floats  # further temporaries of the backward pass


def _expert_width(shape: Shape) -> Floats:
    """Return the feed-forward values per token of a mixture of experts: routed and shared."""
    return shape.experts_per_token * shape.expert_ffn_hidden + shape.shared_experts * shape.shared_ffn_hidden


def layer_bytes(shape: Shape, layout: LayoutColumns, recipe: MemoryRecipe) -> LayerBytes:
    """Return what one layer keeps per token on one GPU.

    Full recomputation keeps the layer's input: 2h. Selective drops the scores where attention is not fused
    (arXiv:2205.05198, section 5), and where it is fused what cheap operations can rebuild: the norms' outputs and the
    feed-forward's product. Tensor parallelism divides attention and feed-forward by t, and with sequence
    parallelism the norms too.

    Korthikanti's 34h + 5as by hand, h = 4096, a = 32, s = 2048, f = 4h, with dropout and without a fused kernel:
    34·4096 + 5·32·2048 = 466,944.

    >>> from gpucost.physics.columns import layout_columns
    >>> from gpucost.physics.training.memory_recipe import memory_recipe
    >>> from gpucost.physics.transformer import stack
    >>> from gpucost.types import Architecture, Layout
    >>> gpt = stack([Architecture("gpt", "", 32, 4096, 32, 32, 128, 16384, False, 50257, True, attention="mha")])
    >>> layout = layout_columns([Layout(gpus=1)], flash=False)
    >>> layer_bytes(gpt, layout, memory_recipe(2048, dropout=True)).saved
    array([466944.])
    """
    h, style, tensor = shape.hidden, recipe.style, layout.tensor
    rms = shape.norm_vectors == 1
    frozen = (recipe.method >= LORA) & (style != FUSED)

    # Where the base is frozen, in eager styles, its weights need no inputs: the norms keep their (fp32, in libraries)
    # input alone, the feed-forward gate, silu(gate) and up; then come the adapters' own copies. Adapters in 16 bits
    # share the 16-bit inputs; fp32 ones copy the input of each adapted matrix and keep the rank values. Five products
    # read the hidden width (q, k, v, gate, up), one the attention output, one the feed-forward; where the adapters sit
    # on queries and values alone, two read the hidden width.
    narrow = recipe.adapter_bytes < 4
    adapter_norm = np.where(recipe.style >= LIBRARY, 8.0, 4.0) * h + np.where(narrow, 4.0 * h, 0.0)
    width = np.where(shape.experts > 0, _expert_width(shape), shape.ffn_hidden)
    products = np.where(shape.gated, 6.0, 2.0) + np.where(narrow, 2.0, 0.0)
    inputs = np.where(shape.gated, 5.0, 4.0) * h + output_width(shape) + width
    attention = recipe.adapter_share < _ATTENTION_ADAPTERS
    copies = np.where(attention, 2 * h, recipe.adapter_share * inputs)
    ranks = np.where(attention, 2.0, 7 * recipe.adapter_share) * recipe.adapter_rank
    copied = np.where(narrow, 0.0, 4.0) * copies + recipe.adapter_bytes * ranks
    adapter_ffn = products * width + copied
    norm = np.where(frozen, adapter_norm, np.where(rms, _RMS_BYTES[style], _LAYER_NORM_BYTES[style]) * h)
    norm = norm + np.where(recipe.dropout, 2 * h, 0.0)

    # The feed-forward of the mean layer. A mixture keeps besides a copy of the token for each expert that it visits,
    # each expert's output, and the router's fp32 scores: 4·k·h + 4·E.
    share = shape.moe_layers / shape.layers
    value_bytes = np.where(shape.gated, _GATED_BYTES[style], _PLAIN_BYTES[style])
    dispatch = 4 * shape.experts_per_token * h + 4 * shape.experts
    mixture = value_bytes * _expert_width(shape) + dispatch
    ffn = np.where(frozen, adapter_ffn, (1 - share) * value_bytes * shape.ffn_hidden + share * mixture)

    # Attention keeps queries, keys, values and output; latent attention the latents too, and keys for every head.
    latents = 2 * (shape.q_lora_rank + shape.kv_lora_rank) + shape.qk_rope_dim
    per_head = shape.qk_nope_dim + shape.qk_rope_dim + 2 * shape.v_head_dim
    latent = query_width(shape) + shape.heads * per_head + latents
    plain = query_width(shape) + 2 * shape.kv_heads * shape.head_dim + output_width(shape)
    rotated = _ROTATION_COPIES[style] * 2 * (query_width(shape) + shape.kv_heads * shape.head_dim)
    core = 2 * np.where(shape.mla, latent, plain) + np.where(shape.mla | frozen, 0.0, rotated)
    # scores over all keys; a fused kernel keeps the softmax's sum of each query and head alone, in fp32
    score_bytes = np.where(recipe.dropout, 5.0, _SCORE_BYTES[style]) * shape.heads * recipe.sequence_tokens
    scores = np.where(layout.flash, 4.0 * shape.heads, score_bytes)
    split = np.where(layout.sequence_parallel, tensor, 1.0)
    all_kept = norm / split + (core + ffn + scores) / tensor
    # frameworks with fused kernels do not rebuild: what they keep is already the least
    rebuilt = np.where((style == FUSED) | frozen, 0.0, (norm - 4 * h) / split + (ffn - ffn * 2 / 3) / tensor)
    selective = np.where(layout.flash, all_kept - rebuilt, all_kept - scores / tensor)
    checkpoint = np.where(rms, _CHECKPOINT_BYTES[style], _LAYER_NORM_CHECKPOINT_BYTES[style]) * h / split
    saved = np.where(layout.recompute == 2, checkpoint, np.where(layout.recompute == 1, selective, all_kept))
    widest = np.where(shape.experts > 0, np.maximum(_expert_width(shape), shape.ffn_hidden), shape.ffn_hidden)
    # gradients of the stream and of the widest product, in 16 bits, coming in and going out
    working = 4 * h / split + 4 * widest / tensor
    twice = np.where(recipe.full_precision, 2.0, 1.0)
    return LayerBytes(*np.broadcast_arrays(saved * twice, all_kept * twice, working * twice))
