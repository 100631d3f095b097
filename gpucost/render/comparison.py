"""The documents of comparisons: two results and their causes, models on accelerators side by side."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from gpucost.answers.combined import Change, Comparison, SideBySide
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    amount,
    bridge,
    columns_of,
    document_of,
    heading_of,
    in_words,
    table_of,
)
from gpucost.units import counted, unit_of

# --- Two results.

_FIGURES = {
    "gpu_s_per_mtok": "the GPU-seconds of a million tokens",
    "usd_per_mtok": "the price of a million tokens",
    "npv_saving_usd": "what owning saves",
    "cost_usd": "the cost",
    "usd_per_month": "the monthly cost",
    "needed_gb": "the memory needed, GB",
}
_EFFECTS = 5  # of one screen


def document(answer: Comparison) -> Document:
    """Build the document of a comparison."""
    changed, at_batches = _changed(answer), _at_batches(answer)
    argument_changes = []
    for row in answer["request_changes"]:
        # values may be lists or tables, whose cells would be left out of a table
        ends = {}
        for end in ("before", "after"):
            value: Any = row[end]
            ends[end] = ", ".join(map(str, value)) if isinstance(value, list) else value
            ends[end] = str(value) if isinstance(value, dict) else ends[end]
        argument_changes.append({"name": in_words("name", row["name"]), **ends})
    moving = [row for row in answer["changes"] if row["effect"]]
    # each cause with its effect, and their sum; of two plans each says as well what it does to either side
    effects: list[Block] = []
    causes: list[Any] = answer["changes"]
    if causes:
        total = {"factor": "total", "effect": answer["difference"], "unit": answer["unit"]}
        sides = [key for key in ("own_effect_usd", "rent_effect_usd") if key in causes[0]]
        total |= {key: sum(row.get(key, 0.0) for row in causes) for key in sides}
        moved = _with_units([{**row, "unit": unit_of(row["name"])} for row in causes])
        rows = [{**_worded_factor(row), "name": heading_of(row["name"]), "unit": answer["unit"]} for row in moved]
        effects = [Table(columns_of("comparison effects"), rows, total=total)]
    # One screen shows what changed and the largest effects, smaller ones together.
    largest = sorted((row for row in answer["changes"] if row["effect"]), key=lambda row: -abs(row["effect"]))
    # where not all have room, one line is for the sum of the others, so that the bridge still adds up
    drawn = largest if len(largest) <= _EFFECTS else largest[: _EFFECTS - 1]
    smaller = largest[len(drawn) :]
    smaller_sum: list[Any] = (
        [{"factor": counted(len(smaller), "smaller effect"), "effect": sum(row["effect"] for row in smaller)}]
        if smaller
        else []
    )
    largest_in_order = [row for row in answer["changes"] if row in drawn]
    next_step = "Next: --details (all effects, arguments), -o FILE.html, --format json."
    bars = _bars(answer, [*largest_in_order, *smaller_sum])
    return document_of(
        answer,
        f"{answer['subject'].capitalize()}: {answer['first']} and {answer['second']} compared",
        Section("What changed", [*at_batches, *changed, *([Paragraph("Nothing.")] if not changed else [])]),
        Section("What explains the difference", [*effects, *_bars(answer, moving)]),
        Section("Arguments that differ", table_of("", argument_changes, "name", "before", "after"), detail=True),
        screen=[*(at_batches or changed), *bars, Paragraph(next_step)],
    )


def _at_batches(answer: Comparison) -> list[Block]:
    """Return both speeds by the sequences of a step."""
    first, second, *others = columns_of("comparison batches")[1:]
    ends = [replace(first, heading=answer["first"]), replace(second, heading=answer["second"])]
    rows: Sequence[Any] = answer.get("batches") or []
    return [Table((columns_of("comparison batches")[0], *ends, *others), rows)] if rows else []


def _changed(answer: Comparison) -> list[Block]:
    """Return what changed, under the names of both results."""
    rows = [{**row, "name": heading_of(row["name"])} for row in answer["what_changed"]]
    if not rows:
        return []
    headings = Column("name", "what changed"), Column("before", answer["first"]), Column("after", answer["second"])
    return [Table(headings, _with_units(rows))]


def _with_units(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Write each value with its unit, for every row has its own."""
    return [{**row, **{end: amount(row[end], row["unit"]) for end in ("before", "after")}} for row in rows]


