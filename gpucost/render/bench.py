"""The document of a bench: measured against the datasheet and machines on record, and the roofline."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.render.document import Axis, Block, Chart, Document, Paragraph, Section, Table, columns, columns_of

NOTE = (
    "Usual: median share of the machines on record; for training steps, of published runs on this chip. "
    "Place: rank of this machine among them, best first. A range is shown where rounds differ by more than 3 % or "
    "repetitions vary by more than 4 %. Training steps count model FLOP."
)


def document(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    roof: Sequence[Mapping[str, Any]],
    ranges: Sequence[Mapping[str, Any]],
    findings: Sequence[str],
    *,
    list_name: str = "bench",
    as_of: str,
    catalog_version: str,
) -> Document:
    """Return the document of a bench."""
    spans = [f"{row['low']:,.4g} to {row['high']:,.4g}" if row["low"] else None for row in rows]
    measured_rows = [{**row, "range": span} for row, span in zip(rows, spans, strict=True)]
    # a list of one kind of measurement leaves most columns of the table empty
    filled = tuple(column for column in columns_of(list_name) if any(row[column.key] for row in measured_rows))
    peaks = any(row["share_fraction"] for row in rows)  # a chip without a datasheet has none
    sections = [
        Section("", (Table(filled, measured_rows, note=NOTE if peaks else ""),)) if rows else None,
        Section("Against the datasheet", (shares(rows),)) if peaks else None,
        Section("Roofline, measured and from the datasheet", plot(roof)) if roof else None,
        Section("Measurements that vary too much for a figure", (Table(columns("case", "low_ms", "high_ms"), ranges),))
        if ranges
        else None,
    ]
    parts = tuple(filter(None, sections))
    return Document(title, parts, as_of=as_of, catalog_version=catalog_version, warnings=tuple(findings))


def shares(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the shares as bars."""
    compared = [row for row in rows if row["share_fraction"] is not None]
    description = "; ".join(f"{row['what']} {row['share_fraction']:.0%}" for row in compared)
    name, share = Axis("what"), Axis("share_fraction", "share of the datasheet's peak", "fraction of one")
    return Chart("bar", "Achieved share of the datasheet's peak", description, compared, name, share)


def plot(roof: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Return the two roofs and the products under them."""
    tops = {row["curve"]: row["reached_tflops"] for row in roof}  # of each curve the end, which is flat
    measured_roof = (
        f"the measured roof {tops['measured']:,.0f}" if "measured" in tops else "no large product was measured"
    )
    description = (
        f"The datasheet's roof is {tops['datasheet']:,.0f} TFLOP/s, {measured_roof};"
        " products of few rows lie on the slope, limited by memory."
    )
    marks = "Each point is the fastest product with a number of rows, its label."
    x = Axis("intensity_flop_per_byte", "intensity", "FLOP per byte", log=True)
    y = Axis("reached_tflops", "speed", "TFLOP/s", log=True)
    chart = Chart("roofline", "bf16 products", marks, list(roof), x, y, series="curve", label="operation")
    return Paragraph(description), chart
