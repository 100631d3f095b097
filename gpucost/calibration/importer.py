"""From the words of a published row to columns: read once, when a row is entered.

Rows come from many hands, and what matters often stands in a note: a power limit, the requests of a benchmark, how
tokens reach their experts. `entered` fills the columns that a row leaves empty with what its words say, so that
predictions read columns and nothing else. The ledger of first predictions and every file of a user pass here; the
shipped tables were entered once.
"""

import re
from typing import Any

from gpucost.calibration import wording
from gpucost.calibration.record import Row
from gpucost.calibration.training_rows import find_accelerator
from gpucost.calibration.wording import signed
from gpucost.catalog import Catalog
from gpucost.physics.serving.calibration import MOST_CACHED, PREFIX_CACHING
from gpucost.physics.serving.efficiency import SERVERS

_META_H100 = "h100-sxm5-96gb-500w"  # the H100 of HBM2e and 500 W
_LIMITED_SHARE = 0.75  # of its full power that a chip called limited runs at: assumed, as H100 at 500 of 700 W
_QUESTION_TOKENS = 220.0  # of a paragraph of SQuAD with its question and answer: an assumption
_NOTHING_CACHED = (
    r"\brandom(ly)? (lengths|prompts|tokens|token ids|inputs|dataset|data)|no cache hits|(no|without) (a )?prefix cach"
    r"|prefix cach(e|ing) (is )?(off|disabled)|no-enable-prefix-caching|disable-radix-cache"
)
_REPEATED = r"\b(same|identical|repeated) (request|prompt)s?\b|prompts? (is|are|was|were) repeated"
_OFFLINE_OUTPUT_TOKENS = 4e6  # an assumption: what a benchmark's requests generate together, within the range it states
# "8x ConnectX-7 IB NDR 400Gb/s", "1600 Gbps"; a capital B would be bytes, and a scale-up link
_GBIT = re.compile(
    r"(?:(?<!\d)(\d+)\s*[xX×][^,;/]{0,40}?\(?)?(?<![\d.])(\d+(?:\.\d+)?)\s*[gG]b(?:it)?(?![a-zA-Z]*[Bb]yte)"
)
_LIMIT_W = re.compile(
    r"(?:limit\w{0,12}|capped|tdp)\D{0,20}(\d{3,4})\s?W\b|[A-Z]\w{0,30}\d-(\d{3,4})\s?W\b", re.IGNORECASE
)
_PLAIN_SIGNS = ("plain", "cuda graph", "cudagraph", "pytorch", "torch", "own", "bare")
_EARLY_SIGNS = ("fastgen", "deepspeed", "lightllm", "tgi", "text-generation-inference", "fastertransformer")
# Minor versions of vLLM that begin an era, newest first, and about when each came.
_VLLM_MINORS = ((8, 2025.1), (6, 2024.7), (3, 2024.0))
_SERVED_SIGNS = (
    r"bench serve|benchmark_serving|bench_serving|http|openai|guidellm|llmperf|locust|default (flags|settings)"
)
_TUNED_SIGNS = r"mlperf|max_num_seqs ?=|max-num-seqs|trtllm-bench|submission|vendor"


def entered(row: Row, kind: str, facts: Catalog) -> dict[str, Any]:
    """Return a row with the columns filled that its words speak of; what a column states already stands."""
    columns = training_columns(row, facts) if kind == "training" else _serving_columns(row, facts)
    spoken = {
        name: value for name, value in columns.items() if wording.missing(row.get(name)) and value not in (None, "")
    }
    return {**row, **spoken}


# --- Training ------------------------------------------------------------------------------------------------------


