"""`gpucost models`: architectures, presets or not, and their parameters recounted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from gpucost.arguments.kinds import MODEL, named, whole
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import Output, columns_of, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog
    from gpucost.types import Architecture

NOT_SHOWN = ("name", "blocks", "stored_bytes", "mixer_bytes_each", "warnings")


@click.command(name="models")
@signature_options
@output_options
def command(
    catalog: "Catalog",
    out: Output,
    name: Annotated[str | None, MODEL, PLACE] = None,
    family: Annotated[str | None, named("NAME", "families"), "Only this family, such as 'Llama 3.1'."] = None,
    context: Annotated[int, whole(1, 1_000_000_000, "TOKENS"), "Tokens of the sequence whose cache is counted."] = 8192,
) -> None:
    """Model architectures. NAME is a preset, a size such as 11b, or the path of a config.json or params.json.

    Parameters are counted from the layers, with the published figures beside them. The cache is that of one sequence
    at 16 bits, without recurrent state; weights are those of the language model in the format of the file. A size
    without a preset becomes a plausible dense architecture with the status `synthesised`. A single match is shown
    line by line.

    \b
    gpucost models llama-3
    gpucost models 11b
    gpucost models ./config.json --context 128000 --format json
    """
    from gpucost.catalog.names import chosen

    architectures = catalog.architectures(name)
    families = () if family is None or name is None else (preset.family for preset in catalog.presets)
    rows = chosen(described(catalog, architectures, context), "family", family, families)
    warnings = [f"{item.name}: {text}" for item in architectures for text in item.warnings]
    if name is not None and len(rows) == 1 and out.is_plain:
        out.rows(_in_full(rows[0]), ("what", "value"), catalog, warnings)
        return
    out.rows(rows, "models", catalog, warnings)


def _in_full(row: "Mapping[str, Any]") -> list[dict[str, str]]:
    """Return a model as a line per column of the list, so that a narrow terminal drops none."""
    from gpucost.render.document import cell_text, columns, head_text

    columns_shown = columns(*columns_of("models"))
    return [{"what": head_text(column), "value": cell_text(row, column)} for column in columns_shown]


def described(
    catalog: "Catalog", architectures: "Sequence[Architecture]", context_tokens: int = 8192
) -> list[dict[str, Any]]:
    """Return rows of architectures with their recounted and published parameters, cache and weights."""
    from msgspec.structs import asdict

    from gpucost.physics.blocks import cache_values, state_values
    from gpucost.physics.serving.cases import published_bytes
    from gpucost.physics.transformer import active_parameters, stack, total_parameters

    shape = stack(architectures)
    total, active = total_parameters(shape), active_parameters(shape)
    published = {row["id"]: row for row in catalog.rows("llms")}
    rows = []
    for index, item in enumerate(architectures):
        row = published.get(item.name, {})
        counts = {
            "id": item.name,
            "family": item.family,
            "parameters": int(total[index]),
            "active_parameters": int(active[index]),
            "published_parameters": row.get("published_parameters"),
            "published_active_parameters": row.get("published_active_parameters"),
            "training_tokens": row.get("training_tokens"),
            "context_tokens": context_tokens,
            "kv_cache_bytes": 2 * cache_values(item, context_tokens),
            "recurrent_state_bytes": 2 * state_values(item),
            "weight_bytes": int(published_bytes(item)),
            "native_precision": item.native_precision or "bf16",
        }
        dimensions = {key: value for key, value in asdict(item).items() if key not in (*NOT_SHOWN, *counts)}
        rows.append({**counts, **dimensions})
    return rows
