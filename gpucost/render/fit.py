"""The documents of fits: for training, for serving, and over all accelerators."""

from gpucost.answers.serving import ServingFit
from gpucost.answers.training import Everywhere, Fit
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
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
from gpucost.render.wording import chip_label
from gpucost.units import counted

# --- Training on one accelerator.

_GB = "GB (1e9 bytes)"  # the unit of every need for memory; a device states GiB
_HELPFUL, _VAIN = 10, 8  # changes that are shown: that help, and that were tried in vain
_LARGEST = 4  # components on one screen


def document(answer: Fit) -> Document:
    """Return the document of a fit."""
    components = answer["components"]
    parts = [row for row in components if row["needed_gb"] > 0]
    total = {"component": "total", "needed_gb": answer["needed_gb"], "share_fraction": 1.0}
    description = "; ".join(f"{row['component']} {row['share_fraction']:.0%}" for row in parts)
    axes = Axis("component", "component"), Axis("needed_gb", "memory", _GB)
    # each term with its formula, its numbers and its reference
    notes = (f"{row['formula']}: {row['numbers']} [{row['reference']}]" for row in components)
    terms = [
        Fact(row["component"], row["needed_gb"], _GB, note=note) for row, note in zip(components, notes, strict=True)
    ]
    # the changes that were tried, the gentlest that works first
    changes: list[Block] = []
    if answer["changes"]:
        helpful = [row for row in answer["changes"] if row["helps"]]
        fruitless = [row["change"] for row in answer["changes"] if not row["helps"]]
        nothing = Paragraph("None of the changes tried helps.", style="note")
        changes.append(Table(columns_of("fit changes"), helpful[:_HELPFUL]) if helpful else nothing)
        if fruitless:
            changes.append(Paragraph(f"Tried without effect: {', '.join(fruitless[:_VAIN])}.", style="note"))
    savers_note = (
        f"Each alone, on {answer['gpus']} × {answer['gpu']} in the layout above without recomputation; fp8 as a range"
        " from its smaller inputs to its copies of the weights, while master weights and moments stay."
    )
    sizes_note = (
        f"Fewest {answer['gpu']} by method, micro-batch 1, sequences up to {answer['sequence_tokens']:,} tokens, "
        "GB with full recomputation; weights in 16 bits."
    )
    # the run, the layout, and what they need of what there is
    layout = answer["layout"]
    # vendors state GiB; the CUDA context takes its part first, fragmentation of the allocator divides what is left
    usable = (
        f"({answer['device_memory_gib']:.1f} GiB − {answer['context_gb']:.1f} GB of the process) ÷ "
        f"{answer['fragmentation_ratio']:g} for fragmentation"
    )
    ends = (answer["needed_low_gb"], answer["needed_high_gb"])
    verdict = (
        Fact("Model", answer["model"], note=f"{answer['parameters'] / 1e9:.2f} B parameters"),
        Fact("Training", answer["method"], note=f"{answer['optimizer']}, {answer['software']} kernels"),
        Fact("Sequence", answer["sequence_tokens"], "tokens", note=f"micro-batch {layout['micro_batch']}"),
        Fact("Layout", _degrees(answer)),
        Fact("Sharding", f"stage {layout['sharding']}"),
        Fact("Recomputation", layout["recompute"]),
        Fact("Peak", answer["peak"], note=f"{answer['stage']} stage" if layout["pipeline"] > 1 else ""),
        Fact("Needed", answer["needed_gb"], _GB, *ends, note=_closeness(answer)),
        Fact("Usable memory", answer["usable_gb"], _GB, note=usable),
    )
    return document_of(
        answer,
        f"Memory of {answer['model']} on {answer['gpus']:,} × {answer['gpu']}",
        Section("Verdict", [KeyFigures(verdict)], paper=True),
        Section(
            "Memory by component, on the fullest GPU",
            [
                Table(columns_of("fit parts"), parts, total=total),
                Chart("bar", "Where the memory goes, GB", description, parts, *axes),
            ],
            paper=True,
        ),
        Section(
            "What would make it fit" if not answer["fits"] else "What would need fewer GPUs",
            changes,
            paper=True,
        ),
        Section(
            "Savers of memory side by side",
            table_of("", answer.get("savers") or [], *columns_of("fit savers"), note=savers_note),
        ),
        Section(
            f"By model size, in {answer['gpu']}",
            table_of("", answer["sizes"], *columns_of("fit sizes"), note=sizes_note),
        ),
        Section("Each term", [KeyFigures(tuple(terms))], detail=True),
        screen=_screen(answer),
        name=f"Fit {answer['model']} on {answer['gpus']:,} × {chip_label(answer['gpu'])}",
    )


