"""The document of a choice: the GPUs for a workload, to rent and to buy, and what several workloads get together."""

from collections.abc import Sequence

from gpucost.answers.combined import Candidate, Choice
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
    about,
    amount,
    columns_of,
    day_in_year,
    document_of,
)
from gpucost.render.offers import budget_note, price_text, seller_text, time_text
from gpucost.render.wording import chip_label

_BARS = 15  # of a picture
_ROWS_OF_ONE, _ROWS_EACH = 9, 3
_TOLD = 2  # rivals that one sentence names
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
    rivals = _rivals(answer)
    return document_of(
        answer,
        "Which GPU",
        Section("Together", _together(answer), paper=True),
        Section("Candidates", [*_picture(answer["rows"], named), _table(answer["rows"], named)], paper=True),
        Section("Another choice", rivals, paper=True),
        screen=_screen(answer, first_rows, named),
        name=_name(answer, list(by_workload)),
    )


_NAMES = {
    "training": "to train {model}",
    "fine-tuning": "to fine-tune {model}",
    "serving": "to serve {model}",
    "research": "for research on {model}",
    "desk": "for a desk with {model}",
    "workstation": "for a workstation with {model}",
}


def _name(answer: Choice, workloads: Sequence[str]) -> str:
    if answer["request"].get("matrix"):
        return "Choose a GPU for each job and model size"
    if workloads != [""]:
        return f"Choose GPUs for {', '.join(workloads)}"
    first = answer["rows"][0]
    return f"Choose a GPU {_NAMES[first['purpose']].format(model=first['model'])}"


def _screen(answer: Choice, rows: Sequence[Candidate], named: bool) -> tuple[Block, ...]:
    """Return what one screen shows: the machines side by side, what they rest on, what to ask next."""
    if answer["request"].get("matrix"):
        cells = [
            {**_cells(row), "job": _job(row), "range": _span(row), "seen": _seen(row, answer["as_of"])}
            for row in answer["rows"]
        ]
        table = Table(_MATRIX, cells, note="Rent of one run, or of a year of serving.")
        return (table, _facts(answer), Paragraph("Every GPU for one job: --purpose, --model · days, prices: --details"))
    bought, year = rows[0]["purpose"] in _CARDS, rows[0]["days"] is None
    shown = [_cells(row) for row in rows]
    if named:
        assigned = [_cells(row) for row in answer["assigned"]]
        together = [Table(_TOGETHER, assigned, "Together they cost least on", total=_total(answer))] if assigned else []
        ask = "Every GPU of each job: --details · also --pool GPU=N, --budget"
        return (*together, Table(_EACH, shown, "Each alone, to rent"), _facts(answer), Paragraph(ask))
    if bought:
        note = "To buy: the cards alone, without computer or power. To rent: one year. Speeds: tokens a second."
        ask = "ECC, link, warranty: --details · costs of owning: gpucost tco · also --budget"
        return (Table(_BOUGHT, shown, note=note), _facts(answer), Paragraph(ask))
    bought_alone = f"To rent: {'one year' if year else 'one run'}. To buy: the hardware alone, without power or staff."
    note = f"{bought_alone}\n{budget_note(rows, 'budget_usd')}"
    ask = "Every GPU: --details · costs of owning: gpucost tco · also --purpose, --budget"
    columns = tuple(column for column in _RENTED if column.key != ("time" if year else "pays off"))
    table = Table(columns, shown, note=note)
    return (table, _facts(answer), Paragraph(ask))


_CARDS = ("desk", "workstation")  # purposes for which cards are bought
_COLUMNS = {
    column.key: column
    for column in (
        Column("workload", heading=" "),
        Column("job", heading=" "),
        Column("rent", "to rent", right=True),
        Column("buy", "to buy", right=True),
        *(Column(name, right=True) for name in ("machine", "budget", "range", "cost", "time", "pays off", "tunes")),
        Column("answers", right=True, priority=1),
        Column("seen", "price of"),
        Column("within", "reaches", priority=1),
        Column("seller"),
        Column("rented by", priority=2),
    )
}
_RENTED, _BOUGHT, _MATRIX, _TOGETHER, _EACH = (
    tuple(_COLUMNS[key] for key in keys)
    for keys in (
        ("machine", "rent", "budget", "time", "buy", "pays off", "within", "seller"),
        ("machine", "buy", "seen", "tunes", "answers", "rent", "within", "rented by"),
        ("job", "machine", "rent", "range", "seller", "seen"),
        ("workload", "machine", "cost", "time", "seller"),
        ("workload", "machine", "rent", "budget", "time", "buy", "seller"),
    )
)


