"""The document of a validation: figures in total, by source, the worst rows, what was skipped, the baselines."""

from collections.abc import Mapping
from typing import Any

from gpucost.render.build import frame
from gpucost.render.document import Document, Fact, Facts, Paragraph, Section, Table, columns

TITLES = {"training": "Training speed", "memory": "Training memory", "serving": "Serving"}
BASELINES = {
    "constant_mfu": "constant MFU, by accelerator family and precision, from the other sources",
    "six_n_d_at_40_percent": "6·N·D at 40 % of the dense peak",
}


def document(payload: Mapping[str, Any]) -> Document:
    """Return the document of a validation's payload."""
    title = f"{TITLES[payload['validated']]}: predicted against measured"
    sections = [total(payload), sources(payload), worst(payload), skipped(payload)]
    return frame(payload, title, lead(payload), [section for section in sections if section.blocks])


def lead(payload: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    macro = payload["macro_median_abs_error_fraction"]
    if macro is None:
        return f"None of {payload['rows']} rows could be predicted."
    return (
        f"{payload['predicted']} of {payload['rows']} rows predicted: the median error is {macro:.1%} as the mean over "
        f"sources, {payload['median_abs_error_fraction']:.1%} over rows; {payload['method']}."
    )


def total(payload: Mapping[str, Any]) -> Section:
    """Return the figures over all rows, and those of the rules to beat."""
    coverage = payload["interval_coverage_fraction"]
    facts = Facts(
        (
            Fact("Macro-median error", payload["macro_median_abs_error_fraction"], "fraction"),
            Fact("Median error", payload["median_abs_error_fraction"], "fraction"),
            Fact("90th percentile of the error", payload["p90_abs_error_fraction"], "fraction"),
            Fact("Bias", payload["bias_fraction"], "fraction", note="median of predicted ÷ measured − 1"),
            Fact("Spread between sources", payload["source_bias_sd_fraction"], "fraction", note="standard deviation"),
            Fact("Spread within a source", payload["within_source_fraction"], "fraction", note="median deviation"),
            Fact("Rows inside the 80 % range", coverage, "fraction"),
            Fact("Median of high ÷ low", payload["median_high_low_ratio"], "ratio"),
        )
    )
    rows = [{"rule": BASELINES.get(name, name), **figures} for name, figures in payload.get("baselines", {}).items()]
    apart = payload.get("from_flop_rates") or {}
    if apart.get("predicted"):
        rows.append({"rule": "this model, rows that state only TFLOP/s or MFU (not counted above)", **apart})
    heading = columns(
        "rule",
        "predicted",
        "macro_median_abs_error_fraction=macro-median",
        "median_abs_error_fraction=median",
        "p90_abs_error_fraction=90th percentile",
    )
    blocks: list[Any] = [facts] if payload["predicted"] else []
    if rows:
        blocks.append(Table(heading, rows, title="Beside it"))
    return Section("In total", tuple(blocks))


def sources(payload: Mapping[str, Any]) -> Section:
    """Return the figures by source."""
    heading = columns(
        "source", "rows", "predicted:4", "skipped:3", "median_abs_error_fraction=median", "bias_fraction=bias:1",
        "p90_abs_error_fraction=90th percentile:2", "interval_coverage_fraction=inside range:2",
    )  # fmt: skip
    return Section("By source", (Table(heading, payload["by_source"]),) if payload["by_source"] else ())


def worst(payload: Mapping[str, Any]) -> Section:
    """Return the rows with the largest errors."""
    rows = {row["id"]: row for row in payload["items"]}
    picked = [rows[name] for name in payload["worst"]]
    heading = columns(
        "id", "source:2", "metric:4", "measured:1", "predicted", "low:3", "high:3", "error_fraction=error"
    )
    note = "A mark beside a prediction (an assumed batch, the nearest chip) stands in the JSON output."
    return Section("Worst rows", (Table(heading, picked, note=note),) if picked else ())


def skipped(payload: Mapping[str, Any]) -> Section:
    """Return what was skipped, with reasons."""
    rows = payload["skipped"]
    if not rows:
        return Section("Skipped", (Paragraph("Nothing was skipped."),))
    return Section("Skipped", (Table(columns("id", "reason"), rows),))
