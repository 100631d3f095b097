"""Pairs of questions of which one cannot cost more than the other: more time, more choice, more discount, less work.

A case asks the question that must not cost more, then the other one. Where only the first is refused, or where a figure
of it is greater, the answer cannot be.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.meaning import faults_of

_SLACK_FRACTION = 1e-9  # floating point: sums in another order
_SLACK_USD = 0.05  # each line of a bill is rounded to a cent
DAY = "2026-11-20"
MODELS = ("1b", "8b", "32b", "70b", "405b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3", "qwen3-30b-a3b")
GPUS = (None, "h100-sxm", "h200", "a100-80gb", "b200", "l40s", "l4", "t4", "v100-16gb", "rtx-4090", "mi300x", "gb200")
# arguments that narrow the choice: each leaves a part of the offers
FILTERS = {
    "provider": ["aws", "lambda", "coreweave", "gcp", "vast"],
    "option": ["on_demand", "spot", "reserved"],
    "region": ["us", "eu"],
    "max_age": ["60d", "200d"],
    "strict_prices": [True],
}
Figures = dict[str, float]
Arguments = dict[str, Any]  # the arguments of a question
Pair = tuple[Arguments, Arguments]  # the question that must not cost more, and the other one
Change = Callable[[Random, Arguments], Pair]


class Question(NamedTuple):
    """A question drawn at random, what may change in it, and which figures must follow."""

    base: Callable[[Random], Arguments]
    changes: dict[str, Change]
    figures: Callable[[dict[str, Any]], Figures]


def orders(random: Random) -> Case:
    """Two questions that differ in one thing: the one that must not cost more, and the other."""
    # training has the most that may change, and the most engines below it
    name = random.choice([*["estimate"] * 4, *["inference"] * 2, "tco", "mix", "fit"])
    change = random.choice(list(QUESTIONS[name].changes))
    pair = QUESTIONS[name].changes[change](random, QUESTIONS[name].base(random))
    return Case([name, change], face="order", inputs=pair)


def order(case: Case) -> None:
    """Ask both questions; what cannot be is an internal error."""
    import gpucost
    from gpucost.errors import GpuCostError

    name, change = case.arguments
    cheaper, dearer = case.inputs
    try:
        other = _answer(getattr(gpucost, name), dearer)
    except GpuCostError as error:
        other = error  # a refusal, judged once the first question is asked
    try:
        first = _answer(getattr(gpucost, name), cheaper)
    except GpuCostError as error:
        if not isinstance(other, GpuCostError):
            raise InternalError(f"{name}, {change}: only {cheaper} is refused: {error}") from None
        raise
    if isinstance(other, GpuCostError):
        return  # what cannot be had at all may cost anything
    low, high = QUESTIONS[name].figures(first), QUESTIONS[name].figures(other)
    for key in low.keys() & high.keys():  # an offer may be on one side alone
        if low[key] > high[key] * (1 + _SLACK_FRACTION) + _SLACK_USD:
            raise InternalError(f"{name}, {change}: {key} {low[key]} of {cheaper} against {high[key]} of {dearer}")


def _answer(ask: Callable[..., Any], arguments: Arguments) -> dict[str, Any]:
    """Ask on a fixed day; a discount is one of a price book, of three providers."""
    from gpucost.catalog import open_catalog

    arguments, book = dict(arguments), None
    if discount := arguments.pop("discount", None):
        book = Path("discount.toml")
        terms = (
            f'[[discount]]\nprovider = "{name}"\nfraction = {discount}\n' for name in ("aws", "lambda", "coreweave")
        )
        book.write_text("".join(terms), "utf-8")
    answer: dict[str, Any] = ask(**arguments, catalog=open_catalog(DAY, book=book)).to_dict()
    if book:
        book.unlink()
    if fault := next(faults_of(answer), None):
        raise InternalError(f"{fault} of {arguments}")
    return answer


# ── changes: each returns the question that must not cost more, and the other ────────────────────────────────────────


def _filtered(random: Random, base: Arguments) -> Pair:
    """More to choose from."""
    name = random.choice(list(FILTERS))
    # without the filter there is more to choose from, whatever else is asked
    return {key: value for key, value in base.items() if key != name}, base | {name: random.choice(FILTERS[name])}


def _discounted(random: Random, base: Arguments) -> Pair:
    """More discount of some providers."""
    less, more = sorted(round(random.uniform(0.001, 0.95), 4) for _ in range(2))
    return base | {"discount": more}, base | {"discount": less}


def _grown(name: str, most: float, whole: bool = False) -> Change:
    """Return the change that multiplies an argument: the smaller cannot cost more."""

    def change(random: Random, base: Arguments) -> Pair:
        small = base[name] if name in base else random.uniform(1, 3)
        # also by next to nothing: a step at a threshold shows there
        large = small * random.choice([1.001, random.uniform(1, 2), random.uniform(1, most)])
        ends = (round(small), round(large) + 1) if whole else (small, large)
        return base | {name: ends[0]}, base | {name: ends[1]}

    return change


def _raised(name: str, low: float, high: float, falls: bool = False) -> Change:
    """Return the change that draws two values of an argument: the lower comes first, or the higher where it `falls`."""

    def change(random: Random, base: Arguments) -> Pair:
        first, second = sorted((random.uniform(low, high) for _ in range(2)), reverse=falls)
        return base | {name: first}, base | {name: second}

    return change


def _set(name: str, low: float, high: float) -> Change:
    """Return the same for an input of a plan."""
    drawn = _raised(name, low, high)

    def change(random: Random, base: Arguments) -> Pair:
        first, second = drawn(random, {})
        return base | {"set": first}, base | {"set": second}

    return change


def _more_time(random: Random, base: Arguments) -> Pair:
    """A later deadline, or none."""
    days = 10 ** random.uniform(0, 2.5)
    longer = random.choice(["none", f"{days * random.uniform(1, 10)}d", f"{days * 1.01}d"])
    return base | {"deadline": longer}, base | {"deadline": f"{days}d"}


def _more_chips(random: Random, base: Arguments) -> Pair:
    """Two chips to choose from, or one of them alone."""
    first, second = random.sample([gpu for gpu in GPUS if gpu], 2)
    return base | {"gpu": f"{first},{second}"}, base | {"gpu": first}


def _smaller_model(random: Random, base: Arguments) -> Pair:
    """A bare size against a greater one on the same offers; a size with an odd digit is no published model's."""
    size = round(10 ** random.uniform(0, 2), 1) + 0.007
    pinned = base | {"top": 0}
    if "tokens" in base:  # a larger model takes a larger batch where none is given
        pinned |= {"gpus": random.choice([64, 256, 1024]), "global_batch": 1024}
    return pinned | {"model": f"{size:.3f}b"}, pinned | {"model": f"{size * random.choice([1.2, 1.5, 2, 10]):.3f}b"}


