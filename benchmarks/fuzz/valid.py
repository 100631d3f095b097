"""Valid questions that go deep: many arguments at once, each a value that is meant; and what every answer must mean.

Most of what the other surfaces draw is refused at the door. Here a question is put together from values that the
argument takes, drawn between its bounds, so that it reaches the engines; whatever it answers is held to what was asked.
"""

import json
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.meaning import faults_of

MODELS = (
    *("1b", "3b", "8b", "13b", "32b", "70b", "405b", "mixtral-8x7b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3"),
    *("qwen3-30b-a3b", "qwen3-8b", "gemma-2-9b", "llama-3.1-70b"),
)
GPUS = ("h100-sxm", "h200", "a100-80gb", "a100-40gb", "b200", "l40s", "l4", "a10g", "mi300x", "gb200", "rtx-4090")
Draw = Callable[[Random], Any]


def _of(*values: Any) -> Draw:
    return lambda random: random.choice(values)


def _between(low: float, high: float, digits: int = 4) -> Draw:
    """Draw a figure, evenly over its orders of magnitude."""
    return lambda random: float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.{digits}g}")


def _whole(low: int, high: int) -> Draw:
    draw = _between(low, high)
    return lambda random: max(low, round(draw(random)))


def _several(values: tuple[str, ...]) -> Draw:
    return lambda random: ",".join(random.sample(values, random.choice([1, 1, 1, 2, 3])))


# what narrows offers, of questions that rank them
_MARKET: dict[str, Draw] = {
    "provider": _several(("aws", "gcp", "azure", "lambda", "coreweave", "runpod", "vast", "oci", "nebius")),
    "region": _of("us", "eu", "us-east-1", "europe-west4", "asia"),
    "option": _several(("on_demand", "spot", "reserved", "commitment")),
    "max_age": _of("60d", "180d", "400d", "1000d"),
    "as_of": _of("2026-11-20", "2026-06-01", "2025-12-01"),
}
# question -> what it needs, and what it may be asked beside: each may stand beside every other, unless refused
ASKED: dict[str, tuple[dict[str, Draw], dict[str, Draw]]] = {
    "estimate": (
        {"model": _of(*MODELS), "tokens": _between(1e8, 2e13)},
        {
            **_MARKET, "gpu": _several(GPUS), "gpus": _of(8, 16, 32, 64, 128, 256, 1024, 24, 96),
            "epochs": _between(1, 5, 2), "deadline": _of("3d", "14d", "90d", "1y", "none"),
            "budget": _between(100, 1e8),
            "sequence": _of(1024, 4096, 8192, 32768), "global_batch": _of(64, 256, 1024),
            "precision": _of("bf16", "fp8"), "method": _of("full", "lora", "qlora"), "overhead": _between(0.01, 0.5),
            "experiments": _between(0.01, 1), "optimize": _of("cost", "time", "carbon"), "top": _of(1, 3, 10),
            "software": _of("tuned", "untuned", "default"), "mfu": _between(0.1, 0.5), "all_regions": _of(True, False),
        },
    ),
    "inference": (
        {"model": _of(*MODELS)},
        {
            **_MARKET, "gpu": _several(GPUS), "prompt_tokens": _whole(16, 30_000), "output_tokens": _whole(8, 3000),
            "requests_per_s": _between(0.05, 300), "tpot": _of("20ms", "50ms", "200ms"),
            "ttft": _of("0.5s", "2s", "10s"),
            "utilisation": _between(0.1, 1), "profile": _of("flat", "office", "consumer"),
            "autoscale": _of(True, False),
            "redundancy": _whole(1, 3), "prefix_hit": _between(0.01, 0.9), "precision": _of("bf16", "fp8"),
            "optimize": _of("cost", "latency", "carbon"), "top": _of(1, 3, 10), "budget": _between(1000, 1e7),
        },
    ),
    "tco": (
        {"gpu": _of("h100-sxm", "h200", "b200", "a100-80gb", "l40s"), "gpus": _whole(8, 4096)},
        {
            "utilisation": _between(0.05, 1), "years": _of(1, 2, 3, 4, 5, 7), "rent": _between(0.5, 12),
            "wacc": _between(0.02, 0.2), "tax": _between(0.05, 0.4), "tax_regime": _of("us", "de", "uk"),
            "site": _of("germany", "texas"), "lead_time": _of("8w", "36w"), "financing": _of("loan", "operating_lease"),
            "rent_path": _of("flat", "decline"), "draws": _of(0, 50), "use_path": _of("ramp 20% over 6 months"),
        },
    ),
    "mix": (
        {"gpu": _of("h100-sxm", "h200", "b200", "l40s"), "constant": _whole(1, 600)},
        {"months": _of(6, 12, 24, 36), "spot_share": _between(0.05, 0.9), "provider": _of("aws", "lambda", "gcp")},
    ),
    "fit": (
        {"model": _of(*MODELS), "gpu": _of(*GPUS)},
        {
            "gpus": _of(1, 2, 4, 8, 16, 64, 3, 96), "method": _of("full", "lora", "qlora"), "serving": _of(True, False),
            "sequence": _of(1024, 8192, 65536), "precision": _of("bf16", "fp8"), "recompute": _of("full", "selective"),
            "micro_batch": _of(1, 2, 4), "batch": _of(1, 8, 64),
        },
    ),
    "throughput": (
        {"model": _of(*MODELS), "gpu": _of(*GPUS), "gpus": _of(1, 2, 4, 8, 16, 64, 256)},
        {
            "sequence": _of(1024, 8192, 32768), "precision": _of("bf16", "fp8"), "method": _of("full", "lora", "qlora"),
            "global_batch": _of(64, 512, 2048), "tensor": _of(1, 2, 4, 8), "pipeline": _of(1, 2, 4),
            "software": _of("tuned", "untuned"), "micro_batch": _of(1, 2, 4),
        },
    ),
    "audit": (
        {"model": _of(*MODELS), "tokens": _between(1e9, 1e13), "gpu": _of(*GPUS), "gpus": _of(8, 64, 512, 2048)},
        {"days": _between(0.5, 300), "cost": _between(100, 1e8), "sequence": _of(2048, 8192)},
    ),
}  # fmt: skip


