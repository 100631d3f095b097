"""The document of a sweep: what it comes to, the first rows, pictures of cost against time and over two arguments."""

from collections.abc import Sequence

from gpucost.answers.combined import Row, Sweep
from gpucost.arguments import flag_of
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    columns_of,
    document_of,
    heading_of,
    table_of,
)
from gpucost.render.wording import option_text

_ROWS_SHOWN = 20
_BEST = "First cases of each kind of work"
_AXES = {"estimate": ("days", "cost_usd"), "inference": ("tpot_ms", "usd_per_mtok")}
_LAST = ("instance_type", "price_observed_on", "age_days", "energy_kwh", "kgco2e", "nodes", "mfu_fraction")


def document(answer: Sweep) -> Document:
    """Build the document of a sweep."""
    rows = answer["rows"]
    left = answer["cases"] - len(rows)
    note = f"{left:,} more cases are in the Parquet or CSV output." if left > 0 else ""
    # cost against time of the rows at hand, a colour for each accelerator; points of several models must not look alike
    pictures: list[Block] = []
    x, y = _AXES.get(answer["question"], ("", ""))
    if data := [row for row in rows if x and row.get(x) and row.get(y)]:
        series = next((name for name in ("asked_gpu", "gpu", "model") if name in data[0]), "")
        if series != "model" and len({row.get("model") for row in data}) > 1:
            data = [{**row, "work": f"{row.get('model')} on {row.get(series) or row.get('gpu')}"} for row in data]
            series = "work"
        description = f"Each point is one case: {heading_of(x)} across, {heading_of(y)} up."
        axes = Axis(x, log=True), Axis(y, log=True)
        pictures = [Chart("scatter", "Cost against time", description, data, *axes, series=series)]
    # the best value by the two arguments that move it most; cases without an answer leave their cells empty
    heat = answer["heat"]
    cells = [cell for cell in heat["cells"] if cell["value"] is not None] if heat else []
    if heat and cells:
        best = heat["value"]
        x, y = (heat[axis].removeprefix("asked_") for axis in ("x", "y"))
        lowest, across, up = heading_of(best), heading_of(x), heading_of(y)
        description = f"Each cell shows the lowest {lowest} of the cases with its {across} and {up}."
        title = f"Lowest {lowest} by {across} and {up}"
        data = [{**cell, best: cell["value"]} for cell in cells]
        pictures.append(Chart("heat", title, description, data, Axis("x", x), Axis("y", y), value=best))
    next_step = "--details (more cases, why some have no answer), -o FILE.parquet, FILE.csv or FILE.html"
    return document_of(
        answer,
        f"Sweep of {answer['question']}",
        Section("First cases", _table("", rows, answer, note), paper=True),
        Section(_BEST, _table("", answer.get("best_of_each") or [], answer), paper=True),
        Section("Best trade-offs between cost and time", _table("", answer["front"], answer)),
        Section("Without an answer", table_of("", answer["reasons"], "reason", "cases")),
        Section("Pictures", pictures, detail=True),
        screen=(*_screen(answer), Paragraph(f"Next: {next_step}.")),
    )


def _screen(answer: Sweep) -> list[Block]:
    """Return what one screen shows: the cases that no other one beats, else the first, each with its cluster."""
    # `best` asks for the first case of each kind of work; else the front of cost against time is the answer
    several = "best" in answer["request"]
    front = (answer.get("best_of_each") or []) if several else answer["front"]
    rows = [row for row in front or answer["rows"][:_ROWS_SHOWN] if row.get("gpus") is not None and row.get("option")]
    goals = _AXES.get(answer["question"])
    levels = [row for row in answer["rows"] if row.get("held_requests_per_s") is not None]
    if levels and not several:
        shown = (*_moving(levels[0], answer), *columns_of("sweep levels"))
        return [Table(shown, levels[:_ROWS_SHOWN], "Within the service level")]
    if goals is None or not rows:
        return _table("", front or answer["rows"][:_ROWS_SHOWN], answer)  # questions without a cluster
    rows_with_cluster = [
        {**row, "cluster": f"{row['gpus']:,.0f} × {row['gpu']}", "option": option_text(row["option"], 0)}
        for row in rows
    ]
    argument_columns = _moving(rows[0], answer)
    title = (_BEST if several else "Best trade-offs between cost and time") if front else "First cases"
    goal_columns = [Column(key, "cost" if key == "usd_per_mtok" else "") for key in goals]
    sellers = Column("provider", priority=1), Column("option", priority=2)
    return [Table((*argument_columns, Column("cluster"), *goal_columns, *sellers), rows_with_cluster, title)]


def _moving(row: Row, answer: Sweep) -> list[Column]:
    """Return the columns of the arguments that move, but for the accelerators, which rows name anyway."""
    names = {key: key.removeprefix("asked_") for key in row if key not in ("gpu", "gpus", "asked_gpu", "asked_gpus")}
    return [Column(key, flag_of(name)) for key, name in names.items() if answer["axes"].get(name, 1) > 1]


def _table(title: str, rows: Sequence[Row], answer: Sweep, note: str = "") -> list[Block]:
    """Return a table of the columns that hold something: arguments that move first, the rest as there is room."""
    if not rows:
        return []
    # an argument that is the same in every case says nothing in a column
    fixed = {name for name, count in answer["axes"].items() if count == 1}
    filled = [key for key in rows[0] if any(row[key] is not None for row in rows) and key not in fixed]
    moving = [key for key in filled if key.removeprefix("asked_") in answer["axes"]]
    goals = [key for key in _AXES.get(answer["question"], ("own_npv_usd", "rent_npv_usd")) if key in filled]
    secondary = [key for key in filled if key not in (*moving, *goals)]
    order = [*moving, *goals, *sorted(secondary, key=lambda key: key in _LAST)]
    leading = len(moving) + len(goals) + 1  # these and one more are never hidden
    headings = tuple(Column(key, priority=max(0, number - leading)) for number, key in enumerate(order))
    return [Table(headings, rows, title, note, interactive=True)]
