"""The document of a fit over all accelerators: the fewest of each, the longest sequence and the largest batch."""

from dataclasses import replace

from gpucost.answers.memory import Everywhere
from gpucost.render.document import Document, Paragraph, Section, Table, columns, document_of

_SHOWN = 11
_ROWS = columns(
    "gpu", "memory_gib=memory:3", "gpus", "needed_gb=needed:4", "headroom_gb=to spare:5",
    "longest_tokens=longest context:1", "largest_batch=largest batch:2", "sold=sold by", "usd_per_hour=price",
)  # fmt: skip
_NOTE = (
    "Fewest that fit; longest context at this batch, largest micro-batch at this context; the lowest price on demand,"
    " not old, of a seller that hosts so many as one job. As singles, up to N: nobody hosts so many."
)


def document(answer: Everywhere) -> Document:
    """Return the document of a fit over all accelerators."""
    rows, nowhere = answer["rows"], answer["nowhere"]
    made = document_of(
        answer,
        f"What {answer['model']} fits",
        Section("", [Table(_ROWS, rows, note=_NOTE)]),
        Section("Fits on no count", [Paragraph(", ".join(nowhere))] if nowhere else [], detail=True),
    )
    more = f"{len(rows) - _SHOWN} more, " if len(rows) > _SHOWN else ""
    ask = Paragraph(f"Next: --details ({more}all of them), --gpu NAME (components, changes), --method, --sequence.")
    return replace(made, screen=(Table(_ROWS, rows[:_SHOWN], note=_NOTE), ask))