def _screen(answer: Fit) -> list[Block]:
    """Return what one screen shows: whether it fits, what was counted, where the memory goes, what would help."""
    layout = answer["layout"]
    batch = layout["micro_batch"]
    sequences = f"{batch} sequences" if batch > 1 else "one sequence"
    # how much of a GPU's memory is needed, and how far that is known
    spare = answer["headroom_gb"]
    left = f"{spare:.1f} GB to spare" if answer["fits"] else f"{-spare:.1f} GB more than there is"
    close = _closeness(answer)
    need = (
        f"{answer['needed_gb']:.1f} GB needed of {answer['usable_gb']:.1f} GB usable on each GPU, {left}. Real use may"
        f" be {answer['needed_low_gb']:.0f} to {answer['needed_high_gb']:.0f} GB.{f' {close}' if close else ''}"
    )
    # and what fills most of it
    largest = sorted(answer["components"], key=lambda row: -row["needed_gb"])[:_LARGEST]
    parts = ", ".join(f"{row['component']} {row['needed_gb']:.3g}" for row in largest)
    facts = (
        Fact("Fits" if answer["fits"] else "Does not fit", need),
        Fact("Run", f"{METHODS[answer['method']]} with {answer['optimizer']}, {sequences} of"
             f" {answer['sequence_tokens']:,} tokens per GPU and pass (--method, --sequence, --optimizer)"),
        Fact("Layout", f"{_degrees(answer)}, sharding {layout['sharding']}, recomputation {layout['recompute']}"),
        Fact("Memory", f"{parts} GB"),
    )  # fmt: skip
    # Changes at the same cost (speed, larger GPUs, numerics) are alike to a reader: the first of each kind of cost
    # comes before the second of any.
    helpful = [row for row in answer["changes"] if row["helps"]]
    costs = [row["cost"] for row in helpful]
    repeats = [costs[:number].count(cost) for number, cost in enumerate(costs)]
    gentlest_first = [helpful[number] for number in sorted(range(len(helpful)), key=lambda number: repeats[number])]
    title = "What would need fewer GPUs" if answer["fits"] else "What would make it fit"
    table = [Table(columns_of("fit changes")[:3], gentlest_first, title)] if gentlest_first else []
    ask = "Savers of memory side by side: --details · each term with its formula: --explain · also --gpus."
    return [KeyFigures(facts), *table, Paragraph(ask)]


METHODS = {"full": "full training", "lora": "LoRA", "qlora": "QLoRA"}


def _degrees(answer: Fit) -> str:
    """Name the degrees of a layout that divide anything."""
    layout = answer["layout"]
    degrees = (f"{name} {layout[name]}" for name in ("tensor", "pipeline", "context", "expert", "data"))
    return " × ".join(text for text in degrees if not text.endswith(" 1")) or "one GPU"


def _closeness(answer: Fit) -> str:
    """Say when the verdict could turn within the range."""
    if answer["fits"] and answer["needed_high_gb"] > answer["usable_gb"]:
        return "It only just fits: some software needs more memory."
    if not answer["fits"] and answer["needed_low_gb"] <= answer["usable_gb"]:
        return "It only just fails: some software needs less memory."
    return ""


# --- Serving.

_ROWS_OF_SERVING = 15
_MEMORY_PARTS = {"weights_gb": "weights", "cache_gb": "key-value cache", "workspace_gb": "workspace", "free_gb": "free"}


_SERVES = (
    Column("machine", right=True),
    Column("format"),
    Column("batch", "at once", right=True),
    Column("first", "first token", right=True),
    Column("each", "each token", right=True),
    Column("speed", "tokens/s", right=True),
    Column("price", "per hour", right=True),
)


