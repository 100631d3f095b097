"""The document of a roofline: the verdict, the plot, each operation under its roofs."""

from gpucost.answers.training import BOUND_WORDS, Roofline
from gpucost.render.document import (
    Axis,
    Chart,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Section,
    Table,
    columns_of,
    document_of,
)

_MOST_POINTS, _MOST_CHANGES = 8, 4  # on one screen; the document shows all


def document(answer: Roofline) -> Document:
    """Return the document of a roofline."""
    roofs = (
        Fact(f"Dense {answer['precision']} peak", answer["peak_tflops"], "TFLOP per second, dense"),
        Fact("Memory bandwidth", answer["hbm_gb_per_s"], "GB per second, one direction"),
        # from so many FLOP for each byte on, the peak limits and not the memory (Williams et al. 2009)
        Fact("Ridge", answer["ridge_flop_per_byte"], "FLOP per byte"),
        Fact("Scale-up link", answer["scaleup_gb_per_s"], "GB per second, one direction"),
        Fact("Scale-out network", answer["scaleout_gb_per_s"], "GB per second, one direction"),
    )
    # a screen shows the operations that take longest; of a step each has its share of the time, alone it has none
    points = answer["points"][:_MOST_POINTS]
    several = len({row["share_fraction"] for row in points}) > 1
    names = columns_of("roofline step" if several else "roofline operation")
    rows = [{**row, "bound": BOUND_WORDS[row["bound"]]} for row in points]
    next_step = "Next: --details (roofs, plot, time under each roof alone), --precision, --gpus, -o roofline.html."
    return document_of(
        answer,
        f"Roofline: {answer['subject']}",
        Section("Roofs", [KeyFigures(roofs)]),
        Section("Plot", plot(answer)),
        Section("Operations under the roofs", [table(answer)]),
        Section("What would help", _advice(answer)),
        screen=(Table(names, rows), *_advice(answer, _MOST_CHANGES, "What would help"), Paragraph(next_step)),
    )


def _advice(answer: Roofline, most: int | None = None, title: str = "") -> list[Table]:
    """Return the changes that were tried, with what each gains."""
    rows = [{**row, "gain": f"{row['gain_ratio']:.2f} ×"} for row in (answer.get("advice") or ())[:most]]
    return [Table(columns_of("roofline advice"), rows, title)] if rows else []


def plot(answer: Roofline) -> list[Chart]:
    """Return the roofline plot: the roof, and each operation at the speed that it reaches."""
    # what moves no bytes, or takes no time, has no place on logarithmic axes
    points = [
        (row["operation"], row["intensity_flop_per_byte"], row["reached_tflops"])
        for row in answer["points"]
        if row["intensity_flop_per_byte"] and row["reached_tflops"]
    ]
    if not points:
        return []
    roof = [{**row, "operation": "", "curve": "roof"} for row in answer["roof"]]
    marks = [
        {"intensity_flop_per_byte": intensity, "attainable_tflops": reached, "operation": name, "curve": "reached"}
        for name, intensity, reached in points
    ]
    description = "; ".join(
        f"{name} at {intensity:,.0f} FLOP per byte reaches {reached:,.0f} TFLOP/s"
        for name, intensity, reached in points
    )
    chart = Chart(
        kind="roofline",
        title="Speed against intensity",
        description=f"{description}. The ridge is at {answer['ridge_flop_per_byte']:,.0f} FLOP per byte.",
        data=[*roof, *marks],
        x=Axis("intensity_flop_per_byte", "intensity", "FLOP per byte", log=True),
        y=Axis("attainable_tflops", "speed", "TFLOP/s", log=True),
        series="curve",
        label="operation",
    )
    return [chart]


def table(answer: Roofline) -> Table:
    """Return each operation: the time each roof alone would need, and the time predicted."""
    rows = [{**row, "bound": BOUND_WORDS[row["bound"]]} for row in answer["points"]]
    return Table(columns_of("roofline"), rows, note="'alone': the time if only that roof applied, at its nominal peak.")
