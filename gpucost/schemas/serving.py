"""Tables of serving: measured runs, the fitted efficiencies, distributions of prompt and output lengths."""

from gpucost.schemas.columns import PROVENANCE, Table, flag, integer, number, text
from gpucost.schemas.measurements import CALIBRATION

SERVING_MEASUREMENTS = Table(
    "serving_measurements",
    "models/measurements/serving.csv",
    "Published measurements of serving, as their sources state them: what ran, on what, under which load, how fast.",
    (
        text("id", "key", required=True),
        text("source_name", "who measured", required=True),
        text("source_locator", "where the figure stands", required=True),
        text("as_of", "date of the figure, as exact as it is known"),
        text("model", "model as the source names it", required=True),
        number("params_b", "parameters, in billions", positive=True),
        number("active_params_b", "parameters that a token meets, in billions", positive=True),
        integer("n_layers", "layers", positive=True),
        integer("hidden", "width of the residual stream", positive=True),
        integer("n_heads", "query heads", positive=True),
        integer("n_kv_heads", "key and value heads", positive=True),
        integer("head_dim", "dimension of a head", positive=True),
        integer("ffn_hidden", "feed-forward width, of an expert where there are experts", positive=True),
        integer("vocab", "vocabulary", positive=True),
        text("gpu", "accelerator as the source names it", required=True),
        integer("n_gpus", "accelerators", required=True, positive=True),
        text("engine", "software in words"),
        text("weight_precision", "format of the weights in words"),
        text("kv_precision", "precision of the key-value cache in words"),
        integer("tp", "tensor-parallel degree", positive=True),
        integer("pp", "pipeline stages", positive=True),
        integer("ep", "expert-parallel degree", positive=True),
        text("scenario", "how requests arrive, in words", required=True),
        number("isl", "prompt tokens", low=0),
        number("osl", "output tokens", low=0),
        number("batch_or_concurrency", "requests at once", positive=True),
        number("request_rate", "requests per second offered", positive=True),
        number("measured_output_tokens_per_s", "output tokens per second of all accelerators", positive=True),
        number("measured_total_tokens_per_s", "prompt and output tokens per second of all accelerators", positive=True),
        number("measured_output_tok_s_per_gpu", "output tokens per second and accelerator", positive=True),
        number("ttft_ms", "time to the first token", positive=True),
        number("tpot_ms", "time per output token after the first", positive=True),
        text("notes", "what a reader must know"),
        text("sanity", "how the stated figures agree with each other and with physics"),
        text("sanity_note", "why"),
        text("completeness", "full, partial, or no-batch where the batch is not stated"),
        flag("core", "row is well suited to calibration and validation", required=True),
        text("source_id", "key into sources.csv of the models folder", required=True, refers_to="model_sources"),
    ),
    ("id",),
)

SERVING_CALIBRATION = CALIBRATION._replace(
    name="serving_calibration",
    files="models/serving_calibration.csv",
    description="Efficiencies of serving fitted to the measurements, with their priors, and the widths of the ranges.",
)

LENGTH_DISTRIBUTIONS = Table(
    "length_distributions",
    "models/length_distributions.csv",
    "Prompt and output lengths of published request traces, by quantile.",
    (
        text("name", "name of the distribution", required=True),
        text("description", "what was traced", required=True),
        number("prompt_mean_tokens", "mean prompt", required=True, positive=True),
        number("output_mean_tokens", "mean output", required=True, positive=True),
        number("prompt_median_tokens", "median prompt", positive=True),
        number("output_median_tokens", "median output", positive=True),
        number("prompt_p90_tokens", "90th percentile of the prompt", positive=True),
        number("output_p90_tokens", "90th percentile of the output", positive=True),
        *PROVENANCE,
    ),
    ("name",),
)
