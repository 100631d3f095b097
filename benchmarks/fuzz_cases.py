"""What the fuzzer asks: by surface, a command line and the files that it reads, drawn from a seed.

A case starts from one that is answered and is then spoilt in one to three places, so that it gets past the first check.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from gpucost.arguments import QUESTIONS
from gpucost.cli import COMMANDS, cli

ROOT = Path(__file__).parents[1]


class Case(NamedTuple):
    """One call: what stands on the command line, the files beside it, and the environment."""

    arguments: list[str]
    files: Mapping[str, bytes] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})


ESCAPE = "\x1b]0;owned\x07\x1b[2J"
TEXTS = [
    "", " ", "nan", "inf", "-inf", "-1", "0", "-0", "1e308", "1e-308", "9" * 400, "1e999", "1_000", "٣", "½", "1,5",
    "0x10", "5%", "-5%", "1e3%", "101%", "true", "none", "null", "[]", "{}", "{0}", "%s%n", "../../etc/passwd",
    "/dev/null", "/", ".", "=1+1", '=WEBSERVICE("http://x")', "+1", "@SUM(A1)", '"', "'", "\\", "`", ";", "--",
    "; drop table offers", "<script>alert(1)</script>", "a|b", "a\nb", "a\tb", "a\rb", "\x7f", "\x01", "\x85", ESCAPE,
    "\u202eevil", "\ufeff", "\u2028", "😀", "ß", "İ", "漢字", "e\u0301", "x" * 5000, "1d", "1w", "9999-12-31",
    "0001-01-01", "2026-02-30", "2025-01-01", "1e9d", "1000y", "0.5", "1.5", "3", "7", "64", "100000", "1e6", "1e18",
    "1b", "1t", "$5", "€5", "8k", "a=b", "pue_ratio=0", "utilisation_fraction=2", "months=1e9", "on_demand,spot",
    "spot", "reserved", "h100", "h100-sxm,b200", "*", "8b,70b", "moe", "1x1x1", "8192x0x8192", "2x2", "1.0.0", "10/2",
    "9**9**9", "a-" * 60, "h100" * 30, "1-" * 200 + "x",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**30, -(10**30), 1e308, -1e308, 5e-324, float("inf"), float("nan"), 0.5, "", "x",
    [], {}, [1], [None], {"a": 1}, {"value": 1, "low": 2, "high": 0}, {"value": "x"}, [[[[]]]], 10**400, "=1+1",
    ESCAPE, "nan", "2026-01-01", "1e999", "5%", "x" * 3000,
]  # fmt: skip
TOML_VALUES = [
    "0", "-1", "1e308", "inf", "-inf", "nan", "true", "[]", "[1, 2]", "{}", "{value = 1}", '"1e999"', '[[1], "a"]',
    "{value = 1, low = 2, high = 0}", "1e-300", "9" * 30, "0.5", "1", "3", "2026-01-01", "2026-01-01T00:00:00Z",
    "07:00:00", '{low = "x"}', "9223372036854775808", "100000000",
]  # fmt: skip

# an answerable start of each command
START: dict[str, list[str]] = {
    "estimate": ["--model", "8b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", "64", "--top", "1"],
    "inference": ["--model", "8b", "--gpu", "h100-sxm", "--top", "1"],
    "tco": ["--gpu", "h100-sxm", "--gpus", "64", "--draws", "20"],
    "mix": ["--constant", "33", "--gpu", "h100-sxm", "--months", "12"],
    "fit": ["--model", "8b", "--gpu", "h100-sxm"],
    "throughput": ["--model", "8b", "--gpu", "h100-sxm", "--gpus", "8"],
    "roofline": ["--gpu", "h100-sxm", "--matmul", "8192x8192x8192"],
    "audit": ["--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm", "--gpus", "64", "--days", "8"],
    "compare": ["answer.json", "answer.json"],
    "rerun": ["answer.json"],
    "report": ["answer.json"],
    "init": ["new.toml"],
    "sql": ["select 1"],
    "validate": ["--core"],
    "calibrate": ["--measurements", "training.csv"],
    "prices": ["--gpu", "h100-sxm", "--limit", "2"],
    "data": ["check", "plan.toml"],
}
# every kind of value is one of what the table of arguments says is answered
EXTRA = {
    "file": ["plan.toml", "missing.toml", ".", "/dev/null"],
    "years": ["0.1", "4", "100"],
    "gpu": ["a100-80gb", "b200"],
}
ENDINGS = ["xlsx", "csv", "md", "html", "txt", "json"]


def commands(random: Random) -> Case:
    """Every command, its own options, values of every sort."""
    name = random.choice([*COMMANDS, *QUESTIONS, *QUESTIONS])
    command = cli.get_command(click.Context(cli), name)
    arguments, path = list(START.get(name, [])), [name]
    if isinstance(command, click.Group) and command.commands and random.random() < 0.5:
        inner = random.choice(sorted(command.commands))
        command, path = command.commands[inner], [name, inner]
        arguments = []
    options = [one for one in command.params if isinstance(one, click.Option)] if command else []
    for option in random.sample(options, min(len(options), random.choice([0, 1, 1, 2, 2, 3, 5]))):
        if option.name == "leave_out" or "help" in option.opts:  # minutes, by their own help
            continue
        flag = random.choice([*option.opts, *option.secondary_opts])
        arguments += [flag] if option.is_flag else [f"{flag}={value_of(random, name, option)}"]
    if random.random() < 0.1:
        arguments.insert(random.randrange(len(arguments) + 1), text(random))
    if random.random() < 0.5 and name in QUESTIONS:
        arguments += ["--format", "json"]
    if name == "calibrate" and "training.csv" not in arguments:
        arguments = ["--measurements", "training.csv"]
    return Case([*path, *arguments], files_of(random) if needs_files(arguments) else {})


def value_of(random: Random, command: str, option: click.Option) -> str:
    """Draw a value: one that is meant, or any text."""
    meant: list[str] = []
    if isinstance(option.type, click.Choice):
        meant = list(option.type.choices)
    if command in QUESTIONS:
        found = next((one for one in QUESTIONS[command].arguments if one.name == option.name), None)
        if found is not None:
            meant = [*found.kind.choices, *([str(found.example)] if found.example is not None else [])]
    meant += EXTRA.get(option.name or "", [])
    if option.name == "output_file":
        return f"out.{random.choice(ENDINGS)}"
    return random.choice(meant) if meant and random.random() < 0.6 else text(random)


def text(random: Random) -> str:
    """Draw any text, also one of random characters; without NUL, which no command line can carry."""
    if random.random() < 0.85:
        return random.choice(TEXTS)
    letters = [
        chr(random.choice([random.randrange(1, 128), random.randrange(160, 0x2FFF)]))
        for _ in range(random.randrange(40))
    ]
    return "".join(letters)


def needs_files(arguments: list[str]) -> bool:
    return any(re.search(r"\.(json|toml|csv)$", one) for one in arguments)


def files_of(random: Random) -> dict[str, bytes]:
    return {"answer.json": random.choice(answers()), "plan.toml": plan(), "training.csv": measurements("training")}


# ── files that are spoilt ────────────────────────────────────────────────────────────────────────────────────────────


def spoilt_text(random: Random, good: bytes) -> bytes:
    """Spoil a text file: a value, a line, a byte, its end."""
    lines = good.decode().splitlines()
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        place = random.randrange(len(lines))
        line, how = lines[place], random.random()
        if how < 0.5 and "=" in line:
            lines[place] = f"{line.partition('=')[0]}= {toml_value(random)}"
        elif how < 0.75 and "," in line:
            cells = line.split(",")
            cells[random.randrange(len(cells))] = random.choice(TEXTS).replace("\n", " ")
            lines[place] = ",".join(cells)
        elif how < 0.8:
            lines.insert(place, random.choice([line, random.choice(TEXTS), "[" * 500, "a." * 300 + "b = 1"]))
        elif how < 0.85 and len(lines) > 1:
            del lines[place]
        elif how < 0.9:
            lines[place] = line[: random.randrange(len(line) + 1)]
        else:
            lines[place] = line + text(random)
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    if random.random() < 0.05:
        data = random.choice(
            [b"", b"\xff\xfe" + data, data[:-7], b"\0" * 50, data.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + data]
        )
    return data


def toml_value(random: Random) -> str:
    """Draw a value as TOML writes it."""
    return random.choice([*TOML_VALUES, json.dumps(random.choice(TEXTS))])


def spoilt_json(random: Random, good: bytes) -> bytes:
    """Spoil a JSON file: replace, drop, add or rename values along a random path."""
    value = json.loads(good)
    for _ in range(random.choice([1, 1, 2, 4])):
        inner: Any = value
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(inner[key], (dict, list)) and inner[key] and random.random() < 0.75:
                inner = inner[key]
                continue
            how = random.random()
            if how < 0.7:
                inner[key] = random.choice(VALUES)
            elif how < 0.85:
                del inner[key]
            elif isinstance(inner, dict):
                inner[random.choice(TEXTS)] = inner.pop(key)
            else:
                inner.append(random.choice(VALUES))
            break
    return dump(value)


def dump(value: Any) -> bytes:
    import sys

    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value).encode()
    finally:
        sys.set_int_max_str_digits(before)


@cache
def plan() -> bytes:
    import gpucost

    return str(gpucost.tco(gpu="h100-sxm", gpus=64, draws=0).to_plan()).encode()


@cache
def answers() -> list[bytes]:
    """Real answers of every question."""
    import gpucost
    from gpucost.api.questions import roofline

    made = [
        gpucost.estimate("8b", "10b", gpu="h100-sxm", gpus=64, top=2),
        gpucost.inference("8b", gpu="h100-sxm", top=2),
        gpucost.tco(gpu="h100-sxm", gpus=64, draws=20, as_of="2026-11-20"),
        gpucost.mix(constant=33, gpu="h100-sxm", months=12, as_of="2026-11-20"),
        gpucost.fit("8b", "h100-sxm"),
        gpucost.throughput("8b", "h100-sxm", 8),
        roofline("h100-sxm", matmul="8192x8192x8192"),
        gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=8),
        gpucost.report(
            {"name": "One", "training": [{"name": "A", "model": "8b", "tokens": "1b", "gpus": 8, "top": 1}]}
        ),
    ]
    return [json.dumps(one.to_dict()).encode() for one in made]


@cache
def measurements(kind: str) -> bytes:
    """The first shipped rows."""
    return b"".join((ROOT / f"models/measurements/{kind}.csv").read_bytes().splitlines(keepends=True)[:4])


@cache
def configurations() -> list[bytes]:
    published = json.loads((ROOT / "tests/architectures/published.json").read_text())
    return [json.dumps(one["config"]).encode() for one in published.values()]


POOL = b"""[[pool]]
name = "lab"
gpu = "h100-sxm"
gpus = 8
system = "dgx-h100"
available_gpus = 64
incremental_usd_per_gpu_hour = 0.3
loaded_usd_per_gpu_hour = 1.7
region = "us"
observed_on = 2026-01-01
"""
SUPPLY = b"""gpu = "h100-sxm"
[[supply]]
name = "reserved"
kind = "reserved"
usd_per_gpu_hour = 1.9
term_months = 12
"""
DEMAND = b"month,gpus\n1,8\n2,16\n3,33\n4,20\n"
CURVE = b"month,usd_per_gpu_hour\n0,2.35\n12,2\n24,1.8\n"
LENGTHS = b"prompt,output\n100,50\n2000,300\n512,256\n"
PROFILE = "\n".join(str(0.5 + hour % 12 / 24) for hour in range(24)).encode()
BOOK = b"""[[offer]]
provider = "our-colo"
gpu = "h100-sxm"
gpus = 8
system = "dgx-h100"
usd_per_gpu_hour = 1.75
valid_from = 2026-01-01
valid_until = 2027-12-31

