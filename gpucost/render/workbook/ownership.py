"""The live model of rent or buy: the inputs of the saved answer under the formulas of this version, and no others."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from gpucost.errors import UsageError
from gpucost.money import comparison
from gpucost.render.workbook.live import LiveInput, LiveModel
from gpucost.units import unit_of


def ownership_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model, or None where the answer carries no inputs."""
    block = payload.get("model")
    if not block:
        return None
    if block.get("formulas") != comparison.FORMULAS:
        raise UsageError(
            "this answer was computed by the formulas of another version, and a workbook holds only those of this"
            " one. Ask the question again with `gpucost tco` and save its answer."
        )
    shown = [line.name for line in comparison.ANSWERS]
    said = {row["name"]: row.get("value") for row in (*block["derived"], *block["answers"])}
    return LiveModel(
        key=key,
        title=title,
        inputs=tuple(_fitting(_input(row), int(block["months"])) for row in block["inputs"]),
        derived=comparison.SCALARS,
        answer="npv_saving_usd",
        shown=tuple(shown),
        lower_is_better=False,
        tables=block["tables"],
        monthly=comparison.BY_MONTH,
        answers=comparison.ANSWERS,
        months=int(block["months"]),
        scenarios={row["name"]: row["changes"] for row in payload.get("scenarios") or () if row["changes"]} or None,
        ways=[row for row in payload["options"] if "rival" in row],
        periods=_periods(payload, int(block["months"])),
        compared_months=len(payload["cash_flows"]) - 1,
        expected={name: value for name, value in said.items() if isinstance(value, (int, float))},
    )


def _periods(payload: Mapping[str, Any], months: int) -> list[tuple[str, str, str]]:
    """Return fiscal year, quarter and name of the months, from the day of the first."""
    said = payload.get("statements")
    if not said:
        return []
    first, end = date.fromisoformat(payload["cash_flows"][0]["on"]), int(said["fiscal_year_end_month"])
    found = []
    for month in range(first.month - 1, first.month + months):
        calendar, place = first.year + month // 12, month % 12 + 1
        year, quarter = calendar + (place > end), (place - end - 1) % 12 // 3 + 1
        found.append((f"FY{year}", f"FY{year} Q{quarter}", f"{calendar}-{place:02d}"))
    return found


def _fitting(entry: LiveInput, months: int) -> LiveInput:
    """Refuse a comparison that is longer than the sheet of its months."""
    return replace(entry, maximum=float(months)) if entry.name == "months" else entry


def _input(row: Mapping[str, Any]) -> LiveInput:
    name = str(row["name"])
    if not (name.isascii() and name.isidentifier()):
        raise UsageError(f"the saved answer has an input called {name[:40]!r}, which no formula can name.")
    return LiveInput(
        name,
        row["value"],
        row.get("unit") or unit_of(name),
        row.get("low"),
        row.get("high"),
        source_id=row.get("source_id") or "",
        status=row.get("status") or "",
        group=row.get("group") or "inputs",
        description=row.get("description") or "",
        choices=tuple(str(choice) for choice in row.get("choices") or () if choice),
        minimum=row.get("minimum"),
        maximum=row.get("maximum"),
        observed=str(row.get("observed") or ""),
    )
