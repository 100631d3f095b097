"""What a refresh changed, in words that a person reads before saying yes; and what nobody could read."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from gpucost.catalog.loader import engine, file_name
from gpucost.refresh.integrity import UNKNOWN_KIND, SourceOutcome
from gpucost.store.folder import Folder

_MOST = 400  # rows of a table of changes
_LEAST_MOVE = 0.0005  # of a price: below it a listing was rounded otherwise


def changes_of(outcomes: Sequence[SourceOutcome], folder: Folder) -> str:
    """Return the changes of a refresh as Markdown: by source what moved, came and went, and what waits for a yes."""
    lines = ["# Prices refreshed", ""]
    for item in outcomes:
        if item.state == "skipped":
            continue
        counts = item.verdict
        if item.state == "failed":
            lines += [f"## {item.source}: failed", "", f"{item.reason} Its earlier prices stay.", ""]
            continue
        lines += [
            f"## {item.source}",
            "",
            f"{counts.rows:,} prices: {counts.changed:,} changed, {counts.new:,} new, {counts.gone:,} gone,"
            f" {counts.same:,} as before.",
            "",
        ]
        if item.failures:
            # each failure begins with the part that it is of
            names = ", ".join(text.partition(": ")[0] for text in item.failures)
            lines.append(
                f"- {len(item.failures)} of its parts could not be read: {names}. The first: {item.failures[0]}"
            )
        for reason, count in counts.held.items():
            shown = "; ".join(counts.examples.get(reason, ()))
            lines.append(f"- **Waits for `--accept`**: {count:,}, {reason}: {shown}.")
        for reason, count in counts.unknown.items():
            shown = "; ".join(counts.examples.get(reason, ()))
            lines.append(f"- Kept apart: {count:,}, {reason}: {shown}.")
        if lines[-1]:
            lines.append("")
        rows = [row for part in item.parts if part.kind == "offers" for row in moved(folder, item.source)]
        if rows:
            lines.append("| seller | machine | region | option | before | now | move |")
            lines.append("|---|---|---|---|--:|--:|--:|")
        for row in rows[:_MOST]:
            machine = f"{row['instance_type']} ({row['gpus']} x {row['gpu']})"
            prices = f"{_usd(row['was'])} | {_usd(row['now'])} | {row['move']}"
            lines.append(f"| {row['provider']} | {machine} | {row['region'] or 'any'} | {row['option']} | {prices} |")
        if len(rows) > _MOST:
            lines += ["", f"{len(rows) - _MOST:,} further changes are not shown."]
        if rows:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _usd(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def moved(folder: Folder, source: str) -> list[dict[str, Any]]:
    """Return what moved, came and went between the last two refreshes of a source, the largest moves first."""
    files: list[Path] = []  # of its last two refreshes, the newest first
    for snapshot in reversed(folder.snapshots):
        for part in snapshot.parts:
            if (part.kind, part.source) == ("offers", source) and (file := folder.part_file(part)) is not None:
                files.append(file)
        if len(files) > 1:
            break
    if not files:
        return []
    now = f"SELECT * FROM read_parquet({file_name(files[0])}) WHERE NOT gone"
    # before the first refresh of a source there was nothing
    was = f"SELECT * FROM read_parquet({file_name(files[1])}) WHERE NOT gone" if len(files) > 1 else f"{now} AND false"
    both = ("provider", "instance_type", "gpus", "gpu", "region", "option")
    columns = ", ".join(f"coalesce(n.{name}, e.{name}) AS {name}" for name in both)
    sql = f"""SELECT {columns}, e.usd_per_hour AS was, n.usd_per_hour AS now
        FROM ({now}) AS n FULL JOIN ({was}) AS e USING (offer_id)
        WHERE n.usd_per_hour IS NULL OR e.usd_per_hour IS NULL
            OR abs(n.usd_per_hour / e.usd_per_hour - 1) >= {_LEAST_MOVE}
        ORDER BY abs(ln(n.usd_per_hour / e.usd_per_hour)) DESC NULLS LAST, 1, 2, 3, 4, 5, 6"""
    rows = records_of(sql)
    for row in rows:
        if row["now"] is None or row["was"] is None:
            row["move"] = "gone" if row["now"] is None else "new"
        else:
            row["move"] = f"{row['now'] / row['was'] - 1:+.1%}"
    return rows


def unknown_rows(folder: Folder) -> list[dict[str, Any]]:
    """Return what each source named in its last refresh and nobody could read: in how many regions, since when."""
    rows = []
    for _, part, file in folder.newest():
        if part.kind == UNKNOWN_KIND:
            sql = f"""SELECT provider, description, count(DISTINCT region) AS regions,
                min(usd_per_hour) AS usd_per_hour, min(reason) AS reason,
                CAST(min(first_seen_on) AS VARCHAR) AS first_seen_on,
                CAST(max(observed_on) AS VARCHAR) AS observed_on FROM read_parquet({file_name(file)})
                GROUP BY provider, description ORDER BY first_seen_on DESC, provider, description"""
            rows += [{"source": part.source, **row} for row in records_of(sql)]
    return rows


def records_of(sql: str) -> list[dict[str, Any]]:
    """Return what a query of files gives, a mapping for each row."""
    with closing(engine().connect(":memory:")) as connection:
        cursor = connection.execute(sql)
        names: Iterable[str] = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
