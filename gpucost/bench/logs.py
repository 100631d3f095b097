"""Speeds out of the logs that training and serving stacks print: what each says by itself, and what it leaves unsaid.

Each format is one row: a pattern that only its lines match, and how to read numbers from them. A training log gives
seconds per step or tokens per second; what turns one into the other (sequence, batch, GPUs) is read where the log says
it, else asked for. Lines that end in the middle of a write, and steps of the warm-up, are left out.
"""

import re
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from gpucost.errors import UsageError
from gpucost.gate import read_bytes
from gpucost.units import MILLI

WARM_UP_STEPS = 2  # the first lines hold compilation, allocation and autotuning
LONGEST_LINE = 20_000
NUMBER = r"(-?[\d,]+(?:\.\d*)?(?:[eE][-+]?\d+)?)"

_GENERATED = r"Output [Tt]oken [Tt]hroughput \((?:per sec|tokens/sec)\)"


class LogFormat(NamedTuple):
    """How one stack writes: the line that carries speed, and the numbers in it by name."""

    name: str
    phase: str  # training | serving
    line: str  # what a line of it holds
    numbers: Mapping[str, str]  # name -> pattern with one group
    scale: Mapping[str, float] = {}


FORMATS = (
    LogFormat(
        "maxtext", "training", r"completed step:.*Tokens/s/device",
        {"step": rf"completed step: {NUMBER}", "step_s": rf"seconds: {NUMBER}",
         "tokens_per_s_per_gpu": rf"Tokens/s/device: {NUMBER}"},
    ),
    LogFormat(
        "megatron-lm", "training", r"elapsed time per iteration \(ms\)",
        {"step": rf"iteration\s+{NUMBER}/", "steps": rf"iteration\s+\d+/\s*{NUMBER}",
         "step_s": rf"elapsed time per iteration \(ms\): {NUMBER}",
         "global_batch": rf"global batch size:\s*{NUMBER}", "samples_per_s": rf"samples/sec: {NUMBER}"},
        {"step_s": MILLI},
    ),
    LogFormat(
        "nemo", "training", r"train_step_timing in s",
        {"step": rf"global_step[=:]\s*{NUMBER}", "step_s": rf"train_step_timing in s[=:]\s*{NUMBER}",
         "global_batch": rf"global_batch_size[=:]\s*{NUMBER}", "steps": r"(?:iteration |\| )\d+/(\d+)"},
    ),
    LogFormat(
        "torchtitan", "training", r"\bstep:.*\btps:",
        {"step": rf"step:\s*{NUMBER}", "tokens_per_s_per_gpu": rf"\btps:\s*{NUMBER}"},
    ),
    LogFormat(
        "nanogpt", "training", r"iter \d+: loss .*time [\d.]+ms",
        {"step": r"iter (\d+):", "step_s": rf"time {NUMBER}ms"}, {"step_s": MILLI},
    ),
    LogFormat(
        "llm-foundry", "training", r"throughput/device/tokens_per_sec|\[batch=\d+/\d+\]|Train time/batch:",
        {"step": r"(?:batch|\bba)[=: ]+(\d+)", "steps": r"\[batch=\d+/(\d+)\]",
         "tokens_per_s_per_gpu": rf"throughput/device/tokens_per_sec(?:ond)?[\":= ]+{NUMBER}"},
    ),
    LogFormat(
        "deepspeed", "training", r"iter time \(s\):|SamplesPerSec=",
        {"step": r"(?:steps?: |\bglobal_step=|stop\] \d+/)(\d+)", "step_s": rf"iter time \(s\): {NUMBER}",
         "samples_per_s": rf"(?:samples/sec: |CurrSamplesPerSec=|[, ]SamplesPerSec=){NUMBER}"},
    ),
    LogFormat(
        "mlperf-training", "training", r":::MLLOG.*(?:tracked_stats|global_batch_size)",
        {"samples_per_s": rf'"throughput": {NUMBER}', "step_s": rf'"train_step_time": {NUMBER}',
         "samples": rf'"samples_count": {NUMBER}', "global_batch": rf'"global_batch_size", "value": {NUMBER}'},
    ),
    LogFormat(
        "huggingface", "training", r"train_tokens_per_second|train_samples_per_second|s/it[\],]|it/s[\],]",
        {"tokens_per_s": rf"train_tokens_per_second['\"]?\s*[:=]\s*'?{NUMBER}",
         "samples_per_s": rf"train_samples_per_second['\"]?\s*[:=]\s*'?{NUMBER}", "step": r"(\d+)/\d+ \[",
         "steps": r"\d+/(\d+) \[", "step_s": rf"{NUMBER}s/it[\],]", "steps_per_s": rf"{NUMBER}it/s[\],]"},
    ),
    LogFormat(
        "vllm-or-sglang-benchmark", "serving",
        r"Output token throughput \(tok/s\)|Mean TPOT|Mean ITL|Successful requests|Total (?:input|generated) tokens:"
        r"|Max\w* re\w+ concurrency",
        {"output_tokens_per_s": rf"^Output token throughput \(tok/s\):\s*{NUMBER}",
         "concurrency": rf"^Max\w* re\w+ concurrency:\s*{NUMBER}", "requests": rf"^Successful requests:\s*{NUMBER}",
         "prompt_tokens": rf"^Total input tokens:\s*{NUMBER}",
         "output_tokens": rf"^Total generated tokens:\s*{NUMBER}",
         "tpot_s": rf"Mean (?:TPOT|ITL) \(ms\):\s*{NUMBER}"},
        {"tpot_s": MILLI},
    ),
    LogFormat(
        "vllm", "serving", r"Avg generation throughput",
        {"output_tokens_per_s": rf"Avg generation throughput: {NUMBER}", "concurrency": rf"Running: {NUMBER}"},
    ),
    LogFormat(
        "sglang", "serving", r"gen throughput \(token/s\)",
        {"output_tokens_per_s": rf"gen throughput \(token/s\): {NUMBER}", "concurrency": rf"#running-req: {NUMBER}"},
    ),
    LogFormat(
        "genai-perf", "serving", rf"{_GENERATED}|Inter [Tt]oken [Ll]atency \(ms\)",
        {"output_tokens_per_s": rf"{_GENERATED}[\s│┃|,:\"]+{NUMBER}",
         "tpot_s": rf"Inter [Tt]oken [Ll]atency \(ms\)[\s│┃|,:\"]+{NUMBER}"},
        {"tpot_s": MILLI},
    ),
    LogFormat(
        "mlperf", "serving", r"Tokens per second|Completed tokens per second",
        {"output_tokens_per_s": rf"[Tt]okens per second\s*(?:\(inferred\))?\s*:\s*{NUMBER}"},
    ),
)  # fmt: skip