def training_columns(row: Row, facts: Catalog) -> dict[str, Any]:
    """Return what the words of a row of training say, by column."""
    gpu_and_notes, notes = f"{row.get('gpu')} {row.get('notes')}", row.get("notes")
    framework = str(row.get("framework") or "")
    software = f"{framework} {notes}"
    # the chip: the H100 of HBM2e, and a power limit in watts or in words
    accelerator = find_accelerator(str(row.get("gpu") or ""), facts, [])
    is_meta_h100 = accelerator.id.startswith("h100-sxm") and _says_meta_h100(gpu_and_notes)
    limit = _power_limit_w(gpu_and_notes)
    if limit is None and _is_power_limited(gpu_and_notes):
        power_w = facts.accelerator(_META_H100).tdp_w if is_meta_h100 else accelerator.tdp_w
        limit = _LIMITED_SHARE * power_w if power_w else None
    # the network: a rate of a node is shared by its accelerators
    interconnect = str(row.get("interconnect") or "")
    node = re.search(r"(?<!\d)(\d+)-GPU node", interconnect)
    node_gpus = int(node[1]) if node else facts.default_system(_META_H100 if is_meta_h100 else accelerator.id).gpus
    # NeMo and its heirs time tuning on SQuAD in packed sequences, and adapt the product of queries, keys and values
    # (NVIDIA/NeMo, scripts/performance and collections/llm/recipes); documents of MLPerf's task fill their sequence.
    stack = f"{framework} {notes}".lower()
    tunes = str(row.get("task") or "") in ("sft", "lora") and "mlperf" not in stack
    questions = tunes and re.search(r"nemo|megatron[-_ ]?bridge", stack) is not None
    is_megatron_deepspeed = "megatron" in framework.lower() and "deepspeed" in framework.lower()
    return {
        "accelerator": _META_H100 if is_meta_h100 else "",
        "power_limit_w": limit,
        "node_gpus": int(node[1]) if node else None,
        # a rack of NVLink is no node: its trays of four have the network cards
        "scaleout_gb_per_s": _scaleout_gb_per_s(interconnect, node_gpus if node_gpus <= 16 else 4),
        # Megatron-DeepSpeed is taken without a fused kernel, whatever else is said of attention
        "flash_attention": "n" if is_megatron_deepspeed or _attends_unfused(software) else "",
        "vp": 1 if re.search(r"no(t| )?-? ?interleav|without interleav", str(notes or "").lower()) else None,
        "dispatcher": dispatcher(software),
        "sinks": "fused" if _has_flexible_attention(framework) else "",
        "local_batch": _local_batch(notes),
        "offload": "" if (host_memory := offload(notes)) == "none" else host_memory,
        "document_tokens": _QUESTION_TOKENS if questions else None,
        "lora_targets": "qkv" if questions else "",
    }


def _attends_unfused(text: str) -> bool:
    """Tell whether words name attention without a fused kernel; PyTorch's deterministic mode leaves masks to none.

    >>> _attends_unfused("transformers 4.49, deterministic algorithms"), _attends_unfused("attn_implementation=eager")
    (True, True)
    >>> _attends_unfused("torchtune, eager mode"), _attends_unfused("attn_implementation sdpa")
    (False, False)
    """
    return wording.attends_as_library(text) or re.search(r"deterministic (algorithms|mode)", text.lower()) is not None


def _power_limit_w(text: object) -> float | None:
    """Read the power limit of an accelerator, or None where none is named.

    >>> _power_limit_w("H100 SXM, power limit 500 W"), _power_limit_w("8x H100-700W"), _power_limit_w("400 W idle")
    (500.0, 700.0, None)
    """
    match = _LIMIT_W.search(str(text or ""))
    return float(match[1] or match[2]) if match else None


def _is_power_limited(text: object) -> bool:
    """Tell whether words say that an accelerator runs below its full power, without saying how far.

    >>> _is_power_limited("8x POWER-LIMITED B200"), _is_power_limited("not power-limited"), _is_power_limited("B200")
    (True, False, False)
    """
    lowered = str(text or "").lower()
    return re.search(r"(?<!not )(?<!un)(power[- ](limited|capped)|(lower|reduced) (tdp|power))", lowered) is not None


def _says_meta_h100(text: object) -> bool:
    """Tell whether words name the H100 that Meta runs: HBM2e, 500 W.

    >>> _says_meta_h100("8xH100 (Meta H100 variant likely)"), _says_meta_h100("H100 96GB HBM2e")
    (True, True)
    >>> _says_meta_h100("H100 80GB")
    False
    """
    lowered = str(text or "").lower()
    return re.search(r"\bh100\b", lowered) is not None and re.search(r"meta h100|hbm2e|\b96 ?gb\b", lowered) is not None


def _local_batch(text: object) -> int | None:
    """Read the sequences that each data-parallel rank takes in a step, or None where none are named.

    >>> _local_batch("torchtitan, local batch size 2"), _local_batch("local_batch_size=1"), _local_batch("batch 512")
    (2, 1, None)
    """
    match = re.search(
        r"(?:local|per[- ](?:gpu|device|rank))[ _-]*batch(?:[ _-]*size)?\W{0,3}(?:of )?(\d+)", str(text or "").lower()
    )
    return int(match[1]) or None if match else None


