"""Random deployments, asked of every face: `python -m benchmarks.oracles --questions 10000 --seed 1`.

One deployment has one speed, one memory, one count and one price, whoever is asked. Each question draws a model, an
accelerator, a count and what else may be said, asks two or more faces and compares; where they differ, the question is
printed as it can be asked again. What every face refuses for one reason is no difference, and is counted apart; what
one refuses and another answers is one. `--only NAME` asks one kind; `--start N --questions 1` one question.
"""

import argparse
import csv
import io
import json
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gpucost
from gpucost.agents import compact, tools
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError
from gpucost.page import questions
from gpucost.units import GB, GIB, SECONDS_PER_DAY

Question = dict[str, Any]
Differences = list[str]  # of one question, in words

# dense models and mixtures of all sizes, with other attention, formats and tied embeddings among them
MODELS = (
    "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "llama-2-13b", "qwen2.5-14b", "qwen3-32b", "llama-3.1-70b",
    "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b", "gpt-oss-120b", "llama-3.1-405b", "deepseek-v3", "gpt-3-175b",
    "mistral-7b", "gemma-2-9b",
)  # fmt: skip
SMALL = MODELS[:7]
# those that many sell first: questions of price draw from the beginning
GPUS = (
    "h100-sxm", "h200-sxm", "b200-sxm", "a100-80gb-sxm", "a100-sxm4-40gb", "a100-pcie-80gb", "l40s", "l4", "rtx-4090",
    "rtx-3090", "mi300x", "v100-sxm2-32gb", "rtx-a6000", "h100-pcie", "gaudi2", "mi325x",
)  # fmt: skip
COUNTS = (1, 2, 3, 4, 6, 8, 16, 24, 32, 40, 64, 96, 128, 256, 512)
USD = 2.0  # a price that is stated, so that what nobody sells is answered, too
NEAR = 1e-9  # what two ways to one sum may differ by


def close(first: float, second: float, ratio: float = NEAR) -> bool:
    """Tell whether two figures are one."""
    return math.isclose(first, second, rel_tol=ratio, abs_tol=1e-12)


def _training(dice: random.Random) -> Question:
    """Return a training job: a model on so many accelerators, and what else may be said of it."""
    job: Question = {"model": dice.choice(MODELS), "gpu": dice.choice(GPUS), "gpus": dice.choice(COUNTS)}
    if dice.random() < 0.4:
        job["method"] = dice.choice(("lora", "qlora"))
        if dice.random() < 0.3:
            job["lora_rank"] = dice.choice((8, 32, 64))
    if dice.random() < 0.4:
        job["sequence"] = dice.choice((512, 1000, 2048, 4096))
    if dice.random() < 0.3:
        job["global_batch"] = dice.choice((8, 64, 96, 512, 1024))
    if dice.random() < 0.2:
        job["software"] = dice.choice(("vendor", "sharded", "eager", "typical"))
    return job


class Refusal(NamedTuple):
    """What a face says instead of an answer."""

    kind: str  # of the error
    text: str


class AllRefuse(Exception):
    """Every face refuses, for one reason."""


def _attempt(face: Callable[..., Any], *places: Any, **arguments: Any) -> Any:
    """Ask a face; return its answer or its refusal."""
    try:
        return face(*places, **arguments)
    except GpuCostError as error:
        return Refusal(type(error).__name__, str(error))


def answer(question: str, catalog: Catalog, **arguments: Any) -> Any:
    """Ask a question of the library; return its answer or its refusal."""
    return _attempt(getattr(gpucost, question), catalog=catalog, **arguments)


def refused(**answers: Any) -> Differences:
    """Return the differences in what faces refuse; nothing where all answer. Raise where all refuse for one reason."""
    refusals = {name: value for name, value in answers.items() if isinstance(value, Refusal)}
    if not refusals:
        return []
    reasons = "; ".join(f"{name} refuses ({value.kind}: {value.text})" for name, value in refusals.items())
    if len(refusals) < len(answers):
        return [f"{reasons}; {' and '.join(sorted(set(answers) - set(refusals)))} answers"]
    if len({value.kind for value in refusals.values()}) > 1:
        return [reasons]
    raise AllRefuse(next(iter(refusals.values())).kind)


