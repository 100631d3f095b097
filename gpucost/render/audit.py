"""The document of an audit: the verdict, the checks, and what would be true."""

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
    # a claim may name a model, hardware, both or neither
    request = answer["request"]
    gpus = f"{request['gpus']:,} × " if request.get("gpus") else ""
    subjects = [str(request["model"])] if request.get("model") else []
    subjects += [f"{gpus}{chip_label(str(request['gpu']))}"] if request.get("gpu") else []
    name = f"Check a claim about {' on '.join(subjects)}" if subjects else "Check a claim"
    return document_of(
        answer,
        "Is the claim possible?",
        Section("Checks", [Table(columns_of("audit"), answer["checks"]), *explanations]),
        Section("How the claim was read", [Paragraph(note, "note") for note in answer["notes"]]),
        screen=_screen(answer),
        name=name,
    )


def _screen(answer: Audit) -> tuple[Table, KeyFigures, Paragraph]:
    """Return what one screen shows: each figure beside what is likely, why the worst are wrong, how it was read."""
    stated = [value for value in answer["request"].values() if isinstance(value, (int, float))]
    rows = []
    for row in answer["checks"]:
        cells: dict[str, str | None] = {"check": row["name"], "verdict": row["verdict"]}
        for key in _FIGURES:
            value, unit = row[key], row["unit"]
            if value is None:
                cells[key] = None
            elif value in stated:  # a claim's own figure stands as it was made
                cells[key] = amount(value, unit)
            elif unit == "USD":  # an estimate has as many digits as are known
                cells[key] = about(value)
            else:
                cells[key] = time_text(value) if unit == "days" else amount(value, unit)
        rows.append(cells)
    wrong = [row for row in answer["checks"] if row["verdict"] != _RIGHT] or answer["checks"]
    # the verdict of the whole is that of the worst check: those of that verdict first
    order = sorted(wrong, key=lambda row: row["verdict"] != answer["verdict"])
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
