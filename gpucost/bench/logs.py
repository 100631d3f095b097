"""Speeds out of the logs that training and serving stacks print: what each says by itself, and what it leaves unsaid.

Each format is one row: a pattern that only its lines match, and how to read numbers from them. A training log gives
seconds per step or tokens per second; what turns one into the other (sequence, batch, GPUs) is read where the log says
it, else asked for. Lines that end in the middle of a write, and steps of the warm-up, are left out. The layout is read
where a program writes its arguments before it begins (layouts.csv: a name, then its value).
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from gpucost.errors import UsageError
from gpucost.gate import beside, lists_beside, read_bytes
from gpucost.limits import limit
from gpucost.units import MILLI, without_commas

_WARM_UP_STEPS = 2  # the first lines hold compilation, allocation and autotuning
_LONGEST_LINE = 4_000  # what follows in a line is not looked at: patterns of people take more than a step a character
_LONGEST_ARGUMENTS = 20_000  # of a line in which a program writes all of them
SMALLEST, LARGEST = 1e-9, 1e17  # of any number but 0 that a run has
_HEAD_LINES = 20_000  # within which a program has written its arguments
_ANY_BAR = "huggingface"  # whose lines are those of any progress bar: it speaks only where no other format does
# Possessive quantifiers (`++`): what a number has eaten it never gives back, so that no line takes long to fail on.
_NUMBER = r"(-?[\d,]++(?:\.\d*+)?+(?:[eE][-+]?\d++)?+)(?!,\d)"
COUNT = r"([\d.]++[KMBGT]?)\b"  # with the letter that some write for thousands and more
_THOUSANDS = {"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_OWN_NUMBERS = {  # what a pattern of one's own may read, and its unit in seconds where it has one
    **dict.fromkeys(("step", "steps", "tokens", "samples", "global_batch", "sequence", "gpus"), 1.0),
    **dict.fromkeys(("tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "steps_per_s", "step_s"), 1.0),
    "step_ms": MILLI,
}


class LogFormat(NamedTuple):
    """How one stack writes: the line that carries speed, and the numbers in it by name."""

    name: str
    phase: str  # training | serving
    line: str  # pattern of a line that carries speed
    numbers: Mapping[str, str]  # name -> pattern with one group
    scale: Mapping[str, float] = {}


def _formats() -> Iterator[LogFormat]:
    """Yield the formats of logs.csv: of each the line that carries speed, then its numbers with their unit."""
    for name, rows in groupby(beside(__file__, "logs")[1:], key=itemgetter(0)):
        # the first row of a format holds its phase and the pattern of its line
        (_, phase, _, line), *numbers = (
            [*cells, pattern.replace("NUMBER", _NUMBER).replace("COUNT", COUNT)] for *cells, pattern in rows
        )
        scale = {number: MILLI for _, number, unit, _ in numbers if unit == "ms"}
        yield LogFormat(name, phase, line, {number: pattern for _, number, _, pattern in numbers}, scale)


FORMATS = tuple(_formats())
# One search over a line for every name of an argument, as `--tp-size 8`, `tp_size: 8`, `'tp_size': 8` or in dots.
_LAYOUT = re.compile(
    "|".join(
        rf"(?P<{name}>\b(?:{'|'.join(names)}))['\"]?[\s.:=]+['\"]?(?P<{name}_value>[\w,]+)"
        for name, names in lists_beside(__file__, "layouts").items()
    )
)


class Reading(NamedTuple):
    """One line's numbers."""

    line: int
    values: Mapping[str, float]


