"""Reading the cells of published tables: numbers, flags, and names that a table of signs knows."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any

from msgspec import Struct

from gpucost.errors import UsageError
from gpucost.gate import beside, shown
from gpucost.physics.software import decimal_year
from gpucost.units import without_commas

# --- Reading the words of published tables: sharding, precision, recomputation, networks, and numbers that may be
# missing.
#
# Rows come from many hands. Whatever a column says is read as far as it can be; what it does not say stays None.

MOST_COUNTED = 1e9  # of accelerators, layers, tokens of a sequence
_MISSING = ("", "nan", "none", "null", "n/a", "na", "<na>", "-", "–", "?", "unknown", "not stated")
_MOST = 1e18  # of any figure of a table; a long run trains on 1e14 tokens
_YES = ("flash", "sdpa", "on", "enabled")
_SIGNED = {"precision": "precision", "weight_precision": "format", "kv_precision": "format"}  # and its kind of signs


def signs() -> list[list[str]]:
    """Return the table of signs: of which kind, what is looked for, in its order, and what it means."""
    return [list(row) for row in beside(__file__, "signs")[1:]]


def signed(of: str, text: str) -> str:
    """Return what the first sign of a kind that stands in some words means; nothing where none does."""
    return next((meaning for kind, sign, meaning in beside(__file__, "signs")[1:] if kind == of and sign in text), "")


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
    for column, (understood, replacement) in _READERS.items():
        word = str(row.get(column)).strip().lower()
        if not (missing(word) or understood(word)):
            end = f": taken as {replacement}" if replacement else ""
            notes.append(f"{column} {shown(row[column])} is not known{end}")
    return notes


def _is_flag(word: str) -> bool:
    return word.startswith((*"yt1nf0", "off", "disabled", "eager", *_YES))


def _is_task(word: str) -> bool:
    return any(part in word for part in ("train", "tun", "sft", "lora", "peft", "adapter", "full"))


def _is_sharding(word: str) -> bool:
    if sharding(word) is not None or word.startswith(("no", "off")):
        return True
    return any(part in word for part in ("shard", "optimizer", "ddp"))


def _is_recompute(word: str) -> bool:
    begins = (*"nf0yt1", "sel", "partial", "min", "all", "every", "block", "on", "off")
    return word.startswith(begins) or "recomp" in word or "checkp" in word


def _is_scenario(word: str) -> bool:
    scenarios = ("prefill", "pool", "decode", "single", "batch", "offline", "throughput", "server", "concurren")
    return any(part in word for part in (*scenarios, "interactive", "steady"))


def _is_signed(column: str, word: str) -> bool:
    return word == "auto" or bool(signed(_SIGNED[column], word.replace("-bit", "bit").replace(" ", "")))


# what understands a column, and what other words are taken as
_READERS: dict[str, tuple[Callable[[str], bool], str]] = {
    **{column: (partial(_is_signed, column), "bf16") for column in _SIGNED},
    "task": (_is_task, "the training of all weights"),
    "zero_stage": (_is_sharding, "the software's usual one"),
    "activation_recompute": (_is_recompute, "full"),
    "scenario": (_is_scenario, ""),
    **dict.fromkeys(("flash_attention", "gated_mlp", "compiled", "loss_chunk_recompute", "core"), (_is_flag, "no")),
}


def year(day: object, default: float, notes: list[str]) -> float:
    """Return the year of a day as a number, refuse a day that no calendar has, and note one that cannot be read."""
    match = re.match(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", str(day).strip())
    if match is None:
        if not missing(day):
            notes.append(f"as_of {shown(day)} names no year first: taken as {default:.1f}")
        return default
    try:
        date(*(int(part or 1) for part in match.groups()))
    except ValueError:
        raise UsageError(f"as_of is {shown(day)}, no day. Write it as YYYY-MM-DD, YYYY-MM or YYYY.") from None
    return decimal_year(match[0], default)


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
    if "grad_op" in word:  # PyTorch's SHARD_GRAD_OP: gradients and states, the weights stay whole
        return 2
    if "fsdp" in word or "hsdp" in word or "full" in word:
        return 3
    return 1 if "distributed optimizer" in word or "zero" in word else None


def hybrid(text: object) -> bool:
    """Return whether a sharding is a hybrid one: shards within a node, copies across nodes.

    >>> hybrid("3 (HSDP)"), hybrid("FSDP hybrid"), hybrid("HYBRID_SHARD"), hybrid("3 (FSDP)"), hybrid(None)
    (True, True, True, False, False)
    """
    return re.search("hsdp|hybrid", "" if text is None else str(text).lower()) is not None


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
    # "no", "0", "false"; whatever else is said of it, every block is computed again
    return "none" if word.startswith(("n", "0", "f", "off")) and not word.startswith("full") else "full"


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


# --- Reading the words of published serving tables: engines and their age, formats, scenarios, data sets, layouts.
#
# `signs.csv` names what is looked for, in its order; its `lengths` are mean prompts and outputs of known request
# sets, ShareGPT as vLLM's benchmark filters it, MLPerf Inference's data sets as its rules list them.


_DEFAULT_TOKENS = (512.0, 256.0)  # of a prompt and an output where neither they nor a known request set is named
_SINGLE_PROMPT_TOKENS = 8.0  # benchmarks of one stream start from a few words

SCENARIOS = ("single", "prompt", "batch", "steady", "burst", "saturated", "rated", "pool")


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
    form = weight_format(word)
    # engines keep a cache in 8 or 4 bits by one format each; GGUF says nothing of it
    return {"nvfp4": "nvfp4", "mxfp4": "nvfp4", "w8a16": "int8", "gguf": "auto"}.get(form, form)


def lengths(prompt: float | None, output: float | None, kind: str, request_set: str) -> tuple[float, float, bool]:
    """Return prompt and output tokens, and whether both were stated; known data sets stand in for what is missing."""
    usual = map(float, signed("lengths", request_set).split() or _DEFAULT_TOKENS)
    prompt_tokens, output_tokens = usual
    if kind == "single":
        prompt_tokens = _SINGLE_PROMPT_TOKENS
    if kind == "pool":
        output_tokens = 1.0  # the stated prompt is what the cache holds
    stated = prompt is not None and (output is not None or kind == "prompt")
    return prompt_tokens if prompt is None else prompt, output_tokens if output is None else output, stated


ACCEPTANCE = 0.7  # probability that a drafted token is kept, where a row says only that tokens are drafted: assumed


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


def spread(row: Mapping[str, Any], gpus: int, heads: int, moe: bool) -> Spread:
    """Read the layout of a row, repairing what cannot be.

    Benchmark logs often state tensor and expert (or data) degrees that name the same accelerators twice; their product
    is then the square of the real count. Degrees that do not divide the heads of a mixture mean experts spread wide.
    """
    tensor, pipeline = count(row.get("tp")), count(row.get("pp")) or 1
    expert = count(row.get("ep")) or 1
    data = count(row.get("attention_data")) or 1
    expert_tensor = count(row.get("expert_tensor"))
    stated = tensor is not None or expert > 1
    if tensor is None and moe and expert > 1:
        tensor, data = 1, max(1, gpus // pipeline)
    tensor = tensor or max(1, gpus // pipeline)
    # tensor × expert (or data) degrees that name the same accelerators twice: only their root exists
    root = round(gpus**0.5)
    if expert > 1 and root * root == gpus and expert_tensor == expert == root:
        gpus, tensor, data = root, (1 if data > 1 else root), (root if data > 1 else 1)
    elif data > 1 and tensor == data == root and root * root == gpus and expert == gpus:
        gpus, tensor, data, expert = root, root, 1, root
    # experts spread over all, attention on each by itself: as stated, or as heads that do not divide show
    if moe and data == 1 and tensor > 1 and flag(row.get("attention_spread")):
        tensor, data = 1, tensor
    if moe and tensor > 1 and heads % tensor:
        tensor, data = 1, tensor
    # what a replica leaves over are more replicas of it
    size = tensor * data * pipeline
    replicas = gpus // size if size < gpus and gpus % size == 0 else 1
    return Spread(
        tensor,
        data,
        pipeline,
        expert,
        replicas,
        count(row.get("prompt_workers")) or 0,
        count(row.get("decode_workers")) or 0,
        stated,
    )


def attends_as_library(text: str) -> bool:
    """Tell whether words name attention as Hugging Face writes it for want of a kernel, which it calls eager.

    >>> attends_as_library("transformers 5.17, eager attention"), attends_as_library("plain PyTorch, eager mode")
    (True, False)
    """
    return re.search(r"attn_implementation\W{0,3}eager|eager attention", text.lower()) is not None
