"""The document of an audit: the verdict, the checks, and what would be true."""

from gpucost.answers.checks import Audit
from gpucost.render.document import Document, Paragraph, Section, Table, columns_of, document_of


def document(answer: Audit) -> Document:
    """Build the document of an audit."""
    explanations = [Paragraph(f"{row['name']}: {row['explanation']}") for row in answer["checks"]]
    readings = [Paragraph(" ".join(answer["notes"]), "note")] if answer["notes"] else []
    next_step = Paragraph(
        "Next: --details (each check explained), --gpus, --precision, --method, --fits training|serving."
    )
    return document_of(
        answer,
        "Is the claim possible?",
        Section("Checks", [Table(columns_of("audit"), answer["checks"]), *explanations]),
        Section("How the claim was read", [Paragraph(note, "note") for note in answer["notes"]]),
        screen=(Table(columns_of("audit"), answer["checks"]), *readings, next_step),
    )
