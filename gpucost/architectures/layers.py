"""Which layers attend to everything, within a window or a chunk, or not at all; and the usual assembly of blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpucost.architectures.attention import (
    CHUNK,
    FULL,
    LINEAR,
    NONE,
    WINDOW,
    Heads,
    Mixer,
    attention,
    heads_of,
    latent,
    latent_of,
)
from gpucost.architectures.decoder import Decoder
from gpucost.architectures.feedforward import FeedForward, dense, dense_width, expert_layers, experts
from gpucost.architectures.fields import KEYS, Fields, layer_of
from gpucost.architectures.mixers import linear_mixer
from gpucost.types import Block

MOST_KINDS = 64  # of layers with keys of their own
PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", "window_pattern")
_WORDS = ((WINDOW, ("sliding", "local", "swa", "window")), (CHUNK, ("chunked",)), (NONE, ("skip", "no_op", "identity")))


def kind_of(word: str) -> str:
    """Translate one word of a list of layers.

    >>> kind_of("sliding_attention"), kind_of("linear_attention"), kind_of("attention")
    ('window', 'linear', 'full')
    """
    for kind, signs in _WORDS:
        if any(sign in word for sign in signs):
            return kind
    linear = word == "m" or any(sign in word for sign in KEYS["linear"])
    return LINEAR if linear else FULL


def kinds(d: Decoder, *known: str) -> list[str]:
    """Return the kind of every layer; where a family knows certain kinds only, another is refused."""
    found = _listed(d)
    if found is not None:
        d.fields.taken.update(KEYS["rhythms"])
    else:
        linear = _linear_layers(d)
        found = [LINEAR if i in linear else kind for i, kind in enumerate(_window_kinds(d))]
    if known and (strange := sorted(set(found) - set(known))):
        reason = f"makes some layers of the kind {strange[0]}; {d.kind} is known with {' and '.join(known)} layers"
        raise d.fields.fail(f"{reason}. Check the keys that say which layers attend to what")
    return found


def _listed(d: Decoder) -> list[str] | None:
    f, count = d.fields, d.layers
    for key in KEYS["kinds"]:
        words = f.words(key)
        if words is None:
            continue
        if len(words) < count and key != "block_types":
            raise f.fail(f"{key} names the kinds of {len(words)} layers, but there are {count}")
        found = [kind_of(words[i % len(words)]) for i in range(count)]
        return [FULL if kind == WINDOW and not d.window else kind for kind in found]
    for key, linear, full in (("attn_type_list", 0, 1), ("hybrid_layer_pattern", -1, 0)):
        numbers = f.numbers(key)
        if numbers is not None and len(numbers) >= count:
            return [LINEAR if n == linear else FULL if n == full else WINDOW for n in numbers[:count]]
    nested = f.raw("attention_types")
    if isinstance(nested, list) and nested and d.kind == "gpt_neo":
        return _gpt_neo(d, nested)
    return None


def _gpt_neo(d: Decoder, nested: list[object]) -> list[str]:
    words: list[str] = []
    for item in nested:
        if isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and isinstance(item[1], int):
            words += [str(word) for word in item[0]] * min(max(item[1], 0), d.layers)
    return [kind_of(words[i % len(words)]) if words else FULL for i in range(d.layers)]


def _linear_layers(d: Decoder) -> set[int]:
    f, count = d.fields, d.layers
    every = set(range(count))
    for key in ("full_attention_interval", "layer_group_size"):
        if step := f.number(key):
            return {
                i for i in every if (i + 1) % step and not (key == "layer_group_size" and i >= count // step * step)
            }
    if period := f.number("attn_layer_period"):
        return every - set(range(f.number("attn_layer_offset"), count, period))
    for key in ("attn_layer_indices", "attention_layers_idx", "full_attn_idxs"):
        attending = f.numbers(key)
        if attending is not None:
            return every - set(attending)
    inner = f.part("linear_attn_config")
    listed = inner.numbers("kda_layers") if inner else None
    if listed:
        return {i - 1 for i in listed}  # counted from one
    return {i for i in every if not i or i % 4} if d.kind == "kimi_linear" else set()


def _window_kinds(d: Decoder) -> list[str]:
    f, count = d.fields, d.layers
    if not d.window or f.values.get("use_sliding_window") is False:
        return [FULL] * count
    kind = CHUNK if "attention_chunk_size" in f else WINDOW
    no_rope = f.numbers("no_rope_layers") if kind == CHUNK else None
    if no_rope and len(no_rope) >= count:
        return [CHUNK if item else FULL for item in no_rope[:count]]
    pattern = f.raw(*PATTERNS)
    if isinstance(pattern, str) and pattern:  # such as LLLG
        return [WINDOW if pattern[i % len(pattern)].upper() == "L" else FULL for i in range(count)]
    stated = f.number(*PATTERNS) if isinstance(pattern, (int, float)) and pattern > 0 else 0
    rhythm = stated or d.family.rhythm
    if rhythm < 0:  # the first of so many is full, or of two windowed
        return [kind if i % -rhythm == 0 else FULL for i in range(count)]
    if rhythm == 1:
        return [FULL] * count
    if rhythm > 1:
        return [kind if (i + 1) % rhythm else FULL for i in range(count)]
    if "use_sliding_window" in f:
        first = f.number("max_window_layers")
        return [kind if f.flag("use_sliding_window") and i >= first else FULL for i in range(count)]
    return [kind] * count


def mixers(d: Decoder, listed: Sequence[str]) -> dict[str, Mixer]:
    """Return the mixer of every kind of layer that occurs."""
    found: dict[str, Mixer] = {}
    for kind in dict.fromkeys(listed):
        if kind == LINEAR:
            found[kind] = linear_mixer(d)
        elif kind == NONE:
            found[kind] = Mixer(0)
        elif d.fields.number("kv_lora_rank"):
            found[kind] = latent(d, latent_of(d), kind)
        else:
            found[kind] = attention(d, kind, heads_for(d, kind))
    return found


def heads_for(d: Decoder, kind: str) -> Heads:
    """Return the heads of a kind of layer; windowed layers may have their own (MiMo, Step)."""
    usual = heads_of(d)
    if kind != WINDOW:
        return usual
    f = d.fields
    queries = f.number("swa_num_attention_heads", default=usual.queries)
    keys = f.number("swa_num_key_value_heads", default=usual.keys)
    key_dim = f.number("swa_head_dim", default=usual.key_dim)
    default_value = usual.value_dim if "swa_head_dim" not in f or "v_head_dim" in f else key_dim
    return Heads(queries, keys, key_dim, f.number("swa_v_head_dim", default=default_value))


def block_of(d: Decoder, mixer: Mixer, *feed_forwards: FeedForward | None, norms: int | None = None) -> Block:
    """Return one layer: a mixer, its feed-forwards, and the norms around them."""
    count = d.family.norms if norms is None else norms
    per_layer = d.family.per_layer(d) if d.family.per_layer else 0
    block = Block(
        1,
        mixer.weights,
        count * d.norm,
        mixer.reaches,
        mixer.state_values,
        others=mixer.others + per_layer,
        linear=mixer.linear,
    )
    for feed_forward in feed_forwards:
        block = feed_forward.into(block) if feed_forward else block
    return block


def usual(d: Decoder) -> list[Block]:
    """Return the layers of a plain decoder: each a mixer and a feed-forward or a mixture of experts."""
    listed = kinds(d)
    made = mixers(d, listed)
    mixture = experts(d)
    plain = dense(d, dense_width(d) if mixture else shared_only(d))
    sparse = expert_layers(d) if mixture else [False] * d.layers
    return [block_of(d, made[kind], mixture if mixed else plain) for kind, mixed in zip(listed, sparse, strict=True)]


def shared_only(d: Decoder) -> int:
    """Return the width of a dense feed-forward; LFM2 shrinks the stated one, Granite hybrids call theirs shared."""
    f, width = d.fields, d.ffn
    if f.flag("block_auto_adjust_ff_dim"):
        step = f.number("block_multiple_of", default=256) or 256
        shrunk = int(2 * width / 3)
        shrunk = int(shrunk * f.ratio("block_ffn_dim_multiplier", 1.0))
        return -(-shrunk // step) * step
    return f.number("shared_intermediate_size") or width


def overridden(d: Decoder, rule: Callable[[Decoder], list[Block]]) -> list[Block]:
    """Return the layers by the family's rule; a layer with keys of its own in per_layer_config is read with those."""
    blocks, parts = rule(d), d.fields.raw("per_layer_config")
    if not isinstance(parts, Mapping) or not parts:
        return blocks
    read: dict[str, list[Block]] = {}
    for place, own in parts.items():
        if not (isinstance(own, Mapping) and 0 <= layer_of(str(place)) < len(blocks)):
            raise d.fields.fail(f"per_layer_config says {str(own)!r:.40} of layer {str(place)!r:.20}")
        said = repr(sorted(own.items()))
        if said not in read:
            if len(read) >= MOST_KINDS:
                raise d.fields.fail(f"per_layer_config describes more than {MOST_KINDS} kinds of layers")
            fields = Fields({**d.fields.values, **own}, d.fields.file, d.fields.defaults)
            read[said] = rule(Decoder(fields, d.family, d.kind))
            d.fields.taken |= fields.taken
        blocks[int(place)] = _without(d, read[said][int(place)], own.get("skip"))
    return blocks


def _without(d: Decoder, block: Block, skipped: object) -> Block:
    """Leave out the halves of a layer that its configuration skips."""
    words = [str(word) for word in skipped] if isinstance(skipped, list) else []
    if any("attention" in word or "mixer" in word for word in words):
        block = replace(block, mixer=0, reaches=(), state_values=0)
    if any("mlp" in word or "moe" in word or "feed" in word for word in words):
        block = replace(block, dense=0, experts=0, experts_per_token=0.0, expert=0, shared=0, router=0)
    return replace(block, norms=block.norms - min(len(words), 2) * d.norm) if words else block


def merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Put layers that are alike into one block with their count."""
    counts: dict[Block, int] = {}
    for block in blocks:
        counts[replace(block, count=1)] = counts.get(replace(block, count=1), 0) + block.count
    return tuple(replace(block, count=count) for block, count in counts.items())
