"""A language model as its family's rule reads it: the dimensions that layers share, the traits of the family."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from gpucost.architectures.fields import KEYS, MOST_LAYERS, Fields
from gpucost.types import Block

VECTORS = {"rms": 1, "ln": 2, "ln_w": 1, "ln_np": 0}  # of the hidden width in one norm


@dataclass(frozen=True)
class Family:
    """What a family of models implies without writing it down. The plain one is Llama."""

    gated: bool = True  # three matrices in a feed-forward, not two
    norm: str = "rms"
    norms: int = 2  # of the hidden width in a layer
    qk_norm: str = ""  # "head" | "wide" | a key that switches norms of each head on
    bias: str = ""  # always on "qkv", or on "qkvo"
    key_bias: str = "qkvo"  # what attention_bias means here
    mlp_bias: bool = False
    head_bias: bool = False
    tied: bool = False  # where neither the file nor its class says
    final_norm: bool = True
    embedding_norms: int = 0
    positions: int | None = None  # learned positions, with so many rows beside the longest sequence
    correction: bool = False  # a correction bias for each expert
    shared_gate: bool = False
    gate: str = ""  # of the attention's output: "full" | "head"
    sinks: str = ""  # "all" | "window"
    rhythm: int = 0  # one layer in so many attends to everything; the others within the window
    linear: str = ""  # the mixer of layers that do not attend
    blocks: "Callable[[Decoder], list[Block]] | None" = None  # the rule of a family unlike others
    extra: "Callable[[Decoder], int] | None" = None  # parameters beside the layers
    per_layer: "Callable[[Decoder], int] | None" = None  # small further parameters of each layer
    understood: bool = True


@dataclass
class Decoder:
    """The fields of a language model with the family that reads them, and what the rules found on the way."""

    fields: Fields
    family: Family
    kind: str
    warnings: list[str] = field(default_factory=list)
    lookup: int = 0  # parameters that are looked up, not multiplied by: per-layer embeddings

    def required(self, *names: str) -> int:
        """Return a dimension that every transformer has."""
        value = self.fields.maybe(*names)
        if not value:
            raise self.fields.fail(
                f"has no {' or '.join(names[:3])}; it does not look like a transformer's configuration"
            )
        return value

    @cached_property
    def layers(self) -> int:
        """How many layers there are; listed kinds may say it where no number does."""
        count = self.required(*KEYS["layers"])
        if count > MOST_LAYERS:
            raise self.fields.fail(f"{count} layers makes no sense; no model has as many")
        return count

    @cached_property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.required(*KEYS["hidden"])

    @cached_property
    def heads(self) -> int:
        """Query heads of most layers; those of JetMoE are its key-value heads, once for each expert visited."""
        if self.kind == "jetmoe" and not self.fields.number(*KEYS["heads"]):
            return self.fields.number("num_key_value_heads") * max(1, self.fields.number("num_experts_per_tok"))
        return self.required(*KEYS["heads"])

    @cached_property
    def head_dim(self) -> int:
        """Dimension of a head."""
        given = self.fields.number(*KEYS["head_dim"])
        if not given and self.hidden % self.heads:
            raise self.fields.fail(
                f"hidden size {self.hidden} is not a multiple of {self.heads} heads, and head_dim is not given"
            )
        return given or self.hidden // self.heads

    @cached_property
    def kv_heads(self) -> int:
        """Key-value heads of most layers."""
        f = self.fields
        if self.kind in ("falcon", "refinedweb", "refinedwebmodel") and not f.flag("new_decoder_architecture"):
            return 1 if f.flag("multi_query", default=self.kind != "refinedweb") else self.heads
        if self.kind == "gpt_bigcode":
            f.taken.add("num_key_value_heads")  # multi_query says it
            return 1 if f.flag("multi_query", default=True) else self.heads
        if f.word("attn_type") == "multi_query":
            return 1
        if f.values.get("multi_query_attention") is False:
            return self.heads
        found = f.number(*KEYS["kv_heads"]) or self.heads
        if not found:
            raise f.fail("it has no attention heads")
        if self.heads % found:
            raise f.fail(f"{self.heads} query heads cannot share {found} key-value heads evenly")
        return found

    @cached_property
    def vocab(self) -> int:
        """Rows of the embedding."""
        return self.required(*KEYS["vocab"])

    @cached_property
    def ffn(self) -> int:
        """Width of a dense feed-forward."""
        width = (
            self.fields.number(*KEYS["ffn"])
            or self.fields.number("intermediate_multiple_size", default=4) * self.hidden
        )
        return width // 2 if self.kind == "qwen" else width  # which states both halves of its gate together

    @cached_property
    def norm(self) -> int:
        """Parameters of one norm of the hidden width."""
        return VECTORS[self.family.norm] * self.hidden

    @cached_property
    def window(self) -> int:
        """Tokens of the sliding window or chunk; 0 where there is none."""
        return self.fields.number(*KEYS["window"])

    @cached_property
    def tied(self) -> bool:
        """Whether input and output embeddings share their weights."""
        return self.fields.flag("tie_word_embeddings", "share_input_output_layers", default=self.family.tied)
