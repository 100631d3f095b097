"""The document of a timed layout: the answer, the step by part, the layouts behind it."""

from collections.abc import Sequence

from gpucost.answers.serving import ServingSpeeds
from gpucost.answers.training import BOUND_WORDS, Throughput
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    columns_of,
    document_of,
    table_of,
)
from gpucost.units import GB, GIB


def document(answer: Throughput) -> Document:
    """Return the document of a timed layout."""
    degrees = ("tensor", "pipeline", "context", "expert", "data", "sharding", "micro_batch", "global_batch")
    layout_row: Row = answer["layout"]
    layout = ", ".join(f"{name.replace('_', ' ')} {layout_row[name]}" for name in degrees)
    run = f"recompute {answer['layout']['recompute']}, {answer['layout']['precision']}, {answer['system']}"
    # the layout, and what was assumed about the run
    settings = {
        **answer["layout"],
        "system": answer["system"],
        "sequence_tokens": answer["sequence_tokens"],
        "software": answer["software"],
    }
    facts = tuple(Fact(name.replace("_", " "), value) for name, value in settings.items())
    verdict = "Fits" if answer["fits"] else "Does not fit"
    need, usable = _gb(answer["memory_gib"]), _gb(answer["usable_memory_gib"])
    summary = (
        f"{verdict}: needs {need:.1f} GB per GPU, {usable:.1f} usable. A step"
        f" takes {answer['step_s']:,.3g} s. Layout: {layout}, {run}. Software stack: {answer['software']}."
    )
    # MFU counts what the model needs, HFU also what recomputation does again (Chowdhery et al. 2022, appendix B)
    low, high = answer["tokens_per_s_per_gpu_low"], answer["tokens_per_s_per_gpu_high"]
    unit, share = "tokens per second per GPU", "fraction of one"
    room = f"{'fits' if answer['fits'] else 'DOES NOT FIT'}: {usable:.1f} GB usable"
    mfu_note = "model FLOP: 6·N + causal attention, no input embedding"
    speed = (
        Fact("Tokens per second, all GPUs", answer["tokens_per_s"], "tokens per second"),
        Fact("Tokens per second per GPU", answer["tokens_per_s_per_gpu"], unit, low, high),
        Fact("Step", answer["step_s"], "seconds"),
        Fact("MFU", answer["mfu_fraction"], share, note=mfu_note),
        Fact("HFU", answer["hfu_fraction"], share, note="hardware FLOP, including recomputation"),
        Fact("Dense peak", answer["peak_tflops"], "TFLOP per second, dense"),
        Fact("Peak memory per GPU", need, "GB (1e9 bytes)", note=room),
    )
    next_step = (
        "--details (other layouts, FLOP, memory), --tensor, --micro-batch …, --software, `gpucost roofline --model`"
    )
    layouts = [{**row, "memory_gb": _gb(row["memory_gib"])} for row in answer.get("alternatives") or []]
    return document_of(
        answer,
        f"{answer['model']} on {answer['layout']['gpus']:,} × {answer['gpu']}",
        Section("Speed", [KeyFigures(speed)]),
        Section("Layout", [KeyFigures(facts)]),
        Section("Time of a step by part", _parts(answer)),
        Section("Fastest layouts", table_of("", layouts, *columns_of("throughput layouts"))),
        screen=(Paragraph(summary), _parts(answer)[0], Paragraph(f"Next: {next_step}.")),
    )


def serving_document(answer: ServingSpeeds) -> Document:
    """Return the document of serving speeds: a row for each accelerator and batch, with its price."""
    rows: Sequence[Row] = answer["rows"]
    prices = [
        f"{row['gpus']} × {row['gpu']}: {row['usd_per_gpu_hour']:.2f} USD per GPU-hour, {row['provider']}, seen"
        f" {row['price_observed_on']}."
        for row in answer["rows"]
        if row["usd_per_gpu_hour"] is not None
    ]
    has_dash = any(row["output_tokens_per_s"] is None for row in rows)
    too_much = "A dash: so many sequences do not fit. " if has_dash else ""
    # rows of one accelerator repeat its price: each is said once
    note = "\n".join([*dict.fromkeys(prices), f"{too_much}A million tokens count prompts and outputs."])
    table = Table(columns_of("throughput serving"), rows, note=note)
    setup = [Paragraph(text) for text in answer["said"]]
    next_step = "Next: --gpus, --batch, --weights; `gpucost inference` ranks offers."
    return document_of(
        answer,
        f"Serving speed of {answer['model']}",
        Section("Speed at each batch", [table, *setup]),
        screen=(table, *setup, Paragraph(next_step)),
    )


def _gb(gib: float) -> float:
    """Return GiB, in which this answer counts, as GB, the unit of every other need for memory."""
    return gib * GIB / GB


def _parts(answer: Throughput) -> list[Block]:
    """Return the step by part, longest first, with what bounds each."""
    rows = sorted((row for row in answer["parts"] if row["time_s"] > 0), key=lambda row: -row["time_s"])
    rows_as_text = [{**row, "bound": BOUND_WORDS[row["bound"]]} for row in rows]
    description = "; ".join(f"{row['part']} {row['share_fraction']:.0%}" for row in rows[:5])
    part, time = Axis("part", "part"), Axis("time_s", "time", "seconds")
    return [
        Table(columns_of("throughput parts"), rows_as_text),
        Chart("bar", "Where the time of a step goes", description, rows_as_text, part, time),
    ]
