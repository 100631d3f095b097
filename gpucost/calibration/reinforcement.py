"""Published steps of reinforcement learning against the model: what can be predicted of them, and what they leave out.

Nothing is fitted to them. Where a source states how long its answers are on average, that is taken; where it states
only how long they may be, the mean is assumed, and the range holds whatever it may have been.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpucost.answers.checks import Skipped
from gpucost.calibration import wording
from gpucost.calibration.measurements import Item
from gpucost.calibration.record import Row
from gpucost.catalog import Catalog
from gpucost.catalog.calibrations import serving_calibration, training_calibration
from gpucost.errors import GpuCostError, UsageError
from gpucost.market.supply import Key
from gpucost.schemas.dictionary import TABLES
from gpucost.workloads.rollouts import phases_of, writer_of
from gpucost.workloads.speeds import search_layouts
from gpucost.workloads.training import Rollouts, make_workload

_METRIC = "step_s"
_PROMPT_TOKENS = 250.0  # of contest mathematics: an assumption
SHORTEST, USUAL, LONGEST = 0.1, 0.3, 0.9  # mean answer ÷ the longest that is allowed: the geometric mean of the ends
_USUAL_ANSWERS = 16  # to a prompt where a source does not say
_MEAN_IN_WORDS = r"(?:mean|average) (?:response|answer|output)(?: length)?[^0-9]{0,20}(\d[\d,]*)"
_SOFTWARE = {"FSDP": "sharded", "FSDP2": "sharded", "Megatron": "vendor", "Megatron-Core": "vendor"}


def predict(rows: Sequence[Row], facts: Catalog) -> tuple[list[Item], list[Skipped]]:
    """Return the predicted steps, each with a range over answers and speeds, and what leaves out too much with why."""
    items: list[Item] = []
    skipped: list[Skipped] = []
    for row in rows:
        try:
            if row["step_time_s"] is None:
                raise UsageError("it states no time of a step")
            if row["responses_per_step"] is None:
                raise UsageError("it does not state the answers of a step, which rule its time")
            answers = _answers_of(row)
            means = (answers.usual, answers.longest, answers.shortest)
            steps = {mean: _step_s(row, facts, mean) for mean in set(means)}  # a stated mean is computed once
            seconds, slow, fast = (steps[mean] for mean in means)
            # answers and speeds are doubted apart: their logarithms add up as the sides of a right angle
            above = np.hypot(np.log(seconds[1] / seconds[0]), np.log(slow[0] / seconds[0]))
            below = np.hypot(np.log(seconds[0] / seconds[2]), np.log(seconds[0] / fast[0]))
            items.append(
                Item(
                    id=str(row["id"]),
                    source=str(row["source_name"]),
                    metric=_METRIC,
                    group="rl",
                    measured=float(row["step_time_s"]),
                    predicted=seconds[0],
                    low=float(seconds[0] * np.exp(-below)),
                    high=float(seconds[0] * np.exp(above)),
                    notes=(answers.note,) if answers.note else (),
                )
            )
        except GpuCostError as error:
            skipped.append({"id": str(row["id"]), "reason": str(error)})
    return items, skipped


def typed(row: Row) -> dict[str, Any]:
    """Return a row of a person's file with the values of the table's columns; what is empty or missing is None."""
    cells = dict(row)
    for column in TABLES["rl_measurements"].columns:
        cell = cells.get(column.name)
        whole, text = column.kind == "integer", None if wording.missing(cell) else str(cell)
        value = wording.number(cell) if column.kind in ("integer", "number") else text
        cells[column.name] = round(value) if whole and isinstance(value, float) else value
    return cells


class Answers(NamedTuple):
    """Mean length of a step's answers: the usual one, and the ends of what it may be."""

    usual: float
    shortest: float
    longest: float
    note: str


