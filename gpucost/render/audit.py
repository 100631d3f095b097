"""The document of an audit: the verdict, the checks, and what would be true."""

from collections.abc import Sequence
from typing import Literal

from gpucost.answers.checks import Audit
from gpucost.render.document import (
    Column,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Section,
    Table,
    about,
    amount,
    columns_of,
    document_of,
)
from gpucost.render.fit import METHODS
from gpucost.render.offers import time_text
from gpucost.render.wording import chip_label

_RIGHT = "possible"
_MOST_REASONS = 3  # of one screen


def document(answer: Audit) -> Document:
    """Build the document of an audit."""
    explanations = [Paragraph(f"{row['name']}: {row['explanation']}") for row in answer["checks"]]
    return document_of(
        answer,
        "Is the claim possible?",
        Section("Checks", [Table(columns_of("audit"), answer["checks"]), *explanations]),
        Section("How the claim was read", [Paragraph(note, "note") for note in answer["notes"]]),
        screen=_screen(answer),
        name=_name(answer),
    )


def _screen(answer: Audit) -> tuple[Table, KeyFigures, Paragraph]:
    """Return what one screen shows: each figure beside what is likely, why the worst are wrong, how it was read."""
    stated = [value for value in answer["request"].values() if isinstance(value, (int, float))]
    rows = [
        {
            "check": row["name"],
            "verdict": row["verdict"],
            **{key: _figure(row[key], row["unit"], stated) for key in _FIGURES},
        }
        for row in answer["checks"]
    ]
    wrong = [row for row in answer["checks"] if row["verdict"] != _RIGHT] or answer["checks"]
    order = sorted(wrong, key=lambda row: row["verdict"] != answer["verdict"])  # the worst first
    facts = [Fact(row["name"].capitalize(), f"{row['verdict']}: {row['explanation']}") for row in order[:_MOST_REASONS]]
    if answer["request"].get("tokens"):
        facts.append(Fact("Assumes", f"{METHODS[answer['request']['method']]} (--method)."))
    facts += [Fact("Read as", " ".join(answer["notes"]))] if answer["notes"] else []
    ask = "Each check explained: --details · say more: --gpus, --precision, --method"
    return (Table(_CHECKS, rows), KeyFigures(tuple(facts)), Paragraph(ask))


_FIGURES: tuple[Literal["value", "low", "typical", "high"], ...] = ("value", "low", "typical", "high")
_CHECKS = (
    Column("check", heading=" "),
    Column("verdict"),
    Column("value", "claim", right=True),
    Column("low", "at least", right=True, priority=1),
    Column("typical", "likely", right=True),
    Column("high", "at most", right=True, priority=1),
)


def _figure(value: float | None, unit: str, stated: Sequence[float]) -> str | None:
    """Write what a claim states as it stands there, an estimate with as many digits as are known."""
    if value is None or value in stated:
        return None if value is None else amount(value, unit)
    return about(value) if unit == "USD" else time_text(value) if unit == "days" else amount(value, unit)


def _name(answer: Audit) -> str:
    """Name what the claim speaks of."""
    asked = answer["request"]
    gpus = f"{asked['gpus']:,} × " if asked.get("gpus") else ""
    chip = f"{gpus}{chip_label(str(asked['gpu']))}" if asked.get("gpu") else ""
    subjects = [str(asked[name]) for name in ("model",) if asked.get(name)] + ([chip] if chip else [])
    return f"Check a claim about {' on '.join(subjects)}" if subjects else "Check a claim"