def questions(random: Random) -> Case:
    """A question of three to nine arguments."""
    # those with the most arguments most often
    name = random.choice([*["estimate"] * 4, *["inference"] * 3, *ASKED])
    needed, more = ASKED[name]
    chosen = random.sample(sorted(more), min(len(more), random.choice([0, 1, 2, 2, 3, 4, 6])))
    # a regime brings its rate, and a claim needs something that it claims: else both are refused at the door
    if "tax" in chosen and "tax_regime" in chosen:
        chosen.remove("tax")
    if name == "audit" and not {"days", "cost"} & set(chosen):
        chosen.append("days")
    arguments = {name: draw(random) for name, draw in needed.items()} | {name: more[name](random) for name in chosen}
    return Case([name], face="valid", inputs=arguments)


def valid(case: Case) -> None:
    """Ask twice: both answers are one, hold no fault, and are what was asked for."""
    import gpucost

    (name,), arguments = case.arguments, case.inputs
    more = {"with_facts": False} if name == "estimate" else {}
    ask = getattr(gpucost, name)
    answer = ask(**arguments, **more).to_dict()
    text = json.dumps(answer, allow_nan=False)
    # twice in one process: what one question leaves behind must not change the next
    if json.dumps(ask(**arguments, **more).to_dict(), allow_nan=False) != text:
        raise InternalError(f"{name} answers twice unlike: {arguments}")
    answer = json.loads(text)  # as a reader of it has it
    if fault := next(faults_of(answer), None) or next(_misfits(name, arguments, answer), None):
        raise InternalError(f"{name}: {fault}: {arguments}")


def _misfits(name: str, arguments: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    """Yield where an answer is not of what was asked: another seller, a later end, more options, hours that differ."""
    rows = answer.get("options") if name in ("estimate", "inference") else None
    for row in rows or ():
        if "provider" in arguments and row["provider"] not in arguments["provider"].split(","):
            yield f"an option of {row['provider']}"
        if isinstance(arguments.get("option"), str) and row["option"] not in arguments["option"].split(","):
            yield f"an option that is {row['option']}"
        if name == "estimate":
            if isinstance(arguments.get("gpus"), int) and row["gpus"] != arguments["gpus"]:
                yield f"{row['gpus']} GPUs"
            if (deadline := arguments.get("deadline")) not in (None, "none"):
                most_days = {"d": 1, "y": 365.25}[deadline[-1]] * float(deadline[:-1])
                if row["days"] > most_days * (1 + 1e-9):
                    yield f"{row['days']} days"
            if not row["days_low"] <= row["days"] <= row["days_high"]:
                yield f"{row['days']} days outside {row['days_low']} to {row['days_high']}"
    most = arguments.get("top", 0) * (3 if name == "inference" else 1)  # of each kind of offer so many
    if rows and most and len(rows) > most:
        yield f"{len(rows)} options where {most} were asked for"
    # present values of the lines, as the answer shows them, against the option's own
    if name == "tco" and (options := {row["name"]: row["npv_usd"] for row in answer["options"]}) and "own" in options:
        lines = math.fsum(line["npv_usd"] for line in answer["lines"] if line["side"] == "own")
        if not math.isclose(lines, options["own"], rel_tol=1e-6, abs_tol=1):
            yield f"the lines of owning come to {lines}, not {options['own']}"
