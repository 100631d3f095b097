"""The architecture that a published row means: a known one, its own dimensions, or one of its size."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.transformer import stack, total_parameters
from gpucost.types import Architecture
from gpucost.validation import wording

Row = Mapping[str, Any]


def find_architecture(row: Row, facts: Catalog, notes: list[str]) -> Architecture:
    """Return the architecture: a known one of that name and depth, else the row's dimensions, else one of its size."""
    name = str(row.get("model") or "model")
    layers, hidden = wording.count(row.get("n_layers")), wording.count(row.get("hidden"))
    try:
        known = facts.architecture(name)
        hybrid = (
            known.linear_layers > 0
        )  # whose blocks hold one mixer each, counted apart by some and together by others
        if (layers is None or known.layers == layers or hybrid) and (hidden is None or known.hidden == hidden):
            return as_stated(row, known)
    except UsageError:
        pass
    total = wording.positive(row.get("params_b")) or size_in_name(name)
    if hidden is None and total is None:
        raise UsageError(f"model {name!r}: neither dimensions nor a parameter count")
    if hidden is None or (layers is None and total is None):
        notes.append(f"model {name!r} synthesised from its size")
        return sized(name, (total or 1.0) * 1e9, wording.positive(row.get("active_params_b")))
    return from_columns(row, name, layers, hidden, total)


STATED = {
    "layers": "n_layers", "hidden": "hidden", "heads": "n_heads", "kv_heads": "n_kv_heads", "ffn_hidden": "ffn_hidden",
    "vocab": "vocab",
}  # fmt: skip


def as_stated(row: Row, known: Architecture) -> Architecture:
    """Return a known dense architecture with the dimensions that the row states, tied as its parameters say."""
    counts = {name: wording.count(row.get(column)) for name, column in STATED.items()}
    gated = wording.flag(row.get("gated_mlp"))
    same = all(value is None or value == getattr(known, name) for name, value in counts.items())
    layers, hidden = counts["layers"], counts["hidden"]
    if not (same and gated in (None, known.gated)) and not known.experts and layers and hidden:
        known = from_columns(row, known.name, layers, hidden, wording.positive(row.get("params_b")))
    stated = wording.positive(row.get("params_b"))
    return known if stated is None else tied_as_counted(known, stated * 1e9)


@lru_cache(maxsize=512)  # many rows are of one model
def tied_as_counted(known: Architecture, parameters: float) -> Architecture:
    """Return an architecture with its embeddings tied or not, whichever comes nearer to a count of parameters."""
    choices = [replace(known, tied_embeddings=tied) for tied in (known.tied_embeddings, not known.tied_embeddings)]
    distance = [abs(math.log(counted / parameters)) for counted in total_parameters(stack(choices)).tolist()]
    return choices[distance.index(min(distance))]


def from_columns(row: Row, name: str, layers: int | None, hidden: int, total: float | None) -> Architecture:
    """Build an architecture from the dimensions that a row states."""
    gated = wording.flag(row.get("gated_mlp"))
    ffn = wording.count(row.get("ffn_hidden")) or (4 * hidden if not gated else round(hidden * 3.5))
    heads = wording.count(row.get("n_heads")) or max(1, round(hidden / 128))
    kv_heads = wording.count(row.get("n_kv_heads")) or heads
    vocab = wording.count(row.get("vocab")) or 51_200
    gated = (ffn != 4 * hidden) if gated is None else gated
    if layers is None:
        per_layer = hidden * (2 * hidden + 2 * hidden * kv_heads / heads + (3 if gated else 2) * ffn)
        layers = max(1, round(((total or 1.0) * 1e9 - vocab * hidden) / per_layer))
    experts = wording.count(row.get("n_experts")) or 0
    return Architecture(
        name=name, family="", layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads,
        head_dim=max(1, round(hidden / heads)), ffn_hidden=0 if experts else ffn, gated=gated, vocab=vocab,
        tied_embeddings=not gated, experts=experts,
        experts_per_token=wording.count(row.get("moe_topk")) or min(2, experts),
        expert_ffn_hidden=(wording.count(row.get("moe_ffn_hidden")) or ffn) if experts else 0,
        attention="mha" if kv_heads == heads else "gqa", norm="rms" if gated else "ln", status="given",
    )  # fmt: skip


def size_in_name(name: str) -> float | None:
    """Read billions of parameters from a name.

    >>> size_in_name("Qwen3-30B-A3B"), size_in_name("GPT2-124M"), size_in_name("Falcon")
    (30.0, 0.124, None)
    """
    match = re.search(r"(?<!\d)(\d+(?:\.\d+)?)\s*([bBmMtT])(?![a-zA-Z0-9])", name)
    return float(match[1]) * {"b": 1.0, "m": 1e-3, "t": 1e3}[match[2].lower()] if match else None


def sized(name: str, parameters: float, active_b: float | None) -> Architecture:
    """Synthesise a dense transformer of a parameter count: 128 wide per layer, 12·h² per layer (arXiv:2001.08361)."""
    used = min(parameters, active_b * 1e9) if active_b else parameters
    layers = max(2, round((used / (12 * 128**2)) ** (1 / 3)))
    hidden = max(128, 128 * round(math.sqrt(used / (12 * layers)) / 128))
    stated = {"n_layers": layers, "hidden": hidden, "n_heads": max(1, hidden // 128), "gated_mlp": "n"}
    return replace(from_columns(stated, name, layers, hidden, None), status="synthesised")
