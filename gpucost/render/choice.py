"""The document of a choice: the GPUs for a workload, to rent and to buy, and what several workloads get together."""

from collections.abc import Sequence

from gpucost.answers.combined import Candidate, Choice
from gpucost.render.document import Block, Document, Paragraph, Section, Table, columns_of, document_of

_ROWS_OF_ONE, _ROWS_EACH = 9, 3
_NOTE = (
    "Rent: the cost of the run, or of a year for serving, research and desk use. Buy: cards at street prices without a"
    " server, modules as whole servers; without power or staff. Pays after: months of the same use. Warranty: assumed,"
    " as makers usually give."
)


def document(answer: Choice) -> Document:
    """Return the document of a choice."""
    named = any(row["workload"] for row in answer["rows"])
    by_workload = {
        row["workload"]: [r for r in answer["rows"] if r["workload"] == row["workload"]] for row in answer["rows"]
    }
    first_rows = [
        row for rows in by_workload.values() for row in rows[: _ROWS_OF_ONE if len(by_workload) == 1 else _ROWS_EACH]
    ]
    next_step = Paragraph(
        "Next: --details (every GPU type), `gpucost tco` (the full cost of buying), --purpose, --budget,"
        " --workload NAME='PURPOSE MODEL', --pool GPU=N."
    )
    return document_of(
        answer,
        "Which GPU",
        Section("Together", _together(answer)),
        Section("Candidates", [_table(answer["rows"], named)]),
        screen=(*_together(answer), _table(first_rows, named), next_step),
    )


def _together(answer: Choice) -> list[Block]:
    return [Table(columns_of("choice together"), answer["assigned"], "Together")] if answer["assigned"] else []


def _table(rows: Sequence[Candidate], named: bool) -> Table:
    rows_as_text = [
        {**row, "ecc": {True: "yes", False: "no", None: None}[row["ecc"]], "within": row["within"] or None}
        for row in rows
    ]
    return Table(columns_of("choice") if named else columns_of("choice")[1:], rows_as_text, note=_NOTE)