def _cheapest_of(random: Random, base: Arguments) -> Pair:
    """What is ranked by cost is no dearer than what is ranked by something else."""
    return base | {"optimize": "cost"}, base | {"optimize": random.choice(["time", "carbon"])}


def _looser(random: Random, base: Arguments) -> Pair:
    """A service that may answer more slowly."""
    name, limit_ms = random.choice([("tpot", random.uniform(10, 100)), ("ttft", random.uniform(50, 2000))])
    return base | {name: f"{limit_ms * random.uniform(1, 10)}ms"}, base | {name: f"{limit_ms}ms"}


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _any_gpu(random: Random) -> Arguments:
    gpu = random.choice(GPUS)
    return {"gpu": gpu} if gpu else {}


def _training_run(random: Random) -> Arguments:
    arguments = _any_gpu(random) | {"model": random.choice(MODELS), "tokens": 10 ** random.uniform(8.5, 12.5)}
    if random.random() < 0.3:
        arguments["sequence"] = random.choice([2048, 32768])
    if random.random() < 0.2:
        arguments["method"] = random.choice(["lora", "qlora"])
    if random.random() < 0.3:
        arguments["deadline"] = random.choice(["none", "5d", "90d"])
    return arguments | {"top": 5, "with_facts": False}


def _service(random: Random) -> Arguments:
    arguments = _any_gpu(random) | {
        "model": random.choice(MODELS),
        "requests_per_s": 10 ** random.uniform(-1, 2),
        "top": 5,
    }
    return arguments | {"prompt_tokens": random.choice([100, 2000, 20_000]), "output_tokens": random.choice([50, 500])}