class Log(NamedTuple):
    """A log that was understood: whose it is, and its readings in order."""

    format: LogFormat
    readings: tuple[Reading, ...]
    layout: Mapping[str, float | str] = {}  # what the program said of itself before it began

    def last(self, name: str) -> float | None:
        """Return the newest value of a number; None where the log never says it."""
        return next((r.values[name] for r in reversed(self.readings) if name in r.values), None)

    def usual(self, name: str) -> float | None:
        """Return the median of a number once the warm-up is over; None where the log never says it.

        Several ranks may write the same step: the warm-up is counted in steps. Of a short log the last step counts.
        """
        # 0 is a clock that did not see the step
        readings = [
            (r.values.get("step", r.line), r.values[name]) for r in self.readings if r.values.get(name, 0.0) > 0
        ]
        steps = list(dict.fromkeys(step for step, _ in readings))
        settled = set(steps[_WARM_UP_STEPS:] if len(steps) > 2 * _WARM_UP_STEPS else steps[-1:])
        return median(value for step, value in readings if step in settled) if settled else None

    def per_step(self, name: str) -> float | None:
        """Return what a number that only grows gains in a step once the warm-up is over; None where no two say it."""
        grown: dict[float, float] = {}  # by step; the first rank that writes it speaks
        step = 0.0
        for reading in self.readings:
            step = reading.values.get("step", step)  # a line without its step is of the step before it
            if name in reading.values:
                grown.setdefault(step, reading.values[name])
        points = list(grown.items())
        points = points[_WARM_UP_STEPS:] if len(points) > 2 * _WARM_UP_STEPS else points[-2:]
        if len(points) < 2:
            return None
        (first, least), (last, most) = points[0], points[-1]
        return (most - least) / (last - first) if last > first and most > least else None

    def stated(self, name: str) -> float | None:
        """Return a number of the lines, else of the arguments that the program wrote; None where neither says it."""
        if usual := self.usual(name):
            return usual
        argument = self.layout.get(name)
        return argument if isinstance(argument, float) else None  # the only texts are kinds of recomputation


def lines_of(path: str) -> list[str]:
    """Return the lines of a log; bytes that are no text are shown as such."""
    raw = read_bytes(path, "limit_log_file_bytes")
    return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace").splitlines()


def own_format(patterns: Iterable[str]) -> LogFormat | None:
    r"""Return the format that patterns of one's own say, each NAME=PATTERN with one group; None where there are none.

    >>> form = own_format([r"step=it (\d+)", r"step_ms=took (\d+) ms"])
    >>> read_log(["it 7 took 250 ms"], form=form).last("step_s")
    0.25
    """
    numbers, scale = {}, {}
    for stated in patterns:
        name, _, pattern = stated.partition("=")
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise UsageError(f"--pattern {stated}: {error}. Write NAME=PATTERN, a regular expression.") from None
        if name not in _OWN_NUMBERS or groups != 1:
            names = ", ".join(_OWN_NUMBERS)
            raise UsageError(
                f"--pattern {stated}: write NAME=PATTERN with one group in parentheses around the number, such as"
                f" 'step_ms=took ([0-9.]+) ms'. Names: {names}."
            )
        number = name.replace("_ms", "_s")
        numbers[number], scale[number] = pattern, _OWN_NUMBERS[name]
    line = "|".join(f"(?:{pattern})" for pattern in numbers.values())
    return LogFormat("your patterns", "training", line, numbers, scale) if numbers else None


