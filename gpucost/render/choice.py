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
_RIVALS_NAMED = 2  # rivals that one sentence names
_NOTE = (
    "Rent: the cost of the run, or of a year for serving, research and desk use. Buy: cards at street prices without a"
    " server, modules as whole servers; without power or staff. Pays after: months of the same use. Warranty: assumed,"
    " as makers usually give."
)


def document(answer: Choice) -> Document:
    """Return the document of a choice."""
    has_names = any(row["workload"] for row in answer["rows"])  # a single workload needs no name
    by_workload = {
        row["workload"]: [r for r in answer["rows"] if r["workload"] == row["workload"]] for row in answer["rows"]
    }
    most = _ROWS_OF_ONE if len(by_workload) == 1 else _ROWS_EACH
    first_rows = [row for rows in by_workload.values() for row in rows[:most]]
    if answer["request"].get("matrix"):
        name = "Choose a GPU for each job and model size"
    elif has_names:
        name = f"Choose GPUs for {', '.join(by_workload)}"
    else:
        first = answer["rows"][0]
        name = f"Choose a GPU {_NAMES[first['purpose']].format(model=first['model'])}"
    assigned = answer["assigned"]
    candidates = [
        {**row, "ecc": {True: "yes", False: "no", None: None}[row["ecc"]], "within": row["within"] or None}
        for row in answer["rows"]
    ]
    # what each candidate costs to rent, in their order; some are sold, but not rented out
    bars: list[Row] = []
    for row in answer["rows"]:
        if row["rent_usd"] is not None:
            cluster = f"{row['gpus']:,} × {row['gpu']}"
            label = f"{row['workload']}: {cluster}" if has_names else cluster
            cells = {key: row[key] for key in ("rent_usd", "provider", "days")}
            bars.append({"candidate": label, **cells})
    picture: list[Block] = []
    if len(bars) > 1:
        cheapest = amount(bars[0]["rent_usd"], "USD")
        description = f"Rent of the run, or of a year; {bars[0]['candidate']} costs {cheapest}."
        axes = Axis("candidate"), Axis("rent_usd")
        picture = [Chart("bar", "What each candidate costs to rent", description, bars[:_BARS], *axes)]
    # the same job on what most sellers have, against the recommended accelerator
    rivals = answer.get("rivals") or []
    another: list[Block] = []
    if len(rivals) > 1:
        subject = "the run" if rivals[0]["days"] is not None else "a year"
        note = (
            f"The cheapest on-demand offer of {subject} for each GPU, on as many as cost least; 'more' compares its"
            f" budget with that of {rivals[0]['gpu']}."
        )
        another = [Table(columns_of("choice rivals"), rivals, "What another choice costs", note=note)]
    columns = columns_of("choice")
    table = Table(columns if has_names else columns[1:], candidates, note=_NOTE)
    return document_of(
        answer,
        "Which GPU",
        Section(
            "Together", [Table(columns_of("choice together"), assigned, "Together")] if assigned else [], paper=True
        ),
        Section("Candidates", [*picture, table], paper=True),
        Section("Another choice", another, paper=True),
        screen=_screen(answer, first_rows, has_names),
        name=name,
    )


_NAMES = {
    "training": "to train {model}",
    "fine-tuning": "to fine-tune {model}",
    "serving": "to serve {model}",
    "research": "for research on {model}",
    "desk": "for a desk with {model}",
    "workstation": "for a workstation with {model}",
}


def _screen(answer: Choice, rows: Sequence[Candidate], has_names: bool) -> tuple[Block, ...]:
    """Return what one screen shows: the machines side by side, what they rest on, what to ask next."""
    if answer["request"].get("matrix"):  # one machine for each job and size of model
        cells = []
        for row in answer["rows"]:
            job = {"fine-tuning": "tune", "training": "train", "serving": "serve"}[row["purpose"]]
            ends = [about(end) for end in (row.get("rent_low_usd"), row.get("rent_high_usd")) if end is not None]
            day = row.get("price_observed_on")
            cells.append(
                {
                    **_cells(row),
                    "job": f"{job} {row['model']}",
                    "range": "–".join(ends).replace("–$", "–") or None,
                    "seen": day_in_year(day, answer["as_of"]) if day else None,
                }
            )
        table = Table(_MATRIX, cells, note="Rent of one run, or of a year of serving.")
        return (table, _facts(answer), Paragraph("Every GPU for one job: --purpose, --model · days, prices: --details"))
    bought, year = rows[0]["purpose"] in _CARDS, rows[0]["days"] is None
    shown = [_cells(row) for row in rows]
    if has_names:  # several workloads: what they get together, and what each would get alone
        assigned, total_usd = [_cells(row) for row in answer["assigned"]], answer["total_usd"]
        total: Row | None = None if total_usd is None else {"workload": "together", "cost": about(total_usd)}
        together = [Table(_TOGETHER, assigned, "Together they cost least on", total=total)] if assigned else []
        ask = "Every GPU of each job: --details · also --pool GPU=N, --budget"
        return (*together, Table(_EACH, shown, "Each alone, to rent"), _facts(answer), Paragraph(ask))
    if bought:  # a desk: cards are compared by their price and speed, rent comes second
        note = "To buy: the cards alone, without computer or power. To rent: one year. Speeds: tokens a second."
        ask = "ECC, link, warranty: --details · costs of owning: gpucost tco · also --budget"
        return (Table(_BOUGHT, shown, note=note), _facts(answer), Paragraph(ask))
    bought_alone = f"To rent: {'one year' if year else 'one run'}. To buy: the hardware alone, without power or staff."
    note = f"{bought_alone}\n{budget_note(rows, 'budget_usd')}"
    ask = "Every GPU: --details · costs of owning: gpucost tco · also --purpose, --budget"
    # a year of use has no time to finish in, a run is too short to pay hardware off
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
    rivals = answer.get("rivals") or []
    if len(rivals) >= 2:
        # what the same job needs on demand on the first of what most sellers have
        cheapest, *others = rivals
        leads = all(cheapest[key] == first[key] for key in ("gpu", "gpus", "provider"))
        against = "the first line" if leads else _placed(cheapest)
        differences = []
        for row in others[:_RIVALS_NAMED]:
            days = row["more_days"]
            time = "" if not days else f" and {time_text(abs(days))} {'more' if days > 0 else 'less'}"
            differences.append(f"{_placed(row)} needs {about(row['more_usd'])} more{time}")
        facts.append(Fact("Instead", f"On demand, against {against}: {'; '.join(differences)}."))
    return KeyFigures((*facts, *(Fact(row["label"], row["text"]) for row in answer.get("stated") or ())))


def _placed(row: Row) -> str:
    return f"{_machine(row)} at {row.get('seller') or row['provider']}"


def _machine(row: Row) -> str:
    return f"{row['gpus']:,} × {chip_label(row['gpu'])}"
