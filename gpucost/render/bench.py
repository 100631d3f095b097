"""The document of a bench: measured against the datasheet and machines on record, and the roofline."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.document import Axis, Block, Chart, Document, Paragraph, Section, Table, columns

COLUMNS = (
    "what", "measured", "low", "high", "peak", "unit:2", "share_fraction=of the peak", "usual_fraction=usual:1",
    "place:2", "verdict",
)  # fmt: skip
NOTE = (
    "usual: median share of machines on record, for training steps of the sources that published some on this chip; "
    "place: this machine among them, the best first; low and high stand where rounds differ by more than 3 % or "
    "repetitions swing by more than 4 %."
)


def document(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    roof: Sequence[Mapping[str, Any]],
    findings: Sequence[str],
    *,
    as_of: str,
    catalog_version: str,
) -> Document:
    """Return the document of a bench."""
    shown = Table(columns(*COLUMNS), rows, note=NOTE)
    sections = [
        Section("", (shown,)) if rows else None,
        Section("Achieved share of each peak", (shares(rows),)) if rows else None,
        Section("Roofline, as measured and as the datasheet has it", plot(roof)) if roof else None,
    ]
    filled = tuple(section for section in sections if section)
    return Document(title, filled, as_of=as_of, catalog_version=catalog_version, warnings=tuple(findings))


def shares(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the shares as bars."""
    known = [row for row in rows if row["share_fraction"] is not None]
    words = "; ".join(f"{row['what']} {row['share_fraction']:.0%}" for row in known)
    what, share = Axis("what"), Axis("share_fraction", "share of the datasheet's peak", "fraction of one")
    return Chart("bar", "Achieved share of the datasheet's peak", words, known, what, share)


def plot(roof: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Return the two roofs and the products under them."""
    flat = {curve: max(row["reached_tflops"] for row in roof if row["curve"] == curve)
            for curve in ("datasheet", "measured")}  # fmt: skip
    words = (
        f"The datasheet's roof is {flat['datasheet']:,.0f} TFLOP/s, the measured one {flat['measured']:,.0f};"
        " products of few rows lie on the slope, where memory bounds them."
    )
    marks = "Points are the fastest product of each number of rows, which they bear as their name."
    x = Axis("intensity_flop_per_byte", "intensity", "FLOP per byte", log=True)
    y = Axis("reached_tflops", "speed", "TFLOP/s", log=True)
    chart = Chart("roofline", "bf16 products", marks, list(roof), x, y, series="curve", label="operation")
    return Paragraph(words), chart