class Reading(NamedTuple):
    """One line's numbers."""

    line: int
    values: Mapping[str, float]


class Log(NamedTuple):
    """A log that was understood: whose it is, and its readings in order."""

    format: LogFormat
    readings: tuple[Reading, ...]

    def last(self, name: str) -> float | None:
        """Return the newest value of a number; None where the log never says it."""
        return next((r.values[name] for r in reversed(self.readings) if name in r.values), None)

    def usual(self, name: str) -> float | None:
        """Return the median of a number once the warm-up is over; None where the log never says it."""
        found = [reading.values[name] for reading in self.readings if reading.values.get(name, 0.0) > 0]
        settled = found[WARM_UP_STEPS:] if len(found) > 2 * WARM_UP_STEPS else found[-1:]
        return median(settled) if settled else None


def lines_of(path: str) -> list[str]:
    """Return the lines of a log; bytes that are no text are shown as such."""
    raw = read_bytes(path, "limit_log_file_bytes")
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
    return _exported(text) or text.splitlines()


def _exported(text: str) -> list[str]:
    """Return the lines that an export of GenAI-Perf as JSON means; none where a text is no such export.

    >>> _exported('{"output_token_throughput": {"unit": "tokens/sec", "avg": 1893.2}}')
    ['Output Token Throughput (per sec): 1893.2']
    """
    if '"output_token_throughput"' not in text:
        return []
    named = {"output_token_throughput": "Output Token Throughput (per sec)",
             "inter_token_latency": "Inter Token Latency (ms)"}  # fmt: skip
    found = ((words, re.search(rf'"{name}"\s*:\s*{{[^{{}}]*?"avg"\s*:\s*{NUMBER}', text))
             for name, words in named.items())  # fmt: skip
    return [f"{words}: {match.group(1)}" for words, match in found if match]