def _bars(answer: Comparison, changes: "Sequence[Change | Any]") -> list[Block]:
    """Return the bridge from the first to the second; nothing where nothing moves."""
    if not changes:
        return []
    ends = [
        {"factor": answer["first"], "effect": answer["before_value"]},
        {"factor": answer["second"], "effect": answer["before_value"] + answer["difference"]},
    ]
    title = f"Effect of each cause on {_FIGURES.get(answer['figure'], 'the ' + heading_of(answer['figure']))}"
    return [bridge(title, (ends[0], ends[1]), [*map(_worded_factor, changes)], "factor", "effect", answer["unit"])]


def _worded_factor(row: Any) -> dict[str, Any]:
    """Name an input of a plan, which is a cause of its own, by its words."""
    return {**row, "factor": heading_of(row["factor"])} if row.get("name") == row["factor"] else row


# --- Models on accelerators side by side.


def side_by_side_document(answer: SideBySide) -> Document:
    """Build the document of pairs of a model and an accelerator."""
    from gpucost.market.table import ordered

    rows: Sequence[Row] = answer["rows"]
    notes = "\n".join(f"{row['model']} on {row['gpu']}: {row['note']}" for row in rows if row["note"])
    pictures: list[Block] = []
    for key, title in (("cost_usd", "Cost of the run"), ("usd_per_mtok", "Cost of a million tokens served")):
        data = [{**row, "pair": f"{row['model']} on {row['gpu']}"} for row in rows if row[key] is not None]
        if len(data) > 1:  # a single bar compares nothing
            best = ordered(data, key)[0]
            next_step = f"The first is {best['pair']}."
            pictures.append(Chart("bar", title, next_step, data, Axis("pair"), Axis(key)))
    tables = [Table(columns_of("side by side"), rows, note=notes, interactive=True)]
    next_step = "Next: --details (charts, sources), --tokens, --region, --option, --speed."
    # One screen shows runs and tokens, each with seller, day of the price and range.
    # a single model needs no column: the lead names it
    alone = {"model"} if len({row["model"] for row in rows}) == 1 else set()
    run_columns, token_columns = (
        tuple(column for column in columns_of(f"side by side {part}") if column.key not in alone)
        for part in ("runs", "tokens")
    )
    # in the place of a seller stands that nobody sells it, and in that of the day since when
    runs: list[Row] = []
    for row in rows:
        since = row.get("last_price_on")
        unsold_cells = {"provider": "no price since" if since else "no price", "price_observed_on": since}
        runs.append({**row, **unsold_cells} if _is_unsold(row) else row)
    remarks = [
        f"{row['gpu']}: {row['note'].partition('. ')[0]}." for row in rows if row["note"] and not _is_unsold(row)
    ]
    if unsold := [row["gpu"] for row in rows if _is_unsold(row)]:
        remarks.append(f"Your own price: `gpucost estimate --gpu {unsold[0]} --usd-per-gpu-hour PRICE`.")
    note = "\n".join(remarks)
    if served := [row for row in rows if row["usd_per_mtok"] is not None]:
        on_screen = [Table(run_columns, runs), Table(token_columns, served, note=note)]
    else:
        on_screen = [Table(run_columns, runs, note=note)]
    return document_of(
        answer,
        "Side by side",
        Section("Cheapest training run and cheapest tokens of each pair", tables),
        Section("Pictures", pictures),
        screen=(*on_screen, Paragraph(next_step)),
    )


def _is_unsold(row: Row) -> bool:
    return str(row["note"]).startswith("no price")
