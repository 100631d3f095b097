"""What the fuzzer asks of further faces: sweeps, kept prices, tools of agents, the page, and disturbances."""

import hashlib
import json
from random import Random
from typing import Any

from benchmarks.fuzz import cases as first
from benchmarks.fuzz import good
from benchmarks.fuzz.values import TEXTS, any_value, spoilt_bytes, spoilt_json, spoilt_rows, spoilt_toml, text
from gpucost.ask import QUESTIONS

GRID = b"""question = "estimate"
model = ["8b", "70b"]
gpu = "h100-sxm,b200"
gpus = "8:64:x2"
tokens = "10b"
"""
CASES = b"model,gpu,gpus,tokens\n8b,h100-sxm,8,1b\n8b,b200,16,2b\n70b,h100-sxm,64,10b\n"


def sweeps(random: Random) -> "first.Case":
    """Grids and tables of cases."""
    target = random.choice([[], [], ["--format", "json"], ["-o", "out.csv"], ["-o", "out.parquet"]])
    how = random.randrange(3)
    if how == 0:
        data = first.spoilt(random, "grid.toml", GRID) if random.random() < 0.5 else spoilt_toml(random, GRID)
        return first.Case(["sweep", "--grid", "grid.toml", *target], {"grid.toml": data})
    if how == 1:
        return first.Case(["sweep", "--cases", "cases.csv", *target], {"cases.csv": spoilt_rows(random, CASES)})
    given = {"--model": "8b", "--gpu": "h100-sxm", "--gpus": "8:16:x2", "--tokens": "10b"}
    for _ in range(random.choice([1, 1, 2])):
        name = random.choice([*given, "--question", "--precision", "--deadline", "--into", "--sequence", "--provider"])
        listed = random.choice([",", "|", ":", ":x", ":10b:"])
        given[name] = random.choice([text(random), f"{text(random)}{listed}{text(random)}", "1:1e9:1", "8:4:x2", "1,1"])
    return first.Case(["sweep", *(f"{name}={value}" for name, value in given.items()), *target])


def stores(random: Random) -> "first.Case":
    """Prices that were fetched: files to take over, and stores whose files others changed."""
    asked = random.choice(
        [
            ["prices", "refresh", "--from", "quotes.csv", "--store", "new"],
            ["prices", "verify", "--store", "kept"],
            ["prices", "snapshots", "--store", "kept"],
            ["prices", "prune", "--keep", "1", "--store", "kept"],
            ["prices", "export", "out", "--store", "kept"],
            ["prices", "--gpu", "h100-sxm", "--limit", "2"],
        ]
    )
    if asked[1] == "refresh":
        mapped = [f"--map={text(random)}={text(random)}"] if random.random() < 0.3 else []
        return first.Case([*asked, *mapped], {"quotes.csv": spoilt_rows(random, good.BOOK_CSV)})
    manifest, part = _kept(random)
    name = f"20261101T120000000000Z-{hashlib.sha256(manifest).hexdigest()[:16]}"
    if random.random() < 0.1:
        name = random.choice(TEXTS).replace("/", "_")[:100] or name
    return first.Case(asked, {
        f"kept/snapshots/{name}.json": manifest, f"kept/parts/{hashlib.sha256(part).hexdigest()}.parquet": part,
    }, {"GPUCOST_STORE": "kept"})  # fmt: skip


def _kept(random: Random) -> tuple[bytes, bytes]:
    """Return a manifest and its part; what is spoilt bears the right hash, as a hostile publisher would see to it."""
    part = good.parquet() if random.random() < 0.6 else spoilt_bytes(random, good.parquet())
    row = {"source": "azure", "kind": random.choice(["offers", "offers", "tokens"]), "observed_on": "2026-11-01"}
    row |= {"rows": 20, "size_bytes": len(part), "sha256": hashlib.sha256(part).hexdigest(), "changes": {"new": 20}}
    row |= {"origin": {"source_id": "azure", "publisher": "Azure", "title": "t", "locator": "https://x"}}
    whole = json.dumps({"format": 1, "made_at": "2026-11-01T12:00:00+00:00", "parts": [row]}).encode()
    return whole if random.random() < 0.4 else spoilt_json(random, whole), part


