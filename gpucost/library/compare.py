"""`gpucost.compare(...)`: why two answers differ, or models on accelerators side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, cast

from gpucost.answers.combined import AtBatch, Pair, SideBySide
from gpucost.answers.common import cited
from gpucost.answers.saved import checked, read_answer, reading, with_change_warnings
from gpucost.arguments import read
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import ANSWER, FLAG, GPUS, MODELS
from gpucost.arguments.signature import absent, detail, given, needs
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered, framed, opened, question
from gpucost.ask.result import Result, copied
from gpucost.bridges.compare import compare as bridged
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, PriceMissingError, UsageError
from gpucost.library.report import asked_part, report
from gpucost.library.scenario import read_scenario
from gpucost.market.facts import market_of
from gpucost.render.json import plain

Answer = Mapping[str, Any]

_TOKENS = 100e9
_WATT_S_PER_KWH = 3.6e6
_OF_RUNS = (
    *("gpus", "days", "cost_usd", "cost_low_usd", "cost_high_usd", "tokens_per_s_per_gpu"),
    *("provider", "option", "usd_per_gpu_hour", "price_observed_on"),
)
_OF_TOKENS = ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "tpot_ms")
_OF_HIRE = ("gpus", "provider", "option", "usd_per_gpu_hour", "price_observed_on")  # with `serving_` before
_FILTERS = ("provider", "region", "option")


@dataclass(frozen=True, slots=True, repr=False)
class CompareResult(Result):
    """What two answers differ in, with effects that add up; or a row for every model on every accelerator."""

    @property
    def best(self) -> Mapping[str, Any] | None:
        """Of models side by side the one whose run costs least; two answers are not ranked."""
        from gpucost.market.table import ordered

        runs = [row for row in self.options if self.kind == "side_by_side" and row["cost_usd"] is not None]
        return next(iter(ordered(runs, "cost_usd")), None)

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """The effect of each cause."""
        if "changes" not in self.payload:
            kind_described = (
                "models side by side have" if self.kind == "side_by_side" else "a comparison of several parts has"
            )
            raise UsageError(f"{kind_described} no causes of one difference. to_frame() has the rows.")
        return [*map(copied, self.payload["changes"])]


@question(
    exclusive=["first model", "first gpu", "first tokens"],
    needs=[
        needs("gpus global_batch micro_batch sequence", given("speed")),
        needs(
            "provider region option as_of known_as_of",
            given("model"),
            words="with --model: saved answers hold their prices",
        ),
        needs("provider region option tokens", absent("speed"), words="without --speed: it is of speed alone"),
        needs("rank accept_changed", given("first"), words="with saved answers"),
    ],
)
def compare(
    first: Annotated[
        str | PathLike[str] | Mapping[str, Any] | Result | None,
        ANSWER,
        "Saved answer or scenario, FILE#PART for one part of it.",
        detail(example="before.json", place=True),
    ] = None,
    second: Annotated[
        str | PathLike[str] | Mapping[str, Any] | Result | None,
        ANSWER,
        "Second answer or scenario; by default the other parts of the first.",
        detail(example="after.json", place=True),
    ] = None,
    *,
    rank: Annotated[v.Rank, "Rank of the option in each answer."] = 1,
    accept_changed: v.AcceptChanged = False,
    model: Annotated[
        str | Sequence[str] | None,
        MODELS,
        "Instead of files: models, with commas or repeated.",
        detail(usual="8b", example="8b,70b"),
    ] = None,
    gpu: Annotated[
        str | Sequence[str] | None,
        GPUS,
        "Accelerators, with commas or repeated: every model on each.",
        detail(example="h100-sxm,h200"),
    ] = None,
    speed: Annotated[
        bool, FLAG, "Compare the speed of one job on two accelerators, or on one over its own links and over PCIe."
    ] = False,
    gpus: Annotated[v.Gpus | None, "With --speed: number of accelerators of the job.", detail(example=8)] = None,
    global_batch: Annotated[v.GlobalBatch | None, "With --speed: sequences of one step of the job."] = None,
    micro_batch: Annotated[
        v.MicroBatch | None, "With --speed: sequences per GPU per micro-step.", detail(usual="the fastest", example=1)
    ] = None,
    sequence: Annotated[v.SequenceTokens | None, "With --speed: tokens of a sequence.", detail(field="")] = None,
    tokens: Annotated[v.Tokens | None, "Tokens of the run.", detail(usual="100b")] = None,
    provider: v.Provider | None = None,
    region: v.Region | None = None,
    option: v.Option | None = None,
    as_of: v.AsOf | None = None,
    known_as_of: v.KnownAsOf | None = None,
    catalog: "Catalog | None" = None,
) -> CompareResult:
    """Return why two answers differ, or models on accelerators side by side.

    What two answers differ in and why: what changed first, then what each cause does; effects add up.

    Takes two saved answers of estimate, inference, tco, mix, throughput, or fit of training on one --gpu, two reports,
    or the parts of a scenario. With --model and --gpu: models on accelerators side by side.

    $ gpucost compare before.json after.json
    $ gpucost compare scenario.toml#plan-a scenario.toml#plan-b
    $ gpucost compare --speed --model 8b --gpu h100-sxm --gpus 8 --global-batch 8
    $ gpucost compare --model 8b,70b --gpu h100-sxm,h200 --tokens 100b
    """
    values = read(
        QUESTIONS["compare"],
        first=first,
        second=second,
        rank=rank,
        accept_changed=accept_changed,
        model=model,
        gpu=gpu,
        speed=speed,
        gpus=gpus,
        global_batch=global_batch,
        micro_batch=micro_batch,
        sequence=sequence,
        tokens=tokens,
        provider=provider,
        region=region,
        option=option,
        as_of=as_of,
        known_as_of=known_as_of,
    )
    if values["first"] is not None:
        return CompareResult(_of_answers(values))
    if values["model"] is None and values["gpu"] is None:
        raise UsageError("compare: name two answers, a scenario with several parts, or --model and --gpu.")
    facts = opened(values, catalog)
    return CompareResult(_timed(facts, values) if values["speed"] else _side_by_side(facts, values))


def _of_answers(values: Mapping[str, Any]) -> Answer:
    """Compare two answers; of one alone, the parts that ask the same question, each with the first of them."""
    rank, accept_changed = values["rank"], values["accept_changed"]
    first_answer, name = _loaded(values["first"], accept_changed)
    if values["second"] is not None:
        second_answer, called = _loaded(values["second"], accept_changed)
        with reading("one of the answers"):
            names = (name, called) if name != called else ("first", "second")
            return with_change_warnings(bridged(first_answer, second_answer, rank, names), first_answer, second_answer)
    parts = [part for part in first_answer.get("parts", ()) if part["part"] == first_answer["parts"][0]["part"]]
    if len(parts) < 2:
        raise UsageError(
            "compare: a second answer is missing; only a scenario with two parts of one kind can stand alone."
        )
    begin, later_parts = parts[0], parts[1:]
    with reading("one of the answers"):
        comparisons = [
            {**part, "payload": bridged(begin["payload"], part["payload"], rank, (begin["name"], part["name"]))}
            for part in later_parts
        ]
    if len(comparisons) == 1:
        return with_change_warnings(comparisons[0]["payload"], first_answer)
    return {**first_answer, "lead": "", "parts": comparisons}


def load_answer(source: Any) -> Answer:
    """Return an answer at hand, saved, or asked as a scenario says."""
    return _loaded(source, False)[0]


def _loaded(source: Any, accept_changed: bool) -> tuple[Answer, str]:
    """Return an answer and what it is called: at hand, saved, or asked as a scenario and its part say."""
    if isinstance(source, Mapping) and "kind" not in source:
        return report(source).payload, "scenario"
    if isinstance(source, Mapping) or hasattr(source, "payload"):
        found: Answer = getattr(source, "payload", source)
        return checked(plain(found), "the answer"), "answer"
    text = fspath(source)
    path, part = (text, "") if Path(text).exists() or "#" not in text else text.rsplit("#", 1)
    if path.lower().endswith(".toml"):
        return _answer_scenario(path, part), part or Path(path).stem
    payload = read_answer(path, accept_changed)
    if part:
        return with_change_warnings(_part(payload, part, path), payload), part
    return payload, Path(path).stem


def _answer_scenario(path: str, part: str) -> Answer:
    """Answer a scenario, or the one part of it that was named."""
    if not part:
        return report(path).payload
    scenario = read_scenario(path)
    return asked_part(_named(scenario.parts, part, path, [one.name for one in scenario.parts]))


def _part(payload: Answer, part: str, path: str) -> Answer:
    parts = [
        item for item in payload.get("parts", ()) if "payload" in item
    ]  # of a scenario; other parts are no answers
    payload_of_part: Answer = _named(parts, part, path, [item["name"] for item in parts])["payload"]
    return payload_of_part


def _named(parts: Sequence[Any], part: str, path: str, names: Sequence[str]) -> Any:
    if part not in names:
        raise UsageError(f"{path!r} has no part {part!r}. Parts: {', '.join(names) or 'none'}.")
    return parts[names.index(part)]


def _side_by_side(catalog: Catalog, values: Mapping[str, Any]) -> SideBySide:
    """Return the cheapest run and the cheapest tokens of every model on every accelerator."""
    pairs = [(model, gpu) for model in values["model"] or ["8b"] for gpu in values["gpu"] or [None]]
    asked = [_pair(catalog, model, gpu, values) for model, gpu in pairs]
    rows = sorted(asked, key=lambda row: row["cost_usd"] is None and row["usd_per_mtok"] is None)  # answers first
    first = rows[0]["cost_usd"]
    for row in rows:
        if first and row["cost_usd"]:
            row["times_first"] = row["cost_usd"] / first
    return {
        "kind": "side_by_side",
        **framed(catalog, {name: value for name, value in values.items() if value is not False}),
        "lead": _lead(rows),
        "rows": rows,
        "warnings": [],
        "sources": cited(market_of(catalog).facts.sources, (id_ for row in rows for id_ in row["source_ids"])),
    }


def _pair(catalog: Catalog, model: str, gpu: str | None, values: Mapping[str, Any]) -> Pair:
    stated = {name: values[name] for name in _FILTERS if values[name]} | {"model": model, "gpu": gpu, "top": 1}
    stated = {name: value for name, value in stated.items() if value is not None}
    run, missed = _best("estimate", {**stated, "tokens": values["tokens"] or _TOKENS, "with_facts": False}, catalog)
    tokens, unserved = _best("inference", stated, catalog)
    unsold, last_price_on = _unsold(catalog, gpu) if gpu and missed and unserved else (False, None)
    reasons = [f"no price since {last_price_on}" if last_price_on else "no price on record"] if unsold else []
    note = " ".join(reasons or dict.fromkeys(text for text in (missed, unserved) if text))
    return cast(
        Pair,
        {
            "model": model,
            "gpu": gpu or run.get("gpu") or "any",
            **{name: run.get(name) for name in _OF_RUNS},
            "times_first": None,
            **{f"serving_{name}": tokens.get(name) for name in _OF_HIRE},
            **{name: tokens.get(name) for name in _OF_TOKENS},
            "source_ids": list(dict.fromkeys([*run.get("source_ids", ()), *tokens.get("source_ids", ())])),
            "last_price_on": last_price_on,
            "note": note,
            "tokens_per_kwh": _of_energy(values["tokens"] or _TOKENS, run.get("energy_kwh")),
            "tokens_per_s_per_w": _of_energy((values["tokens"] or _TOKENS) / _WATT_S_PER_KWH, run.get("energy_kwh")),
            "serving_tokens_per_kwh": _of_energy(tokens.get("tokens_per_month"), tokens.get("energy_kwh")),
        },
    )


def _of_energy(amount: float | None, kwh: float | None) -> float | None:
    """Return so much of a kilowatt-hour; None where either is not known."""
    return amount / kwh if amount and kwh else None


def _best(name: str, stated: Answer, catalog: Catalog) -> tuple[Answer, str]:
    """Return the first option, or nothing and why; of what nobody sells how many it takes, and how long."""
    try:
        return answered(name, stated, catalog).best, ""
    except PriceMissingError as error:
        return error.nearest, str(error)
    except NothingFitsError as error:
        return {}, str(error)


def _unsold(catalog: Catalog, gpu: str) -> tuple[bool, str | None]:
    """Tell whether nobody sells an accelerator today, and when the newest price of it was seen."""
    from gpucost.catalog.names import admits

    wanted = catalog.offer_filter(gpu, None, None, None)
    rows = [row for row in catalog.price_rows if admits(wanted, row)]
    newest = str(max(row["observed_on"] for row in rows)) if rows else None
    return all(row["ended"] for row in rows), newest


def _lead(rows: Sequence[Pair]) -> str:
    from gpucost.market.table import ordered

    runs = [row for row in rows if row["cost_usd"] is not None]
    served = [row for row in rows if row["usd_per_mtok"] is not None]
    sentences = []
    if runs:
        best = ordered(runs, "cost_usd")[0]
        sentences.append(f"Cheapest to train: {best['model']} on {best['gpu']}, {best['cost_usd']:,.0f} USD.")
    if served:
        best = ordered(served, "usd_per_mtok")[0]
        sentences.append(
            f"Cheapest to serve: {best['model']} on {best['gpu']}, {best['usd_per_mtok']:.3g} USD per million tokens."
        )
    return " ".join(sentences) or "None of these can be trained or served on what is for rent."


def _timed(catalog: Catalog, values: Mapping[str, Any]) -> Answer:
    """Compare the speed of one job on two accelerators, of two models on one, or of one over its links and PCIe."""
    pairs = [(model, gpu) for model in values["model"] or ["8b"] for gpu in values["gpu"] or ()]
    if not 1 <= len(pairs) <= 2:
        raise UsageError("--speed compares two pairs of --model and --gpu, or one over its own links and over PCIe.")
    stated = {name: values[name] for name in ("global_batch", "micro_batch", "sequence") if values[name] is not None}
    jobs = [{"model": model, "gpu": gpu, "gpus": values["gpus"] or 8, **stated} for model, gpu in pairs]
    names = [gpu if pairs[0][0] == pairs[-1][0] else model for model, gpu in pairs]
    if len(jobs) == 1:
        jobs.append({**jobs[0], "links": "pcie"})
        names = ["own links", "PCIe"]
    first, second = _speeds(catalog, jobs)
    comparison = bridged(first, second, 1, (names[0], names[1]))
    notes = [] if first["gpu"] != second["gpu"] else catalog.taken(pairs[0][1])  # two that differ stand in the table
    sizes = [(job["layout"]["global_batch"], job["sequence_tokens"]) for job in (first, second)]
    step = (
        f" One step: {' against '.join(sorted({f'{n:,} sequences of {tokens:,.0f}' for n, tokens in sizes}))} tokens."
    )
    warnings = [*notes, *comparison["warnings"]]
    batches = _at_batches(catalog, jobs, (first, second), values["global_batch"])
    return {**comparison, "batches": batches, "lead": comparison["lead"] + step, "warnings": warnings}


def _speeds(catalog: Catalog, jobs: Sequence[Answer]) -> list[Answer]:
    return [cast("Result", answered("throughput", job, catalog)).payload for job in jobs]


def _at_batches(catalog: Catalog, jobs: Sequence[Answer], timed: Sequence[Answer], stated: int | None) -> list[AtBatch]:
    """Return both speeds at the sequences of a step that were stated, and at those as models of its size use.

    Where none were stated, one sequence for each accelerator stands beside: links weigh most there. Nothing where it
    fits no layout.
    """
    usual = [{name: value for name, value in job.items() if name != "global_batch"} for job in jobs]
    other = usual if stated else [{**job, "global_batch": job["gpus"]} for job in jobs]
    try:
        pairs = [timed, _speeds(catalog, other)]
    except NothingFitsError:
        pairs = [timed]
    words = ["yours"] if stated else ["usual training"]
    words.append("usual training" if stated else "small fine-tunes")
    rows: dict[int, AtBatch] = {}
    for (first, second), used_for in zip(pairs, words, strict=False):
        rates = [float(answer["tokens_per_s_per_gpu"]) for answer in (first, second)]
        rows.setdefault(
            int(first["layout"]["global_batch"]),
            {
                "global_batch": int(first["layout"]["global_batch"]),
                "first_tokens_per_s_per_gpu": rates[0],
                "second_tokens_per_s_per_gpu": rates[1],
                "longer_fraction": rates[0] / rates[1] - 1,
                "used_for": used_for,
            },
        )
    return [rows[batch] for batch in sorted(rows)]
