"""Reading the words of published serving tables: engines and their age, formats, scenarios, data sets, layouts.

`signs.csv` names what is looked for, in its order; its `lengths` are mean prompts and outputs of known request sets,
ShareGPT as vLLM's benchmark filters it, MLPerf Inference's data sets as its rules list them.
"""

import re
from dataclasses import dataclass

from gpucost.physics.serving.efficiency import SERVERS
from gpucost.validation import wording

_PLAIN_SIGNS = ("plain", "cuda graph", "cudagraph", "pytorch", "torch", "own", "bare")
_EARLY_SIGNS = ("fastgen", "deepspeed", "lightllm", "tgi", "text-generation-inference", "fastertransformer")


DEFAULT_TOKENS = (512.0, 256.0)  # of a prompt and an output where neither they nor a known request set is named
SINGLE_PROMPT_TOKENS = 8.0  # benchmarks of one stream start from a few words

SCENARIOS = ("single", "prompt", "batch", "steady", "burst", "saturated", "rated", "pool")


def engine(text: object, year: float) -> str:
    """Read an engine and its era; where no version is stated the date decides.

    >>> engine("vLLM 0.7.3", 2026), engine("vllm 0.18.0", 2026), engine("vLLM (ROCm, Nov 2024)", 2024.9)
    ('vllm-2025', 'vllm', 'vllm-rocm')
    >>> engine("TensorRT 10.11, CUDA 12.9", 2025.5), engine("TensorRT-LLM v1.0 (PyTorch backend)", 2025.7)
    ('tuned', 'trtllm')
    """
    word = str(text or "").lower()
    word = "" if word == "nan" else word
    if name := wording.signed("engine", word):
        return name
    if "vllm" in word:
        return vllm_era(word, year)
    if "transformers" in word or "huggingface" in word or "hf " in word:
        return "transformers"
    if any(sign in word for sign in _EARLY_SIGNS):
        return "vllm-2024"
    if "eager" in word:
        return "eager"
    return "plain" if any(sign in word for sign in _PLAIN_SIGNS) else "unknown"


def is_bare_step(*texts: object) -> bool:
    """Tell whether words describe a decode step on its own rather than an engine that serves requests.

    >>> is_bare_step("decode-step", ""), is_bare_step("fixed-concurrency", "arch from public config")
    (True, False)
    """
    word = " ".join(str(text or "") for text in texts).lower()
    return re.search(r"decode[- _]?steps?|random weights|micro-?benchmark|bare step|cuda ?graph", word) is not None


def vllm_era(word: str, year: float) -> str:
    """Read the era of vLLM: 0.8 made the new scheduler the default; 0.6 and 0.7 hide part of the host's work."""
    match = re.search(r"vllm[-_ /]*(?:(?:tpu|xpu|rocm)[-_ ]*)?v?(\d+)\.(\d+)", word)
    stated = re.search(r"\b(20\d\d)\b", word)
    year = float(stated[1]) + 0.5 if stated else year
    minor = int(match[2]) if match and match[1] == "0" else 99 if match else None
    if "tpu" in word:
        return "vllm-tpu"
    if "xpu" in word or "intel" in word:
        return "vllm-xpu"
    modern = minor >= 8 if minor is not None else year >= 2025.1
    if modern:
        return "vllm"
    if "rocm" in word:
        return "vllm-rocm"
    if minor is not None:
        return "vllm-2025" if minor >= 6 else "vllm-2024" if minor >= 3 else "vllm-2023"
    return "vllm-2023" if year < 2024 else "vllm-2024" if year < 2024.7 else "vllm-2025"


def weight_format(text: object) -> str:
    """Read the format of the weights; what is not stated is bf16.

    >>> weight_format("gguf-Q4_K_M"), weight_format("w4a16"), weight_format("fp4"), weight_format(None)
    ('gguf', 'int4', 'nvfp4', 'bf16')
    """
    word = str(text or "").lower().replace("-bit", "bit").replace(" ", "")
    return wording.signed("format", word) or "bf16"


