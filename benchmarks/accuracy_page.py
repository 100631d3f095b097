"""The page docs/accuracy.md: the tables of `benchmarks.accuracy` beside the ledger, peers and what is not known.

    python -m docs.generate accuracy.md

Its sentences are written by hand and stand here between the tables that they explain.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import accuracy, terms
from gpucost.calibration import fits, load, measurements, training
from gpucost.catalog import Catalog, open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.serving.efficiency import PARAMETERS as SERVING_PARAMETERS
from gpucost.physics.training.efficiency import PARAMETERS as TRAINING_PARAMETERS

INTRODUCTION = """# How accurate it is

Each source was predicted before anything of it was fitted or looked at, by the model of that day; its line is never
written again (`models/ledger.csv`; figure by figure `models/measurements/first_predictions.csv`; `python -m
tools.ledger enter` writes them). That is what you meet where we have no measurements of your stack.

**Today's model has no such line yet:** it was fitted after all of these sources were entered. Under
*today* it predicts the same figures without their source in its fit, but faults that the first predictions showed were
mended in between: the truth of a source that nobody has seen lies between the two.
"""
CLASSES = """
## First predictions by class of use

An error is |predicted ÷ measured − 1|. Inside is the share of figures within the 80 % range. The score of a range is
its width in logarithms and ten times what lies beyond an end: less is better. The last columns are the median errors of
others on the same rows: 6·N·D at 40 % of the peak; the median MFU of the other sources of the family and precision
(later ones too); a calculator of roofs at half of every peak, as llm-analysis counts; Calculon, on what it can express.
"""
_WORSE = """
## What got worse

Sources of three figures and more that today's model, without them in its fit, predicts worse than the model of their
day did:
"""
_ALSO_WORSE = """
- Mixtures with large experts (Mixtral, DeepSeek) have no outside source since their products follow what an H200
  measured; the one row of Mixtral on Hopper is off by 58 %, where it was by 53.
- Stacks that do not say how they attend have wider ranges: a 1B model on an A100 at 2,048 tokens 0.54 in logarithms,
  where attention said to be fused leaves 0.40.
- Versions 4802c58, 65b5acc and 68ddb84 were steps on the way from 005d43b to e41570f, which joined them in one commit:
  their predictions stand in the ledger, but nobody can run them again.

## First predictions by source
"""
BELOW = """
## Footnote: cross-validation

