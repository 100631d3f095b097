"""The document of a fit: the verdict, the components, the changes that were tried, the table by model size."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Axis, Chart, Document, Fact, Facts, Paragraph, Section, Table, columns


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of a fit payload."""
    title = f"Memory of {payload['model']} on {payload['gpus']:,} × {payload['gpu']}"
    sections = [verdict(payload), parts(payload), changes(payload), sizes(payload), terms(payload)]
    return frame(payload, title, lead(payload), [section for section in sections if section.blocks])


def lead(payload: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    where = f"on each of {payload['gpus']:,} {payload['gpu']}" if payload["gpus"] > 1 else f"on one {payload['gpu']}"
    need = f"{payload['needed_gb']:.1f} GB needed of {payload['usable_gb']:.1f} GB usable {where}"
    if payload["fits"]:
        return f"Fits: {need}, {payload['headroom_gb']:.1f} GB to spare."
    helps = next((row for row in payload["changes"] if row["helps"]), None)
    hint = f"The smallest change that makes it fit: {helps['change']}." if helps else "No change that was tried helps."
    return f"Does not fit: {need}, {-payload['headroom_gb']:.1f} GB too much. {hint}"


def verdict(payload: Mapping[str, Any]) -> Section:
    """Return the run and the layout."""
    layout = payload["layout"]
    degrees = ", ".join(f"{name} {layout[name]}" for name in ("tensor", "pipeline", "context", "expert", "data"))
    facts = (
        Fact("Model", payload["model"], note=f"{payload['parameters'] / 1e9:.2f} B parameters"),
        Fact("Training", payload["method"], note=f"{payload['optimizer']}, {payload['software']} kernels"),
        Fact("Sequence", payload["sequence_tokens"], "tokens", note=f"micro-batch {layout['micro_batch']}"),
        Fact("Layout", degrees),
        Fact("Sharding", f"stage {layout['sharding']}"),
        Fact("Recomputation", layout["recompute"]),
        Fact("Peak", payload["peak"], note=f"{payload['stage']} stage" if layout["pipeline"] > 1 else ""),
        Fact(
            "Needed", payload["needed_gb"], "GB (1e9 bytes)", payload["needed_low_gb"], payload["needed_high_gb"],
            note=closeness(payload),
        ),
        Fact(
            "Usable memory", payload["usable_gb"], "GB (1e9 bytes)",
            note=(
                f"({payload['device_memory_gib']:.1f} GiB − {payload['context_gb']:.1f} GB of the process) ÷ "
                f"{payload['fragmentation_ratio']:g} for fragmentation"
            ),
        ),
    )  # fmt: skip
    return Section("Verdict", (Facts(facts),))


def closeness(payload: Mapping[str, Any]) -> str:
    """Say when the verdict could turn within the range."""
    if payload["fits"] and payload["needed_high_gb"] > payload["usable_gb"]:
        return "close: software that keeps more would not fit"
    if not payload["fits"] and payload["needed_low_gb"] <= payload["usable_gb"]:
        return "close: software that keeps less would fit"
    return ""


def parts(payload: Mapping[str, Any]) -> Section:
    """Return the components as a table and a picture."""
    rows = [row for row in payload["components"] if row["needed_gb"] > 0]
    total = {"component": "total", "needed_gb": payload["needed_gb"], "share_fraction": 1.0}
    table = Table(columns("component", "needed_gb=memory", "share_fraction=share", "numbers:1"), rows, total=total)
    chart = Chart(
        kind="bar",
        title="Where the memory goes",
        description="; ".join(f"{row['component']} {row['share_fraction']:.0%}" for row in rows),
        data=rows,
        x=Axis("component", "component"),
        y=Axis("needed_gb", "memory", "GB (1e9 bytes)"),
    )
    return Section("By component, on the fullest GPU", (table, chart))


def changes(payload: Mapping[str, Any]) -> Section:
    """Return the changes that were tried, the gentlest that works first."""
    helps = [row for row in payload["changes"] if row["helps"]]
    others = [row for row in payload["changes"] if not row["helps"]]
    if not payload["changes"]:
        return Section("Changes", ())
    keys = columns("change", "gpus", "needed_gb=memory", "headroom_gb=to spare:1", "cost:2")
    title = "What would make it fit" if not payload["fits"] else "What would need fewer GPUs"
    blocks: list[Any] = []
    if helps:
        blocks.append(Table(keys, helps[:10]))
    else:
        blocks.append(Paragraph("Nothing that was tried helps.", style="note"))
    if others:
        names = ", ".join(row["change"] for row in others[:8])
        blocks.append(Paragraph(f"Tried without gain: {names}.", style="note"))
    return Section(title, tuple(blocks))


def sizes(payload: Mapping[str, Any]) -> Section:
    """Return the table by model size."""
    if not payload["sizes"]:
        return Section("Sizes", ())
    table = Table(
        columns("size", "model:2", "weights_gb=weights:1", "full_gpus=full", "lora_gpus=lora", "qlora_gpus=qlora"),
        payload["sizes"],
        note=(
            f"Fewest {payload['gpu']} by method, micro-batch 1, sequences up to {payload['sequence_tokens']:,} tokens, "
            "the least recomputation that fits; weights in 16 bits."
        ),
    )  # fmt: skip
    return Section(f"By model size, in {payload['gpu']}", (table,))


def terms(payload: Mapping[str, Any]) -> Section:
    """Return each term with its formula and reference."""
    facts = tuple(
        Fact(
            row["component"],
            row["needed_gb"],
            "GB (1e9 bytes)",
            note=f"{row['formula']}: {row['numbers']} [{row['reference']}]",
        )
        for row in payload["components"]
    )
    return Section("Each term", (Facts(facts),), detail=True)