def offload(text: object) -> str:
    """Read what host memory takes: nothing, the optimizer's states, or the weights too.

    >>> offload("ZeRO 3 + Full Offload"), offload("optimizer offload to CPU"), offload("no offload"), offload("")
    ('all', 'states', 'none', 'none')
    """
    lowered = str(text or "").lower()
    if re.search(r"offload", lowered) is None or re.search(r"(no|without)[ -](cpu )?offload", lowered):
        return "none"
    return "all" if re.search(r"(full|param\w{0,12}|weights?)[ -]offload", lowered) else "states"


def _scaleout_gb_per_s(text: object, node_gpus: float) -> float | None:
    """Read the network between nodes from words, in GB/s per accelerator and direction; None where none is stated.

    "N x R Gb/s" counts per node; a bare rate counts per node unless "per GPU" stands beside it.

    >>> _scaleout_gb_per_s("1600 Gbps/node RoCE", 8), _scaleout_gb_per_s("8x400Gb/s IB NDR per node", 8)
    (25.0, 50.0)
    >>> _scaleout_gb_per_s("RoCE 400Gb/s per GPU", 8), _scaleout_gb_per_s("NVLink single node", 8)
    (50.0, None)
    >>> _scaleout_gb_per_s("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 8)
    50.0
    """
    networks = re.sub(r"(management|storage\+?\w{0,12}):[^,]*(,|$)", "", str(text or ""), flags=re.IGNORECASE)
    # of several rates the fastest: a list names storage and management networks too
    best = None
    for match in _GBIT.finditer(networks):
        cards = int(match[1]) if match[1] else 1
        per_node = cards * float(match[2]) / 8
        each = "per gpu" in networks.lower() and not match[1]
        rate = float(match[2]) / 8 if each else per_node / node_gpus
        best = rate if best is None else max(best, rate)
    if best is None:  # generations of InfiniBand: NDR carries 400 Gb/s, HDR 200, one card for each accelerator
        lowered = networks.lower()
        if re.search(r"\bndr\b", lowered):
            return 50.0
        if re.search(r"\bhdr\b", lowered):
            return 25.0
    return best


def dispatcher(text: object) -> str:
    """Read how tokens are sent to their experts: by plain all-to-all, by a fused kernel, or nothing where it is unsaid.

    >>> dispatcher("FSDP2, Transformer Engine, DeepEP"), dispatcher("all-to-all dispatcher"), dispatcher("NeMo 25.09")
    ('fused', 'alltoall', '')
    """
    lowered = str(text or "").lower()
    if re.search(r"deep-?ep|hybrid-?ep|flex dispatcher|hai-?llm", lowered):
        return "fused"
    plain = re.search(r"(all-?to-?all|a2a|allgather)[ -]dispatcher|dispatcher[ =:]+(alltoall|all-to-all)", lowered)
    return "alltoall" if plain else ""


def _has_flexible_attention(text: object) -> bool:
    """Tell whether a stack has attention kernels that take learned sinks: PyTorch's flex attention, before others.

    >>> _has_flexible_attention("NeMo AutoModel (PyTorch FSDP2)"), _has_flexible_attention("Megatron-Bridge/NeMo 25.09")
    (True, False)
    """
    return re.search(r"automodel|torchtitan|flex[ _-]?attention", str(text or "").lower()) is not None


# --- Serving -------------------------------------------------------------------------------------------------------