Made by ourselves: sources are left out of the fit in five parts drawn by a seed, widths too are fitted without them.
The terms of the model were chosen, and its faults found, with all of these sources in view; terms stay where halves of
the sources that took no part in fitting them are predicted better by them ([method](method.md#validation)): of {before}
that was true of {after}. Calculon (commit caa4b11 of 2024-02-22, its own systems and
efficiencies, dense models on A100 and H100 of 80 GB) is {its} off in the median over all {calculon} rows that it can
express, 6·N·D {rule}, ours {ours}.
[accuracy.csv](accuracy.csv) has more: every source, situation, family and class of software.

The macro-median is the mean over sources of each source's median error, with sources of fewer than five rows pooled as
one; "bias" is the standard deviation of the sources' median errors, "within" the median deviation inside a source.
"Own speed given" is a run predicted by the measured speed of the same run on the next smaller number of accelerators.

![Predicted against measured](accuracy-speeds.svg) ![Coverage against the level promised](accuracy-levels.svg)
"""
TODAY = ("today", "today inside")
LEAST_FIGURES, NOTABLE = 3, 0.02  # of a source that got worse, and by how much at least


_PEERS = {
    "6·N·D at 40 %": training.rule_of_thumb,
    "constant MFU": training.constant_mfu,
    "roofs": training.by_roofs,
}
COLUMNS = (*_PEERS, "Calculon")
_CALCULON = Path(__file__).with_name("calculon.csv")
FIRST = ("figures", "median error", "90th percentile", "inside", "score")


def _ledger_table(table: Sequence[Mapping[str, str]]) -> list[str]:
    """Write what first predictions came to, by class of use and version, what got worse, then source by source."""
    catalog = open_catalog()
    # what peers say of each row of training, by the id that first predictions have
    measured, ran = fits.training_shipped(catalog), calculon()
    rules = np.exp([rule(measured) for rule in _PEERS.values()]).T.tolist()
    peers = {
        f"{row.id} {training.METRIC}": [*figures_of_row, ran.get(row.id, np.nan)]
        for row, figures_of_row in zip(measured.rows, rules, strict=True)
    }
    today = {row["part"].removeprefix("first predictions: "): row for row in table}
    rows = {(row["kind"], row["source"]): row for row in catalog.rows("ledger")}
    days = {row["commit"]: str(row["entered_on"]) for row in rows.values()}

    def now(*name: str) -> list[str]:
        row = today.get(": ".join(name))
        shares = (row["median_abs_error_fraction"], row["interval_coverage_fraction"]) if row else ()
        return [f"{float(share):.0%}" for share in shares] or ["", ""]

    # by class of use: each with the figures of its day, those of today, and the peers on the same rows
    lines = [CLASSES, head("class", "model", "entered", *FIRST, *TODAY, *COLUMNS)]
    lines.append(head(*["---"] * 3, *["--:"] * (len(FIRST) + len(TODAY) + len(COLUMNS))))
    for (kind, use, version), singles in accuracy.by_class(catalog).items():
        cells = _cells_of(singles, peers)
        mine = (*cells[: len(FIRST)], *now(kind, use, version), *cells[len(FIRST) :])
        lines.append(head(use, version, days[version], *mine))
    # sources that today's model predicts worse
    sources = accuracy.by_source(catalog)
    lines += [_WORSE, head("source", "kind", *FIRST, *TODAY), head("---", "---", *["--:"] * (len(FIRST) + len(TODAY)))]
    for (kind, source), singles in sources.items():
        first = float(np.median([abs(single["predicted"] / single["measured"] - 1) for single in singles]))
        row = today.get(f"{kind}: {source}")
        if row and len(singles) >= LEAST_FIGURES and float(row["median_abs_error_fraction"]) > first + NOTABLE:
            lines.append(head(source, kind, *_cells_of(singles, peers)[: len(FIRST)], *now(kind, source)))
    # source by source
    lines += [_ALSO_WORSE, head("source", "kind", "model", "entered", *FIRST, *TODAY)]
    lines.append(head(*["---"] * 4, *["--:"] * (len(FIRST) + len(TODAY))))
    for (kind, source), singles in sources.items():
        version, cells = rows[kind, source]["commit"], _cells_of(singles, peers)[: len(FIRST)]
        lines.append(head(source, kind, version, days[version], *cells, *now(kind, source)))
    return lines


def head(*cells: str) -> str:
    """Write a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def _cells_of(singles: Sequence[Mapping[str, Any]], peers: Mapping[str, Sequence[float]]) -> list[str]:
    """Return what first predictions came to: figures, errors, share inside, score, and the peers' median errors."""
    measured, predicted, low, high = (
        np.array([single[name] for single in singles]) for name in ("measured", "predicted", "low", "high")
    )
    error, inside = np.abs(predicted / measured - 1), (low <= measured) & (measured <= high)
    beyond = np.maximum(np.log(low / measured), 0) + np.maximum(np.log(measured / high), 0)
    score = float(np.mean(np.log(high / low) + accuracy.MISSED * beyond))
    # a peer is asked of what it can express: its median stands on fewer rows, whose number is said
    theirs = [
        [
            abs(peers[single["id"]][place] / single["measured"] - 1)
            for single in singles
            if single["id"] in peers and np.isfinite(peers[single["id"]][place])
        ]
        for place in range(len(COLUMNS))
    ]
    shares = [np.median(error), np.percentile(error, 90), np.mean(inside)]
    others = [
        f"{np.median(errors):.0%}" + (f" of {len(errors)}" if len(errors) < len(singles) else "") if errors else ""
        for errors in theirs
    ]
    return [str(len(singles)), *(f"{share:.0%}" for share in shares), f"{score:.2f}", *others]


def calculon() -> dict[str, float]:
    """Return what Calculon says of the rows that it can express, in tokens per second and accelerator, by id."""
    with _CALCULON.open(encoding="utf-8") as file:
        return {row["id"]: float(row["tokens_per_s_per_gpu"]) for row in csv.DictReader(file)}


LOADED = """
## Load tests

Each test is simulated with the steps of serving; no figure of a load test is fitted. By metric: today's median error,
its mean over sources, how many lie inside the 80 % range; then what others say of the same rows, each beside ours on
those (`benchmarks/load_peers.py`). AIConfigurator 0.12.0 is asked for models of its list and of plain layers on its own
systems; it knows no arrivals: a rate is the batch that Little's law gives, and it answers with means. BLIS (commit
f90a1e3 of 2026-08-22, the coefficients that it brings, fitted to vLLM) is asked for clients that wait on vLLM and plain
layers, which here are mixtures of experts, most on chips that its list lacks. AISimulate 0.13, which replays
schedulers, was not run: a package that it needs is not on PyPI itself.
"""
_LOAD_PEERS = Path(__file__).with_name("load_peers.csv")
_LOAD_METRICS = tuple(
    f"{time}_{name}_{unit}"
    for time, unit in (("ttft", "ms"), ("tpot", "ms"), ("e2e", "s"))
    for name in ("mean", "p50", "p99")
)
_LOAD_FIGURES = ("median_abs_error_fraction", "macro_median_abs_error_fraction", "interval_coverage_fraction")


def load_peers() -> dict[tuple[str, str, str], float]:
    """Return what others say of load tests, by peer, test and metric."""
    with _LOAD_PEERS.open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return {(row["peer"], row["id"], row["metric"]): float(row["predicted"]) for row in rows}


def _load_table(catalog: Catalog) -> list[str]:
    """Write how load tests are predicted by metric, and what others say of the rows that they can."""
    items = load.predict(catalog.rows("load_measurements"), catalog, serving_calibration(catalog))[0]
    others = load_peers()
    peers = sorted({peer for peer, _, _ in others})
    columns = [column for peer in peers for column in (peer, "ours there")]
    lines = [LOADED, head("metric", "figures", "median error", "by source", "inside", *columns)]
    lines.append(head("---", *["--:"] * (4 + 2 * len(peers))))
    for metric in _LOAD_METRICS:
        tests = [item for item in items if item.metric == metric]
        mine = measurements.statistics(tests)
        cells = [str(len(tests)), *(f"{mine[name]:.0%}" for name in _LOAD_FIGURES)]  # type: ignore[literal-required]
        for peer in peers:
            # ours on the rows of the peer: others may be easier
            both = [(others[peer, item.id, metric], item) for item in tests if (peer, item.id, metric) in others]
            theirs = np.median([abs(value / item.measured - 1) for value, item in both]) if both else np.nan
            ours = np.median([abs(item.predicted / item.measured - 1) for _, item in both]) if both else np.nan
            cells += [f"{theirs:.0%} of {len(both)}", f"{ours:.0%}"] if both else ["", ""]
        lines.append(head(f"`{metric}`", *cells))
    return lines


def _beside_calculon() -> dict[str, str]:
    """Return the median errors of Calculon, of 6·N·D and of ours, left out of the fit, on all rows that it can say."""
    ran, measured_rows = calculon(), fits.training_shipped(open_catalog())
    rule = dict(zip([row.id for row in measured_rows.rows], np.exp(training.rule_of_thumb(measured_rows)), strict=True))
    with accuracy.ROWS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] in ran]
    # as the table of rows has it: ours is without the source of the row in the fit
    measured = np.array([float(row["measured"]) for row in rows])
    theirs = {
        "its": [ran[row["id"]] for row in rows],
        "rule": [rule[row["id"]] for row in rows],
        "ours": [float(row["predicted"]) for row in rows],
    }
    errors = {
        name: f"{np.median(np.abs(np.array(predicted) / measured - 1)):.0%}" for name, predicted in theirs.items()
    }
    return {"calculon": str(len(rows)), **errors}


