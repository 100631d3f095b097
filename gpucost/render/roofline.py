"""The document of a roofline: the verdict, the plot, each operation under its roofs."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Axis, Chart, Document, Fact, Facts, Section, Table, columns
from gpucost.render.throughput import BOUND_WORDS


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of a roofline payload."""
    sections = [
        Section("Roofs", (roofs(payload),)),
        Section("Plot", plot(payload)),
        Section("Under the roofs", (table(payload),)),
    ]
    return frame(payload, f"Roofline: {payload['subject']}", lead(payload), [s for s in sections if s.blocks])


def lead(payload: Mapping[str, Any]) -> str:
    """Return the verdict in one sentence."""
    rows = payload["points"]
    if len(rows) == 1:
        row, ridge = rows[0], payload["ridge_flop_per_byte"]
        intensity = row["intensity_flop_per_byte"]
        if intensity is None:
            return f"Bound by {BOUND_WORDS[row['bound']]}: it multiplies nothing."
        side = "above" if intensity > ridge else "below"
        return (
            f"Bound by {BOUND_WORDS[row['bound']]}: {intensity:,.0f} FLOP per byte, {side} the ridge of {ridge:,.0f}."
        )
    shares: dict[str, float] = {}
    for row in rows:
        shares[row["bound"]] = shares.get(row["bound"], 0.0) + row["share_fraction"]
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return (
        "Of the step's time, "
        + ", ".join(f"{share:.0%} is bound by {BOUND_WORDS[name]}" for name, share in ranked)
        + "."
    )


def roofs(payload: Mapping[str, Any]) -> Facts:
    """Return the roofs of the chip."""
    return Facts(
        (
            Fact(f"Dense {payload['precision']} peak", payload["peak_tflops"], "TFLOP per second, dense"),
            Fact("Memory bandwidth", payload["hbm_gb_per_s"], "GB per second, one direction"),
            Fact("Ridge", payload["ridge_flop_per_byte"], "FLOP per byte"),
            Fact("Scale-up link", payload["scaleup_gb_per_s"], "GB per second, one direction"),
            Fact("Scale-out network", payload["scaleout_gb_per_s"], "GB per second, one direction"),
        )
    )


def plot(payload: Mapping[str, Any]) -> tuple[Chart, ...]:
    """Return the roofline plot: the roof, and each operation at the speed that it reaches."""
    points = [row for row in payload["points"] if row.get("intensity_flop_per_byte") and row.get("reached_tflops")]
    if not points:
        return ()
    roof = [{**row, "operation": "", "curve": "roof"} for row in payload["roof"]]
    marks = [
        {
            "intensity_flop_per_byte": row["intensity_flop_per_byte"],
            "attainable_tflops": row["reached_tflops"],
            "operation": row["operation"],
            "curve": "reached",
        }
        for row in points
    ]
    words = "; ".join(
        f"{row['operation']} at {row['intensity_flop_per_byte']:,.0f} FLOP per byte reaches "
        f"{row['reached_tflops']:,.0f} TFLOP/s"
        for row in points
    )
    chart = Chart(
        kind="roofline",
        title="Speed against intensity",
        description=f"{words}. The ridge is at {payload['ridge_flop_per_byte']:,.0f} FLOP per byte.",
        data=[*roof, *marks],
        x=Axis("intensity_flop_per_byte", "intensity", "FLOP per byte", log=True),
        y=Axis("attainable_tflops", "speed", "TFLOP/s", log=True),
        series="curve",
        label="operation",
    )
    return (chart,)


def table(payload: Mapping[str, Any]) -> Table:
    """Return each operation: the time each roof alone would need, and the time predicted."""
    rows = [{**row, "bound": BOUND_WORDS[row["bound"]]} for row in payload["points"]]
    heading = columns(
        "operation",
        "time_s=time",
        "share_fraction=share:1",
        "bound=bound by",
        "intensity_flop_per_byte=FLOP per byte:1",
        "compute_s=compute alone:2",
        "bandwidth_s=bandwidth alone:2",
        "network_s=network alone:2",
    )
    return Table(heading, rows, note="'alone': the time at the nominal peak of that roof only.")
