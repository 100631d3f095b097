"""The document of a fit over all accelerators: the fewest of each, the longest sequence and the largest batch."""

from gpucost.answers.memory import Everywhere
from gpucost.render.document import Document, Paragraph, Section, Table, columns_of, document_of

_SHOWN = 11
_NOTE = (
    "Fewest that fit; longest context at this batch, largest micro-batch at this context; the lowest price on demand,"
    " not old, of a seller that hosts so many as one job. As singles, up to N: nobody hosts so many."
)


def document(answer: Everywhere) -> Document:
    """Return the document of a fit over all accelerators."""
    rows, nowhere = answer["rows"], answer["nowhere"]
    more = f"{len(rows) - _SHOWN} more, " if len(rows) > _SHOWN else ""
    ask = Paragraph(f"Next: --details ({more}all of them), --gpu NAME (components, changes), --method, --sequence.")
    return document_of(
        answer,
        f"What {answer['model']} fits",
        Section("", [Table(columns_of("fit everywhere"), rows, note=_NOTE)]),
        Section("Fits on no count", [Paragraph(", ".join(nowhere))] if nowhere else [], detail=True),
        screen=(Table(columns_of("fit everywhere"), rows[:_SHOWN], note=_NOTE), ask),
    )