_READING = """
## How a few of your own runs improve accuracy

`gpucost calibrate runs.csv --save` after one to five runs of a source that the calibration never saw:
[your own machine](own-machine.md#teach) has the figures, [few-shot.csv](few-shot.csv) every source.

## Whether first answers can be ordered

`python -m benchmarks.first_answers` asks twenty typical questions and names, for each first answer, the price lists of
the last 60 days that show the same offer. On 2026-11-28 that was so for 17 of 20, for 7 in lists of more than one
publisher; the other three answers say on their first screen that no list shows them.

## What was corrected in the data

Every row has a source, a confidence and a note; rows never change, a correction is a newer row. Of 2,218 prices
collected first, 1,092 broke one of 24 rules: `pricing/decisions.csv` says for each what was done. Most often: prices of
a whole node taken as those of one GPU, medians that nobody can order, spot feeds that repeat old prices, a PCIe card
listed as SXM.
Peaks of `models/accelerators.csv` are dense, links are halved to one direction, and memory is what the driver reports
(an H100 80 GB: 79.65 GiB). Parameters of `models/llms.csv` are recounted from the dimensions; five published numbers
differ from the recount by more than 1 % (GPT-3 Medium, XL, 2.7B and 13B, and Kimi K2).

## What we do not know

- *Software that nobody names.* The error lives between sources more than within them: what a laboratory's software
  does, and what it leaves unsaid, weighs more than any kernel.
- *Ranges of what few sources speak of* have to be believed more than measured. A source has an effect of its own
  (software, tuning, network, reporting): the medians of sources not seen spread by 14 %, so that no range is narrower
  than that effect alone asks for. Classes of ten rows and more hold three quarters of them at least.
- *Mixtures of experts* are known from one vendor's tables above all. Experts whose tokens
  are sent by all-to-all take 1.35 times as long in all their parts (products, traffic, exchange, host) as with a fused
  dispatcher (DeepEP, HybridEP); where none is named, releases before mid-2026 are taken to have none: assumed.
  Some models gained more by that release, others nothing; which, no row says. GPT-OSS on five chips is as slow as whole
  squares of scores in its windowed layers make it, whose heads have learned sinks: no source says that kernels lacked
  both together until then. A few releases' figures of small mixtures are half of the next release's.
- *General stacks on AMD and on new chips*: twelve doubtful rows of one source say that they lag; how far is assumed.
  PyTorch's attention on Hopper is that of Ampere's kernels until autumn 2025, as torchtitan's long sequences say; on
  Blackwell it is taken as caught up since mid-2026: releases say so, no undoubted row does.
- *Documents that share a sequence*: their lengths are known where a recipe names its data. Tuning by NeMo and its heirs
  is read as packed questions with adapters on one product; with `--document-tokens` a plan says its own.
- *Host memory*: weights and states moved over PCIe are counted; the host's memory bandwidth is assumed, and eleven rows
  on V100 are all that was measured of it.
- *Long sequences* over several nodes: NeMo's table counts the whole square of scores, as its formula did until spring
  2025; half of it would ask attention for four fifths of the 16-bit peak, on 1,024 chips. So read, Hopper's attention
  of before spring 2024 lies half-way between kernels for older chips and today's, at every length from 4 K to 1 M
  tokens. That half-way is taken from this table, which is shown and not fitted. Most other rows of 32K tokens and more
  are of MPT with position biases on kernels of 2023: 1.2 to 1.35 too fast, and no second source has that stack. Runs of
  our own to 131,072 tokens on one and two H100 are those that attention was checked on.
- *Blackwell Ultra, CDNA 4, TPU v7, consumer cards*: few sources, or none. Rows of chips of their own kind (Trainium,
  TPU) move no other class.
- *Power limits, doubtful rows.* Where words name a limit it counts; where they only say that there is one, three
  quarters of full power are assumed. Torchao's B200 ran so: two fifths would explain its bf16, not
  its 8-bit rows, which scale row by row; its MI300X had general software. Shown, not fitted. Rows whose source states
  only TFLOP/s or MFU are derived by the row's own convention and kept apart.
- *V100s of 2021* (BigScience): models of 18B on 16 cards come out 1.5 to 1.8 too fast, larger ones on 64 mostly within
  1.4, one 2.3 too slow. Branches of DeepSpeed differ from row to row; nothing else in them says why. Not fitted.
- *Failures and idle time* of long runs: published tables of speeds say nothing of them. Hours of whole runs are
  predicted as a plan counts them: steps, a fifth beside them (assumed, 2 to 40 %), and failures, which grow with
  accelerators and days: 0.173 per accelerator and year, 419 in 54 days on 16,384 (Llama 3, arXiv:2407.21783). BLOOM's
  one or two a week on 384 say 0.14 to 0.27, OPT's 105 in two months on 992 say 0.64, in 2021. Hours on Meta's cards for
  8B models are of 14 to 16 % MFU, a third of its 70B's; what else stands in them the card does not say.
- *What is unsaid* is in a range where that lessens the score of sources left out: attention, and since 2025 whether
  tokens reach experts by a fused kernel (12 % faster in the median; 3 of 11 sources say so; 0.83 to 0.78). Other shares
  of people's runs made it worse. Whether blocks are compiled (1.16 times as fast in torchtitan, 1.02 to 1.30 in
  torchtune): 0.39 to 0.44, where a fifth does not. An fp32 residual stream (11 % slower): 0.53 to 0.54, where a tenth
  has it. The version of vLLM (0.6 and 0.7 are 17 % slower than today's, one of nine sources of 2026 runs them): 1.08 to
  1.14 where today's runs.
- *Small models on old engines*: vLLM 0.7.3 takes 2.2 ms for a token of a 0.5B model on an H100 and 5.2 on an H200, 2.3
  on an RTX 4090D and 4.5 on a 4090: the host rules it, of which the source says nothing. Host time by version leaves
  the error of sources left out where it is (0.1951; 0.1953 with vLLM 0.3 to 0.5 apart).
- *How wide serving's ranges should be*: with a base of ±0.36 in logarithms two thirds of first predictions lie within,
  and 87 % of sources left out (score 1.33); these ask for ±0.27, which holds 80 % (1.27), but 54 % of first
  predictions. What ships lies between: ±0.30, 83 %.
- *Serving by eager stacks*: the priors of their launches were counted on the same runs of our own that judge them.
"""


