"""Frozen records that travel between the floors: an architecture, an accelerator, a system, a layout."""

from datetime import date
from typing import Literal

from msgspec import Struct

Status = Literal["given", "sourced", "assumed", "derived", "synthesised", "user"]


class Reach(Struct, frozen=True):
    """One set of entries that the tokens of a layer look at: what is cached for it, and what a look costs."""

    cached_values: int  # kept per entry; 0 where another layer keeps them
    pair_flop: int  # forward FLOP per query and entry
    window_tokens: int = 0  # only the last so many tokens are kept; 0 is all
    tokens_per_entry: int = 1  # several tokens compressed into one entry
    looks_at_most: int = 0  # entries that a query attends to, selected among all; 0 is all
    latent_flop: int = 0  # forward FLOP per query and entry in the compressed space of latent attention


class Block(Struct, frozen=True):
    """Layers that are alike: the weights of one of them by part, what it caches, and how many there are."""

    count: int
    mixer: int  # weights that mix tokens: attention projections, state-space mixers, convolutions
    norms: int
    reaches: tuple[Reach, ...] = ()
    state_values: int = 0  # recurrent state of one sequence
    dense: int = 0  # feed-forward weights that every token meets
    experts: int = 0
    experts_per_token: float = 0.0
    expert: int = 0  # weights of one routed expert
    shared: int = 0  # weights of the experts that every token visits
    router: int = 0
    others: int = 0  # biases, gates and what else no name above covers
    reused: int = 0  # weights counted in another block that this one multiplies by again
    linear: bool = False  # mixes by a recurrence, with attention or without


class ServedAs(Struct, frozen=True):
    """How people run a model: the format of its weights, on which chip, and how one replica is spread."""

    accelerator_id: str
    precision: str
    tensor: int
    data: int
    pipeline: int
    source_id: str

    @property
    def gpus(self) -> int:
        """Accelerators of one replica."""
        return self.tensor * self.data * self.pipeline


class Architecture(Struct, frozen=True):
    """A transformer, by its dimensions. Counts are per model; zero means that a part is absent.

    Where `blocks` are given they say what each layer is, and the dimensions only what most layers are like;
    without blocks all layers follow from the dimensions.
    """

    name: str
    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int  # dense layers' feed-forward width; 0 where every layer is a mixture of experts
    gated: bool
    vocab: int
    tied_embeddings: bool
    max_sequence_tokens: int = 0
    trained_sequence_tokens: int | None = None  # of the published run
    trained_batch_sequences: int | None = None  # per step of the published run, at its end where it grew
    # mixture of experts
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_ffn_hidden: int = 0
    expert_hidden: int = 0  # in which routed experts work, and their tokens travel; 0 where it is the hidden width
    shared_ffn_hidden: int = 0
    first_dense_layers: int = 0
    moe_layer_step: int = 1
    # attention: "mha" | "gqa" | "mqa" | "mla"
    attention: str = "gqa"
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_dim: int = 0
    qk_rope_dim: int = 0
    v_head_dim: int = 0
    window_tokens: int = 0  # sliding window; 0 means full attention everywhere
    window_layers: int = 0  # layers that attend within the window only
    linear_layers: int = 0  # layers with linear attention or a state-space mixer instead of a KV cache
    # "rms" | "ln" | "ln_w" (weight only) | "ln_np" (no parameters)
    norm: str = "rms"
    qkv_bias: bool = False
    mtp_layers: int = 0
    position_parameters: int = 0  # learned position embeddings and similar, in parameters
    extra_parameters: int = 0  # parameters counted from the source that no dimension or block explains
    blocks: tuple[Block, ...] = ()
    embedding_width: int = 0  # of the token embeddings where it differs from `hidden`
    tower_parameters: int = 0  # vision and audio encoders beside the language model
    image_tokens: int = 0  # tokens that one image becomes
    native_precision: str = ""  # in which the weights were published
    stored_bytes: int = 0  # of the published weights of the language model
    mixer_bytes_each: float = 0.0  # of a weight of attention as stored
    served_as: tuple[ServedAs, ...] = ()  # the usual one first
    status: Status = "sourced"
    source_id: str = ""
    notes: str = ""
    warnings: tuple[str, ...] = ()  # what was not understood in the source