def _hostile(random: Random) -> Any:
    return random.choice([any_value(random), random.choice(TEXTS), text(random)])


DETAILS = ["options", "lines", "warnings", "request", "checks", "components", "changes", "months"]
TOOLS: dict[str, dict[str, Any]] = {
    **{name: first.LIBRARY[name] for name in ("estimate", "inference", "fit", "tco", "audit")},
    "prices": {"gpu": "h100-sxm"},
    "sql": {"query": "select 1"},
    "compare": {"first": {"model": "8b", "tokens": "1b", "gpus": 8}, "second": {"model": "8b", "tokens": "2b"}},
}  # fmt: skip


def tools(random: Random) -> "first.Case":
    """The tools of agents, with arguments of every type."""
    name = random.choice(list(TOOLS)) if random.random() < 0.97 else text(random)
    given: Any = dict(TOOLS.get(name, {})) if random.random() < 0.97 else any_value(random)
    if isinstance(given, dict):
        asked = QUESTIONS[name].arguments if name in QUESTIONS else ()
        meant = {one.name: [*one.kind.choices, one.example, one.default] for one in asked} | {"detail": DETAILS}
        known = [*given, *meant, random.choice(TEXTS)]
        for key in random.sample(known, min(len(known), random.choice([1, 1, 2, 3]))):
            given[key] = random.choice(meant[key]) if key in meant and random.random() < 0.8 else _hostile(random)
    return first.Case([name], face="tool", given=given)


PAGE = {"model": "8b", "tokens": "10b", "gpu": "h100-sxm", "gpus": "64", "own_gpu": "h100-sxm", "own_gpus": "8"}


def page(random: Random) -> "first.Case":
    """The addresses of the page."""
    kinds = ["api"] * 8 + ["export", "file"]
    kind = random.choice(kinds)
    name = {"api": ["plan", "plan", "own", "own", "choices"], "export": ["scenario.toml"] * 9 + ["estimate.html"]}.get(
        kind, ["page.html", "page.js", "../app.py", text(random)]
    )
    more = ["deadline", "region", "provider", "utilisation", "years", "own_price", "mfu", "overhead", "strict_prices"]
    given = dict(PAGE)
    for key in random.sample([*PAGE, *more, random.choice(TEXTS)], random.choice([1, 1, 2, 3])):
        given[key] = text(random)
    asked: Any = given if random.random() < 0.9 else text(random) + "&=&%ff&model=%00"
    return first.Case([kind, random.choice(name)], face="page", given=asked)


def disturbed(random: Random) -> "first.Case":
    """Kills, Ctrl-C, a full disk, several processes and several threads at once."""
    ending = random.choice(["json", "md", "html", "txt", "xlsx"])
    report = ["report", "answer.json", "-o", f"out.{ending}"]
    files: dict[str, bytes | str] = {"answer.json": random.choice(good.answers())}
    if random.random() < 0.7:
        files[f"out.{ending}"] = b"old\n"
    how = random.choice(["killed", "killed", "killed", "full", "full", "full", "interrupted", "processes", "threads"])
    if how == "threads":
        name = random.choice(["estimate", "fit", "throughput", "tco", "inference", "audit", "mix"])
        return first.Case([name], face=how, given=first.LIBRARY[name])
    given: float = {
        "killed": random.random() * random.choice([0.05, 0.3, 1]), "interrupted": random.random() * 0.3,
        "full": random.choice([0, 1, 100, 4096, 20_000, 100_000]), "processes": 8,
    }[how]  # fmt: skip
    return first.Case(report, files, face=how, given=given)
