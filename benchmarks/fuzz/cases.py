"""What the fuzzer asks: a command line and the files that it reads, the library, the tools of agents and the page.

A case starts from one that is answered and is then spoilt in one to three places, so that it gets past the first check.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from benchmarks.fuzz import good
from benchmarks.fuzz.good import START
from benchmarks.fuzz.values import (
    TEXTS,
    any_value,
    other_rows,
    spoilt_bytes,
    spoilt_json,
    spoilt_rows,
    spoilt_text,
    spoilt_toml,
    text,
)
from gpucost.ask import QUESTIONS
from gpucost.cli import COMMANDS, cli


class InternalError(Exception):
    """What must never happen, as the program or the judge words it."""


class Case(NamedTuple):
    """One call: what stands on the command line, the files beside it, and the environment.

    A file may also be `fifo`, `folder` or `link:target`; a variable that is None is taken away. `face` says who is
    asked (`benchmarks.fuzz.faces`), and `inputs` what it gets beside the arguments.
    """

    arguments: list[str]
    files: Mapping[str, bytes | str] = MappingProxyType({})
    environment: Mapping[str, str | None] = MappingProxyType({})
    face: str = "command"
    inputs: Any = None


# what is no plain file: a pipe that nobody writes into, a folder, a link to itself
_SPECIALS = {"pipe.toml": "fifo", "pipe.json": "fifo", "pipe.csv": "fifo", "deep": "folder", "loop": "link:loop"}
# values beside those that the signatures of questions name
_EXTRA = {
    "file": ["plan.toml", "missing.toml", ".", "/dev/null", *_SPECIALS],
    "years": ["0.1", "4", "100"],
    "gpu": ["a100-80gb", "b200"],
}
FILES = [
    *("plan.toml", "pool.toml", "curve.csv", "lengths.csv", "answer.json", "config.json", "/dev/zero", "invoice.csv"),
    *("agreements.csv", *_SPECIALS),
]
ENDINGS = ["xlsx", "csv", "md", "html", "txt", "json"]
SLOW = ("leave_out", "every", "anew", "save", "undo")  # minutes by their own help, or for ever


def commands(random: Random) -> Case:
    """Every command, its own options, values of every sort."""
    name = random.choice([*(command for command in COMMANDS if command != "serve"), *QUESTIONS, *QUESTIONS])
    # `serve` serves for ever; most runs of `validate` would say the same and take a second
    if name == "validate" and random.random() < 0.8:
        name = random.choice(list(QUESTIONS))
    command = cli.get_command(click.Context(cli), name)
    arguments, path = list(START.get(name, [])), [name]
    if isinstance(command, click.Group) and command.commands and random.random() < 0.5:
        inner = random.choice(sorted(command.commands))
        command, path = command.commands[inner], [name, inner]
        arguments = []
    options = [option for option in command.params if isinstance(option, click.Option)] if command else []
    # mostly one option or two: a question of many strange ones is refused for the first of them
    for option in random.sample(options, min(len(options), random.choice([0, 1, 1, 2, 2, 3, 5]))):
        if option.name in SLOW or "help" in option.opts:
            continue
        flag = random.choice([*option.opts, *option.secondary_opts])
        arguments += [flag] if option.is_flag else [f"{flag}={_value_of(random, name, option)}"]
    if random.random() < 0.1:
        arguments.insert(random.randrange(len(arguments) + 1), text(random))
    if arguments and random.random() < 0.03:
        arguments[random.randrange(len(arguments))] += "\udce9"  # a byte that is no UTF-8, as the system hands it over
    if random.random() < 0.5 and name in QUESTIONS:
        arguments += ["--format", "json"]
    # commands that do nothing, or ask the network, without the argument that is added
    if name == "calibrate" and not {"training.csv", "--from-log"} & set(arguments):
        arguments = ["--measurements", "training.csv"]
    if path == ["prices", "refresh"]:
        arguments.append("--from=invoice.csv")
    if name == "bench":
        arguments = ["--show", *arguments]
    if not _NAMES_A_FILE.search("\n".join(arguments)):
        return Case([*path, *arguments])
    files: dict[str, bytes | str] = {
        "answer.json": random.choice(good.answers()), "plan.toml": good.plan(), "bench.json": good.bench(),
        "training.csv": good.measurements("training"), "pool.toml": good.POOL, "curve.csv": good.CURVE,
        "lengths.csv": good.LENGTHS, "config.json": random.choice(good.configurations()), "train.log": good.LOG,
        "invoice.csv": good.INVOICE, "usage.csv": good.USAGE, "agreements.csv": good.AGREEMENTS, "map.csv": good.MAP,
        **_SPECIALS,
    }  # fmt: skip
    return Case([*path, *arguments], files)


def _value_of(random: Random, command: str, option: click.Option) -> str:
    """Draw a value: one that the option takes, or any text."""
    values: list[str] = []
    if isinstance(option.type, click.Choice):
        values = list(option.type.choices)
    if command in QUESTIONS:
        arguments = {argument.name: argument for argument in QUESTIONS[command].arguments}
        if argument := arguments.get(option.name or ""):
            values = [*argument.kind.choices, *([str(argument.example)] if argument.example is not None else [])]
            if argument.kind.metavar == "FILE":
                values += FILES
    values += _EXTRA.get(option.name or "", [])
    if isinstance(option.type, click.Path):
        values += FILES
    if option.name == "output_file":
        return random.choice(
            [*(f"out.{ending}" for ending in ENDINGS * 3), "pipe.csv", "loop", "no/such/out.csv", "deep"]
        )
    return random.choice(values) if values and random.random() < 0.6 else text(random)


_NAMES_A_FILE = re.compile(r"\.(json|toml|csv|log)$|deep$|loop$", re.MULTILINE)


def tables(random: Random) -> Case:
    """Plans, pools, supplies, demands, curves, lengths and profiles."""
    name, data, arguments = random.choice(
        [
            ("plan.toml", good.plan(), ["tco", "--plan", "plan.toml", "--draws", random.choice(["0", "20"])]),
            ("plan.toml", good.plan(), ["mix", "--constant", "8", "--months", "6", "--plan", "plan.toml"]),
            ("supply.toml", good.SUPPLY, ["mix", "--constant", "8", "--months", "6", "--plan", "supply.toml"]),
            ("pool.toml", good.POOL, ["estimate", *START["estimate"], "--pool", "pool.toml"]),
            ("demand.csv", good.DEMAND, ["mix", "demand.csv", "--gpu", "h100-sxm"]),
            ("curve.csv", good.CURVE, ["tco", *START["tco"], "--rent-path", "curve", "--rent-curve", "curve.csv"]),
            ("lengths.csv", good.LENGTHS, ["inference", *START["inference"], "--lengths", "lengths.csv"]),
            (
                "profile.csv",
                good.PROFILE,
                ["inference", *START["inference"], "--requests-per-s", "5", "--profile", "profile.csv"],
            ),
            ("quotes.csv", good.QUOTES, ["tco", *START["tco"], "--rent", "quotes.csv"]),
            ("prices.csv", good.BOOK_CSV, ["data", "check", "prices.csv", "--table", "offers"]),
        ]
    )
    return Case([*arguments, *written(random)], {name: spoilt(random, name, data)})


def spoilt(random: Random, name: str, data: bytes) -> bytes:
    """Spoil a file as its kind allows."""
    if name.endswith(".toml"):
        return (spoilt_toml if random.random() < 0.5 else spoilt_text)(random, data)
    return (spoilt_rows if random.random() < 0.6 else spoilt_text)(random, data)


def written(random: Random) -> list[str]:
    return random.choice(
        [[], [], [], ["--format", "json"], ["--format", "json"], ["--format", "csv"], ["-o", "out.xlsx"]]
    )


def books(random: Random) -> Case:
    """Price books in every format."""
    name = random.choice(
        ["book.toml", "book/prices.toml", "book/offers.csv", "book/offers.xlsx", "book/offers.parquet"]
    )
    if name.endswith("parquet"):
        if random.random() < 0.4:
            data = spoilt_bytes(random, good.parquet())
        else:
            data = good.odd_parquet(random.randrange(60), random.choice(good.ODD_TYPES), random.choice([0, 0, 1, 2, 3]))
    elif name.endswith("xlsx"):
        rows = other_rows(random, good.BOOK_CSV)
        data = good.workbook(rows) if random.random() < 0.7 else spoilt_bytes(random, good.workbook(rows))
        data = good.bomb(60) if random.random() < 0.02 else data  # slow, so it comes seldom
    else:
        data = spoilt(random, name, good.BOOK_CSV if name.endswith("csv") else good.BOOK)
    arguments = random.choice(
        [["prices", "--gpu", "h100-sxm", "--limit", "3"], ["estimate", *START["estimate"]], ["data", "check", name]]
    )
    return Case([*arguments, *written(random)], {name: data}, {"GPUCOST_BOOK": name.split("/")[0]})


def saved(random: Random) -> Case:
    """Saved answers, read by report, compare, rerun and watch."""
    arguments = random.choice(
        [["report", "answer.json", "-o", f"out.{ending}"] for ending in ENDINGS]
        + [
            ["saved", "rerun", "answer.json"],
            ["saved", "rerun", "answer.json", "--explain"],
            ["compare", "answer.json", "good.json"],
        ]
        + [["watch", "train.log", "--estimate", "answer.json"], ["saved", "rerun", "answer.json", "--format", "json"]]
    )
    answer = good.estimate_with_facts() if arguments[0] != "report" else random.choice(good.answers())
    if arguments[0] != "watch" and random.random() < 0.4:
        arguments = [*arguments, "--accept-changed"]
    elif random.random() < 0.8:  # else its seal refuses whatever is changed
        before, seal, after = answer.rpartition(b'"seal"')
        answer = before + seal.replace(b"seal", b"x_seal") + after
    files: dict[str, bytes | str] = {"answer.json": spoilt_json(random, answer), "good.json": good.answers()[0]}
    return Case(arguments, {**files, "train.log": good.LOG})


def models(random: Random) -> Case:
    """Model configurations."""
    model = ["--model", "config.json", "--gpu", "h100-sxm"]
    arguments = random.choice(
        [
            ["models", "config.json"],
            ["models", "config.json"],
            ["models", "config.json", "--format", "json"],
            ["estimate", *model, "--tokens", "10b", "--gpus", "64", "--top", "1"],
            ["inference", *model, "--top", "1"],
            ["fit", *model],
            ["throughput", *model, "--gpus", "8"],
        ]
    )
    config = spoilt_json(random, random.choice(good.configurations()))
    return Case([*arguments, *written(random)[:2]], {"config.json": config})


def settings(random: Random) -> Case:
    """Scenarios, measurements, benches, logs, settings and the environment."""
    how = random.randrange(7)
    if how == 0:
        return Case(
            ["report", "s.toml", "-o", f"out.{random.choice(ENDINGS)}"],
            {"s.toml": spoilt(random, ".toml", good.SCENARIO)},
        )
    if how == 1:
        kind = random.choice(["training", "serving", "serving", "serving"])
        arguments = random.choice([["validate"], ["calibrate"]]) if random.random() < 0.2 else ["validate"]
        data = spoilt(random, ".csv", good.measurements(kind))
        return Case([*arguments, "--kind", kind, "--measurements", "m.csv"], {"m.csv": data})
    if how == 2:
        return Case(
            ["bench", "bench.json", "--show", *written(random)], {"bench.json": spoilt_json(random, good.bench())}
        )
    if how == 3:
        files = {"train.log": spoilt_text(random, good.LOG), "answer.json": good.answers()[0]}
        return Case(["watch", "train.log", "--estimate", "answer.json", *written(random)], files)
    arguments = random.choice(
        [
            ["config"],
            ["config", "--format", "json"],
            ["prices", "--gpu", "h100-sxm", "--limit", "1"],
            ["estimate", *START["estimate"]],
        ]
    )
    if how == 4:
        return Case(arguments, {"gpucost.toml": spoilt(random, ".toml", good.SETTINGS)})
    # the environment: our variables, and those that any program may heed
    ours = ["FORMAT", "AS_OF", "KNOWN_AS_OF", "PROVIDER", "TOP", "BOOK", "DATA", "FIELDS", "OPTION", "X", "TOKENS",
            "LIMIT_NESTING", "LIMIT_QUERY_SECONDS", "LIMIT_TEXT_FILE_BYTES"]  # fmt: skip
    others = ["HOME", "XDG_CONFIG_HOME", "LC_ALL", "LANG", "TZ", "COLUMNS", "LINES", "TERM", "NO_COLOR", "TMPDIR",
              "PAGER"]  # fmt: skip
    name = f"GPUCOST_{random.choice(ours)}" if random.random() < 0.6 else random.choice(others)
    return Case(arguments, {}, {name: text(random).replace("\0", "")})


def writers(random: Random) -> Case:
    """Hostile names and texts in every medium; the names are valid, and so is everything else."""
    hostile = json.dumps(random.choice(TEXTS) + random.choice(["", "x"]))
    target = random.choice(
        [["-o", f"out.{ending}"] for ending in ENDINGS] + [["--format", form] for form in ("csv", "md", "json")]
    )
    how = random.randrange(3)
    if how == 0:
        pool = good.POOL.replace(b'"lab"', hostile.encode())
        return Case(["estimate", *START["estimate"], "--pool", "pool.toml", *target], {"pool.toml": pool})
    if how == 1:
        name = random.choice([b'"A model of our own"', b'"Text"', b'"Pretrain"', b'"64 H100"'])
        scenario = good.SCENARIO.replace(name, hostile.encode())
        return Case(["report", "s.toml", *(target if target[0] == "-o" else [])], {"s.toml": scenario})
    book = good.BOOK.replace(b'"our-colo"', hostile.encode())
    return Case(["estimate", *START["estimate"], *target], {"book.toml": book}, {"GPUCOST_BOOK": "book.toml"})


# what may be asked, what the gate must refuse, and what never ends
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
    "select map {1: 2}", "pivot offers on option", "select * from duckdb_settings()", "select * from glob('/*')",
    "select (select (select 1))", "select " + "(" * 3000 + "1" + ")" * 3000, "select list(range) from range(10000000)",
    "select * from information_schema.tables", "summarize offers", "describe offers", "select 1; select 2",
    "select current_setting('home_directory')", "select * from '/etc/passwd'", "with a as (select 1) from a",
    "select string_agg(repeat('x', 1000000), '') from range(2000)", "export database 'x'",
    "call pragma_version()", "load json", "select bitstring '1010'",
]  # fmt: skip


def sql(random: Random) -> Case:
    """The gate of SQL."""
    query = random.choice(QUERIES)
    if random.random() < 0.5:
        tokens = query.split(" ")
        tokens[random.randrange(len(tokens))] = random.choice([*TEXTS, *random.choice(QUERIES).split(" ")])
        query = " ".join(tokens)
    limit = random.choice([[], [], ["--time-limit", random.choice(["2", "nan", "inf", "1e10", "0", "-1", "1e-9"])]])
    return Case(["sql", "--time-limit", "5", *limit, *written(random), "--", query])


# an answerable start of each function
LIBRARY: dict[str, dict[str, Any]] = {
    "estimate": {"model": "8b", "tokens": "10b", "gpu": "h100-sxm", "gpus": 64, "top": 1},
    "inference": {"model": "8b", "gpu": "h100-sxm", "top": 1},
    "tco": {"gpu": "h100-sxm", "gpus": 64, "draws": 20},
    "mix": {"constant": 33, "gpu": "h100-sxm", "months": 12},
    "fit": {"model": "8b", "gpu": "h100-sxm"},
    "throughput": {"model": "8b", "gpu": "h100-sxm", "gpus": 8},
    "audit": {"model": "8b", "tokens": "100b", "gpu": "h100-sxm", "gpus": 64, "days": 8},
    "roofline": {"gpu": "h100-sxm", "matmul": "8192x8192x8192"},
    "choose": {"purpose": "serving", "gpu": "h100-sxm,l40s"},
    "commit": {"usage": [8, 12, 9, 16] * 200, "on_demand": 4, "committed": 2},
    "compare": {"first": {"kind": "fit"}, "second": 3},
}


def library(random: Random) -> Case:
    """The functions of the library, arguments of every type."""
    name = random.choice(list(LIBRARY))
    arguments = dict(LIBRARY[name])
    for argument in random.sample(QUESTIONS[name].arguments, random.choice([1, 1, 2, 3])):
        values = [*argument.kind.choices, argument.example, argument.default]
        odd = [any_value(random), random.choice(TEXTS), b"x", object, 1j, {1: 2}, (1, 2), set()]
        arguments[argument.name] = random.choice(values if random.random() < 0.5 else odd)
    return Case([name], face="library", inputs=arguments)


# ── further faces: sweeps, kept prices, tools of agents, the page, and disturbances ──────────────────────────────────

_GRID = b"""question = "estimate"
model = ["8b", "70b"]
gpu = "h100-sxm,b200"
gpus = "8:64:x2"
tokens = "10b"
"""
CASES = b"model,gpu,gpus,tokens\n8b,h100-sxm,8,1b\n8b,b200,16,2b\n70b,h100-sxm,64,10b\n"


def sweeps(random: Random) -> Case:
    """Grids and tables of cases."""
    target = random.choice([[], [], ["--format", "json"], ["-o", "out.csv"], ["-o", "out.parquet"]])
    how = random.randrange(3)
    if how == 0:  # a grid in a file, a table of cases, or lists on the command line
        data = spoilt(random, "grid.toml", _GRID) if random.random() < 0.5 else spoilt_toml(random, _GRID)
        return Case(["sweep", "--grid", "grid.toml", *target], {"grid.toml": data})
    if how == 1:
        return Case(["sweep", "--cases", "cases.csv", *target], {"cases.csv": spoilt_rows(random, CASES)})
    options = {"--model": "8b", "--gpu": "h100-sxm", "--gpus": "8:16:x2", "--tokens": "10b"}
    for _ in range(random.choice([1, 1, 2])):
        name = random.choice(
            [*options, "--question", "--precision", "--deadline", "--into", "--sequence", "--provider"]
        )
        listed = random.choice([",", "|", ":", ":x", ":10b:"])
        options[name] = random.choice(
            [text(random), f"{text(random)}{listed}{text(random)}", "1:1e9:1", "8:4:x2", "1,1"]
        )
    return Case(["sweep", *(f"{name}={value}" for name, value in options.items()), *target])


def stores(random: Random) -> Case:
    """Prices that were fetched: files to take over, and stores whose files others changed."""
    arguments = random.choice(
        [
            ["prices", "refresh", "--from", "quotes.csv", "--store", "new"],
            ["prices", "verify", "--store", "kept"],
            ["prices", "snapshots", "--store", "kept"],
            ["prices", "prune", "--keep", "1", "--store", "kept"],
            ["prices", "export", "out", "--store", "kept"],
            ["prices", "--gpu", "h100-sxm", "--limit", "2"],
        ]
    )
    if arguments[1] == "refresh":
        renamed = [f"--map={text(random)}={text(random)}"] if random.random() < 0.3 else []
        return Case([*arguments, *renamed], {"quotes.csv": spoilt_rows(random, good.BOOK_CSV)})
    # a manifest and its part; what is spoilt bears the right hash, as a hostile publisher would see to it
    part = good.parquet() if random.random() < 0.6 else spoilt_bytes(random, good.parquet())
    digest = hashlib.sha256(part).hexdigest()
    row = {"source": "azure", "kind": random.choice(["offers", "offers", "tokens"]), "observed_on": "2026-11-01"}
    row |= {"rows": 20, "size_bytes": len(part), "sha256": digest, "changes": {"new": 20}}
    row |= {"origin": {"source_id": "azure", "publisher": "Azure", "title": "t", "locator": "https://x"}}
    manifest = json.dumps({"format": 1, "made_at": "2026-11-01T12:00:00+00:00", "parts": [row]}).encode()
    if random.random() >= 0.4:
        manifest = spoilt_json(random, manifest)
    # the name of a snapshot is its moment and the hash of its manifest
    name = f"20261101T120000000000Z-{hashlib.sha256(manifest).hexdigest()[:16]}"
    if random.random() < 0.1:
        name = random.choice(TEXTS).replace("/", "_")[:100] or name
    files: dict[str, bytes | str] = {f"kept/snapshots/{name}.json": manifest, f"kept/parts/{digest}.parquet": part}
    return Case(arguments, files, {"GPUCOST_STORE": "kept"})


DETAILS = ["options", "lines", "warnings", "request", "checks", "components", "changes", "months"]
TOOLS: dict[str, dict[str, Any]] = {
    **{name: LIBRARY[name] for name in ("estimate", "inference", "fit", "tco", "audit")},
    "prices": {"gpu": "h100-sxm"},
    "sql": {"query": "select 1"},
    "compare": {"first": {"model": "8b", "tokens": "1b", "gpus": 8}, "second": {"model": "8b", "tokens": "2b"}},
}  # fmt: skip


def tools(random: Random) -> Case:
    """The tools of agents, with arguments of every type."""
    name = random.choice(list(TOOLS)) if random.random() < 0.97 else text(random)
    inputs: Any = dict(TOOLS.get(name, {})) if random.random() < 0.97 else any_value(random)
    if isinstance(inputs, dict):
        arguments = QUESTIONS[name].arguments if name in QUESTIONS else ()
        values = {
            argument.name: [*argument.kind.choices, argument.example, argument.default] for argument in arguments
        } | {"detail": DETAILS}
        known = [*inputs, *values, random.choice(TEXTS)]
        for key in random.sample(known, min(len(known), random.choice([1, 1, 2, 3]))):
            if key in values and random.random() < 0.8:
                inputs[key] = random.choice(values[key])
            else:
                inputs[key] = random.choice([any_value(random), random.choice(TEXTS), text(random)])
    return Case([name], face="tool", inputs=inputs)


PAGE = {"model": "8b", "tokens": "10b", "gpu": "h100-sxm", "gpus": "64", "own_gpu": "h100-sxm", "own_gpus": "8"}


def page(random: Random) -> Case:
    """The addresses of the page."""
    kind = random.choice(["api"] * 8 + ["export", "file"])
    names = {
        "api": ["plan", "plan", "own", "own", "choices"],
        "export": ["scenario.toml"] * 9 + ["estimate.html"],
        "file": ["page.html", "page.js", "../app.py", text(random)],
    }[kind]
    more = ["deadline", "region", "provider", "utilisation", "years", "own_price", "mfu", "overhead", "strict_prices"]
    fields = dict(PAGE)
    for key in random.sample([*PAGE, *more, random.choice(TEXTS)], random.choice([1, 1, 2, 3])):
        fields[key] = text(random)
    query: Any = fields if random.random() < 0.9 else text(random) + "&=&%ff&model=%00"
    return Case([kind, random.choice(names)], face="page", inputs=query)


def disturbed(random: Random) -> Case:
    """Kills, Ctrl-C, several processes and several threads at once."""
    ending = random.choice(["json", "md", "html", "txt", "xlsx"])
    report = ["report", "answer.json", "-o", f"out.{ending}"]
    files: dict[str, bytes | str] = {"answer.json": random.choice(good.answers())}
    if random.random() < 0.7:
        files[f"out.{ending}"] = b"old\n"
    how = random.choice(["killed", "killed", "killed", "interrupted", "processes", "threads"])
    if how == "threads":
        name = random.choice(["estimate", "fit", "throughput", "tco", "inference", "audit", "mix"])
        return Case([name], face=how, inputs=LIBRARY[name])
    inputs: float = {
        "killed": random.random() * random.choice([0.05, 0.3, 1]),  # seconds after the start
        "interrupted": random.random() * 0.3,
        "processes": 8,
    }[how]
    return Case(report, files, face=how, inputs=inputs)