def read_log(lines: Iterable[str], name: str = "the log", form: LogFormat | None = None) -> Log:
    """Read a log: the first format that matches more than any other speaks for all of it, unless one is given.

    >>> log = read_log(["completed step: 5, seconds: 1.186, TFLOP/s/device: 166.6, Tokens/s/device: 3452.840, loss: 9"])
    >>> log.format.name, log.last("tokens_per_s_per_gpu")
    ('maxtext', 3452.84)
    """
    formats = FORMATS if form is None else (form,)
    readings_by_format, layout = _read_known(lines) if form is None else _read_by_patterns(list(lines), form)
    if not readings_by_format:
        format_names = ", ".join(form.name for form in formats)
        raise UsageError(
            f"{name} has no line with a speed in a known format ({format_names}). Give --pattern for a format of your"
            " own."
        )
    best = max(readings_by_format, key=lambda key: (key != _ANY_BAR, len(readings_by_format[key])))
    readings = readings_by_format[best]
    # a number that no run has is a slip; 0 is a step that a clock did not see, and says nothing
    for reading in readings:
        for key, value in reading.values.items():
            if value and not SMALLEST <= value <= LARGEST:
                reading_text = f"{key.replace('_', ' ')} {value:g}, which no run has"
                raise UsageError(f"line {reading.line:,} of {name} says {reading_text}. Correct the line or remove it.")
    # an evaluation is a loop of its own, with another number of steps than most lines have: it is left out
    totals = [reading.values["steps"] for reading in readings if "steps" in reading.values]
    if totals:
        count_of = Counter(totals)
        # of so many different totals each is of a resumed run: the last is the one that goes on
        usual = max(count_of, key=lambda total: (count_of[total], total)) if len(count_of) < 50 else totals[-1]
        readings = [reading for reading in readings if reading.values.get("steps", usual) == usual]
    return Log(next(form for form in formats if form.name == best), tuple(readings), layout)


_Readings = dict[str, list[Reading]]  # by the name of the format
Layout = dict[str, float | str]


def _read_known(lines: Iterable[str]) -> tuple[_Readings, Layout]:
    """Return the readings of every format that speaks, and what the lines of none say of the layout."""
    readings: _Readings = {}
    layout: Layout = {}
    patterns = [(form, re.compile(form.line)) for form in FORMATS]
    for number, raw in enumerate(lines, 1):
        # a line of arguments is longer than any of a step: patterns of formats see only its start
        line = _ESCAPES.sub("", raw[:_LONGEST_ARGUMENTS])
        start = line[:_LONGEST_LINE]
        for form, pattern in patterns:
            if pattern.search(start):
                matches = {name: re.search(expression, start) for name, expression in form.numbers.items()}
                if values := _values(form, {name: match[1] for name, match in matches.items() if match}):
                    readings.setdefault(form.name, []).append(Reading(number, values))
                break
        else:  # no format's line: arguments, where the program is still at its beginning
            layout |= _layout_of(line) if number <= _HEAD_LINES else {}
    return readings, layout


# A program of its own, because nothing else ends a search that has begun: a pattern may take longer than any run.
_SEARCH = """
import json, re, sys
job = json.load(sys.stdin)
patterns = [(name, re.compile(pattern)) for name, pattern in job["patterns"].items()]
matches = ({name: match[1] for name, pattern in patterns if (match := pattern.search(line))} for line in job["lines"])
json.dump([[number, texts] for number, texts in enumerate(matches, 1) if texts], sys.stdout)
"""


def _read_by_patterns(lines: list[str], form: LogFormat) -> tuple[_Readings, Layout]:
    """Return the readings of patterns of one's own, which end at a deadline, and what other lines say of the layout."""
    most_s = limit("limit_pattern_seconds")
    starts = [_ESCAPES.sub("", line[:_LONGEST_LINE]) for line in lines]
    job = json.dumps({"patterns": dict(form.numbers), "lines": starts})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SEARCH], input=job, capture_output=True, text=True, timeout=most_s,
            check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"--pattern: reading {len(lines):,} lines was stopped after {most_s:g} s. Write a pattern that repeats"
            " nothing within a repetition, such as [0-9.]+ for a number; limit_pattern_seconds raises the limit."
        ) from None
    readings = [
        Reading(number, values) for number, texts in json.loads(done.stdout) if (values := _values(form, texts))
    ]
    line_numbers = {reading.line for reading in readings}
    layout: Layout = {}
    for number, line in enumerate(lines[:_HEAD_LINES], 1):
        if number not in line_numbers:
            layout |= _layout_of(_ESCAPES.sub("", line[:_LONGEST_ARGUMENTS]))
    return ({form.name: readings} if readings else {}), layout


