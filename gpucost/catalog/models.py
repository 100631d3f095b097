"""What the tables say of models: parameters counted and published, cache and weights in bytes, licences."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from gpucost.physics.blocks import cache_values, state_values
from gpucost.physics.serving.cases import published_bytes
from gpucost.physics.transformer import active_parameters, stack, total_parameters
from gpucost.types import Architecture

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_NOT_SHOWN = ("name", "blocks", "stored_bytes", "mixer_bytes_each", "warnings")


def _licence_of(licences: Sequence[Mapping[str, Any]], model: str) -> str | None:
    """Return the licence of a model by the longest beginning of its name, in whole parts; None is not known.

    >>> known = [{"begins": "a-3", "licence": "MIT"}, {"begins": "a-3-70b", "licence": None}]
    >>> _licence_of(known, "a-3-8b"), _licence_of(known, "a-3-70b-chat"), _licence_of(known, "a-3.1-8b")
    ('MIT', None, None)
    """
    alike = [row for row in licences if f"{model}-".startswith(f"{row['begins']}-")]
    longest: Mapping[str, Any] = max(alike, key=lambda row: len(row["begins"]), default={})
    return longest.get("licence")


def model_rows(
    catalog: "Catalog", architectures: Sequence[Architecture], context_tokens: int = 8192
) -> list[dict[str, Any]]:
    """Return rows of architectures with their recounted and published parameters, cache and weights.

    Publishers count the active parameters with or without embeddings: where one states a number, it is shown.
    """
    shape = stack(architectures)
    total, active = total_parameters(shape), active_parameters(shape)
    published = {row["id"]: row for row in catalog.rows("llms")}
    licences = list(catalog.rows("licences"))
    rows = []
    for index, item in enumerate(architectures):
        row = published.get(item.name, {})
        counts = {
            "id": item.name,
            "family": item.family,
            "licence": _licence_of(licences, item.name) if row else None,
            "parameters": int(total[index]),
            "active_parameters": int(row.get("published_active_parameters") or active[index]),
            "published_parameters": row.get("published_parameters"),
            "published_active_parameters": row.get("published_active_parameters"),
            "training_tokens": row.get("training_tokens"),
            "context_tokens": context_tokens,
            "kv_cache_bytes": 2 * cache_values(item, context_tokens),  # in 16 bits
            "recurrent_state_bytes": 2 * state_values(item),
            "weight_bytes": int(published_bytes(item)),
            "native_precision": item.native_precision or "bf16",
        }
        dimensions = {key: value for key, value in asdict(item).items() if key not in (*_NOT_SHOWN, *counts)}
        rows.append({**counts, **dimensions})
    return rows
