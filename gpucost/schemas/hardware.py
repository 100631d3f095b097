"""Tables of physical facts: accelerators, systems, model architectures, their other names and sources."""

from gpucost.schemas.columns import PROVENANCE, SOURCE_COLUMNS, Table, flag, integer, number, text

ACCELERATORS = Table(
    "accelerators",
    "models/accelerators.csv",
    "Accelerators: dense peaks, usable memory, links per GPU and direction, power, prices.",
    (
        text("id", "canonical name", required=True),
        text("vendor", "who makes it", required=True),
        text("name", "full name", required=True),
        text("architecture", "micro-architecture and die", required=True),
        text(
            "family",
            "family that calibration falls back to, such as ampere, hopper, cdna3, tpu, trainium",
            required=True,
        ),
        text("form_factor", "SXM5, PCIe, OAM …", required=True),
        integer("year", "year of launch", required=True, low=2010),
        number("memory_gib", "memory that the device reports as usable", required=True, positive=True),
        number("memory_marketed_gb", "memory as the vendor writes it", required=True, positive=True),
        text("memory_type", "HBM3, GDDR6 …", required=True),
        number("hbm_gb_per_s", "bandwidth of the device memory", required=True, positive=True),
        number("l2_mb", "last-level cache", positive=True),
        integer("multiprocessors", "streaming multiprocessors or compute units", positive=True),
        number("fp64_tflops", "dense peak", positive=True),
        number("fp64_tensor_tflops", "dense peak", positive=True),
        number("fp32_tflops", "dense peak outside the matrix units", positive=True),
        number("tf32_tflops", "dense peak", positive=True),
        number("bf16_tflops", "dense peak", positive=True),
        number("fp16_tflops", "dense peak, FP32 accumulate", positive=True),
        number("fp8_tflops", "dense peak", positive=True),
        number("int8_tflops", "dense peak, in tera-operations", positive=True),
        number("fp6_tflops", "dense peak", positive=True),
        number("fp4_tflops", "dense peak", positive=True),
        number(
            "sparse_ratio", "marketed sparse peak ÷ dense peak of the lowest common precision", required=True, low=1
        ),
        text("scaleup_link", "NVLink, Infinity Fabric, ICI … or none", required=True),
        number(
            "scaleup_gb_per_s", "scale-up bandwidth per GPU, one direction; 0 where there is none", required=True, low=0
        ),
        integer("scaleup_gpus", "GPUs in the scale-up domain", required=True, positive=True),
        integer("pcie_generation", "PCI Express generation", positive=True),
        number("pcie_gb_per_s", "host link, one direction", positive=True),
        number("tdp_w", "board power limit", positive=True),
        integer("mig_slices", "largest number of MIG instances"),
        flag("ecc", "memory with error correction"),
        number("street_low_usd", "low street price", positive=True),
        number("street_high_usd", "high street price", positive=True),
        text("street_observed", "when the street price was seen (a year, a month or a span)"),
        text("street_source", "where the street price was seen, or estimate"),
        number("launch_usd", "list price at launch", positive=True),
        text("launch_source", "where the launch price stands"),
        text("second_source_id", "a second public source that the row was held against", refers_to="sources"),
        *PROVENANCE,
    ),
    ("id",),
)

SYSTEMS = Table(
    "systems",
    "models/systems.csv",
    "Nodes, instances and racks: accelerators, links inside and between them, power, price.",
    (
        text("id", "canonical name", required=True),
        text("kind", "what it is", required=True, choices=("node", "baseboard", "rack", "cloud")),
        text("name", "full name", required=True),
        text("provider", "who rents it, for cloud instances"),
        text("instance_type", "the provider's name of it"),
        text("accelerator_id", "accelerator", required=True, refers_to="accelerators"),
        integer("gpus", "accelerators in one node", required=True, positive=True),
        number(
            "scaleup_gb_per_s",
            "scale-up bandwidth per GPU, one direction; 0 where GPUs meet over PCIe only",
            required=True,
            low=0,
        ),
        integer("scaleup_gpus", "GPUs in the scale-up domain, which may span nodes", required=True, positive=True),
        number(
            "scaleout_gb_per_s",
            "scale-out bandwidth per GPU, one direction; empty where no network is named",
            positive=True,
        ),
        text("fabric", "the scale-out network in words"),
        number("max_power_kw", "rated maximum of the node", positive=True),
        number("rack_units", "height", positive=True),
        number("price_low_usd", "low price of the node", positive=True),
        number("price_high_usd", "high price of the node", positive=True),
        text("price_observed", "when the price was seen"),
        text("price_source", "where the price was seen"),
        text("second_source_id", "a second public source that the row was held against", refers_to="sources"),
        *PROVENANCE,
    ),
    ("id",),
)