def _layout_of(line: str) -> dict[str, float | str]:
    """Return what a line says of the layout.

    >>> _layout_of("  tensor_model_parallel_size ......... 8"), _layout_of("  recompute_granularity ... full")
    ({'tensor': 8.0}, {'recompute': 'full'})
    >>> _layout_of("'per_device_train_batch_size': 4, 'use_distributed_optimizer': True, 'seq_length': None")
    {'micro_batch': 4.0, 'sharding': 1.0}
    """
    layout: dict[str, float | str] = {}
    for match in _LAYOUT.finditer(line):
        name = str(match.lastgroup).removesuffix("_value")
        value = match.group(f"{name}_value").replace(",", "")
        value = {"True": "1", "False": "0"}.get(value, value)  # of a distributed optimizer: ZeRO stage 1, or none
        if value.isdecimal() and float(value) <= LARGEST:
            layout |= {name: float(value)} if float(value) or name == "sharding" else {}
        elif name == "recompute" and value in ("full", "selective"):
            layout[name] = value
    return layout


_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def _values(form: LogFormat, texts: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers that texts are, each in its unit; what is none is left out."""
    values = {}
    for name, text in texts.items():
        with suppress(ValueError, UsageError):
            values[name] = _number(text, name) * form.scale.get(name, 1.0)
    return values


def _number(text: str, name: str) -> float:
    """Return a number of a log, with or without a letter for thousands and more.

    >>> _number("1,234.5", "tokens"), _number("1.02K", "tokens")
    (1234.5, 1020.0)
    """
    thousands = _THOUSANDS.get(text[-1:], 1.0)
    return float(without_commas(text.rstrip(",KMBGT"), name)) * thousands


def training_speed(
    log: Log, *, gpus: int | None = None, sequence_tokens: int | None = None, global_batch: int | None = None
) -> float:
    """Return tokens per second and GPU of a training log; what the log leaves unsaid must be given."""
    stated = log.usual("tokens_per_s_per_gpu")
    if stated:
        return stated
    tokens_per_s = log.usual("tokens_per_s")
    gpus, sequence_tokens = gpus or _whole(log.stated("gpus")), sequence_tokens or _whole(log.stated("sequence"))
    batch = global_batch or log.stated("global_batch")
    # seconds of a step: stated, else the inverse of a rate, else the growth of a clock that starts with the run
    steps_per_s = log.usual("steps_per_s")
    seconds = log.usual("step_s") or (1 / steps_per_s if steps_per_s else log.per_step("elapsed_s"))
    if seconds is None and (iteration_s := log.usual("iteration_s")):
        seconds = iteration_s * (log.per_step("iterations") or 1.0)  # of a micro-batch; a step gathers several
    if not tokens_per_s and seconds and (counted := log.per_step("tokens")):
        tokens_per_s = counted / seconds  # tokens without padding, where the program counts them
    # tokens per second where no line states them: samples of one length, else the tokens that the log gives a step
    samples = log.usual("samples_per_s") or (batch / seconds if batch and seconds else None)
    if not tokens_per_s and not samples and not seconds:
        raise UsageError(f"this log of {log.format.name} has no speed above 0: none of its steps is timed.")
    if not tokens_per_s and not samples and seconds and (step_tokens := log.stated("tokens_per_step")):
        tokens_per_s = step_tokens / seconds
    # only now is it known what is missing, so that one refusal names all of it
    needed = {"--gpus": gpus, "--sequence": sequence_tokens if not tokens_per_s else 1}
    missing = [name for name, value in needed.items() if not value]
    if not tokens_per_s and not samples:
        missing.append("--global-batch")
    if missing:
        raise UsageError(f"a log of {log.format.name} lacks some facts: give {', '.join(missing)}.")
    tokens = tokens_per_s or float(samples or 0) * float(sequence_tokens or 0)
    return tokens / float(gpus or 1)


def _whole(number: float | None) -> int | None:
    return int(number) if number else None
