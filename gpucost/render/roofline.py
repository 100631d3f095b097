"""The document of a roofline: the verdict, the plot, each operation under its roofs."""

from gpucost.answers.speed import BOUND_WORDS, Roofline
from gpucost.render.document import Axis, Chart, Document, Fact, KeyFigures, Section, Table, columns, document_of

_POINTS = columns(
    "operation", "time_s=time", "share_fraction=share:1", "bound=bound by", "intensity_flop_per_byte=FLOP per byte:1",
    "compute_s=compute alone:2", "bandwidth_s=bandwidth alone:2", "network_s=network alone:2",
)  # fmt: skip


def document(answer: Roofline) -> Document:
    """Return the document of a roofline."""
    return document_of(
        answer,
        f"Roofline: {answer['subject']}",
        Section("Roofs", [roofs(answer)]),
        Section("Plot", plot(answer)),
        Section("Under the roofs", [table(answer)]),
    )


def roofs(answer: Roofline) -> KeyFigures:
    """Return the roofs of the chip."""
    return KeyFigures(
        (
            Fact(f"Dense {answer['precision']} peak", answer["peak_tflops"], "TFLOP per second, dense"),
            Fact("Memory bandwidth", answer["hbm_gb_per_s"], "GB per second, one direction"),
            Fact("Ridge", answer["ridge_flop_per_byte"], "FLOP per byte"),
            Fact("Scale-up link", answer["scaleup_gb_per_s"], "GB per second, one direction"),
            Fact("Scale-out network", answer["scaleout_gb_per_s"], "GB per second, one direction"),
        )
    )


def plot(answer: Roofline) -> list[Chart]:
    """Return the roofline plot: the roof, and each operation at the speed that it reaches."""
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
    words = "; ".join(
        f"{name} at {intensity:,.0f} FLOP per byte reaches {reached:,.0f} TFLOP/s"
        for name, intensity, reached in points
    )
    chart = Chart(
        kind="roofline",
        title="Speed against intensity",
        description=f"{words}. The ridge is at {answer['ridge_flop_per_byte']:,.0f} FLOP per byte.",
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
    return Table(_POINTS, rows, note="'alone': the time at the nominal peak of that roof only.")