def serving_document(answer: ServingFit) -> Document:
    """Return the document of a fit for serving."""
    model = answer["request"]["model"]
    picks = ((answer["smallest"], "least memory"), (answer["cheapest"], "cheapest"))
    rows = answer["options"]
    # the first sentence is about the model, the others about what was assumed
    model_sentence, *assumptions = answer["said"] or [""]
    facts = [Fact("Model", model_sentence), Fact("Assumes", " ".join(assumptions).removeprefix("Assumes "))]
    least = answer["smallest"]
    if least is not None:
        facts.insert(
            0, Fact("Least", f"{least['memory_gb']:,.0f} GB of memory: {least['gpus']:,} × {chip_label(least['gpu'])}.")
        )
    cells: list[Row] = [
        {
            "machine": f"{row['gpus']:,} × {chip_label(row['gpu'])}",
            "format": row["precision"],
            "batch": f"{row['batch']:,}",
            "first": f"{row['ttft_ms']:,.3g} ms",
            "each": f"{row['tpot_ms']:,.3g} ms",
            "speed": f"{row['output_tokens_per_s']:,.3g}",
            "price": None if row["usd_per_hour"] is None else f"${row['usd_per_hour']:,.2f}",
        }
        for row in rows
    ]
    table = Table(_SERVES, cells, note="Cheapest first. Times at saturation, within the targets.")
    key_figures = KeyFigures(tuple(fact for fact in facts if fact.value))
    more = f" {len(rows) - _ROWS_OF_SERVING} more in the JSON output." if len(rows) > _ROWS_OF_SERVING else ""
    # the full view has more figures of each, and what was assumed below them
    note = f"Cheapest first. Speed is at saturation, within the targets.{more} {' '.join(answer['said'])}".strip()
    options: Block = Paragraph("No accelerator serves it within the targets.", style="note")
    if rows:
        options = Table(columns_of("serving fit"), rows[:_ROWS_OF_SERVING], note=note)
    memory = []
    for row, title in picks:
        if row is not None:
            by_part = tuple(
                Fact(_MEMORY_PARTS[name], value, _GB) for name, value in row["memory"].items() if name in _MEMORY_PARTS
            )
            memory.append(KeyFigures(by_part, title=f"{title}: {row['gpus']} × {row['gpu']}, per GPU"))
    ask = Paragraph("All of them, memory by part: --details · also --tpot, --ttft, --precision")
    return document_of(
        answer,
        f"Accelerators that serve {model}",
        Section("What can serve it", [options]),
        Section("Memory", memory),
        Section("What cannot, and why", table_of("", answer["excluded"], "gpu", "reason"), detail=True),
        screen=(table, key_figures, ask) if rows else (),
        name=f"Accelerators that serve {model}",
    )


# --- All accelerators.

_ROWS_OF_EVERYWHERE = 10
_NOTE_OF_EVERYWHERE = (
    "The fewest of each that fit, at the lowest on-demand price of a seller that hosts so many for one job."
    " 'as singles': sold only one at a time. 'up to N': no seller offers that many."
)


_EVERYWHERE = (
    Column("machine", right=True),
    Column("needed", right=True),
    Column("longest", "longest context", right=True),
    Column("batch", "largest batch", right=True),
    Column("price", "per hour", right=True),
    Column("seller", "sold by"),
)


def everywhere_document(answer: Everywhere) -> Document:
    """Return the document of a fit over all accelerators."""
    rows, nowhere = answer["rows"], answer["nowhere"]
    # whether one GPU is enough is what most people ask
    single = sum(row["gpus"] == 1 for row in rows)
    alone = "none with one GPU" if not single else f"{single} of them with one GPU"
    method, sequence = METHODS[answer["method"]], f"sequences of {answer['sequence_tokens']:,} tokens"
    facts = KeyFigures(
        (
            Fact("Fits", f"{counted(len(rows), 'accelerator type')}, {alone}; cheapest first."),
            Fact("Assumes", f"{method}, {sequence} (--method, --sequence)."),
        )
    )
    cells: list[Row] = [
        {
            "machine": f"{row['gpus']:,} × {chip_label(row['gpu'])}",
            "needed": f"{row['needed_gb']:.0f} GB",
            "longest": f"{row['longest_tokens']:,} tokens",
            "batch": f"{row['largest_batch']:,}",
            "price": None if row["usd_per_hour"] is None else f"${row['usd_per_hour']:,.2f}",
            "seller": row.get("seller") or row["sold"],
        }
        for row in rows[:_ROWS_OF_EVERYWHERE]
    ]
    ask = Paragraph("All of them: --details · memory by component, and what would help: --gpu NAME.")
    return document_of(
        answer,
        f"Accelerators that fit {answer['model']}",
        Section("", [Table(columns_of("fit everywhere"), rows, note=_NOTE_OF_EVERYWHERE)]),
        Section("Does not fit on any number of", [Paragraph(", ".join(nowhere))] if nowhere else [], detail=True),
        screen=(Table(_EVERYWHERE, cells, note=_NOTE_OF_EVERYWHERE), facts, ask),
        name=f"Accelerators that fit {answer['model']}",
    )