BEFORE = "82 of training and 163 of serving that observations touch"


def percent(value: str) -> str:
    """Write a fraction as a percentage."""
    return f"{float(value):.1%}" if value else ""


def page(table: str) -> str:
    """Write the page from the table."""
    rows = list(csv.DictReader(io.StringIO(table)))
    trained, served = (
        sum(parameter.fitted for parameter in parameters) for parameters in (TRAINING_PARAMETERS, SERVING_PARAMETERS)
    )
    after = f"{trained} of training and {served} of serving"
    footnote = BELOW.format(before=BEFORE, after=after, **_beside_calculon())
    lines = [INTRODUCTION + "\n".join(_ledger_table(rows)), footnote]
    for title, prefix in (
        ("What a question says: dense models in bf16 on NVIDIA, core rows with a stated layout", "question:"),
        ("Training speed", "training:"),
        ("Training speed by situation: rows suited to validation", "situation, core:"),
        ("Peak memory", "memory"),
        ("Serving", "serving"),
    ):
        shown = [  # families and classes of software stand in the table alone
            row
            for row in rows
            if row["part"].startswith(prefix) and not re.search(r"core: (family|software) ", row["part"])
        ]
        lines += [f"\n## {title}\n", *markdown(shown)]
    lines += _load_table(open_catalog())
    lines += terms.page()
    return "\n".join(lines) + "\n" + _READING


HEADING = (
    "",
    "held out",
    "rows",
    "macro-median",
    "median",
    "90th percentile",
    "coverage",
    "high ÷ low",
    "bias",
    "within",
    "score",
)


def markdown(rows: list[dict[str, str]]) -> list[str]:
    """Write rows as a Markdown table."""
    lines = ["| " + " | ".join(HEADING) + " |", "|" + "---|" * len(HEADING)]
    for row in rows:
        name = row["part"].split(": ", 1)[-1]
        ratio, score = (
            f"{float(row[field]):.2f}" if row[field] else "" for field in ("median_high_low_ratio", "interval_score")
        )
        cells = [name, row["held_out"], row["rows"], *(percent(row[field]) for field in accuracy.FIELDS[3:7]), ratio]
        cells += [*(percent(row[field]) for field in accuracy.FIELDS[8:10]), score]
        lines.append("| " + " | ".join(cells) + " |")
    return lines