def cache_format(text: object) -> str:
    """Read the precision of the cache; what is not stated is left to the engine.

    >>> cache_format("fp8_e4m3"), cache_format("fp16"), cache_format("")
    ('fp8', 'fp16', 'auto')
    """
    word = str(text or "").lower()
    if word in ("", "nan", "auto", "none"):
        return "auto"
    found = weight_format(word)
    return {"nvfp4": "nvfp4", "mxfp4": "nvfp4", "w8a16": "int8", "gguf": "auto"}.get(found, found)


def scenario(text: object, batch: float | None, rate: float | None, notes: str) -> str:
    """Read how requests arrive: see SCENARIOS.

    >>> scenario("fixed-concurrency", 32, None, ""), scenario("offline-max-throughput", None, None, "")
    ('steady', 'saturated')
    """
    word = str(text or "").lower()
    if "prefill" in word:
        return "prompt"
    if "pool" in word or ("decode" in word and "disagg" not in word):
        return "pool"
    if "single" in word or (batch == 1 and "server" not in word and "offline" not in word):
        return "single"
    if "batch" in word or "decode only" in notes.lower():
        return "batch"
    if "offline" in word or "throughput" in word:
        return "burst" if batch else "saturated"
    if batch:
        return "steady"
    return "rated" if rate else "saturated"


SERVED_SIGNS = (
    r"bench serve|benchmark_serving|bench_serving|http|openai|guidellm|llmperf|locust|default (flags|settings)"
)
TUNED_SIGNS = r"mlperf|max_num_seqs ?=|max-num-seqs|trtllm-bench|submission|vendor"


def server(stated: object, words: str, kind: str) -> str:
    """Read how a model is served: offline, by a tuned server, or by one as it comes.

    Benchmarks that drive a server and name no setting ran it as it comes; what runs alone or in fixed batches has none.

    >>> server("", "1000 requests (vllm bench serve, rate inf)", "burst"), server("", "fixed-batch", "batch")
    ('default', 'offline')
    >>> server("", "benchmark_serving, max_num_seqs=512", "burst"), server("default", "", "steady")
    ('tuned', 'default')
    """
    word = str(stated or "").strip().lower()
    if word in SERVERS:
        return word
    lowered = re.sub(r"(no|without a?) ?server", "offline", words.lower())
    if re.search(SERVED_SIGNS, lowered) and not re.search(TUNED_SIGNS, lowered):
        return "default"
    return "offline" if kind in ("single", "batch", "prompt", "pool") and "server" not in lowered else "tuned"


def varied(notes: str) -> bool:
    """Tell whether requests are of a conversation set, whose outputs differ, rather than of one length.

    >>> varied("1000 requests all at once; ShareGPT"), varied("random lengths fixed")
    (True, False)
    """
    return re.search(r"sharegpt|open-?orca|lmsys|conversation|burstgpt|wildchat", notes.lower()) is not None


def lengths(prompt: float | None, output: float | None, kind: str, notes: str) -> tuple[float, float, bool]:
    """Return prompt and output tokens, and whether both were stated; known data sets stand in for what is missing."""
    usual = map(float, wording.signed("lengths", notes.lower()).split() or DEFAULT_TOKENS)
    prompt_tokens, output_tokens = usual
    if kind == "single":
        prompt_tokens = SINGLE_PROMPT_TOKENS
    if kind == "pool":
        output_tokens = 1.0  # the stated prompt is what the cache holds
    stated = prompt is not None and (output is not None or kind == "prompt")
    return prompt_tokens if prompt is None else prompt, output_tokens if output is None else output, stated


OFFLINE_OUTPUT_TOKENS = 4e6  # an assumption: what a benchmark's requests generate together, within the range it states