class Accelerator(Struct, frozen=True):
    """One accelerator: dense peaks, memory, links (per GPU, one direction), power. None is unknown, never zero."""

    id: str
    vendor: str
    name: str
    family: str  # what calibration falls back to: volta, ampere, ada, hopper, blackwell, cdna3, tpu …
    form_factor: str
    year: int
    memory_gib: float  # as the device reports it
    hbm_gb_per_s: float
    l2_mb: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    bf16_tflops: float | None = None
    fp16_tflops: float | None = None
    fp8_tflops: float | None = None
    int8_tflops: float | None = None
    fp6_tflops: float | None = None
    fp4_tflops: float | None = None
    sparse_ratio: float = 1.0
    multiprocessors: int | None = None
    scaleup_link: str = "none"
    scaleup_gb_per_s: float = 0.0
    scaleup_gpus: int = 1
    pcie_gb_per_s: float | None = None
    tdp_w: float | None = None
    memory_type: str = ""  # HBM3, GDDR6, LPDDR5 …
    made_for: str = ""  # "inference" where it does not train
    training_sources: int = 0  # that measured training on it
    training_largest_gpus: int = 0  # of their clusters
    serving_sources: int = 0
    confidence: str = "medium"
    status: Status = "sourced"
    source_id: str = ""

    @property
    def trains(self) -> bool:
        """Whether it is built and supported for training, too."""
        return self.made_for != "inference"


class System(Struct, frozen=True):
    """A node, instance or rack: which accelerator, how many, and how they reach each other and other nodes."""

    id: str
    name: str
    kind: str  # node | baseboard | rack | cloud | synthesised
    accelerator_id: str
    gpus: int  # accelerators per node
    scaleup_gb_per_s: float  # per GPU, one direction, inside the scale-up domain
    scaleup_gpus: int  # size of the scale-up domain (may exceed one node: NVL72, TPU pods)
    scaleout_gb_per_s: float | None  # per GPU, one direction; None means no named scale-out network
    fabric: str = ""
    max_power_kw: float | None = None
    provider: str = ""
    instance_type: str = ""
    status: Status = "sourced"
    source_id: str = ""


class Layout(Struct, frozen=True):
    """How a job is spread: tensor × pipeline × context × data = gpus; expert divides data × context × tensor."""

    gpus: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    data: int = 1
    sharding: int = 0  # 0 plain data parallel, 1 optimizer states, 2 and gradients, 3 and parameters (FSDP)
    micro_batch: int = 1  # sequences per GPU and micro-step
    global_batch: int = 1  # sequences per step over all GPUs
    virtual_stages: int = 1
    recompute: str = "none"  # none | selective | full
    precision: str = "bf16"


class Offer(Struct, frozen=True):
    """One price that can be ordered, as it held on a day: who, what, where, on which terms. None is unknown."""

    offer_id: str
    offer_kind: str
    provider: str
    instance_type: str
    gpu: str  # accelerator id
    gpu_assumed: bool
    gpus: int
    system_id: str
    region: str
    region_scope: str
    option: str
    tier: str
    billing: str
    term_months: int
    payment: str
    upfront_usd: float | None
    usd_per_hour: float
    usd_per_gpu_hour: float
    recurring_usd_per_hour: float | None
    minimum_hours: float | None
    billing_increment_hours: float | None
    minimum_units: int | None
    maximum_units: int | None
    vcpus: float | None
    memory_gib: float | None
    local_nvme_gb: float | None
    network_gbit_per_s: float | None
    availability: str
    valid_from: date | None
    observed_on: date
    recorded_on: date
    date_precision: str
    listed_as: str  # the source's own name of the product
    interconnect: str
    source_id: str
    confidence: str
    notes: str
    # what the as-of view adds
    age_days: int = 0  # from observed_on to the day asked about
    book: str = "shipped"  # price book that spoke: shipped | refreshed | user
    price_kind: str = "list"  # list | contracted | effective
    list_usd_per_gpu_hour: float | None = None  # what the list says where a book speaks for it
    sale: str = "unknown"  # whether lists have the machine in that region: listed | priced | unknown
