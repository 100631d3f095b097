"""Random deployments, asked of every face: `python -m benchmarks.oracles --questions 10000 --seed 1`.

One deployment has one speed, one memory, one count and one price, whoever is asked. Each question draws a model, an
accelerator, a count and what else may be said, asks two or more faces and compares; where they differ, the question is
printed as it can be asked again. `--only NAME` asks one kind; `--question N` one question.
"""

import argparse
import csv
import io
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import gpucost
from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError, NothingFitsError, PriceMissingError, UsageError
from gpucost.units import GB, GIB, SECONDS_PER_DAY

Question = dict[str, Any]
Found = list[str]  # the differences of one question, in words

MODELS = (
    "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "llama-2-13b", "qwen2.5-14b", "qwen3-32b", "llama-3.1-70b",
    "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b", "gpt-oss-120b", "llama-3.1-405b", "deepseek-v3", "gpt-3-175b",
    "mistral-7b", "gemma-2-9b",
)  # fmt: skip
SMALL = MODELS[:7]
GPUS = (
    "h100-sxm", "h200-sxm", "b200-sxm", "a100-80gb-sxm", "a100-sxm4-40gb", "a100-pcie-80gb", "l40s", "l4", "rtx-4090",
    "rtx-3090", "mi300x", "v100-sxm2-32gb", "rtx-a6000", "h100-pcie", "gaudi2", "mi325x",
)  # fmt: skip
COUNTS = (1, 2, 3, 4, 6, 8, 16, 24, 32, 40, 64, 96, 128, 256, 512)
USD = 2.0  # a price of one's own, so that what nobody sells is answered, too
NEAR = 1e-9


def close(first: float, second: float, ratio: float = NEAR) -> bool:
    """Tell whether two figures are one."""
    return math.isclose(first, second, rel_tol=ratio, abs_tol=1e-12)


def draw(dice: random.Random, models: tuple[str, ...] = MODELS) -> Question:
    """Return a training job: a model on so many accelerators, and what else may be said of it."""
    asked: Question = {"model": dice.choice(models), "gpu": dice.choice(GPUS), "gpus": dice.choice(COUNTS)}
    if dice.random() < 0.4:
        asked["method"] = dice.choice(("lora", "qlora"))
        if dice.random() < 0.3:
            asked["lora_rank"] = dice.choice((8, 32, 64))
    if dice.random() < 0.4:
        asked["sequence"] = dice.choice((512, 1000, 2048, 4096))
    if dice.random() < 0.3:
        asked["global_batch"] = dice.choice((8, 64, 96, 512, 1024))
    if dice.random() < 0.2:
        asked["software"] = dice.choice(("vendor", "sharded", "eager", "typical"))
    return asked


def answer(question: str, catalog: Catalog, **asked: Any) -> Any:
    """Ask; return None where nothing fits, and what else cannot be asked as the sentence that says so."""
    try:
        return getattr(gpucost, question)(catalog=catalog, **asked)
    except NothingFitsError:
        return None


def _found(result: Any) -> str:
    return "finds nothing" if result is None else "finds a layout"


