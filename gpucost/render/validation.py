"""The document of a validation: figures in total, by source, the worst rows, what was skipped, the baselines.

The predictions and their errors are made in gpucost/calibration; nothing is computed here but their order.
"""

from math import log

from gpucost.answers.checks import Validation
from gpucost.render.document import (
    Block,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    columns_of,
    document_of,
    table_of,
)

_TITLES = {
    "training": "Training speed",
    "memory": "Training memory",
    "serving": "Serving",
    "load": "Load tests",
    "rl": "Steps of reinforcement learning",
    "runs": "Whole runs",
}
FEW, WORST = 45, 10  # figures that are all shown; else so many of the worst
_BASELINES = {
    "constant_mfu": "constant MFU, by accelerator family and precision, from the other sources",
    "six_n_d_at_40_percent": "6·N·D at 40 % of the dense peak",
}


def document(answer: Validation) -> Document:
    """Return the document of a validation."""
    # by ratio, so that half as fast is as wrong as twice as fast
    worst_first = sorted(answer["items"], key=lambda row: -abs(log(row["predicted"] / row["measured"])))
    shows_all = len(worst_first) <= FEW
    note = "The JSON output notes what a prediction assumed, such as a batch or the nearest chip."
    return document_of(
        answer,
        f"{_TITLES[answer['validated']]}: predicted against measured",
        Section("Overall", _overall(answer)),
        Section("By source", table_of("", answer["by_source"], *columns_of("validation sources"))),
        Section(
            "Every figure" if shows_all else "Worst figures",
            table_of(
                "", answer["items"] if shows_all else worst_first[:WORST], *columns_of("validation worst"), note=note
            ),
        ),
        Section("Skipped", table_of("", answer["skipped"], "id", "reason")),
    )


def _overall(answer: Validation) -> list[Block]:
    """Return the figures over all rows, by metric, and those of the rules to beat."""
    share = "fraction of one"
    facts = KeyFigures(
        (
            Fact("Macro-median error", answer["macro_median_abs_error_fraction"], share),
            Fact("Median error", answer["median_abs_error_fraction"], share),
            Fact("90th percentile of the error", answer["p90_abs_error_fraction"], share),
            Fact("Bias", answer["bias_fraction"], share, note="median of predicted ÷ measured − 1"),
            Fact("Spread between sources", answer["source_bias_sd_fraction"], share, note="standard deviation"),
            Fact("Spread within a source", answer["within_source_fraction"], share, note="median deviation"),
            Fact("Rows inside the 80 % range", answer["interval_coverage_fraction"], share),
            Fact("Median of high ÷ low", answer["median_high_low_ratio"], "ratio"),
        )
    )
    baselines: list[Row] = [
        {"rule": _BASELINES[name], **figures} for name, figures in answer.get("baselines", {}).items()
    ]
    # sources that state TFLOP/s or MFU alone leave open how they count FLOP: shown beside the others, never among them
    flop_rates = answer.get("from_flop_rates")
    if flop_rates is not None and flop_rates["predicted"]:
        baselines.append({"rule": "this model, rows that state only TFLOP/s or MFU (not counted above)", **flop_rates})
    metrics: list[Row] = [{"metric": name, **figures} for name, figures in answer.get("by_metric", {}).items()]
    caveat = [Paragraph(answer["caveat"], "note")] if "caveat" in answer else []
    return [
        *([facts] if answer["predicted"] else []),
        *table_of("Baselines", baselines, "rule", *columns_of("validation figures")),
        *table_of("By metric", metrics, "metric", *columns_of("validation figures")),
        *caveat,
    ]