LLMS = Table(
    "llms",
    "models/llms.csv",
    "Model architectures, with published parameter counts to hold the recount against.",
    (
        text("id", "canonical name", required=True),
        text("family", "model family", required=True),
        integer("layers", "transformer layers", required=True, positive=True),
        integer("hidden", "width of the residual stream", required=True, positive=True),
        integer("heads", "query heads", required=True, positive=True),
        integer("kv_heads", "key and value heads", required=True, positive=True),
        integer("head_dim", "dimension of a head", required=True, positive=True),
        integer(
            "ffn_hidden",
            "feed-forward width of dense layers; 0 where every layer is a mixture of experts",
            required=True,
        ),
        flag("gated", "gated feed-forward (three matrices)", required=True),
        integer("vocab", "vocabulary", required=True, positive=True),
        flag("tied_embeddings", "input and output embeddings share their weights", required=True),
        integer("max_sequence_tokens", "longest sequence", required=True),
        integer("experts", "routed experts per layer", required=True),
        integer("experts_per_token", "routed experts that a token visits", required=True),
        integer("shared_experts", "experts that every token visits", required=True),
        integer("expert_ffn_hidden", "width of a routed expert", required=True),
        integer("shared_ffn_hidden", "width of a shared expert", required=True),
        integer("first_dense_layers", "dense layers before the first mixture of experts", required=True),
        integer("moe_layer_step", "a mixture of experts every n-th layer", required=True, positive=True),
        text("attention", "kind of attention", required=True, choices=("mha", "gqa", "mqa", "mla")),
        integer("q_lora_rank", "latent rank of queries (MLA)", required=True),
        integer("kv_lora_rank", "latent rank of keys and values (MLA)", required=True),
        integer("qk_nope_dim", "head dimension without rotation (MLA)", required=True),
        integer("qk_rope_dim", "head dimension with rotation (MLA)", required=True),
        integer("v_head_dim", "value head dimension (MLA)", required=True),
        integer("window_tokens", "sliding window; 0 is full attention", required=True),
        integer("window_layers", "layers that attend within the window only", required=True),
        integer("linear_layers", "layers with linear attention or a state-space mixer", required=True),
        text(
            "norm",
            "normalisation; ln_w has weights only, ln_np no parameters",
            required=True,
            choices=("rms", "ln", "ln_w", "ln_np"),
        ),
        flag("qkv_bias", "biases in the attention projections (and everywhere, for older styles)", required=True),
        integer("mtp_layers", "multi-token prediction layers", required=True),
        integer("position_parameters", "learned position embeddings and similar", required=True),
        integer(
            "extra_parameters", "parameters known from the weights that no dimension explains", required=True, low=None
        ),
        integer("published_parameters", "total parameters that the publisher states", positive=True),
        integer("published_active_parameters", "active parameters that the publisher states", positive=True),
        integer("weights_parameters", "parameters counted in the published weight files", positive=True),
        integer("training_tokens", "tokens of the published training run", positive=True),
        *PROVENANCE,
    ),
    ("id",),
)

ALIASES = Table(
    "aliases",
    "models/aliases.csv",
    "Other names of accelerators, systems, models, providers, regions and purchase options.",
    (
        text(
            "kind",
            "what is named",
            required=True,
            choices=("accelerator", "system", "model", "provider", "region", "option"),
        ),
        text("alias", "the other name, in lower case", required=True),
        text("id", "canonical name", required=True),
        text("notes", "what a reader must know"),
    ),
    ("kind", "alias"),
)

MODEL_SOURCES = Table(
    "model_sources", "models/sources.csv", "Where the physical facts come from.", SOURCE_COLUMNS, ("source_id",)
)
