"""The document of a choice: the GPUs for a workload, to rent and to buy, and what several workloads get together."""

from collections.abc import Sequence

from gpucost.answers.combined import Candidate, Choice
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Paragraph,
    Section,
    Table,
    amount,
    columns_of,
    document_of,
)

_BARS = 15  # of a picture
_ROWS_OF_ONE, _ROWS_EACH = 9, 3
_TOLD = 2  # rivals that one sentence names
_NOTE = (
    "Rent: the cost of the run, or of a year for serving, research and desk use. Buy: cards at street prices without a"
    " server, modules as whole servers; without power or staff. Pays after: months of the same use. Warranty: assumed,"
    " as makers usually give."
)
_NOTE_ON_SCREEN = (
    "Rent covers one run, or one year of serving, research or a desk. Buy is the hardware only, without power or staff:"
    " cards without a server, modules with theirs."
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
    rivals = _rivals(answer)
    return document_of(
        answer,
        "Which GPU",
        Section("Together", _together(answer), paper=True),
        Section("Candidates", [*_picture(answer["rows"], named), _table(answer["rows"], named)], paper=True),
        Section("Another choice", rivals, paper=True),
        screen=_screen(answer, first_rows, named),
    )


def _screen(answer: Choice, rows: Sequence[Candidate], named: bool) -> tuple[Block, ...]:
    """Return what one screen shows: a matrix and a desk have columns of their own."""
    if answer["request"].get("matrix"):
        next_step = "Rent: of the run, serving of a year. Next: --details, --purpose, `gpucost tco`."
        cells = [{**row, "job": _job(row), "range": _span(row)} for row in answer["rows"]]
        return (Table(columns_of("choice matrix"), cells), Paragraph(next_step))
    if not named and rows[0]["purpose"] == "desk":
        next_step = "Next: --details (ECC, link, warranty), --model, --budget, --purpose workstation."
        note = (
            "Tunes: QLoRA; answers: one at a time in int4. Rent: of a year; buy: the cards alone, price of that year."
        )
        return (Table(columns_of("choice desk"), rows, note=note), Paragraph(next_step))
    next_step = (
        "Next: --details (every GPU type), `gpucost tco` (the full cost of buying), --purpose, --budget,"
        " --workload NAME='PURPOSE MODEL', --pool GPU=N, --matrix."
    )
    return (*_together(answer), _table(rows, named, _NOTE_ON_SCREEN), *_told(answer), Paragraph(next_step))


def _job(row: Candidate) -> str:
    verb = {"fine-tuning": "tune", "training": "train", "serving": "serve"}[row["purpose"]]
    return f"{verb} {row['model']}"


def _span(row: Candidate) -> str | None:
    """Write the ends of a rent in short: 10.6k–18.3k."""
    ends = row.get("rent_low_usd"), row.get("rent_high_usd")
    return "–".join(_short(end) for end in ends if end is not None) or None


def _short(usd: float) -> str:
    """Write an amount in three digits.

    >>> _short(604428), _short(10558), _short(8.35)
    ('604k', '10.6k', '8.35')
    """
    return f"{usd / 1000:.3g}k" if usd >= 1000 else f"{usd:.3g}"


def _together(answer: Choice) -> list[Block]:
    return [Table(columns_of("choice together"), answer["assigned"], "Together")] if answer["assigned"] else []


def _rivals(answer: Choice) -> list[Block]:
    """Return the same job on what most sellers have, against the recommended accelerator."""
    rows = answer.get("rivals") or []
    if len(rows) < 2:
        return []
    of = "the run" if rows[0]["days"] is not None else "a year"
    note = (
        f"The cheapest on-demand offer of {of} for each GPU, on as many as cost least; 'more' compares its budget"
        f" with that of {rows[0]['gpu']}."
    )
    return [Table(columns_of("choice rivals"), rows, "What another choice costs", note=note)]


def _told(answer: Choice) -> list[Block]:
    """Say in a sentence what the same job costs on the first of what most sellers have."""
    rows = answer.get("rivals") or []
    if len(rows) < 2:
        return []
    first, *others = rows
    told = []
    for row in others[:_TOLD]:
        days = "" if row["more_days"] is None else f", {row['more_days']:+,.1f} days"
        told.append(f"{row['gpus']} × {row['gpu']} {row['more_usd']:+,.0f} USD{days}")
    where = f"on demand against {first['gpus']} × {first['gpu']} at {first['provider']}"
    return [Paragraph(f"The budget of the same job {where}: {'; '.join(told)}.")]


def _picture(rows: Sequence[Candidate], named: bool) -> list[Block]:
    """Draw what each candidate costs to rent, in their order."""
    bars = [
        {
            "candidate": f"{row['workload']}: {cluster}" if named else cluster,
            "rent_usd": row["rent_usd"],
            "provider": row["provider"],
            "days": row["days"],
        }
        for row in rows
        if row["rent_usd"] is not None
        for cluster in [f"{row['gpus']:,} × {row['gpu']}"]
    ][:_BARS]
    if len(bars) < 2:
        return []
    description = f"Rent of the run, or of a year; {bars[0]['candidate']} costs {amount(bars[0]['rent_usd'], 'USD')}."
    return [Chart("bar", "What each candidate costs to rent", description, bars, Axis("candidate"), Axis("rent_usd"))]


def _table(rows: Sequence[Candidate], named: bool, note: str = _NOTE) -> Table:
    rows_as_text = [
        {**row, "ecc": {True: "yes", False: "no", None: None}[row["ecc"]], "within": row["within"] or None}
        for row in rows
    ]
    return Table(columns_of("choice") if named else columns_of("choice")[1:], rows_as_text, note=note)
