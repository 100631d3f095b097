"""Reading the words of published tables: sharding, precision, recomputation, networks, and numbers that may be missing.

Rows come from many hands. Whatever a column says is read as far as it can be; what it does not say stays None.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from gpucost.errors import UsageError
from gpucost.gate import beside, shown
from gpucost.physics.software import decimal_year
from gpucost.units import without_commas

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
    if re.search(r"deep-?ep|hybrid-?ep|flex dispatcher", word):
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
