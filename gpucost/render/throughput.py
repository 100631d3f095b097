"""The document of a timed layout: the answer, the step by part, the layouts behind it."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Axis, Chart, Document, Fact, Facts, Section, Table, columns

BOUND_WORDS = {
    "compute": "compute",
    "bandwidth": "memory bandwidth",
    "network": "network",
    "host": "host",
    "schedule": "schedule",
}


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of a throughput payload."""
    title = f"{payload['model']} on {payload['layout']['gpus']:,} × {payload['gpu']}"
    sections = [speed(payload), layout(payload), parts(payload), alternatives(payload)]
    return frame(payload, title, lead(payload), [section for section in sections if section.blocks])


def lead(payload: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    how = (
        f"the fastest of {payload['layouts_timed']:,} layouts that fit"
        if "layouts_timed" in payload
        else "the layout as given"
    )
    return (
        f"{payload['tokens_per_s_per_gpu']:,.0f} tokens/s per GPU (80 % range "
        f"{payload['tokens_per_s_per_gpu_low']:,.0f} to {payload['tokens_per_s_per_gpu_high']:,.0f}), "
        f"{payload['mfu_fraction']:.1%} MFU: {how}."
    )


def speed(payload: Mapping[str, Any]) -> Section:
    """Return the key figures."""
    facts = (
        Fact("Tokens per second, all GPUs", payload["tokens_per_s"], "tokens per second"),
        Fact(
            "Tokens per second and GPU",
            payload["tokens_per_s_per_gpu"],
            "tokens per second per GPU",
            payload["tokens_per_s_per_gpu_low"],
            payload["tokens_per_s_per_gpu_high"],
        ),
        Fact("Step", payload["step_s"], "seconds"),
        Fact("MFU", payload["mfu_fraction"], "fraction", note="model FLOP: 6·N + causal attention, no input embedding"),
        Fact("HFU", payload["hfu_fraction"], "fraction", note="hardware FLOP: with what is recomputed"),
        Fact("Dense peak", payload["peak_tflops"], "TFLOP per second, dense"),
        Fact("Peak memory per GPU", payload["memory_gib"], "GiB (2^30 bytes)", note=room(payload)),
    )
    return Section("Speed", (Facts(facts),))


def room(payload: Mapping[str, Any]) -> str:
    """Say whether the memory suffices."""
    usable = f"{payload['usable_memory_gib']:.1f} GiB usable"
    return f"fits: {usable}" if payload["fits"] else f"DOES NOT FIT: {usable}"


def layout(payload: Mapping[str, Any]) -> Section:
    """Return the layout and what was assumed about the run."""
    words = {
        **payload["layout"],
        "system": payload["system"],
        "sequence_tokens": payload["sequence_tokens"],
        "software": payload["software"],
    }
    return Section("Layout", (Facts(tuple(Fact(name.replace("_", " "), value) for name, value in words.items())),))


def parts(payload: Mapping[str, Any]) -> Section:
    """Return the step by part, longest first, with what bounds each."""
    rows = sorted((row for row in payload["parts"] if row["time_s"] > 0), key=lambda row: -row["time_s"])
    shown = [{**row, "bound": BOUND_WORDS[row["bound"]]} for row in rows]
    table = Table(columns("part", "time_s=time", "share_fraction=share", "bound=bound by"), shown)
    chart = Chart(
        kind="bar",
        title="Where the step's time goes",
        description="; ".join(f"{row['part']} {row['share_fraction']:.0%}" for row in rows[:5]),
        data=shown,
        x=Axis("part", "part"),
        y=Axis("time_s", "time", "seconds"),
    )
    return Section("The step by part", (table, chart))


def alternatives(payload: Mapping[str, Any]) -> Section:
    """Return the layouts behind the best."""
    rows = payload.get("alternatives") or []
    if not rows:
        return Section("Other layouts", ())
    heading = columns(
        "tensor",
        "pipeline",
        "context",
        "expert:4",
        "data:1",
        "virtual_stages=virtual:3",
        "sharding:1",
        "micro_batch=micro:1",
        "recompute:2",
        "tokens_per_s_per_gpu=tokens/s per GPU",
        "mfu_fraction=MFU:1",
        "memory_gib=memory:2",
    )
    return Section("Fastest layouts", (Table(heading, rows),))
