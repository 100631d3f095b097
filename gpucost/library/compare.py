"""`gpucost.compare(...)`: why two answers differ, or models on accelerators side by side."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
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

_TOKENS = 100e9  # of a run whose tokens are not stated
_WATT_S_PER_KWH = 3.6e6
# What a row of models side by side shows of its run, of its tokens, and of the machine that serves them.
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
    # answers at hand hold their own questions: nothing is asked beside them
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
    # two answers, or the parts of one
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
    # or models on accelerators side by side
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
    # or the speed of one job
    speed: Annotated[
        bool, FLAG, "Compare the speed of one job on two accelerators, or on one over its own links and over PCIe."
    ] = False,
    gpus: Annotated[v.Gpus | None, "With --speed: number of accelerators of the job.", detail(example=8)] = None,
    global_batch: Annotated[v.GlobalBatch | None, "With --speed: sequences of one step of the job."] = None,
    micro_batch: Annotated[
        v.MicroBatch | None, "With --speed: sequences per GPU per micro-step.", detail(usual="the fastest", example=1)
    ] = None,
    sequence: Annotated[v.SequenceTokens | None, "With --speed: tokens of a sequence.", detail(field="")] = None,
    # of models side by side: the run, and whose prices count
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
    if values["first"] is None:
        if values["model"] is None and values["gpu"] is None:
            raise UsageError("compare: name two answers, a scenario with several parts, or --model and --gpu.")
        facts = opened(values, catalog)
        return CompareResult(_speed_of_jobs(facts, values) if values["speed"] else _side_by_side(facts, values))
    offer_rank, accepts_changed = values["rank"], values["accept_changed"]
    first_answer, first_name = _loaded(values["first"], accepts_changed)
    if values["second"] is not None:
        second_answer, second_name = _loaded(values["second"], accepts_changed)
        names = (first_name, second_name) if first_name != second_name else ("first", "second")
        with reading("one of the answers"):
            payload = bridged(first_answer, second_answer, offer_rank, names)
            return CompareResult(with_change_warnings(payload, first_answer, second_answer))
    # of one answer alone the parts that ask the same question, each with the first of them
    parts = [part for part in first_answer.get("parts", ()) if part["part"] == first_answer["parts"][0]["part"]]
    if len(parts) < 2:
        raise UsageError(
            "compare: a second answer is missing; only a scenario with two parts of one kind can stand alone."
        )
    begin, later_parts = parts[0], parts[1:]
    with reading("one of the answers"):
        comparisons = [
            {**part, "payload": bridged(begin["payload"], part["payload"], offer_rank, (begin["name"], part["name"]))}
            for part in later_parts
        ]
    if len(comparisons) == 1:
        return CompareResult(with_change_warnings(comparisons[0]["payload"], first_answer))
    return CompareResult({**first_answer, "lead": "", "parts": comparisons})


def load_answer(source: Any) -> Answer:
    """Return an answer at hand, saved, or asked as a scenario says."""
    return _loaded(source, False)[0]


def _loaded(source: Any, accept_changed: bool) -> tuple[Answer, str]:
    """Return an answer and its name: at hand, saved, or asked as a scenario and its part say."""
    if isinstance(source, Mapping) and "kind" not in source:  # the content of a scenario
        return report(source).payload, "scenario"
    if isinstance(source, Mapping) or hasattr(source, "payload"):
        payload: Answer = getattr(source, "payload", source)
        return checked(plain(payload), "the answer"), "answer"
    # FILE#PART names a part, unless a file has that name
    text = fspath(source)
    path, part = (text, "") if Path(text).exists() or "#" not in text else text.rsplit("#", 1)
    if path.lower().endswith(".toml"):
        if not part:
            return report(path).payload, Path(path).stem
        scenario_parts = {item.name: item for item in read_scenario(path).parts}
        return asked_part(_part_called(part, scenario_parts, path)), part  # the others are not asked
    payload = read_answer(path, accept_changed)
    if not part:
        return payload, Path(path).stem
    # parts of a report hold answers; those of other kinds hold none
    answers = {item["name"]: item["payload"] for item in payload.get("parts", ()) if "payload" in item}
    return with_change_warnings(_part_called(part, answers, path), payload), part


def _part_called(part: str, parts: Mapping[str, Any], path: str) -> Any:
    if part not in parts:
        raise UsageError(f"{path!r} has no part {part!r}. Parts: {', '.join(parts) or 'none'}.")
    return parts[part]


def _side_by_side(catalog: Catalog, values: Mapping[str, Any]) -> SideBySide:
    """Return the cheapest run and the cheapest tokens of every model on every accelerator."""
    from gpucost.catalog.names import admits
    from gpucost.market.table import ordered

    filters = {name: values[name] for name in _FILTERS if values[name]}
    run_tokens = values["tokens"] or _TOKENS
    rows: list[Pair] = []
    for model, gpu in [(model, gpu) for model in values["model"] or ["8b"] for gpu in values["gpu"] or [None]]:
        stated = {**filters, "model": model, **({} if gpu is None else {"gpu": gpu}), "top": 1}
        # the run and the service are asked apart: a chip may do one of them alone
        run, no_run = _best("estimate", {**stated, "tokens": run_tokens, "with_facts": False}, catalog)
        tokens, no_tokens = _best("inference", stated, catalog)
        # where neither is possible since nobody sells the accelerator today, the note says so, and since when
        note = " ".join(dict.fromkeys(text for text in (no_run, no_tokens) if text))
        last_price_on = None
        if gpu and no_run and no_tokens:
            allowed = catalog.offer_filter(gpu, None, None, None)
            prices = [row for row in catalog.price_rows if admits(allowed, row)]
            if prices:
                last_price_on = str(max(row["observed_on"] for row in prices))
            if all(row["ended"] for row in prices):
                note = f"no price since {last_price_on}" if prices else "no price on record"
        pair = {
            "model": model,
            "gpu": gpu or run.get("gpu") or "any",
            **{name: run.get(name) for name in _OF_RUNS},
            "times_first": None,
            **{f"serving_{name}": tokens.get(name) for name in _OF_HIRE},
            **{name: tokens.get(name) for name in _OF_TOKENS},
            "source_ids": list(dict.fromkeys([*run.get("source_ids", ()), *tokens.get("source_ids", ())])),
            "last_price_on": last_price_on,
            "note": note,
            "tokens_per_kwh": _of_energy(run_tokens, run.get("energy_kwh")),
            "tokens_per_s_per_w": _of_energy(run_tokens / _WATT_S_PER_KWH, run.get("energy_kwh")),
            "serving_tokens_per_kwh": _of_energy(tokens.get("tokens_per_month"), tokens.get("energy_kwh")),
        }
        rows.append(cast(Pair, pair))
    # otherwise in the order in which they were named
    rows.sort(key=lambda row: row["cost_usd"] is None and row["usd_per_mtok"] is None)  # answers first
    first = rows[0]["cost_usd"]
    for row in rows:
        # against the first row: the first pair with an answer
        if first and row["cost_usd"]:
            row["times_first"] = row["cost_usd"] / first
    sentences = []
    if runs := [row for row in rows if row["cost_usd"] is not None]:
        best = ordered(runs, "cost_usd")[0]
        sentences.append(f"Cheapest to train: {best['model']} on {best['gpu']}, {best['cost_usd']:,.0f} USD.")
    if served := [row for row in rows if row["usd_per_mtok"] is not None]:
        best = ordered(served, "usd_per_mtok")[0]
        sentences.append(
            f"Cheapest to serve: {best['model']} on {best['gpu']}, {best['usd_per_mtok']:.3g} USD per million tokens."
        )
    return {
        "kind": "side_by_side",
        **framed(catalog, {name: value for name, value in values.items() if value is not False}),
        "lead": " ".join(sentences) or "None of these can be trained or served on what is for rent.",
        "rows": rows,
        "warnings": [],
        "sources": cited(market_of(catalog).facts.sources, (id_ for row in rows for id_ in row["source_ids"])),
    }


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


def _speed_of_jobs(catalog: Catalog, values: Mapping[str, Any]) -> Answer:
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
    sizes = {f"{job['layout']['global_batch']:,} sequences of {job['sequence_tokens']:,.0f}" for job in (first, second)}
    step = f" One step: {' against '.join(sorted(sizes))} tokens."
    # both speeds at the sequences of a step that were stated, and at those as models of its size use; where none were
    # stated, one sequence for each accelerator stands beside: links weigh most there
    batch_stated = values["global_batch"]
    usual = [{name: value for name, value in job.items() if name != "global_batch"} for job in jobs]
    timed = [[first, second]]
    with suppress(NothingFitsError):  # nothing beside, where it fits no layout
        timed.append(
            _speeds(catalog, usual if batch_stated else [{**job, "global_batch": job["gpus"]} for job in jobs])
        )
    uses = ("yours", "usual training") if batch_stated else ("usual training", "small fine-tunes")
    batches: dict[int, AtBatch] = {}
    for pair, used_for in zip(timed, uses, strict=False):
        batch = int(pair[0]["layout"]["global_batch"])
        first_rate, second_rate = (float(answer["tokens_per_s_per_gpu"]) for answer in pair)
        row: AtBatch = {
            "global_batch": batch,
            "first_tokens_per_s_per_gpu": first_rate,
            "second_tokens_per_s_per_gpu": second_rate,
            "longer_fraction": first_rate / second_rate - 1,
            "used_for": used_for,
        }
        batches.setdefault(batch, row)  # where the stated batch is the usual one, it stays the person's own
    return {
        **comparison,
        "batches": [batches[batch] for batch in sorted(batches)],
        "lead": comparison["lead"] + step,
        "warnings": [*notes, *comparison["warnings"]],
    }


def _speeds(catalog: Catalog, jobs: Sequence[Answer]) -> list[Answer]:
    return [cast("Result", answered("throughput", job, catalog)).payload for job in jobs]