def speed_differs(asked: Question, catalog: Catalog) -> Found:
    """Compare the layout, speed and memory of throughput, estimate, roofline and audit."""
    timed = answer("throughput", catalog, **asked)
    try:
        priced = gpucost.estimate(tokens=1e10, usd_per_gpu_hour=USD, with_facts=False, catalog=catalog, **asked)
    except NothingFitsError as error:
        if "units of" in str(error) or "smallest order" in str(error):
            return []  # so many are no whole machines
        priced = None
    if (timed is None) != (priced is None):
        return [f"throughput {_found(timed)}, estimate {_found(priced)}"]
    if timed is None:
        return []
    one, best = timed.payload, priced.best
    found = []
    if one["layout"] != best["layout"]:
        found.append(f"layout: throughput {one['layout']}, estimate {best['layout']}")
    for name in ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high", "mfu_fraction"):
        if not close(one[name], best[name]):
            found.append(f"{name}: throughput {one[name]}, estimate {best[name]}")
    if not close(one["memory_gib"] * GIB / GB, best["memory_gb"]):
        found.append(f"memory: throughput {one['memory_gib'] * GIB / GB} GB, estimate {best['memory_gb']} GB")
    hours = best["gpu_hours"]
    if not close(sum(line["cost_usd"] for line in best["lines"]), best["cost_usd"], 1e-6):
        found.append("the lines of the bill are not its total")
    if best["instances"] * max(best["gpus"] // best["instances"], 1) != best["gpus"]:
        found.append(f"{best['instances']} instances do not hold {best['gpus']} accelerators")
    if hours < best["gpus"] * 1e10 / (best["tokens_per_s_per_gpu"] * best["gpus"]) / 3600 * 0.999:
        found.append("fewer hours are paid than the steps take")
    return found


def claim_differs(asked: Question, catalog: Catalog) -> Found:
    """Claim our own duration: it must be possible, and what audit finds must be what throughput times."""
    claimed = {name: asked[name] for name in ("model", "gpu", "gpus", "method", "sequence") if name in asked}
    timed = answer("throughput", catalog, **claimed)
    judged = gpucost.audit(fits="training", catalog=catalog, **claimed)
    fits = next(row for row in judged.payload["checks"] if row["name"] == "fits")["verdict"]
    if timed is None:
        return []
    found = [] if fits == "possible" else [f"throughput times it, audit says it fits: {fits}"]
    days = 1e10 / timed.payload["tokens_per_s"] * 1.2 / SECONDS_PER_DAY
    judged = gpucost.audit(tokens=1e10, days=days, catalog=catalog, **claimed)
    check = next(row for row in judged.payload["checks"] if row["name"] == "duration")
    if check["verdict"] != "possible" or not close(check["typical"], check["value"], 1e-9):
        found.append(f"our own {days:.4g} days: {check['verdict']}, audit takes {check['typical']}")
    return found


def fit_differs(asked: Question, catalog: Catalog) -> Found:
    """Compare fit with throughput: what is timed fits, and what fits can be timed."""
    from gpucost.fitting.fit import best_plan, read_job

    job = {name: asked[name] for name in ("method", "sequence", "lora_rank") if name in asked}
    timed = answer("throughput", catalog, model=asked["model"], gpu=asked["gpu"], gpus=asked["gpus"], **job)
    plan = best_plan(read_job(catalog, asked["model"], asked["gpu"], gpus=asked["gpus"], **job))
    fits = plan is not None and plan.fits
    if fits == (timed is not None):
        return []
    return [
        f"fit says {'fits' if fits else 'does not fit'}, throughput {'finds nothing' if timed is None else 'times it'}"
    ]


def fewest_differs(asked: Question, catalog: Catalog) -> Found:
    """The fewest that fit do, and one unit less does not."""
    from gpucost.fitting.fit import best_plan, read_job

    job = {name: asked[name] for name in ("method", "sequence") if name in asked}
    read = read_job(catalog, asked["model"], asked["gpu"], **job)
    plan = best_plan(read)
    if plan is None or not plan.fits:
        return []
    fewest, node = plan.layout.gpus, read.system.gpus
    again = best_plan(read_job(catalog, asked["model"], asked["gpu"], gpus=fewest, **job))
    found = [] if again is not None and again.fits else [f"the fewest are {fewest}, and {fewest} do not fit"]
    less = fewest - (1 if fewest <= node else node)
    if less:
        smaller = best_plan(read_job(catalog, asked["model"], asked["gpu"], gpus=less, **job))
        if smaller is not None and smaller.fits:
            found.append(f"the fewest are {fewest}, and {less} fit")
    return found


def owning_differs(asked: Question, catalog: Catalog) -> Found:
    """Owning counts on the speed that throughput finds."""
    asked = {name: asked[name] for name in ("model", "gpu", "gpus")}
    timed = answer("throughput", catalog, **asked)
    if timed is None:
        return []
    try:
        owned = gpucost.tco(tokens=1e9, runs_per_year=0.001, rent=USD, draws=0, catalog=catalog, **asked)
    except PriceMissingError:
        return []
    speed = next(row["value"] for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")
    same = close(speed, timed.tokens_per_s_per_gpu)
    return [] if same else [f"tco {speed}, throughput {timed.tokens_per_s_per_gpu} tokens/s per GPU"]


def sweep_differs(asked: Question, catalog: Catalog) -> Found:
    """A row of a sweep is the first option of the question."""
    priced = answer("estimate", catalog, tokens=1e10, usd_per_gpu_hour=USD, with_facts=False, **asked)
    lists = {name: [value] for name, value in {**asked, "tokens": 1e10, "usd_per_gpu_hour": USD}.items()}
    row = gpucost.sweep("estimate", **lists).frame.iloc[0]
    if priced is None:
        return [] if isinstance(row.get("reason"), str) else ["estimate finds nothing, the sweep has a row"]
    names = ("cost_usd", "days", "gpus", "tokens_per_s_per_gpu")
    best = priced.best
    return [f"{n}: sweep {row[n]}, estimate {best[n]}" for n in names if n in row and not close(row[n], best[n])]


def service_of(dice: random.Random) -> Question:
    """Return a service: a model on an accelerator, and what else may be said of it."""
    asked: Question = {"model": dice.choice(MODELS), "gpu": dice.choice(GPUS)}
    if dice.random() < 0.5:
        asked["precision"] = dice.choice(("fp8", "int8", "int4", "bf16"))
    if dice.random() < 0.4:
        asked |= {"prompt_tokens": dice.choice((128, 1000, 4000)), "output_tokens": dice.choice((64, 256, 1000))}
    if dice.random() < 0.2:
        asked["tpot"] = dice.choice(("30ms", "60ms", "200ms"))
    if dice.random() < 0.2:
        asked["engine"] = dice.choice(("sglang", "trtllm", "llama.cpp"))
    return asked


def serving_differs(asked: Question, catalog: Catalog) -> Found:
    """Compare fit --serving with inference on as many, with audit, and the counts of a fleet with one another."""
    fitted = answer("fit", catalog, serving=True, **asked)
    if fitted is None:
        return []
    row = (
        next(one for one in fitted.payload["options"] if "mig" not in one["gpu"]) if fitted.payload["options"] else None
    )
    if row is None:
        return []
    found = []
    held = answer("fit", catalog, serving=True, gpus=row["gpus"], **asked)
    if held is None or held.payload["options"][0]["gpus"] != row["gpus"]:
        found.append(f"the smallest replica is {row['gpus']}, and fit --gpus {row['gpus']} finds nothing")
    if row["gpus"] > 1:
        less = answer("fit", catalog, serving=True, gpus=row["gpus"] - 1, **asked)
        if less is not None and any("mig" not in one["gpu"] for one in less.payload["options"]):
            found.append(f"the smallest replica is {row['gpus']}, and {row['gpus'] - 1} serve it")
    plain = {name: asked[name] for name in ("model", "gpu", "precision") if name in asked}
    if set(asked) <= {"model", "gpu", "precision"} and "precision" in asked:
        judged = gpucost.audit(fits="serving", gpus=row["gpus"], catalog=catalog, **plain)
        if judged.verdict != "possible":
            found.append(f"fit serves it on {row['gpus']}, audit says {judged.verdict}")
    try:
        served = gpucost.inference(replica_gpus=row["gpus"], usd_per_gpu_hour=USD, catalog=catalog, **asked)
    except (NothingFitsError, PriceMissingError):
        return found  # the machine on offer is no node of the usual kind
    best = served.best
    same_node = best["layout"]["gpus"] == row["gpus"] and best["layout"]["tensor"] == row["layout"]["tensor"]
    for mine, theirs in (("output_tokens_per_s", "output_tokens_per_s"), ("batch", "batch"), ("tpot_ms", "tpot_ms")):
        if same_node and best["layout"]["data"] == row["layout"]["data"] and not close(row[mine], best[theirs]):
            found.append(f"{mine}: fit {row[mine]}, inference {best[theirs]}")
    return found


def fleet_differs(asked: Question, catalog: Catalog) -> Found:
    """Replicas, instances and accelerators of a load add up, and its month is hours × price; each format says so."""
    from gpucost.workloads.counts import Accelerators, Replicas

    try:
        served = gpucost.inference(tokens_per_month=asked.pop("tokens"), top=3, catalog=catalog, **asked)
    except (NothingFitsError, PriceMissingError):
        return []
    found = []
    for row in served.payload["options"]:
        unit = Accelerators(row["gpus"] // row["instances"])
        placed = Replicas(row["replicas"]).placed(Accelerators(row["layout"]["gpus"]), unit)
        if int(placed) > row["instances"] or int(placed.of(unit)) > row["gpus"]:
            found.append(
                f"{row['replicas']} × {row['layout']['gpus']} take {int(placed)} instances, not {row['instances']}"
            )
        lines = sum(line["cost_usd"] for line in row["lines"])
        if not close(lines, row["usd_per_month"], 1e-6):
            found.append(f"the lines come to {lines}, the month to {row['usd_per_month']}")
    return found + formats_differ(served, "usd_per_month")


def formats_differ(result: Any, figure: str) -> Found:
    """Compare a figure of the first option in the payload, JSON, CSV and a data frame."""
    value = result.best[figure]
    found = []
    said = json.loads(result.to_json())["options"][0][figure]
    if not close(said, value, 1e-11):
        found.append(f"{figure}: JSON {said}, library {value}")
    row = next(csv.DictReader(io.StringIO(result.to_csv())))
    if not close(float(row[figure]), value, 1e-6):
        found.append(f"{figure}: CSV {row[figure]}, library {value}")
    if not close(float(result.to_frame()[figure].iloc[0]), value, 1e-11):
        found.append(f"{figure}: frame {result.to_frame()[figure].iloc[0]}, library {value}")
    return found


def faces_differ(asked: Question, catalog: Catalog) -> Found:
    """Compare an estimate of the library with its formats, the tool for agents and the page."""
    from gpucost.agents import tools
    from gpucost.page import questions

    priced = answer("estimate", catalog, tokens=1e10, top=questions.ROWS, **asked)
    if priced is None:
        return []
    best, found = priced.best, formats_differ(priced, "cost_usd")
    told = tools.call("estimate", {**asked, "tokens": 1e10})["options"][0]
    if told["cost_usd"] != round(best["cost_usd"]) and not close(told["cost_usd"], best["cost_usd"], 5e-3):
        found.append(f"tool {told['cost_usd']}, library {best['cost_usd']}")
    shown = questions.plan({name: str(value) for name, value in {**asked, "tokens": 1e10}.items()})["rows"][0]
    if not close(shown["cost_usd"], best["cost_usd"]):
        found.append(f"page {shown['cost_usd']}, library {best['cost_usd']}")
    if f"{best['cost_usd']:,.0f}" not in priced.to_markdown():
        found.append(f"Markdown lacks {best['cost_usd']:,.0f}")
    return found


def choice_differs(asked: Question, catalog: Catalog) -> Found:
    """The costs of a choice are those of the question behind it."""
    purpose = asked.pop("purpose")
    chosen = answer("choose", catalog, purpose=purpose, **asked)
    if chosen is None:
        return []
    row, gpu = chosen.payload["rows"][0], {"gpu": chosen.payload["rows"][0]["gpu"]}
    if purpose == "serving":
        best = gpucost.inference(asked["model"], tokens_per_month=asked["tokens"], catalog=catalog, **gpu).best
        pairs = {"rent_usd": 12 * best["usd_per_month"], "gpus": best["gpus"]}
    else:
        method = {"method": "lora"} if purpose == "fine-tuning" else {}
        run = gpucost.estimate(asked["model"], asked["tokens"], with_facts=False, catalog=catalog, **method, **gpu).best
        pairs = {"rent_usd": run["cost_usd"], "gpus": run["gpus"], "days": run["days"]}
    return [
        f"{name}: choose {row[name]}, {purpose} {value}" for name, value in pairs.items() if not close(row[name], value)
    ]


def _training(dice: random.Random) -> Question:
    return draw(dice)


def _priced(dice: random.Random) -> Question:
    asked: Question = {"model": dice.choice(SMALL), "gpu": dice.choice(GPUS[:8])}
    if dice.random() < 0.5:
        asked["gpus"] = dice.choice((8, 16, 64))
    return asked


def _load(dice: random.Random) -> Question:
    return {"model": dice.choice(SMALL), "gpu": dice.choice(GPUS[:9]), "tokens": dice.choice((1e8, 1e9, 1e10, 1e11))}


def _choice(dice: random.Random) -> Question:
    purpose = dice.choice(("training", "fine-tuning", "serving"))
    return {"purpose": purpose, "model": dice.choice(SMALL[:5]), "tokens": dice.choice((1e8, 1e9, 1e10))}


Kind = tuple[Callable[[random.Random], Question], Callable[[Question, Catalog], Found], int]
KINDS: dict[str, Kind] = {  # how a question is drawn, how it is judged, how often it is asked
    "speed": (_training, speed_differs, 30),
    "claim": (_training, claim_differs, 30),
    "fit": (_training, fit_differs, 30),
    "fewest": (_training, fewest_differs, 20),
    "owning": (_training, owning_differs, 6),
    "serving": (service_of, serving_differs, 20),
    "fleet": (_load, fleet_differs, 4),
    "faces": (_priced, faces_differ, 3),
    "sweep": (_training, sweep_differs, 2),
    "choice": (_choice, choice_differs, 1),
}


def question_of(seed: int, number: int, only: str | None = None) -> tuple[str, Question]:
    """Return the question of a number: the same for the same seed on every machine."""
    dice = random.Random(f"{seed} {number}")
    names, weights = list(KINDS), [kind[2] for kind in KINDS.values()]
    kind = only or dice.choices(names, weights)[0]
    return kind, KINDS[kind][0](dice)


def judge(kind: str, asked: Question, catalog: Catalog) -> Found:
    """Ask a question; a refusal that names what to change is an answer, any other failure a difference."""
    try:
        return KINDS[kind][1](dict(asked), catalog)
    except UsageError:
        return []  # the faces refuse alike: each kind asks the strictest face first
    except GpuCostError as error:
        return [f"{type(error).__name__}: {error}"]


def main(arguments: list[str]) -> int:
    """Ask so many questions and print those whose answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--only", choices=KINDS)
    given = parser.parse_args(arguments)
    catalog, began, counts, wrong = gpucost.open_catalog(), time.monotonic(), Counter[str](), Counter[str]()
    for number in range(given.start, given.start + given.questions):
        if time.monotonic() - began > 60 * given.minutes:
            break
        kind, asked = question_of(given.seed, number, given.only)
        found = judge(kind, asked, catalog)
        counts[kind] += 1
        if found:
            wrong[kind] += 1
            print(f"{number} {kind} {asked}: {'; '.join(found)}", flush=True)
    spent, total, asked_in_all = time.monotonic() - began, sum(wrong.values()), sum(counts.values())
    print(f"{asked_in_all:,} questions in {spent:,.0f} s: {total} differ {dict(wrong)} of {dict(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