def _answers_of(row: Row) -> Answers:
    """Return the mean answer that a row states, by its mean sequence or its own words; else a share of the longest.

    >>> _answers_of({"mean_sequence_tokens": 3250.0, "notes": ""})[:3], _answers_of({"max_response_tokens": 1000})[:3]
    ((3000.0, 3000.0, 3000.0), (300.0, 100.0, 900.0))
    >>> _answers_of({"max_response_tokens": 8192, "notes": "mean response about 5,200 tokens"})[:3]
    (5200.0, 5200.0, 5200.0)
    """
    # its own words first: a mean sequence counts the prompt too, and a limit says little
    spoken = re.search(_MEAN_IN_WORDS, str(row.get("notes") or "").lower())
    if spoken:
        mean = float(spoken[1].replace(",", ""))
    elif whole := row.get("mean_sequence_tokens"):
        mean = max(float(whole) - _PROMPT_TOKENS, SHORTEST * float(whole))
    else:
        longest = row.get("max_response_tokens") or row.get("max_sequence_tokens")
        if longest is None:
            raise UsageError("it states neither its mean answer nor its longest, which rule the time of a step")
        usual, least, most = (share * longest for share in (USUAL, SHORTEST, LONGEST))
        return Answers(usual, least, most, f"mean answer taken as {USUAL:.0%} of the longest, {longest:,} tokens")
    return Answers(mean, mean, mean, "")


def _step_s(row: Row, facts: Catalog, output_tokens: float) -> tuple[float, float, float]:
    """Return the seconds of a step with answers of a mean length: typical, slow and fast.

    Pools of their own work at once, so that the longer of writing and training counts; one pool does both in turn.
    """
    accelerator = facts.accelerator(str(row["gpu"]))
    key = Key(accelerator, facts.default_system(accelerator.id))
    answers = int(row.get("samples_per_prompt") or _USUAL_ANSWERS)
    # PPO trains a critic beside the model, and holds a frozen reference as all others may
    critic = "ppo" in str(row.get("algorithm") or "").lower()
    rollouts = Rollouts(answers, _PROMPT_TOKENS, output_tokens, row["reference_s"] is not None or critic, critic)
    workload = make_workload(
        facts.architecture(str(row["model"])),
        global_batch=int(row["responses_per_step"]),
        precision=str(row["precision_training"] or "bf16"),
        software=_SOFTWARE.get(str(row["train_backend"]), "unknown"),
        software_year=wording.year(row["as_of"], accelerator.year + 1.5, []),
        rollouts=rollouts,
    )
    total, training, writing = (int(row[name] or 0) for name in ("n_gpus", "gpus_training", "gpus_generation"))
    apart = 0 < training < total  # pools of their own; a row that states none has one
    trainers = np.array([training if apart else total], dtype=np.int64)
    writers = np.array([writing if apart else total], dtype=np.int64)
    # the phases of a step at the middle, the slow and the fast end of its speeds
    calibration = replace(training_calibration(facts), generation=serving_calibration(facts))
    speeds = search_layouts(replace(workload, rollouts=None), [key], trainers, calibration)
    writer = writer_of(workload, [key], writers, calibration)
    speed = {0: speeds.tokens_per_s_per_gpu, 1: speeds.tokens_per_s_per_gpu_low, -1: speeds.tokens_per_s_per_gpu_high}
    tokens, recompute = workload.global_batch * workload.sequence_tokens, speeds.layout.recompute
    whole = []
    for end, each in speed.items():
        training_s = tokens / (each * trainers)
        phases = phases_of(workload, writer, [key], trainers, training_s, speeds.parts_s, recompute, end)
        at_once_s = max(float(phases.writing_s[0]), float((phases.scoring_s + phases.training_s)[0]))
        whole.append(at_once_s if apart else float(phases.total_s[0]))
    if not np.isfinite(whole[0]):  # the ends fit where the middle does
        raise UsageError("no layout fits in memory")
    return whole[0], whole[1], whole[2]