def _serving_columns(row: Row, facts: Catalog) -> dict[str, Any]:
    """Return what the words of a row of serving say, by column."""
    notes = str(row.get("notes") or "")
    rate = wording.number(row.get("request_rate"))
    batch = wording.number(row.get("batch_or_concurrency"))
    if batch is not None and batch <= 0:
        batch = None
    name = row.get("engine_class") or engine_class(row, facts)
    load = row.get("load") or scenario(row.get("scenario"), batch, rate, notes)
    if load == "rated" and name == "tuned":  # a submission's server scenario: the highest rate that meets its latency
        load = "saturated"
    # the request set by its sign, of which `wording.lengths` knows the usual lengths
    signs = (sign for kind, sign, _ in wording.signs() if kind == "lengths" and sign in notes.lower())
    request_set = next(signs, "")
    _, output, _ = wording.lengths(None, wording.number(row.get("osl")), load, request_set)
    pools = re.search(r"(?<!\d)(\d+) prefill \+ (\d+) decode", notes)
    spread = re.search(r"(?<!no )(?<!without )(attention[- ]dp\b|dp attention)", notes.lower())
    return {
        "engine_class": "" if name == "unknown" else name,
        "load": load,
        "served_by": server(row.get("served_by"), f"{row.get('scenario')} {row.get('engine')} {notes}", load),
        "request_set": request_set,
        "requests": requests(notes, max(output, 1.0)),
        "varied_lengths": 1 if _varied(notes) else None,
        "decode_only": 1 if re.search(r"decode only|= ?1000 ?/ ?itl", notes.lower()) else None,
        "draft_tokens": drafted(notes) or None,
        "prefix_hit_fraction": prefix_hit(f"{row.get('scenario')} {notes}", keeping=name in PREFIX_CACHING),
        "attention_data": _count_in(r"attention data parallel\s+(\d+)", notes),
        "attention_spread": 1 if spread else None,
        "expert_tensor": _count_in(r"moe tp\s+(\d+)", notes),
        "prompt_workers": int(pools[1]) if pools else None,
        "decode_workers": int(pools[2]) if pools else None,
    }


def engine_class(row: Row, facts: Catalog) -> str:
    """Return the engine of a row by the table of names; a row that describes a bare step has none."""
    accelerator = find_accelerator(str(row.get("gpu") or ""), facts, [])
    # without a day: when a chip's users have it, and no earlier than most of what is published
    year = wording.year(row.get("as_of"), max(accelerator.year + 1.5, 2025.0), [])
    name = engine(row.get("engine"), year)
    if name == "unknown" and _is_bare_step(row.get("scenario"), row.get("notes"), row.get("engine")):
        return "plain"
    return name


def engine(text: object, year: float) -> str:
    """Read an engine and its era; where no version is stated the date decides.

    >>> engine("vLLM 0.7.3", 2026), engine("vllm 0.18.0", 2026), engine("vLLM (ROCm, Nov 2024)", 2024.9)
    ('vllm-2025', 'vllm', 'vllm-rocm')
    >>> engine("TensorRT 10.11, CUDA 12.9", 2025.5), engine("TensorRT-LLM v1.0 (PyTorch backend)", 2025.7)
    ('tuned', 'trtllm')
    """
    lowered = str(text or "").lower()
    lowered = "" if lowered == "nan" else lowered
    if name := signed("engine", lowered):
        return name
    if "vllm" in lowered:
        for sign, name in (("tpu", "vllm-tpu"), ("xpu", "vllm-xpu"), ("intel", "vllm-xpu")):
            if sign in lowered:
                return name
        # the minor version of 0.x, stated or else the one that was current on the day
        match = re.search(r"vllm[-_ /]*(?:(?:tpu|xpu|rocm)[-_ ]*)?v?(\d+)\.(\d+)", lowered)
        if match:
            minor = int(match[2]) if match[1] == "0" else 99  # since 1.0 all are modern
        else:
            stated_year = re.search(r"\b(20\d\d)\b", lowered)
            if stated_year:
                year = float(stated_year[1]) + 0.5  # its middle
            minor = next((minor for minor, since in _VLLM_MINORS if year >= since), 0)
        # its eras: 0.8 made the new scheduler the default; 0.6 and 0.7 hide part of the host's work
        if minor >= 8:
            return "vllm"
        if "rocm" in lowered:
            return "vllm-rocm"
        if minor >= 6:
            return "vllm-2025"
        return "vllm-2024" if minor >= 3 else "vllm-2023"
    if "transformers" in lowered or "huggingface" in lowered or "hf " in lowered:
        return "transformers"
    if any(sign in lowered for sign in _EARLY_SIGNS):
        return "vllm-2024"
    if "eager" in lowered:
        return "eager"
    return "plain" if any(sign in lowered for sign in _PLAIN_SIGNS) else "unknown"


def _is_bare_step(*texts: object) -> bool:
    """Tell whether words describe a decode step on its own rather than an engine that serves requests.

    >>> _is_bare_step("decode-step", ""), _is_bare_step("fixed-concurrency", "arch from public config")
    (True, False)
    """
    lowered = " ".join(str(text or "") for text in texts).lower()
    return re.search(r"decode[- _]?steps?|random weights|micro-?benchmark|bare step|cuda ?graph", lowered) is not None


