"""Reading the words of published tables: formats, methods, software, engines and how requests arrive."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from msgspec import Struct

from gpucost.errors import UsageError
from gpucost.gate import beside, shown
from gpucost.physics.serving.efficiency import SERVERS
from gpucost.physics.software import decimal_year
from gpucost.units import without_commas

# --- Reading the words of published tables: sharding, precision, recomputation, networks, and numbers that may be
# missing.
#
# Rows come from many hands. Whatever a column says is read as far as it can be; what it does not say stays None.

MOST_COUNTED = 1e9  # of accelerators, layers, tokens of a sequence
_MISSING = ("", "nan", "none", "null", "n/a", "na", "<na>", "-", "–", "?", "unknown", "not stated")
_MOST = 1e18  # of any figure of a table; a long run trains on 1e14 tokens
# "8x ConnectX-7 IB NDR 400Gb/s", "1600 Gbps"; a capital B would be bytes, and a scale-up link
_GBIT = re.compile(
    r"(?:(?<!\d)(\d+)\s*[xX×][^,;/]{0,40}?\(?)?(?<![\d.])(\d+(?:\.\d+)?)\s*[gG]b(?:it)?(?![a-zA-Z]*[Bb]yte)"
)
_YES = ("flash", "sdpa", "on", "enabled")
_FLAG = rf"^([yt1nf0]|off|disabled|eager|{'|'.join(_YES)})"
_KNOWN = {  # words of a column that are understood, and what any others are taken as
    "task": ("train|tun|sft|lora|peft|adapter|full", "the training of all weights"),
    "zero_stage": (r"zero|^[0-3](\D|$)|grad_op|fsdp|full|shard|optimizer|ddp|^(no|off)", "the software's usual one"),
    "activation_recompute": ("^(sel|partial|min|full|all|every|block|on|[nf0yt1]|off)|recomp|checkp", "full"),
    "scenario": ("prefill|pool|decode|single|batch|offline|throughput|server|concurren|interactive|steady", ""),
    **dict.fromkeys(("flash_attention", "gated_mlp", "compiled", "loss_chunk_recompute", "core"), (_FLAG, "no")),
}
_SIGNED = {"precision": "precision", "weight_precision": "format", "kv_precision": "format"}  # and its kind of signs
_LIMIT_W = re.compile(
    r"(?:limit\w{0,12}|capped|tdp)\D{0,20}(\d{3,4})\s?W\b|[A-Z]\w{0,30}\d-(\d{3,4})\s?W\b", re.IGNORECASE
)


def signed(of: str, words: str) -> str:
    """Return what the first sign of a kind that stands in some words means; nothing where none does."""
    return next((meaning for kind, sign, meaning in beside(__file__, "signs")[1:] if kind == of and sign in words), "")


def number(text: object) -> float | None:
    """Read a number, or None for an empty or unreadable cell, or one beyond any count.

    >>> number("8.0"), number(""), number("n/a"), number("1,024"), number("8,5"), number("1e308")
    (8.0, None, None, 1024.0, None, None)
    """
    try:
        value = float(without_commas(str(text).strip(), "a figure"))
    except (ValueError, UsageError):
        return None
    return value if abs(value) <= _MOST else None


def positive(text: object) -> float | None:
    """Read a positive number, or None; what is next to nothing was not measured.

    >>> positive("8.03"), positive("0"), positive(-1), positive("1e-308")
    (8.03, None, None, None)
    """
    value = number(text)
    return value if value is not None and value >= 1 / _MOST else None


def count(text: object) -> int | None:
    """Read a positive whole number below a billion, or None."""
    value = number(text)
    return round(value) if value is not None and 1 <= value < MOST_COUNTED else None


def missing(text: object) -> bool:
    """Tell whether a cell says nothing.

    >>> missing(None), missing("n/a"), missing("Not stated"), missing(0), missing("abc")
    (True, True, True, False, False)
    """
    return str("" if text is None else text).strip().lower() in _MISSING


def unknown(row: Mapping[str, Any]) -> list[str]:
    """Return a note for each word of a row that is not understood, with what it is taken as.

    >>> unknown({"precision": "zz", "task": "sft", "core": "y", "kv_precision": "auto"})
    ["precision 'zz' is not known: taken as bf16"]
    """
    notes = []
    for column in (*_SIGNED, *_KNOWN):
        word = str(row.get(column)).strip().lower()
        pattern, taken = _KNOWN.get(column, ("^auto$", "bf16"))
        sign = column in _SIGNED and signed(_SIGNED[column], word.replace("-bit", "bit").replace(" ", ""))
        if not (missing(word) or sign or re.search(pattern, word)):
            notes.append(f"{column} {shown(row[column])} is not known" + f": taken as {taken}" * bool(taken))
    return notes


def year(day: object, default: float, notes: list[str]) -> float:
    """Return the year of a day as a number, refuse a day that no calendar has, and note one that cannot be read."""
    found = re.match(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", str(day).strip())
    if found is None:
        if not missing(day):
            notes.append(f"as_of {shown(day)} names no year first: taken as {default:.1f}")
        return default
    try:
        date(*(int(part or 1) for part in found.groups()))
    except ValueError:
        raise UsageError(f"as_of is {shown(day)}, no day. Write it as YYYY-MM-DD, YYYY-MM or YYYY.") from None
    return decimal_year(found[0], default)


def flag(text: object) -> bool | None:
    """Read yes or no in its many spellings, or None.

    >>> flag("y (cuDNN)"), flag("n"), flag("1.0"), flag("")
    (True, False, True, None)
    """
    word = ("" if text is None else str(text)).strip().lower()
    if not word or word == "nan":
        return None
    return word[0] in "yt1" or word.startswith(_YES)


def sharding(text: object) -> int | None:
    """Read a sharding stage: 0 to 3, FSDP, distributed optimizer.

    >>> sharding("3 (FSDP FULL_SHARD)"), sharding("1 (distributed optimizer)"), sharding("FSDP (zero-2-like)")
    (3, 1, 2)
    >>> sharding(0), sharding(""), sharding("ZeRO-2")
    (0, None, 2)
    """
    word = ("" if text is None else str(text)).strip().lower()
    if match := re.search(r"zero[-_ ]?(?:stage)?[-_ ]?([0-3])", word):
        return int(match[1])
    if match := re.match(r"([0-3])(?:\.0)?(?:\D|$)", word):
        return int(match[1])
    if "grad_op" in word:
        return 2
    if "fsdp" in word or "full" in word:
        return 3
    return 1 if "distributed optimizer" in word or "zero" in word else None


def precision(text: object) -> str:
    """Read a precision of the matrix products; what is not stated is bf16.

    >>> precision("fp16/bf16 (not stated)"), precision("mxfp8"), precision("NVFP4"), precision("int8")
    ('bf16', 'fp8', 'fp4', 'int8')
    """
    return signed("precision", str(text or "").lower()) or "bf16"


def recompute(text: object) -> str | None:
    """Read how activations are recomputed: none, selective, full, or None where nothing is said.

    >>> recompute("selective (per-op)"), recompute("full"), recompute("n"), recompute("")
    ('selective', 'full', 'none', None)
    """
    word = ("" if text is None else str(text)).strip().lower()
    if not word or word == "nan":
        return None
    if word.startswith(("sel", "partial", "min")):
        return "selective"
    return "none" if word.startswith(("n", "0", "f", "off")) and not word.startswith("full") else "full"


def says_variant(text: object) -> bool:
    """Tell whether words name the H100 that Meta runs: HBM2e, 500 W.

    >>> says_variant("8xH100 (Meta H100 variant likely)"), says_variant("H100 96GB HBM2e"), says_variant("H100 80GB")
    (True, True, False)
    """
    word = str(text or "").lower()
    return re.search(r"\bh100\b", word) is not None and re.search(r"meta h100|hbm2e|\b96 ?gb\b", word) is not None


def is_power_limited(text: object) -> bool:
    """Tell whether words say that an accelerator runs below its full power, without saying how far.

    >>> is_power_limited("8x POWER-LIMITED B200"), is_power_limited("not power-limited"), is_power_limited("B200")
    (True, False, False)
    """
    word = str(text or "").lower()
    return re.search(r"(?<!not )(?<!un)(power[- ](limited|capped)|(lower|reduced) (tdp|power))", word) is not None


def power_limit_w(text: object) -> float | None:
    """Read the power limit of an accelerator, or None where none is named.

    >>> power_limit_w("H100 SXM, power limit 500 W"), power_limit_w("8x H100-700W"), power_limit_w("400 W idle")
    (500.0, 700.0, None)
    """
    match = _LIMIT_W.search(str(text or ""))
    return float(match[1] or match[2]) if match else None


def local_batch(text: object) -> int | None:
    """Read the sequences that each data-parallel rank takes in a step, or None where none are named.

    >>> local_batch("torchtitan, local batch size 2"), local_batch("local_batch_size=1"), local_batch("batch 512")
    (2, 1, None)
    """
    match = re.search(
        r"(?:local|per[- ](?:gpu|device|rank))[ _-]*batch(?:[ _-]*size)?\W{0,3}(?:of )?(\d+)", str(text or "").lower()
    )
    return int(match[1]) if match else None


def offload(text: object) -> str:
    """Read what host memory takes: nothing, the optimizer's states, or the weights too.

    >>> offload("ZeRO 3 + Full Offload"), offload("optimizer offload to CPU"), offload("no offload"), offload("")
    ('all', 'states', 'none', 'none')
    """
    word = str(text or "").lower()
    if re.search(r"offload", word) is None or re.search(r"(no|without)[ -](cpu )?offload", word):
        return "none"
    return "all" if re.search(r"(full|param\w{0,12}|weights?)[ -]offload", word) else "states"


def method(task: object, base: object = None) -> str:
    """Read the kind of training: full (pretraining and supervised tuning alike), lora or qlora.

    >>> method("lora"), method("sft"), method("lora", "nf4")
    ('lora', 'full', 'qlora')
    """
    word = str(task or "").strip().lower()
    quantised = re.search(r"nf4|int4|int8|4-?bit|8-?bit|fp4", str(base or "").lower()) is not None
    if "qlora" in word or ("lora" in word and quantised):
        return "qlora"
    return "lora" if "lora" in word or "peft" in word or "adapter" in word else "full"


def scaleout_gb_per_s(text: object, node_gpus: float) -> float | None:
    """Read the network between nodes from words, in GB/s per accelerator and direction; None where none is stated.

    "N x R Gb/s" counts per node; a bare rate counts per node unless "per GPU" stands beside it.

    >>> scaleout_gb_per_s("1600 Gbps/node RoCE", 8), scaleout_gb_per_s("8x400Gb/s IB NDR per node", 8)
    (25.0, 50.0)
    >>> scaleout_gb_per_s("RoCE 400Gb/s per GPU", 8), scaleout_gb_per_s("NVLink single node", 8)
    (50.0, None)
    >>> scaleout_gb_per_s("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 8)
    50.0
    """
    word = re.sub(r"(management|storage\+?\w{0,12}):[^,]*(,|$)", "", str(text or ""), flags=re.IGNORECASE)
    best = None
    for match in _GBIT.finditer(word):
        cards = int(match[1]) if match[1] else 1
        per_node = cards * float(match[2]) / 8
        rate = float(match[2]) / 8 if "per gpu" in word.lower() and not match[1] else per_node / node_gpus
        best = rate if best is None else max(best, rate)
    if best is None:
        lowered = word.lower()
        if re.search(r"\bndr\b", lowered):
            return 50.0
        if re.search(r"\bhdr\b", lowered):
            return 25.0
    return best


def dispatcher(text: object) -> int:
    """Read how tokens are sent to their experts: 0 all-to-all, 1 by a fused kernel, -1 where nothing is said.

    >>> dispatcher("FSDP2, Transformer Engine, DeepEP"), dispatcher("all-to-all dispatcher"), dispatcher("NeMo 25.09")
    (1, 0, -1)
    """
    word = str(text or "").lower()
    if re.search(r"deep-?ep|hybrid-?ep|flex dispatcher|hai-?llm", word):
        return 1
    return (
        0
        if re.search(r"(all-?to-?all|a2a|allgather)[ -]dispatcher|dispatcher[ =:]+(alltoall|all-to-all)", word)
        else -1
    )


def has_flexible_attention(text: object) -> bool:
    """Tell whether a stack has attention kernels that take learned sinks: PyTorch's flex attention, before others.

    >>> has_flexible_attention("NeMo AutoModel (PyTorch FSDP2)"), has_flexible_attention("Megatron-Bridge/NeMo 25.09")
    (True, False)
    """
    return re.search(r"automodel|torchtitan|flex[ _-]?attention", str(text or "").lower()) is not None


# --- Reading the words of published serving tables: engines and their age, formats, scenarios, data sets, layouts.
#
# `signs.csv` names what is looked for, in its order; its `lengths` are mean prompts and outputs of known request
# sets, ShareGPT as vLLM's benchmark filters it, MLPerf Inference's data sets as its rules list them.

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
    if name := signed("engine", word):
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
    return signed("format", word) or "bf16"


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
    usual = map(float, signed("lengths", notes.lower()).split() or DEFAULT_TOKENS)
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


class Spread(Struct, frozen=True):
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
    tensor, pipeline = count(get("tp")), count(get("pp")) or 1
    expert = count(get("ep")) or 1
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
        tensor,
        data,
        pipeline,
        expert,
        replicas,
        int(workers[1]) if workers else 0,
        int(workers[2]) if workers else 0,
        stated,
    )


def _count_in(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None