def _cells(row: Row) -> Row:
    """Return the cells of a candidate, or of what a workload gets, one figure each."""
    usd = {name: row.get(f"{name}_usd") for name in ("rent", "budget", "buy", "cost")}
    months, tunes, answers = (row.get(key) for key in ("breakeven_months", "tokens_per_s", "answer_tokens_per_s"))
    seller = "your own" if row["provider"] == "own" else seller_text({"option": None, **row})
    return {
        **{name: None if value is None else about(value) for name, value in usd.items()},
        "workload": row["workload"],
        "machine": _machine(row),
        "time": time_text(row.get("days")),
        "pays off": None if months is None else f"{months:,.0f} months",
        "tunes": None if tunes is None else f"{tunes:,.0f}/s",
        "answers": None if answers is None else f"{answers:,.0f}/s",
        "seen": row.get("buy_seen"),
        "within": row.get("within") or None,
        "seller": seller,
        "rented by": seller,
    }


def _facts(answer: Choice) -> KeyFigures:
    """Return at which price the first is counted, what others cost, and what was taken as given."""
    first, alone = answer["rows"][0], len({row["workload"] for row in answer["rows"]}) == 1
    priced = alone and first["rent_usd"] is not None and first["purpose"] not in _CARDS
    facts = [Fact("Price", price_text(first))] if priced else []
    facts += [Fact("Instead", told)] if (told := _told(answer)) else []
    return KeyFigures((*facts, *(Fact(row["label"], row["text"]) for row in answer.get("stated") or ())))


def _total(answer: Choice) -> Row | None:
    total = answer["total_usd"]
    return None if total is None else {"workload": "together", "cost": about(total)}


def _job(row: Candidate) -> str:
    verb = {"fine-tuning": "tune", "training": "train", "serving": "serve"}[row["purpose"]]
    return f"{verb} {row['model']}"


def _span(row: Candidate) -> str | None:
    """Write the ends of a rent."""
    ends = row.get("rent_low_usd"), row.get("rent_high_usd")
    return "–".join(about(end) for end in ends if end is not None).replace("–$", "–") or None


def _seen(row: Candidate, as_of: str) -> str | None:
    day = row.get("price_observed_on")
    return day_in_year(day, as_of) if day else None


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


def _told(answer: Choice) -> str:
    """Say what the same job needs on demand on the first of what most sellers have."""
    rows = answer.get("rivals") or []
    if len(rows) < 2:
        return ""
    first, *others = rows
    led = all(first[key] == answer["rows"][0][key] for key in ("gpu", "gpus", "provider"))
    told = []
    for row in others[:_TOLD]:
        days = row["more_days"]
        time = "" if not days else f" and {time_text(abs(days))} {'more' if days > 0 else 'less'}"
        told.append(f"{_placed(row)} needs {about(row['more_usd'])} more{time}")
    return f"On demand, against {'the first line' if led else _placed(first)}: {'; '.join(told)}."


def _placed(row: Row) -> str:
    return f"{_machine(row)} at {row.get('seller') or row['provider']}"


def _machine(row: Row) -> str:
    return f"{row['gpus']:,} × {chip_label(row['gpu'])}"


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


def _table(rows: Sequence[Candidate], named: bool) -> Table:
    rows_as_text = [
        {**row, "ecc": {True: "yes", False: "no", None: None}[row["ecc"]], "within": row["within"] or None}
        for row in rows
    ]
    return Table(columns_of("choice") if named else columns_of("choice")[1:], rows_as_text, note=_NOTE)