def scenario(text: object, batch: float | None, rate: float | None, notes: str) -> str:
    """Read how requests arrive: one of `wording.SCENARIOS`.

    >>> scenario("fixed-concurrency", 32, None, ""), scenario("offline-max-throughput", None, None, "")
    ('steady', 'saturated')
    """
    lowered = str(text or "").lower()
    if "prefill" in lowered:
        return "prompt"
    if "pool" in lowered or ("decode" in lowered and "disagg" not in lowered):
        return "pool"
    if "single" in lowered or (batch == 1 and "server" not in lowered and "offline" not in lowered):
        return "single"
    if "batch" in lowered or "decode only" in notes.lower():
        return "batch"
    if "offline" in lowered or "throughput" in lowered:
        return "burst" if batch else "saturated"
    if batch:
        return "steady"
    return "rated" if rate else "saturated"


def server(stated: object, remarks: str, kind: str) -> str:
    """Read how a model is served: offline, by a tuned server, or by one as it comes.

    Benchmarks that drive a server and name no setting ran it as it comes; what runs alone or in fixed batches has none.

    >>> server("", "1000 requests (vllm bench serve, rate inf)", "burst"), server("", "fixed-batch", "batch")
    ('default', 'offline')
    >>> server("", "benchmark_serving, max_num_seqs=512", "burst"), server("default", "", "steady")
    ('tuned', 'default')
    """
    column = str(stated or "").strip().lower()
    if column in SERVERS:
        return column
    lowered = re.sub(r"(no|without a?) ?server", "offline", remarks.lower())
    if re.search(_SERVED_SIGNS, lowered) and not re.search(_TUNED_SIGNS, lowered):
        return "default"
    return "offline" if kind in ("single", "batch", "prompt", "pool") and "server" not in lowered else "tuned"


def _varied(notes: str) -> bool:
    """Tell whether requests are of a conversation set, whose outputs differ, rather than of one length.

    >>> _varied("1000 requests all at once; ShareGPT"), _varied("random lengths fixed")
    (True, False)
    """
    return re.search(r"sharegpt|open-?orca|lmsys|conversation|burstgpt|wildchat", notes.lower()) is not None


def requests(notes: str, output_tokens: float) -> float | None:
    """Read how many requests a benchmark sends; of a stated range, more where outputs are short.

    >>> requests("3000 ShareGPT prompts at rate inf", 200.0), requests("requests 1000-30000", 4096.0)
    (3000.0, 1000.0)
    """
    span = re.search(r"requests (\d+)-(\d+)", notes)
    if span:
        return min(max(_OFFLINE_OUTPUT_TOKENS / output_tokens, float(span[1])), float(span[2]))
    match = re.search(r"\b(\d+) (?:ShareGPT )?(?:requests|prompts)\b", notes)
    return float(match[1]) if match else None


def drafted(notes: str) -> int:
    """Read how many tokens are drafted per step: "MTP speculative decoding, 3 draft layers".

    >>> drafted("MTP speculative decoding, 3 draft layers"), drafted("MTP use not stated")
    (3, 0)
    """
    match = re.search(r"(?:speculative decoding|mtp)\W{1,3}(?:with )?(\d+) (?:draft|layers|tokens)", notes.lower())
    return int(match[1]) if match else 0


def prefix_hit(notes: str, *, keeping: bool) -> float | None:
    """Read the share of prompt tokens that a cache held; None where words leave it open.

    Random prompts share nothing; one prompt sent again and again is found whole where the engine keeps beginnings.

    >>> prefix_hit("INPUT tokens incl. 56.3% on-disk KV cache hits", keeping=True), prefix_hit("ShareGPT", keeping=True)
    (0.563, None)
    >>> [prefix_hit(words, keeping=True) for words in ("random lengths", "no prefix cache", "the same prompt 20 times")]
    [0.0, 0.0, 0.99]
    >>> prefix_hit("the same prompt 20 times", keeping=False)
    0.0
    """
    text = notes.lower()
    if match := re.search(r"(?<!\d)(\d+(?:\.\d+)?)\s*%[^;,.]{0,30}cache hit", text):
        return min(float(match[1]) / 100, MOST_CACHED)
    if re.search(_NOTHING_CACHED, text):
        return 0.0
    if re.search(_REPEATED, text):
        return MOST_CACHED if keeping else 0.0
    return None


def _count_in(pattern: str, text: str) -> int | None:
    """Return the number that follows a pattern; None where the pattern is missing, or the number is zero."""
    match = re.search(pattern, text)
    return int(match[1]) or None if match else None
