"""Feed-forwards of one layer: dense, or routed experts with shared ones beside them, and which layer has which."""

from dataclasses import replace
from typing import NamedTuple

from gpucost.architectures.decoder import Decoder
from gpucost.architectures.fields import KEYS, layer_of
from gpucost.types import Block


class FeedForward(NamedTuple):
    """What a layer does to each token by itself."""

    dense: int = 0
    experts: int = 0
    per_token: float = 0.0
    expert: int = 0
    shared: int = 0
    router: int = 0
    others: int = 0

    def into(self, block: Block) -> Block:
        """Return a block with this feed-forward added."""
        block = replace(block, dense=block.dense + self.dense, others=block.others + self.others)
        if not self.experts:
            return block
        return replace(
            block,
            experts=self.experts,
            experts_per_token=self.per_token,
            expert=self.expert,
            shared=self.shared,
            router=self.router,
        )


def matrices(d: Decoder) -> int:
    """Return the matrices of one feed-forward: three where it is gated, else two."""
    return 3 if d.family.gated else 2


def dense(d: Decoder, width: int) -> FeedForward:
    """Count a dense feed-forward: h·width a matrix, and biases where the family has them."""
    biased = d.fields.flag("mlp_bias") or d.family.mlp_bias
    return FeedForward(
        dense=matrices(d) * d.hidden * width, others=(matrices(d) - 1) * width + d.hidden if biased else 0
    )


def experts(d: Decoder) -> FeedForward | None:
    """Count a mixture of experts, or return None where the model has none."""
    f, h, count = d.fields, d.hidden, d.fields.number(*KEYS["experts"])
    width = f.number(*KEYS["expert_ffn"])
    if count <= 1:
        return None
    per_token = f.number(*KEYS["per_token"])
    if not 1 <= per_token <= count:
        raise f.fail(f"{per_token} experts per token of {count} experts makes no sense")
    width = width or d.ffn
    joint = f.number(*KEYS["shared_ffn"])
    number = f.number(*KEYS["shared"])
    shared = max(joint, 0) if joint else number * width
    if joint and number > 1 and set(KEYS["each_shared_ffn"]) & set(f.values):
        shared = joint * number
    others = count if _corrected(d) else 0
    return FeedForward(
        experts=count,
        per_token=per_token,
        expert=matrices(d) * h * width,
        shared=matrices(d) * h * shared,
        router=count * h + (h if d.family.shared_gate and shared else 0),
        others=others,
    )


def _corrected(d: Decoder) -> bool:
    f = d.fields
    return (
        d.family.correction
        or f.word("topk_method") == "noaux_tc"
        or f.flag("use_routing_bias")
        or f.flag("moe_router_enable_expert_bias", "use_expert_bias")
    )


def dense_width(d: Decoder) -> int:
    """Return the width of the dense layers of a mixture; of every layer where it is none."""
    return d.fields.number(*KEYS["dense_ffn"]) or d.ffn


def feeds(d: Decoder) -> list[FeedForward]:
    """Return the feed-forward of every layer: a mixture of experts, or a dense one."""
    mixture, plain = experts(d), dense(d, dense_width(d))
    return [mixture if mixture and mixed else plain for mixed in expert_layers(d)]


def expert_layers(d: Decoder) -> list[bool]:
    """Return for every layer whether it is a mixture of experts."""
    f, count = d.fields, d.layers
    kinds = f.words("mlp_layer_types")
    if kinds is not None:
        return _fitting(d, "mlp_layer_types", [kind != "dense" for kind in kinds])
    for name in ("moe_layer_freq", "moe_layers", "moe_layers_enum"):
        listed = _listed(d, name)
        if listed is not None:
            return listed
    dense_only = set(f.numbers("mlp_only_layers") or ())
    period, offset = f.number("expert_layer_period"), f.number("expert_layer_offset")
    if period:
        return [i % period == offset for i in range(count)]
    step, first = max(1, f.number(*KEYS["step"], default=1)), f.number(*KEYS["first_dense"])
    last = (
        count - 1 if f.values.get("moe_layer_end_index") == -1 else f.number("moe_layer_end_index", default=count - 1)
    )
    if first > count:
        raise f.fail(f"{first} leading dense layers of {count} layers makes no sense")
    phase = 0 if first or "moe_layer_freq" in f else 1
    return [first <= i <= last and i not in dense_only and (i + phase) % step == 0 for i in range(count)]


def _listed(d: Decoder, name: str) -> list[bool] | None:
    f = d.fields
    if name == "moe_layers_enum" and isinstance(f.raw(name), str):
        named = {layer_of(item.strip()) for item in f.word(name).split(",")}
        return [i in named for i in range(d.layers)]
    numbers = f.numbers(name) if isinstance(f.raw(name), list) else None
    if numbers is None:
        return None
    if set(numbers) <= {0, 1} and len(numbers) >= d.layers:
        return [bool(item) for item in numbers[: d.layers]]
    return [i in set(numbers) for i in range(d.layers)]


def _fitting(d: Decoder, name: str, listed: list[bool]) -> list[bool]:
    if len(listed) < d.layers:
        raise d.fields.fail(f"{name} names the kinds of {len(listed)} layers, but there are {d.layers}")
    return listed[: d.layers]