def unequal(names: tuple[str, ...], ratio: float = NEAR, **faces: Mapping[str, Any]) -> Differences:
    """Return the figures that two faces or more tell apart from the first one."""
    (first, ours), *others = faces.items()
    return [
        f"{name}: {first} {ours[name]}, {other} {theirs[name]}"
        for other, theirs in others
        for name in names
        # equal first: of two that are None neither is close
        if not (ours[name] == theirs[name] or (ours[name] and theirs[name] and close(ours[name], theirs[name], ratio)))
    ]


# --- One deployment in training: its speed, memory, verdict and hours.


def _speed_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Compare the layout, speed and memory of throughput and estimate, and the sums of the estimate."""
    timed = answer("throughput", catalog, **arguments)
    priced = answer("estimate", catalog, tokens=1e10, usd_per_gpu_hour=USD, with_facts=False, **arguments)
    # of what nobody sells in such a number there is no estimate, but the deployment behind it
    if isinstance(priced, Refusal) and re.search("units of|smallest order", priced.text):
        return _deployment_differs(arguments, timed, catalog)  # nobody sells so many: they have a speed and no price
    if differences := refused(throughput=timed, estimate=priced):
        return differences
    speed, best = timed.payload, priced.best
    if speed["layout"] != best["layout"]:
        differences.append(f"layout: throughput {speed['layout']}, estimate {best['layout']}")
    names = ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high", "mfu_fraction")
    differences += unequal(names, throughput=speed, estimate=best)
    memory_gb = speed["memory_gib"] * GIB / GB
    if not close(memory_gb, best["memory_gb"]):
        differences.append(f"memory: throughput {memory_gb} GB, estimate {best['memory_gb']} GB")
    if not close(sum(line["cost_usd"] for line in best["lines"]), best["cost_usd"], 1e-6):
        differences.append("the lines of the bill are not its total")
    if best["instances"] * max(best["gpus"] // best["instances"], 1) != best["gpus"]:
        differences.append(f"{best['instances']} instances do not hold {best['gpus']} accelerators")
    # overhead and interruptions add to the steps; nothing takes from them
    if best["gpu_hours"] < 1e10 / best["tokens_per_s_per_gpu"] / 3600 * 0.999:
        differences.append("fewer hours are paid than the steps take")
    return differences


def _deployment_differs(arguments: Question, timed: Any, catalog: Catalog) -> Differences:
    """Compare throughput with the row of the columns that estimate, audit and owning take."""
    from gpucost.physics.training.layouts import latest_year
    from gpucost.workloads.deployment import deployed
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    names = {"sequence": "sequence_tokens"}  # as the engine calls it
    job = {names.get(name, name): arguments[name] for name in arguments if name not in ("model", "gpu", "gpus")}
    workload = make_workload(catalog.architecture(arguments["model"]), latest_year=latest_year(catalog.as_of), **job)
    deployment = deployed(catalog, workload, key_of(catalog, arguments["gpu"]), arguments["gpus"])
    if isinstance(timed, Refusal):
        if deployment.fits:
            return [f"throughput refuses ({timed.text}), the deployment fits"]
        raise AllRefuse("does not fit")
    ours = {name: getattr(deployment, name) for name in ("tokens_per_s", "tokens_per_s_per_gpu")}
    ends = {
        f"tokens_per_s_per_gpu_{end}": getattr(deployment, f"tokens_per_s_{end}") / arguments["gpus"]
        for end in ("low", "high")
    }
    ours = {**ours, **ends, "memory_gib": deployment.needed_gb * GB / GIB}
    return unequal(tuple(ours), throughput=timed.payload, deployment=ours)


def _claim_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Claim our own duration: it must be possible, and what audit finds must be what throughput times."""
    claimed = {name: arguments[name] for name in ("model", "gpu", "gpus", "method", "sequence") if name in arguments}
    timed = answer("throughput", catalog, **claimed)
    audited = answer("audit", catalog, fits="training", **claimed)
    if isinstance(audited, Refusal):
        return refused(throughput=timed, audit=audited)
    fits = next(row for row in audited.payload["checks"] if row["name"] == "fits")["verdict"]
    if isinstance(timed, Refusal):
        if fits == "possible":
            return [f"audit says it fits, throughput refuses ({timed.text})"]
        raise AllRefuse("does not fit")
    differences = [] if fits == "possible" else [f"throughput times it, audit says it fits: {fits}"]
    # a fifth beside the steps, as audit takes it where no overhead is stated
    days = 1e10 / timed.payload["tokens_per_s"] * 1.2 / SECONDS_PER_DAY
    audited = gpucost.audit(tokens=1e10, days=days, catalog=catalog, **claimed)
    check = next(row for row in audited.payload["checks"] if row["name"] == "duration")
    if check["verdict"] != "possible" or not close(check["typical"], check["value"], 1e-9):
        differences.append(f"our own {days:.4g} days: {check['verdict']}, audit takes {check['typical']}")
    return differences