def requests(notes: str, output_tokens: float) -> float | None:
    """Read how many requests a benchmark sends; of a stated range, more where outputs are short.

    >>> requests("3000 ShareGPT prompts at rate inf", 200.0), requests("requests 1000-30000", 4096.0)
    (3000.0, 1000.0)
    """
    span = re.search(r"requests (\d+)-(\d+)", notes)
    if span:
        return min(max(OFFLINE_OUTPUT_TOKENS / output_tokens, float(span[1])), float(span[2]))
    match = re.search(r"\b(\d+) (?:ShareGPT )?(?:requests|prompts)\b", notes)
    return float(match[1]) if match else None


ACCEPTANCE = 0.7  # probability that a drafted token is kept, where a row says only that tokens are drafted: assumed


def drafted(notes: str) -> int:
    """Read how many tokens are drafted per step: "MTP speculative decoding, 3 draft layers".

    >>> drafted("MTP speculative decoding, 3 draft layers"), drafted("MTP use not stated")
    (3, 0)
    """
    match = re.search(r"(?:speculative decoding|mtp)\W{1,3}(?:with )?(\d+) (?:draft|layers|tokens)", notes.lower())
    return int(match[1]) if match else 0


def prefix_hit(notes: str) -> float:
    """Read the share of prompt tokens that a cache held: "incl. 56.3% on-disk KV cache hits".

    >>> prefix_hit("INPUT tokens incl. 56.3% on-disk KV cache hits"), prefix_hit("no cache hits")
    (0.563, 0.0)
    """
    match = re.search(r"(?<!\d)(\d+(?:\.\d+)?)\s*%[^;,.]{0,30}cache hit", notes)
    return min(float(match[1]) / 100, 0.99) if match else 0.0


@dataclass(frozen=True)
class Spread:
    """Degrees of parallelism of one replica, how many replicas there are, and pools of a disaggregated deployment."""

    tensor: int
    data: int
    pipeline: int
    expert: int
    replicas: int
    prompt_workers: int
    decode_workers: int
    stated: bool


def spread(row: "dict[str, object] | object", gpus: int, heads: int, moe: bool, notes: str) -> Spread:
    """Read the layout of a row, repairing what cannot be.

    Benchmark logs often state tensor and expert (or data) degrees that name the same accelerators twice; their product
    is then the square of the real count. Degrees that do not divide the heads of a mixture mean experts spread wide.
    Attention data parallel stands in the notes.
    """
    get = row.get if isinstance(row, dict) else getattr(row, "get")  # noqa: B009
    tensor, pipeline = wording.count(get("tp")), wording.count(get("pp")) or 1
    expert = wording.count(get("ep")) or 1
    data = _count_in(r"attention data parallel\s+(\d+)", notes) or 1
    expert_tensor = _count_in(r"moe tp\s+(\d+)", notes)
    stated = tensor is not None or expert > 1
    if tensor is None and moe and expert > 1:
        tensor, data = 1, max(1, gpus // pipeline)
    tensor = tensor or max(1, gpus // pipeline)
    root = round(gpus**0.5)
    if expert > 1 and root * root == gpus and expert_tensor == expert == root:
        gpus, tensor, data = root, (1 if data > 1 else root), (root if data > 1 else 1)
    elif data > 1 and tensor == data == root and root * root == gpus and expert == gpus:
        gpus, tensor, data, expert = root, root, 1, root
    if (
        moe
        and data == 1
        and tensor > 1
        and re.search(r"(?<!no )(?<!without )(attention[- ]dp\b|dp attention)", notes.lower())
    ):
        tensor, data = 1, tensor
    if moe and tensor > 1 and heads % tensor:
        tensor, data = 1, tensor
    size = tensor * data * pipeline
    replicas = gpus // size if size < gpus and gpus % size == 0 else 1
    workers = re.search(r"(?<!\d)(\d+) prefill \+ (\d+) decode", notes)
    return Spread(
        tensor, data, pipeline, expert, replicas, int(workers[1]) if workers else 0, int(workers[2]) if workers else 0,
        stated,
    )  # fmt: skip


def _count_in(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None
