"""Results of load tests as the programs that run them write them: vLLM, SGLang, AIPerf, guidellm, inference-perf.

Who wrote a file is told by what it holds: `load_results.csv` lists for each writer the keys that only its files have,
and where each figure stands, in which unit; of several places of one figure the first that holds it speaks (writers
move keys between versions). A file becomes rows in the columns of models/measurements/load.csv, one for each test.
vLLM: vllm/benchmarks/serve.py; SGLang: python/sglang/bench_serving.py; AIPerf, and GenAI-Perf before it:
common/models/export_models.py; guidellm: benchmark/schemas/report.py; inference-perf: reportgen/base.py.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from gpucost.calibration.load import STATISTICS, TIMES
from gpucost.errors import DataError
from gpucost.gate import beside, once, parsed, read_text, shown

_SUFFIXES = (".json", ".jsonl")
_SPELLINGS = {"mean": ("mean", "avg"), "p50": ("median", "p50"), "p90": ("p90",), "p95": ("p95",), "p99": ("p99",)}
_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPEEDS = ("achieved_requests_per_s", "output_tokens_per_s", "total_tokens_per_s", "peak_concurrency")
_CLOSED = ("concurrent", "concurrency", "throughput", "synchronous")  # patterns that send when an answer is there
_ENGINES = ("vllm", "sglang", "tensorrt", "trt", "lmdeploy", "tgi")  # whose own interface a client may speak
_EVEN_SPREAD = 3**-0.5  # standard deviation of what is spread evenly over 1 ± 1, against its mean


class TestedServer(Struct, frozen=True):
    """What a result does not say of the server that was tested, or what is said instead."""

    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    tensor: int | None = None
    precision: str | None = None
    engine: str | None = None


class FigurePlace(NamedTuple):
    """Where a writer keeps a figure."""

    unit: str
    path: str


@cache
def writers() -> Mapping[str, Mapping[str, Sequence[FigurePlace]]]:
    """Return the places of every figure, by writer."""
    places: dict[str, dict[str, list[FigurePlace]]] = {}
    for writer, figure, *place in beside(__file__, "load_results")[1:]:
        places.setdefault(writer, {}).setdefault(figure, []).append(FigurePlace(*place))
    return places


def is_result(path: str) -> bool:
    """Tell whether a file is named as results are: JSON, or a line of it for each test."""
    return Path(path).suffix.lower() in _SUFFIXES


def read_results(path: str, served: TestedServer) -> list[dict[str, Any]]:
    """Return the tests of a file as rows of load tests."""
    rows = [_LoadResult(test, path, line).row(served) for line, test in _tests(path)]
    # a file without a day was written when the test ended
    day = datetime.fromtimestamp(os.stat(path).st_mtime, UTC).date().isoformat()
    name = Path(path).name
    names = [f"{name} {number}" for number in range(1, len(rows) + 1)] if len(rows) > 1 else [name]
    return [{**row, "id": name, "as_of": row["as_of"] or day} for name, row in zip(names, rows, strict=True)]


def _tests(path: str) -> Iterator[tuple[int | None, Any]]:
    """Yield every test of a file with its line: the file is one, holds a list of them, or one on each line."""

    def parse(text: str) -> Any:
        # Infinity and NaN, which Python's writers leave in JSON: an unlimited rate, no value
        return json.loads(text, parse_constant=lambda _: None, object_pairs_hook=once)

    text = read_text(path, "limit_log_file_bytes")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    several = len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for _, line in lines)
    for number, document in lines if several else [(None, text)]:
        try:
            value = parsed(path, "JSON", parse, document)
        except DataError as error:
            raise DataError(error.reason, file=path, row=number or error.row, column=error.column) from None
        # guidellm writes a report of several tests, which share what stands around them
        benchmarks = value.get("benchmarks") if isinstance(value, dict) else None
        if isinstance(benchmarks, list):
            report = {key: part for key, part in value.items() if key != "benchmarks"}
            yield from ((number, {"report": report, **test}) for test in benchmarks if isinstance(test, dict))
        else:
            yield number, value


def _at(test: Any, path: str) -> Any:
    """Return what stands at a path of keys and places; None where nothing does.

    >>> _at({"a": [{"b": 1}, {"b": 2}]}, "a.-1.b"), _at({"a": None}, "a.b")
    (2, None)
    """
    for key in path.split("."):
        if isinstance(test, Mapping):
            test = test.get(key)
        elif isinstance(test, list) and test and key.lstrip("-").isdecimal():
            test = test[int(key)] if int(key) < len(test) else None
        else:
            return None
    return test


class _LoadResult:
    """One test of a file, read by the table of who wrote it."""

    def __init__(self, test: Any, path: str, line: int | None) -> None:
        self.test, self.path, self.line = test, path, line
        for writer, places in writers().items():
            if all(_at(test, sign.path) is not None for sign in places["sign"]):
                self.writer, self.places = writer, places
                return
        keys = ", ".join(map(str, list(test)[:6])) if isinstance(test, Mapping) else type(test).__name__
        raise self.refused(
            f"is not the result of a load test by {', '.join(writers())}: it holds {shown(keys)[1:-1]}. Name the file"
            " with the percentiles, such as profile_export_aiperf.json or stage_0_lifecycle_metrics.json"
        )

    def refused(self, reason: str, place: str | None = None) -> DataError:
        """Return the error that something in the file is wrong."""
        return DataError(reason, file=self.path, row=self.line, column=place)

    def word(self, figure: str) -> Any:
        """Return what the file says of something, in the first place that does."""
        places = self.places.get(figure, ())
        return next((value for place in places if (value := _at(self.test, place.path)) is not None), None)

    def number(self, figure: str) -> float | None:
        """Return a number of the file; None where it is not stated or unlimited."""
        places = self.places.get(figure, ())
        return next((value for place in places if (value := self.number_at(place.path)) is not None), None)

    def number_at(self, path: str) -> float | None:
        """Return the number at a path."""
        value = _at(self.test, path)
        if value is None or value == "inf":
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise self.refused(f"{shown(value)} is not a number of 0 or more. Export the result again", path)
        return float(value)

    def row(self, served: TestedServer) -> dict[str, Any]:
        """Return the test in the columns of load tests; what is said of the server holds, whatever the file says."""
        completed = self.number("completed")
        if not completed:
            raise self.refused("no request was answered, so nothing was measured. Run the test again", "completed")
        # what a person says of the server goes before what the file says
        model, tensor = served.model or self.word("model"), served.tensor or self.number("tensor")
        missing = " and ".join(flag for flag, there in (("--model", model), ("--gpu", served.gpu)) if not there)
        if missing:
            raise self.refused(f"does not say all of what was served: give {missing}")
        rate, clients, arrival, notes = self.load()
        prompt, output = (self.lengths(side, completed) for side in ("input", "output"))
        return {
            "source_name": f"your load test, by {self.writer}",
            "as_of": _day_of(self.word("day")),
            "model": str(model),
            "gpu": served.gpu,
            "n_gpus": served.gpus or int(tensor or 1),
            "tp": int(tensor) if tensor else None,
            "engine": served.engine or self.engine(),
            "weight_precision": served.precision,
            "arrival": arrival,
            "request_rate": rate,
            "requests": completed,
            "max_concurrency": clients,
            "mean_input_tokens": prompt[0],
            "input_std_tokens": prompt[1],
            "mean_output_tokens": output[0],
            "output_std_tokens": output[1],
            **{name: self.number(name) for name in _SPEEDS},
            **self.times(),
            "failed": self.number("failed"),
            "notes": notes,
        }

    def load(self) -> tuple[float | None, float | None, str | None, str]:
        """Return the rate, the requests that clients keep open, how requests arrive, and words on it."""
        # vLLM and SGLang state an unlimited rate with so many open requests; guidellm names a pattern
        rate, clients, pattern = self.number("request_rate"), self.number("max_concurrency"), str(self.word("pattern"))
        by_stage = self.writer == "inference-perf"
        if pattern in _CLOSED or (by_stage and clients):
            rate = None  # what it states is then the rate that was reached
        if pattern == "synchronous":
            clients = 1.0
        if by_stage and not rate and not clients:
            reason = "holds stages of several rates together. Name stage_0_lifecycle_metrics.json or another stage"
            raise self.refused(reason, "load_summary.requested_rate")
        arrival = ("constant" if pattern == "constant" else "poisson") if rate else None
        burst, data_set = self.number("burstiness"), self.word("data_set")
        notes = [f"burstiness {burst:g}"] if burst and arrival == "poisson" else []
        return rate or None, clients or None, arrival, "; ".join([*notes, *([str(data_set)] if data_set else [])])

    def lengths(self, side: str, completed: float) -> tuple[float, float | None]:
        """Return the mean and the standard deviation of prompts or outputs; None where the file does not tell it."""
        total = self.number(f"{side}_total")
        mean = self.number(f"mean_{side}_tokens") or (total / completed if total else None)
        if not mean:
            raise self.refused(f"states no mean {side} tokens. Run the test with a tokenizer", f"mean_{side}_tokens")
        # every length if the file has them, without those of failed requests (0); else what a random set was told
        each = self.word(f"{side}_lengths")
        if isinstance(each, list) and len(each) > 1 and all(type(tokens) is int for tokens in each):
            return mean, float(np.std([tokens for tokens in each if tokens > 0] or [0.0]))
        shortest = self.number("shortest")
        if shortest is not None and shortest <= 1 and str(self.word("data_set")).startswith("random"):
            # even from s to 1 of the longest, as 1 ± (1 − s)/(1 + s) of the mean
            return mean, mean * _EVEN_SPREAD * (1 - shortest) / (1 + shortest)
        return mean, self.number(f"{side}_std_tokens")

    def times(self) -> dict[str, float]:
        """Return the mean and percentiles of each time, in the units of load tests; a time of 0 was not measured."""
        times: dict[str, float] = {}
        for time, (_, scale, unit) in TIMES.items():
            rising = []
            for statistic in STATISTICS:
                stated = self.stated(time, statistic)
                if stated is None:
                    continue
                times[f"{time}_{statistic}_{unit}"] = stated[0] * scale
                rising += [] if statistic == "mean" else [stated]
            for (low, _), (high, path) in pairwise(rising):  # but for rounding
                if high < low * (1 - 1e-9):
                    reason = f"is {high:g} s, below a lower percentile of {low:g} s. Export the result again"
                    raise self.refused(reason, path)
        if not times:
            raise self.refused("states no time to the first token, per token or end to end. Stream the answers")
        return times

    def stated(self, time: str, statistic: str) -> tuple[float, str] | None:
        """Return a statistic of a time in seconds, and where it stands."""
        # a percentile of exactly 0 is a time that was not measured
        for place in self.places[time]:
            for word in _SPELLINGS[statistic]:
                path = place.path.replace("*", word)
                if value := self.number_at(path):
                    return value * self.seconds(place), path
        return None

    def seconds(self, place: FigurePlace) -> float:
        """Return the seconds of the unit in which a time is written."""
        path = place.path.replace("*", "unit")
        unit = _at(self.test, path) if place.unit == "unit" else place.unit
        if unit not in _SECONDS:
            raise self.refused(f"{shown(unit)} is none of the units {', '.join(_SECONDS)}", path)
        return _SECONDS[unit]

    def engine(self) -> str:
        """Return the engine that was asked; a client of a common interface does not say whose server it was."""
        client = str(self.word("engine") or "").split("-")[0].lower()
        if client in _ENGINES:
            return client
        return "vllm" if self.writer == "vllm" else ""


def _day_of(stated: Any) -> str | None:
    """Return the day on which a test ran.

    >>> _day_of("20250911-101112"), _day_of("2025-06-02T10:00:00"), _day_of(1750000000.5), _day_of(None)
    ('2025-09-11', '2025-06-02', '2025-06-15', None)
    """
    if isinstance(stated, (int, float)) and 0 < stated < 1e11:  # seconds since 1970; milliseconds are no day
        return datetime.fromtimestamp(stated, UTC).date().isoformat()
    text = str(stated or "")
    day = text[:8]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}" if len(day) == 8 and day.isdecimal() else text[:10] or None


def sentence_of(row: Mapping[str, Any]) -> str:
    """Return what was read of a test, in a sentence.

    >>> test = {"id": "a.json", "requests": 90.0, "failed": 10.0, "mean_input_tokens": 512.0, "n_gpus": 1, "gpu": "l4"}
    >>> sentence_of(test | {"mean_output_tokens": 128.0, "request_rate": 4.0, "max_concurrency": None, "model": "8b"})
    'a.json: 8b on 1 × l4, 90 requests of 512 and 128 tokens at 4 requests/s; 10 failed.'
    """
    rate, clients = row["request_rate"], row["max_concurrency"]
    load = [f"{rate:g} requests/s"] if rate else []
    load += [f"most {clients:g} open"] if rate and clients else [f"{clients:g} open"] if clients else []
    failed = f"; {row['failed']:g} failed" if row["failed"] else ""
    return (
        f"{row['id']}: {row['model']} on {row['n_gpus']} × {row['gpu']}, {row['requests']:,.0f} requests of"
        f" {row['mean_input_tokens']:,.0f} and {row['mean_output_tokens']:,.0f} tokens at"
        f" {', at '.join(load) or 'once'}{failed}."
    )


def serving_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a load test in the columns of models/measurements/serving.csv, as a fit of serving reads it.

    Of a rate the speed says nothing (what arrives is answered, whatever serves); the time per token does.
    """
    rate, clients = row["request_rate"], row["max_concurrency"]
    return {
        **{key: row[key] for key in ("id", "source_name", "as_of", "model", "gpu", "n_gpus", "tp", "engine")},
        "weight_precision": row["weight_precision"],
        "scenario": "server",
        "load": "rated" if rate else "steady" if clients else "burst",
        "served_by": "default",
        "isl": row["mean_input_tokens"],
        "osl": row["mean_output_tokens"],
        "request_rate": rate,
        "batch_or_concurrency": None if rate else clients or row["requests"],
        "requests": row["requests"],
        "measured_output_tokens_per_s": row["output_tokens_per_s"],
        "ttft_ms": row.get("ttft_mean_ms") or row.get("ttft_p50_ms"),
        "tpot_ms": row.get("tpot_mean_ms") or row.get("tpot_p50_ms"),
        "core": 1,
    }