def _fit_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Compare fit with throughput: what is timed fits, and what fits can be timed."""
    from gpucost.fitting.fit import best_plan, read_job

    job = {name: arguments[name] for name in ("method", "sequence", "lora_rank") if name in arguments}
    timed = answer("throughput", catalog, model=arguments["model"], gpu=arguments["gpu"], gpus=arguments["gpus"], **job)
    plan = _attempt(
        lambda: best_plan(read_job(catalog, arguments["model"], arguments["gpu"], gpus=arguments["gpus"], **job))
    )
    if isinstance(plan, Refusal):
        return refused(throughput=timed, fit=plan)
    fits = plan is not None and plan.fits
    if fits == isinstance(timed, Refusal):
        return [f"fit says {'fits' if fits else 'does not fit'}, throughput {'refuses' if fits else 'times it'}"]
    if not fits:
        raise AllRefuse("does not fit")
    return []


def _fewest_differs(arguments: Question, catalog: Catalog) -> Differences:
    """The fewest that fit do, and one unit less does not."""
    from gpucost.fitting.fit import best_plan, read_job

    job = {name: arguments[name] for name in ("method", "sequence") if name in arguments}
    read = read_job(catalog, arguments["model"], arguments["gpu"], **job)
    plan = best_plan(read)
    if plan is None or not plan.fits:
        raise AllRefuse("fits on no count")
    fewest, node = plan.layout.gpus, read.system.gpus
    again = best_plan(read_job(catalog, arguments["model"], arguments["gpu"], gpus=fewest, **job))
    differences = [] if again is not None and again.fits else [f"the fewest are {fewest}, and {fewest} do not fit"]
    less = fewest - (1 if fewest <= node else node)  # beyond a node accelerators come by whole nodes
    if less:
        smaller = best_plan(read_job(catalog, arguments["model"], arguments["gpu"], gpus=less, **job))
        if smaller is not None and smaller.fits:
            differences.append(f"the fewest are {fewest}, and {less} fit")
    return differences


def _sweep_differs(arguments: Question, catalog: Catalog) -> Differences:
    """A row of a sweep is the first option of the question."""
    priced = answer("estimate", catalog, tokens=1e10, usd_per_gpu_hour=USD, with_facts=False, **arguments)
    # a sweep takes lists, here of one value each
    lists = {name: [value] for name, value in {**arguments, "tokens": 1e10, "usd_per_gpu_hour": USD}.items()}
    row = gpucost.sweep("estimate", **lists).frame.iloc[0]
    if isinstance(priced, Refusal):
        if not isinstance(row.get("reason"), str):
            return [f"estimate refuses ({priced.text}), the sweep has a row"]
        raise AllRefuse(priced.kind)
    names = tuple(name for name in ("cost_usd", "days", "gpus", "tokens_per_s_per_gpu") if name in row)
    return unequal(names, estimate=priced.best, sweep=row)


# --- Owning: the speed behind it, and its figures in every face.

_OWNED = ("levelised_usd_per_gpu_hour", "levelised_rent_usd_per_gpu_hour", "irr_fraction")


def _owning_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Owning counts on the speed that throughput finds."""
    arguments = {name: arguments[name] for name in ("model", "gpu", "gpus")}
    timed = answer("throughput", catalog, **arguments)
    # so few runs that any cluster has the time for them
    owned = answer("tco", catalog, tokens=1e9, runs_per_year=0.001, rent=USD, draws=0, **arguments)
    if isinstance(owned, Refusal) and owned.kind == "PriceMissingError":
        raise AllRefuse("not sold")  # what nobody sells can be rented, and timed
    if differences := refused(throughput=timed, tco=owned):
        return differences
    speed = next(row["value"] for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")
    same = close(speed, timed.tokens_per_s_per_gpu)
    return [] if same else [f"tco {speed}, throughput {timed.tokens_per_s_per_gpu} tokens/s per GPU"]


def _owned_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Compare owning in the library with a sweep, the tool for agents, the page, JSON and the workbook."""
    owned = answer("tco", catalog, draws=0, **arguments)
    tool = _attempt(tools.call, "tco", {**arguments, "draws": 0})
    page = _attempt(
        questions.own,
        {"own_gpu": arguments["gpu"], "own_gpus": str(arguments["gpus"]), "own_price": str(arguments["rent"]),
         "utilisation": str(arguments["utilisation"]), "years": str(arguments["years"])},
    )  # fmt: skip
    row = gpucost.sweep("tco", **{name: [value] for name, value in arguments.items()}).frame.iloc[0]
    if isinstance(owned, Refusal) and isinstance(row["reason"], str):
        return refused(tco=owned, tool=tool, page=page)
    if differences := refused(tco=owned, tool=tool, page=page):
        return differences
    payload = owned.payload
    net = payload["npv_usd"]
    flat = {**payload, "own_npv_usd": net["own"], "rent_npv_usd": net["rent"], "saving_usd": net["saving"]}
    differences = unequal(("own_npv_usd", "rent_npv_usd", "saving_usd", *_OWNED[:2]), tco=flat, sweep=row)
    if tool["present_value_usd"] != compact.rounded(net):
        differences.append(f"present values: tool {tool['present_value_usd']}, library {net}")
    # the page says two of them
    shown = {"saving_usd": page["saving_usd"], _OWNED[0]: page["own_usd_per_gpu_hour"]}
    differences += unequal(("saving_usd", _OWNED[0]), tco=flat, page=shown)
    differences += unequal(_OWNED, tco=payload, json=json.loads(owned.to_json()))
    values, _ = written(owned, "xlsx")
    for name, value in (("npv_own_usd", net["own"]), ("npv_rent_usd", net["rent"])):
        if values.get(name) is None or not close(values[name], value, 1e-6):
            differences.append(f"{name}: workbook {values.get(name)}, library {value}")
    return differences


# --- Serving: a replica, a fleet, its month.


def _service_of(dice: random.Random) -> Question:
    """Return a service: a model on an accelerator, and what else may be said of it."""
    arguments: Question = {"model": dice.choice(MODELS), "gpu": dice.choice(GPUS)}
    if dice.random() < 0.5:
        arguments["precision"] = dice.choice(("fp8", "int8", "int4", "bf16"))
    if dice.random() < 0.4:
        arguments |= {"prompt_tokens": dice.choice((128, 1000, 4000)), "output_tokens": dice.choice((64, 256, 1000))}
    if dice.random() < 0.2:
        arguments["tpot"] = dice.choice(("30ms", "60ms", "200ms"))
    if dice.random() < 0.2:
        arguments["engine"] = dice.choice(("sglang", "trtllm", "llama.cpp"))
    return arguments


_CLAIMED_AS = {"mxfp4": "fp4", "nvfp4": "fp4", "w8a16": "int8", "gguf": "int4"}  # as claims name formats


def _serving_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Compare fit --serving with inference on as many, with audit, and the counts of a fleet with one another."""
    fitted = answer("fit", catalog, serving=True, **arguments)
    if isinstance(fitted, Refusal):
        served = answer("inference", catalog, usd_per_gpu_hour=USD, **arguments)
        if (
            not isinstance(served, Refusal)
            and served.best["layout"]["gpus"] <= catalog.default_system(catalog.accelerator(arguments["gpu"]).id).gpus
        ):
            return [f"fit refuses ({fitted.text}), inference serves it on {served.best['layout']['gpus']}"]
        raise AllRefuse(fitted.kind)
    row = next((option for option in fitted.payload["options"] if "mig" not in option["gpu"]), None)
    if row is None:
        raise AllRefuse("an instance of a chip alone serves it")
    differences = []
    as_many = answer("fit", catalog, serving=True, gpus=row["gpus"], **arguments)
    if isinstance(as_many, Refusal) or as_many.payload["options"][0]["gpus"] != row["gpus"]:
        differences.append(f"the smallest replica is {row['gpus']}, and fit --gpus {row['gpus']} finds nothing")
    if row["gpus"] > 1:
        less = answer("fit", catalog, serving=True, gpus=row["gpus"] - 1, **arguments)
        if not isinstance(less, Refusal) and any("mig" not in option["gpu"] for option in less.payload["options"]):
            differences.append(f"the smallest replica is {row['gpus']}, and {row['gpus'] - 1} serve it")
    plain = {name: arguments[name] for name in ("model", "gpu", "precision") if name in arguments}
    if set(arguments) <= {"model", "gpu", "precision"} and "precision" in arguments:
        audited = gpucost.audit(fits="serving", gpus=row["gpus"], catalog=catalog, **plain)
        if audited.verdict != "possible":
            differences.append(f"fit serves it on {row['gpus']}, audit says {audited.verdict}")
    claim = {**plain, "gpus": row["gpus"], "tokens_per_s": row["output_tokens_per_s"], "batch": row["batch"]}
    form = _CLAIMED_AS.get(row["precision"], row["precision"])
    if row["layout"]["data"] == 1:  # the ranks of attention data parallel each read their own copy of the weights
        audited = gpucost.audit(catalog=catalog, **{**claim, "precision": form})
        if audited.verdict != "possible" and set(arguments) <= {
            "model",
            "gpu",
            "precision",
        }:  # audit takes nothing else
            differences.append(f"our own {row['output_tokens_per_s']:.4g} tokens/s: audit says {audited.verdict}")
    served = answer("inference", catalog, replica_gpus=row["gpus"], usd_per_gpu_hour=USD, **arguments)
    if isinstance(served, Refusal):
        return differences  # the machine on offer is no node of the usual kind
    best = served.best
    alike = all(best["layout"][name] == row["layout"][name] for name in ("tensor", "data"))
    if best["layout"]["gpus"] == row["gpus"] and alike:
        differences += unequal(("output_tokens_per_s", "batch", "tpot_ms"), fit=row, inference=best)
    return differences


def _fleet_differs(arguments: Question, catalog: Catalog) -> Differences:
    """Replicas, instances and accelerators of a load add up, and its month is hours × price; each format says so."""
    from gpucost.workloads.counts import Accelerators, Replicas

    # what is drawn as tokens is what a month of the service makes
    load = {"tokens_per_month": arguments.pop("tokens"), **arguments}
    served = answer("inference", catalog, top=3, **load)
    tool = _attempt(tools.call, "inference", load)
    row = gpucost.sweep("inference", **{name: [value] for name, value in load.items()}).frame.iloc[0]
    if isinstance(served, Refusal) and not isinstance(row["reason"], str):
        return [f"inference refuses ({served.text}), the sweep has a row"]
    if differences := refused(inference=served, tool=tool):
        return differences
    names = ("usd_per_month", "usd_per_mtok", "tpot_ms")
    differences = unequal((*names, "gpus"), inference=served.best, sweep=row)
    short = tool["options"][0]  # rounded to what an agent reads
    differences += unequal(
        names, 1e-12, tool=short, inference={name: compact.rounded(served.best[name]) for name in names}
    )
    for row in served.payload["options"]:
        unit = Accelerators(row["gpus"] // row["instances"])
        placed = Replicas(row["replicas"]).placed(Accelerators(row["layout"]["gpus"]), unit)
        if int(placed) > row["instances"] or int(placed.of(unit)) > row["gpus"]:
            differences.append(
                f"{row['replicas']} × {row['layout']['gpus']} take {int(placed)} instances, not {row['instances']}"
            )
        lines = sum(line["cost_usd"] for line in row["lines"])
        if not close(lines, row["usd_per_month"], 1e-6):
            differences.append(f"the lines come to {lines}, the month to {row['usd_per_month']}")
    return differences + _formats_differ(served, "usd_per_month")


# --- One answer in every format and on every face.


def _formats_differ(result: Any, figure: str) -> Differences:
    """Compare a figure of the first option in the payload, JSON, CSV, a data frame, Markdown and HTML."""
    value = result.best[figure]
    differences = []
    in_json = json.loads(result.to_json())["options"][0][figure]
    if not close(in_json, value, 1e-11):
        differences.append(f"{figure}: JSON {in_json}, library {value}")
    row = next(csv.DictReader(io.StringIO(result.to_csv())))
    if not close(float(row[figure]), value, 1e-6):
        differences.append(f"{figure}: CSV {row[figure]}, library {value}")
    if not close(float(result.to_frame()[figure].iloc[0]), value, 1e-11):
        differences.append(f"{figure}: frame {result.to_frame()[figure].iloc[0]}, library {value}")
    # people read whole dollars
    if f"{value:,.0f}" not in result.to_markdown():
        differences.append(f"Markdown lacks {value:,.0f}")
    return differences


def written(result: Any, form: str) -> Any:
    """Return an answer as a file that was read back: the text of a page, the named answers of a workbook."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"answer.{form}")
        if form == "html":
            result.to_html(path)
            return Path(path).read_text("utf-8")
        from openpyxl import load_workbook

        result.to_excel(path)
        book = load_workbook(path, read_only=True, data_only=True)
        rows = list(book["Summary"].iter_rows(values_only=True))
        # figures stand under `now`, beside the names by which formulas call them
        head = next(place for place, row in enumerate(rows) if "now" in row)
        now, name = rows[head].index("now"), rows[head].index("name")
        values = {row[name]: row[now] for row in rows[head + 1 :] if len(row) > name and row[name]}
        offers = list(book["Offers"].iter_rows(values_only=True)) if "Offers" in book.sheetnames else []
        book.close()
        return values, offers


WRITTEN = {  # what the sheet Summary of each question is held against
    "estimate": ("cost_usd", "cost_low_usd", "cost_high_usd", "days"),
    "inference": ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high"),
}


def _files_differ(arguments: Question, catalog: Catalog) -> Differences:
    """Compare an answer with its workbook, cell by cell, and with its page: text and the figures of its charts."""
    kind = arguments.pop("kind")
    result = answer(kind, catalog, top=3, **arguments)
    if isinstance(result, Refusal):
        raise AllRefuse(result.kind)
    best = result.best
    values, offers = written(result, "xlsx")
    differences = [
        f"{name}: workbook {values.get(name)}, library {best[name]}"
        for name in WRITTEN[kind]
        if values.get(name) is None or not close(values[name], best[name], 1e-6)
    ]
    first, figure = WRITTEN[kind][0], "cost_usd" if kind == "estimate" else "usd_per_month"
    cells = [cell for row in offers if row and row[1] == 1 for cell in row if isinstance(cell, (int, float))]
    if not any(close(cell, best[first], 1e-9) for cell in cells):
        differences.append(f"sheet Offers lacks {first} {best[first]}: {cells}")
    page = written(result, "html")
    if f"{best[figure]:,.0f}" not in page:
        differences.append(f"the page lacks {best[figure]:,.0f}")
    data = re.findall(r'<script type="application/json" id="chart-\d+">(.*?)</script>', page, re.DOTALL)
    # a chart may leave the figure out; where it has any, ours is among them
    numbers = {float(text) for chart in data for text in re.findall(rf'"{first}":\s*([-+.\deE]+)', chart)}
    if numbers and not any(close(number, best[first], 1e-6) for number in numbers):
        differences.append(f"no chart of the page has {first} {best[first]}")
    return differences


def _faces_differ(arguments: Question, catalog: Catalog) -> Differences:
    """Compare an estimate of the library with its formats, the tool for agents and the page."""
    priced = answer("estimate", catalog, tokens=1e10, top=questions.ROWS, **arguments)
    tool = _attempt(tools.call, "estimate", {**arguments, "tokens": 1e10})
    page = _attempt(questions.plan, {name: str(value) for name, value in {**arguments, "tokens": 1e10}.items()})
    if differences := refused(estimate=priced, tool=tool, page=page):
        return differences
    best, differences = priced.best, _formats_differ(priced, "cost_usd")
    names = ("cost_usd", "cost_low_usd", "cost_high_usd", "days", "usd_per_gpu_hour")
    short = {name: compact.rounded(best[name]) for name in names}
    differences += unequal((*names, "gpus"), 1e-12, library={**best, **short}, tool=tool["options"][0])
    return differences + unequal((*names, "gpus", "mfu_fraction"), library=best, page=page["rows"][0])


def _tools_differ(arguments: Question, catalog: Catalog) -> Differences:
    """Compare fit and audit of the library with the tools for agents."""
    fit = {name: arguments[name] for name in ("model", "gpu", "gpus", "method", "sequence") if name in arguments}
    fitted, tool = answer("fit", catalog, **fit), _attempt(tools.call, "fit", fit)
    if differences := refused(fit=fitted, tool=tool):
        return differences
    # a tool shows the largest parts alone
    largest = [row["needed_gb"] for row in tool["components"]]
    ours = [compact.rounded(row["needed_gb"]) for row in fitted.payload["components"][: len(largest)]]
    differences = [] if largest == ours else [f"components: tool {largest}, fit {ours}"]
    claim = {**fit, "tokens": 1e10, "days": 3}
    audited, tool = answer("audit", catalog, **claim), _attempt(tools.call, "audit", claim)
    if more_differences := refused(audit=audited, tool=tool):
        return differences + more_differences
    theirs = {row["name"]: row["verdict"] for row in tool["checks"]}
    our_verdicts = {row["name"]: row["verdict"] for row in audited.payload["checks"]}
    return differences + ([] if theirs == our_verdicts else [f"verdicts: tool {theirs}, audit {our_verdicts}"])


def _choice_differs(arguments: Question, catalog: Catalog) -> Differences:
    """The costs of a choice are those of the question behind it."""
    purpose = arguments.pop("purpose")
    chosen = answer("choose", catalog, purpose=purpose, **arguments)
    if isinstance(chosen, Refusal):
        raise AllRefuse(chosen.kind)
    row, gpu = chosen.payload["rows"][0], {"gpu": chosen.payload["rows"][0]["gpu"]}
    if purpose == "serving":
        best = gpucost.inference(arguments["model"], tokens_per_month=arguments["tokens"], catalog=catalog, **gpu).best
        # of a year, as a choice counts a service
        pairs = {"rent_usd": 12 * best["usd_per_month"], "gpus": best["gpus"]}
    else:
        method = {"method": "lora"} if purpose == "fine-tuning" else {}
        run = gpucost.estimate(
            arguments["model"], arguments["tokens"], with_facts=False, catalog=catalog, **method, **gpu
        ).best
        pairs = {"rent_usd": run["cost_usd"], "gpus": run["gpus"], "days": run["days"]}
    return unequal(tuple(pairs), **{"choose": row, purpose.replace("-", "_"): pairs})


# --- How questions are drawn, asked and counted.


def _priced(dice: random.Random) -> Question:
    arguments: Question = {"model": dice.choice(SMALL), "gpu": dice.choice(GPUS[:8])}
    if dice.random() < 0.5:
        arguments["gpus"] = dice.choice((8, 16, 64))
    return arguments


def _load(dice: random.Random) -> Question:
    return {"model": dice.choice(SMALL), "gpu": dice.choice(GPUS[:9]), "tokens": dice.choice((1e8, 1e9, 1e10, 1e11))}


def _file(dice: random.Random) -> Question:
    if dice.random() < 0.5:
        return {"kind": "estimate", "tokens": dice.choice((1e9, 1e10, 1e11)), **_priced(dice)}
    load = _load(dice)
    return {"kind": "inference", "tokens_per_month": load.pop("tokens"), **load}


Kind = tuple[Callable[[random.Random], Question], Callable[[Question, Catalog], Differences], int]
KINDS: dict[str, Kind] = {  # how a question is drawn, how it is judged, how often it is asked
    "speed": (_training, _speed_differs, 30),
    "claim": (_training, _claim_differs, 30),
    "fit": (_training, _fit_differs, 30),
    "fewest": (_training, _fewest_differs, 20),
    "owning": (_training, _owning_differs, 6),
    "serving": (_service_of, _serving_differs, 20),
    "fleet": (_load, _fleet_differs, 4),
    "faces": (_priced, _faces_differ, 3),
    "tools": (_training, _tools_differ, 3),
    "owned": (
        lambda dice: {
            "gpu": dice.choice(GPUS[:11]),
            "gpus": dice.choice((2, 8, 64, 256)),
            "rent": dice.choice((0.5, 2.0, 4.0)),
            "utilisation": dice.choice((0.2, 0.7, 0.95)),
            "years": dice.choice((1, 3, 5)),
        },
        _owned_differs,
        2,
    ),
    "files": (_file, _files_differ, 2),
    "sweep": (_training, _sweep_differs, 2),
    "choice": (
        lambda dice: {
            "purpose": dice.choice(("training", "fine-tuning", "serving")),
            "model": dice.choice(SMALL[:5]),
            "tokens": dice.choice((1e8, 1e9, 1e10)),
        },
        _choice_differs,
        1,
    ),
}


def question_of(seed: int, number: int, only: str | None = None) -> tuple[str, Question]:
    """Return the question of a number: the same for the same seed on every machine."""
    dice = random.Random(f"{seed} {number}")  # by text, whose hash is the same in every process
    names, weights = list(KINDS), [kind[2] for kind in KINDS.values()]
    kind = only or dice.choices(names, weights)[0]
    return kind, KINDS[kind][0](dice)


class Judgement(NamedTuple):
    """What a question came to: the differences, or the reason for which every face refuses it."""

    differences: Differences
    refused: str = ""


def judge(kind: str, arguments: Question, catalog: Catalog) -> Judgement:
    """Ask a question; what all faces refuse for one reason agrees, any other failure is a difference."""
    try:
        return Judgement(KINDS[kind][1](dict(arguments), catalog))
    except AllRefuse as reason:
        return Judgement([], str(reason))
    except GpuCostError as error:
        return Judgement([f"{type(error).__name__}: {error}"])


_TOLD_EVERY = 500  # questions between two signs of life


def main(arguments: list[str]) -> int:
    """Ask so many questions and print those whose answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--only", choices=KINDS)
    stated = parser.parse_args(arguments)
    catalog, began = gpucost.open_catalog(), time.monotonic()
    asked_of, wrong, refusals = Counter[str](), Counter[str](), Counter[str]()
    for number in range(stated.start, stated.start + stated.questions):
        if time.monotonic() - began > 60 * stated.minutes:
            break
        if number % _TOLD_EVERY == 0:
            print(f"at question {number:,}", file=sys.stderr, flush=True)
        kind, question = question_of(stated.seed, number, stated.only)
        judgement = judge(kind, question, catalog)
        asked_of[kind] += 1
        if judgement.refused:
            refusals[f"{kind}: {judgement.refused}"] += 1
        if judgement.differences:
            wrong[kind] += 1
            print(f"{number} {kind} {question}: {'; '.join(judgement.differences)}", flush=True)
    total, minutes = sum(asked_of.values()), (time.monotonic() - began) / 60
    refused_in_all = sum(refusals.values())
    print(f"{total:,} questions in {minutes:,.1f} minutes: {sum(wrong.values())} differ {dict(wrong)}")
    print(f"asked: {dict(asked_of)}")
    print(f"answered: {total - refused_in_all:,}; refused by every face alike: {refused_in_all:,} {dict(refusals)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
