"""The document of an audit: the verdict, the checks, and what would be true."""

from gpucost.answers.checks import Audit, CheckRow
from gpucost.render.document import Document, Paragraph, Section, Table, columns_of, document_of


def document(answer: Audit) -> Document:
    """Build the document of an audit; of a text, each figure in its sentence."""
    if any("sentence" in row for row in answer["checks"]):
        return _of_text(answer)
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


def _of_text(answer: Audit) -> Document:
    """Build the document of the figures of a text, sentence by sentence."""
    parts: dict[str, list[CheckRow]] = {}
    for row in answer["checks"]:
        parts.setdefault(row.get("sentence", ""), []).append(row)
    told = [
        Paragraph(line)
        for sentence, rows in parts.items()
        for line in (f"“{sentence}”", *(f"  {row['figure']}: {row['verdict']}. {row['explanation']}" for row in rows))
    ]
    table = Table(columns_of("audit_text"), answer["checks"])
    notes = [Paragraph(note, "note") for note in answer["notes"]]
    next_step = Paragraph("Next: --details (each figure explained), --format csv, `gpucost audit --help` (one by one).")
    return document_of(
        answer,
        "What a text claims",
        Section("Figures", [table, *told]),
        Section("How it was read", notes),
        screen=(*told, *notes, next_step),
    )