def read_log(lines: Iterable[str], name: str = "the log") -> Log:
    """Read a log: the first format that matches more than any other speaks for all of it.

    >>> log = read_log(["completed step: 5, seconds: 1.186, TFLOP/s/device: 166.6, Tokens/s/device: 3452.840, loss: 9"])
    >>> log.format.name, log.last("tokens_per_s_per_gpu")
    ('maxtext', 3452.84)
    """
    found: dict[str, list[Reading]] = {}
    patterns = [(form, re.compile(form.line)) for form in FORMATS]
    for number, raw in enumerate(lines, 1):
        if len(raw) > LONGEST_LINE:
            continue
        line = _ESCAPES.sub("", raw)
        for form, pattern in patterns:
            if pattern.search(line):
                values = numbers_of(form, line)
                if values:
                    found.setdefault(form.name, []).append(Reading(number, values))
                break
    if not found:
        known = ", ".join(form.name for form in FORMATS)
        raise UsageError(f"{name} holds no line with a speed that is known here ({known}). Give --step-time instead.")
    best = max(found, key=lambda key: len(found[key]))
    return Log(next(form for form in FORMATS if form.name == best), _of_one_loop(found[best]))


def _of_one_loop(readings: list[Reading]) -> tuple[Reading, ...]:
    """Leave out the loops of evaluations, whose number of steps is another than that of most lines."""
    counts = [reading.values["steps"] for reading in readings if "steps" in reading.values]
    if not counts:
        return tuple(readings)
    usual = max(counts, key=lambda count: (counts.count(count), count)) if len(set(counts)) < 50 else counts[-1]
    return tuple(reading for reading in readings if reading.values.get("steps", usual) == usual)


_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def numbers_of(form: LogFormat, line: str) -> dict[str, float]:
    """Return the numbers of one line."""
    values = {}
    for name, pattern in form.numbers.items():
        match = re.search(pattern, line)
        if match:
            try:
                values[name] = float(match.group(1).replace(",", "")) * form.scale.get(name, 1.0)
            except ValueError:
                continue
    return values


def training_speed(
    log: Log, *, gpus: int | None = None, sequence_tokens: int | None = None, global_batch: int | None = None
) -> float:
    """Return tokens per second and GPU of a training log; what the log leaves unsaid must be given."""
    stated = log.usual("tokens_per_s_per_gpu")
    if stated:
        return stated
    whole = log.usual("tokens_per_s")
    batch = global_batch or log.usual("global_batch")
    seconds = log.usual("step_s") or (1 / rate if (rate := log.usual("steps_per_s")) else None)
    samples = log.usual("samples_per_s") or (batch / seconds if batch and seconds else None)
    needed = {"--gpus": gpus, "--sequence": sequence_tokens if not whole else 1}
    missing = [name for name, value in needed.items() if not value]
    if not whole and not samples:
        missing.append("--global-batch")
    if missing:
        raise UsageError(f"a log of {log.format.name} does not say everything: give {', '.join(missing)}.")
    tokens = whole or float(samples or 0) * float(sequence_tokens or 0)
    return tokens / float(gpus or 1)