[[offer]]
provider = "hoster"
gpu = "h100-sxm"
option = "reserved"
term_months = 12
per_gpu_hour = 0.95
currency = "EUR"
observed_on = 2026-06-15

[[discount]]
provider = "gcp"
option = "on_demand"
fraction = 0.12

[exchange_rates]
EUR = 1.12

[[accelerator]]
id = "next-gpu"
like = "h100-sxm5-80gb"
memory_gib = 100
"""
BOOK_CSV = b"""provider,gpu,gpus,option,usd_per_gpu_hour,observed_on,x_contact
our-colo,h100-sxm,8,on_demand,1.7,2026-06-01,K.
hoster,l40s,1,spot,0.4,2026-06-02,
"""
SCENARIO = b"""name = "A model of our own"
description = "Text"
as_of = "2026-11-20"
[supply]
option = "on_demand"
gpu = "h100-sxm"
[[training]]
name = "Pretrain"
model = "8b"
tokens = "10b"
gpus = 64
top = 2
[[serving]]
name = "Serve"
model = "8b"
gpu = "h100-sxm"
top = 2
[[ownership]]
name = "64 H100"
gpu = "h100-sxm"
gpus = 64
utilisation = "70%"
years = 4
rent = 2.35
draws = 10
"""
SETTINGS = b"""format = "json"
provider = "aws"
as_of = "2026-11-20"
[estimate]
top = 2
gpus = 8
"""


def tables(random: Random) -> Case:
    """Plans, pools, supplies, demands, curves, lengths and profiles."""
    name, good, arguments = random.choice(
        [
            ("plan.toml", plan(), ["tco", "--plan", "plan.toml", "--draws", random.choice(["0", "20"])]),
            ("plan.toml", plan(), ["mix", "--constant", "8", "--months", "6", "--plan", "plan.toml"]),
            ("supply.toml", SUPPLY, ["mix", "--constant", "8", "--months", "6", "--plan", "supply.toml"]),
            ("pool.toml", POOL, ["estimate", *START["estimate"], "--pool", "pool.toml"]),
            ("demand.csv", DEMAND, ["mix", "demand.csv", "--gpu", "h100-sxm"]),
            ("curve.csv", CURVE, ["tco", *START["tco"], "--rent-path", "curve", "--rent-curve", "curve.csv"]),
            ("lengths.csv", LENGTHS, ["inference", *START["inference"], "--lengths", "lengths.csv"]),
            (
                "profile.csv",
                PROFILE,
                ["inference", *START["inference"], "--requests-per-s", "5", "--profile", "profile.csv"],
            ),
            ("prices.csv", BOOK_CSV, ["data", "check", "prices.csv", "--table", "offers"]),
        ]
    )
    return Case([*arguments, *written(random)], {name: spoilt_text(random, good)})


def written(random: Random) -> list[str]:
    return random.choice([[], [], ["--format", "json"], ["--format", "csv"], ["-o", "out.xlsx"]])


def books(random: Random) -> Case:
    """Price books."""
    name, good = random.choice([("book.toml", BOOK), ("book/prices.toml", BOOK), ("book/offers.csv", BOOK_CSV)])
    asked = random.choice(
        [["prices", "--gpu", "h100-sxm", "--limit", "3"], ["estimate", *START["estimate"]], ["data", "check"]]
    )
    return Case([*asked, *written(random)], {name: spoilt_text(random, good)}, {"GPUCOST_BOOK": name.split("/")[0]})


def saved(random: Random) -> Case:
    """Saved answers, read by report, compare and rerun."""
    good = random.choice(answers())
    asked = random.choice(
        [["report", "answer.json", "-o", f"out.{ending}"] for ending in ENDINGS]
        + [["rerun", "answer.json"], ["rerun", "answer.json", "--explain"], ["compare", "answer.json", "good.json"]]
    )
    if asked[0] != "report":
        good = answers()[0]
    return Case(asked, {"answer.json": spoilt_json(random, good), "good.json": answers()[0]})


def models(random: Random) -> Case:
    """Model configurations."""
    asked = random.choice(
        [
            ["models", "config.json"],
            ["models", "config.json"],
            [
                "estimate",
                "--model",
                "config.json",
                "--tokens",
                "10b",
                "--gpu",
                "h100-sxm",
                "--gpus",
                "64",
                "--top",
                "1",
            ],
            ["inference", "--model", "config.json", "--gpu", "h100-sxm", "--top", "1"],
            ["fit", "--model", "config.json", "--gpu", "h100-sxm"],
        ]
    )
    return Case([*asked, *written(random)[:2]], {"config.json": spoilt_json(random, random.choice(configurations()))})


def settings(random: Random) -> Case:
    """Scenarios, measurements, settings and the environment."""
    how = random.randrange(4)
    if how == 0:
        return Case(
            ["report", "s.toml", "-o", f"out.{random.choice(ENDINGS)}"], {"s.toml": spoilt_text(random, SCENARIO)}
        )
    if how == 1:
        kind = random.choice(["training", "serving"])
        asked = random.choice([["validate"], ["calibrate"]]) if random.random() < 0.2 else ["validate"]
        return Case(
            [*asked, "--kind", kind, "--measurements", "m.csv"], {"m.csv": spoilt_text(random, measurements(kind))}
        )
    asked = random.choice(
        [["config"], ["prices", "--gpu", "h100-sxm", "--limit", "1"], ["estimate", *START["estimate"]]]
    )
    if how == 2:
        return Case(asked, {"gpucost.toml": spoilt_text(random, SETTINGS)})
    name = random.choice(["FORMAT", "AS_OF", "KNOWN_AS_OF", "PROVIDER", "TOP", "BOOK", "DATA", "FIELDS", "OPTION", "X"])
    return Case(asked, {}, {f"GPUCOST_{name}": text(random).replace("\0", "")})


def writers(random: Random) -> Case:
    """Hostile names and texts in every medium; the names are valid, and so is everything else."""
    hostile = json.dumps(random.choice(TEXTS) + random.choice(["", "x"]))
    target = random.choice(
        [["-o", f"out.{ending}"] for ending in ENDINGS] + [["--format", one] for one in ("csv", "md", "json")]
    )
    how = random.randrange(3)
    if how == 0:
        pool = POOL.replace(b'"lab"', hostile.encode())
        return Case(["estimate", *START["estimate"], "--pool", "pool.toml", *target], {"pool.toml": pool})
    if how == 1:
        good = SCENARIO.replace(
            random.choice([b'"A model of our own"', b'"Text"', b'"Pretrain"', b'"64 H100"']), hostile.encode()
        )
        return Case(["report", "s.toml", *(target if target[0] == "-o" else [])], {"s.toml": good})
    good = BOOK.replace(b'"our-colo"', hostile.encode())
    return Case(["estimate", *START["estimate"], *target], {"book.toml": good}, {"GPUCOST_BOOK": "book.toml"})


QUERIES = [
    "select * from offers limit 2", "select count(*) from prices", "select 1/0", "select now()", "select 'a\x1b[2J'",
    "show tables", "select * from range(10)", "select * from read_csv('/etc/passwd')", "copy offers to 'x.csv'",
    "attach 'x.db'", "select repeat('x', 100000) from range(100000)", "select * from range(100000000)",
    "pragma version", "select '{}'::json",
    "with recursive t as (select 1 a union all select a + 1 from t) select * from t", "select interval 1 year",
    "select [1, 2]", "select {'a': 1}", "select 'x'::blob", "select uuid()", "select 1e400",
    "select 10::hugeint ** 30", "select date '9999-12-31'", "select timestamp '1-1-1'",
    "select 'nan'::double, 'inf'::double", "select gpu, avg(usd_per_gpu_hour) from prices group by all",
    "select * from prices_on('2025-09-01', '2025-12-31') limit 1", "select * from prices_on(null, 'x')",
    "explain select 1", "select 1 as \"=1+1\", 2 as \"=1+1\"", "select chr(0)", "select time '07:00'", "select null",
    "values (1), (2)", "from gpus", ";", "select getenv('HOME')", "install httpfs", "set threads=1",
    "select map {1: 2}", "select bitstring '1010'",
]  # fmt: skip


def sql(random: Random) -> Case:
    """The gate of SQL."""
    query = random.choice(QUERIES)
    if random.random() < 0.5:
        words = query.split(" ")
        words[random.randrange(len(words))] = random.choice([*TEXTS, *random.choice(QUERIES).split(" ")])
        query = " ".join(words)
    limit = random.choice([[], [], ["--time-limit", random.choice(["2", "nan", "inf", "1e10", "0", "-1", "1e-9"])]])
    return Case(["sql", "--time-limit", "5", *limit, *written(random), "--", query])


SURFACES: dict[str, Callable[[Random], Case]] = {
    "commands": commands,
    "tables": tables,
    "books": books,
    "answers": saved,
    "models": models,
    "settings": settings,
    "writers": writers,
    "sql": sql,
}


def case(surface: str, number: int) -> Case:
    """Return the case of a number; the same for ever as long as this file stays the same."""
    return SURFACES[surface](Random(f"{surface}:{number}"))
