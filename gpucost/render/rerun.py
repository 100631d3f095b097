"""The document of a rerun: whether it gave the same, and if not, what differs."""

from gpucost.answers.training import Rerun
from gpucost.render.document import Document, Section, document_of, table_of


def document(answer: Rerun) -> Document:
    """Build the document of a rerun."""
    return document_of(
        answer,
        "gpucost saved rerun",
        Section("differences", table_of("", answer["differences"])),
        Section("changes", table_of("", answer["changes"])),
    )
