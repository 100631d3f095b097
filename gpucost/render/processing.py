"""The document of an answer about a model that gives no tokens out: cost of a unit by offer."""

from gpucost.answers.serving import Processing
from gpucost.render.document import Document, Paragraph, Section, Table, columns_of, document_of
from gpucost.render.offers import excluded_table, left_out

_SCREEN_OFFERS = 6  # of one screen


def document(answer: Processing) -> Document:
    """Build the document: offers by the cost of a unit, what was taken for granted, what was left out."""
    assumptions = [Paragraph(line) for line in answer["said"]]
    columns = columns_of("processing")
    next_step = Paragraph("Next: --details (all offers), --gpu, --option on_demand, --requests-per-s (a load).")
    return document_of(
        answer,
        f"Serving {answer['request']['model']}",
        Section("", assumptions),
        Section(f"Offers by the cost of one {answer['unit']}", [Table(columns, answer["options"])]),
        Section("Offers left out, and why", excluded_table(left_out(answer)), detail=True),
        screen=(*assumptions, Table(columns, answer["options"][:_SCREEN_OFFERS]), next_step),
    )
