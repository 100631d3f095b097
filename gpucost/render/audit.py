"""The document of an audit: the verdict, the checks, and what would be true."""

from dataclasses import replace

from gpucost.answers.checks import Audit
from gpucost.render.document import Document, Paragraph, Section, Table, columns, document_of

_CHECKS = columns(
    "name=check", "verdict", "value=claimed or implied@unit", "low=true: low@unit:2", "typical@unit:1", "high@unit:2",
)  # fmt: skip


def document(answer: Audit) -> Document:
    """Build the document of an audit."""
    words = [Paragraph(f"{row['name']}: {row['explanation']}") for row in answer["checks"]]
    made = document_of(
        answer,
        "Is the claim possible?",
        Section("Checks", [Table(_CHECKS, answer["checks"]), *words]),
        Section("Read as", [Paragraph(note, "note") for note in answer["notes"]]),
    )
    read = [Paragraph(" ".join(answer["notes"]), "note")] if answer["notes"] else []
    ask = Paragraph("Next: --details (each check in words), --gpus, --precision, --method, --fits training|serving.")
    return replace(made, screen=(Table(_CHECKS, answer["checks"]), *read, ask))