def _cluster(random: Random) -> Arguments:
    # nobody sells new ones of the oldest
    gpu = random.choice([name for name in GPUS[1:8] if name not in ("t4", "v100-16gb")])
    months, use = random.choice([12, 36, 48, 60]), random.uniform(0.1, 0.95)
    gpus = 8 * random.randrange(1, 64)
    return {"gpu": gpu, "gpus": gpus, "rent": 2.5, "draws": 0, "months": months, "utilisation": use}


def _cheapest(figure: str) -> Callable[[dict[str, Any]], Figures]:
    """Return what reads the least of a figure over the options; of each offer where all were asked for."""

    def figures(answer: dict[str, Any]) -> Figures:
        rows = answer["options"]
        if answer["request"].get("top") == 0:  # all offers, so that each can be held against itself
            return {f"{row['offer_id']}, {row['gpus']}": row[figure] for row in rows}
        return {f"least {figure}": min(row[figure] for row in rows)} if rows else {}

    return figures


def _of(*names: str) -> Callable[[dict[str, Any]], Figures]:
    """Return what reads figures of the answer itself."""
    return lambda answer: {name: answer[name] for name in names if answer.get(name) is not None}


QUESTIONS = {
    "estimate": Question(
        _training_run,
        {
            "more time": _more_time,
            "more choice": _filtered,
            "more chips": _more_chips,
            "more discount": _discounted,
            "fewer tokens": _grown("tokens", 10),
            "fewer epochs": _grown("epochs", 3),
            "less evaluation": _raised("overhead", 0, 0.5),
            "fewer experiments": _raised("experiments", 0, 2),
            "a smaller model": _smaller_model,
            "ranked by cost": _cheapest_of,
        },
        _cheapest("budget_usd"),
    ),
    "inference": Question(
        _service,
        {
            "more time": _looser,
            "more choice": _filtered,
            "more chips": _more_chips,
            "more discount": _discounted,
            "fewer requests": _grown("requests_per_s", 10),
            "more use": _raised("utilisation", 0.2, 1, falls=True),
            "more cached": _raised("prefix_hit", 0, 0.9, falls=True),
            "less redundancy": _grown("redundancy", 3, whole=True),
            "a smaller model": _smaller_model,
            "ranked by cost": _cheapest_of,
        },
        _cheapest("budget_usd"),
    ),
    "tco": Question(
        _cluster,
        {
            "fewer": _grown("gpus", 3, whole=True),
            "cheaper rent": _grown("rent", 3),
            "cooler": _set("pue_ratio", 1.05, 1.8),
            "cheaper power": _set("electricity_usd_per_kwh", 0.02, 0.4),
        },
        lambda answer: {row["name"]: row["npv_usd"] for row in answer["options"]},
    ),
    "mix": Question(
        lambda random: {"gpu": random.choice(["h100-sxm", "b200", "l40s"]), "constant": random.randrange(1, 200),
                        "months": random.choice([6, 12, 36])},
        {"less demand": _grown("constant", 3, whole=True), "more discount": _discounted},
        _of("cost_usd"),
    ),
    "fit": Question(
        lambda random: {"model": random.choice(MODELS), "gpu": random.choice(GPUS[1:]), "sequence": 4096, "gpus": 64,
                        "tensor": 8, "pipeline": 1, "context": 1, "expert": 1, "sharding": 1,
                        "recompute": "full"},
        {"shorter": _grown("sequence", 8, whole=True), "smaller steps": _grown("micro_batch", 4, whole=True)},
        _of("needed_gb"),
    ),
}  # fmt: skip
