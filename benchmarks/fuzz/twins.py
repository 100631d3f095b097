"""Whether a file says the same however it is written, as long as it is legal."""

import csv
import io
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.meaning import flat
from benchmarks.fuzz.values import toml_lines

Twin = Callable[[Random, bytes], bytes]
_BOM = b"\xef\xbb\xbf"


def _marked(_: Random, data: bytes) -> bytes:
    return data if data.startswith(_BOM) else _BOM + data


def _lines(_: Random, data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _open_end(_: Random, data: bytes) -> bytes:
    return data.rstrip(b"\r\n")


def _blank_end(_: Random, data: bytes) -> bytes:
    return data.rstrip(b"\r\n") + (b"\r\n" if b"\r\n" in data else b"\n") * 3


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.removeprefix(_BOM).decode(), newline="")))


def _csv(rows: list[list[str]], **how: Any) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n", **how).writerows(rows)
    return out.getvalue().encode()


def _quoted(_: Random, data: bytes) -> bytes:
    return _csv(_rows(data), quoting=csv.QUOTE_ALL)


def _mixed(random: Random, data: bytes) -> bytes:
    """Another order of the columns."""
    rows = _rows(data)
    order = random.sample(range(len(rows[0])), len(rows[0]))
    return _csv([[row[place] if place < len(row) else "" for place in order] for row in rows if row])


def _spaced(_: Random, data: bytes) -> bytes:
    return _csv([[f" {cell} " for cell in row] for row in _rows(data)])


def _wide(_: Random, data: bytes) -> bytes:
    """Empty cells at the end of every row, as a spreadsheet writes them."""
    return _csv([[*row, "", ""] for row in _rows(data) if row])


def _gaps(random: Random, data: bytes) -> bytes:
    """Empty rows between the others."""
    rows = _rows(data)
    rows.insert(random.randrange(1, len(rows) + 1), [""] * len(rows[0]))
    return _csv(rows)


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tree(data: bytes) -> dict[str, Any]:
    return tomllib.loads(data.removeprefix(_BOM).decode().replace("\r\n", "\n"))


def _inline(_: Random, data: bytes) -> bytes:
    """Every table in its braces."""
    return "\n".join(toml_lines(_tree(data))).encode()


def _dotted(_: Random, data: bytes) -> bytes:
    """Tables as dotted keys; lists of tables in their braces."""

    def lines(table: dict[str, Any], before: str) -> Any:
        for key, value in table.items():
            if isinstance(value, dict) and value:
                yield from lines(value, f"{before}{json.dumps(key)}.")
            else:
                yield from (before + line for line in toml_lines({key: value}))

    return "\n".join(lines(_tree(data), "")).encode()


def _literal(_: Random, data: bytes) -> bytes:
    """Texts in single quotes."""
    return re.sub(rb'"([^"\'\\\n]*)"(?= *($|\n|,|\]|\}|#))', rb"'\1'", data)


def _remarked(_: Random, data: bytes) -> bytes:
    """A remark after every line and before the first."""
    text = data.removeprefix(_BOM).decode()
    if "'''" in text or '"""' in text or "#" in text:
        return data
    return ("# 1 = 2\n" + re.sub(r"(?m)(?<=[\w\"'\]}])$", '  # ]]""', text)).encode()


def _grouped(_: Random, data: bytes) -> bytes:
    """Whole numbers with signs between their groups, and a sign before."""
    return re.sub(rb"(?m)(?<== )(\d)(\d{3})\b(?![-.:\w])", rb"+\1_\2", data)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _compact(_: Random, data: bytes) -> bytes:
    return json.dumps(json.loads(data), separators=(",", ":")).encode()


def _airy(_: Random, data: bytes) -> bytes:
    return b" \n\t" + json.dumps(json.loads(data), indent=7, separators=(" ,", "\t: ")).encode() + b"\r\n "


def _escaped(_: Random, data: bytes) -> bytes:
    """Letters of keys and texts as their numbers."""
    text = json.dumps(json.loads(data))
    return re.sub(r'(?<=")[a-z](?=[a-z_ ])', lambda sign: f"\\u{ord(sign[0]):04X}", text).encode()


def _turned(_: Random, data: bytes) -> bytes:
    """The keys of every object in reverse order: the texts of an answer may follow it, its figures not."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    return json.dumps(turned(json.loads(data))).encode()


TWINS: dict[str, list[Twin]] = {
    "csv": [_marked, _lines, _open_end, _blank_end, _quoted, _mixed, _spaced, _wide, _gaps],
    "toml": [_marked, _lines, _open_end, _blank_end, _inline, _dotted, _literal, _remarked, _grouped],
    "json": [_compact, _airy, _escaped, _turned],
}


_CURVE = b"month,usd_per_gpu_hour\n1,2.35\n2,2\n3,1.8\n"
_CASES = b"model,gpu,gpus,tokens\n8b,h100-sxm,8,1b\n8b,b200,16,2b\n"
_OWN_FILES = (b"book", b"data", b"store")
_SETTINGS = b"\n".join(line for line in good.SETTINGS.splitlines() if line.split()[0] not in _OWN_FILES)


def twins(random: Random) -> Case:
    """A command over a good file, and the same file written in another legal way."""
    words, name, data = random.choice(_asked())
    other = data
    ways = [one for one in TWINS[name.rpartition(".")[2]] if (one, name) != (_gaps, "cases.csv")]  # rows are numbered
    for _ in range(random.choice([1, 1, 2, 3])):
        other = random.choice(ways)(random, other)
    book = {"GPUCOST_BOOK": name.split("/")[0]} if name.startswith("book") else {}
    return Case([*words.split(), "-o", "out.json"], {name: data}, book, face="twin", given=(name, other))


def _asked() -> list[tuple[str, str, bytes]]:
    """Return commands, each with the file that it reads."""
    estimate, inference, tco = (" ".join([name, *good.START[name]]) for name in ("estimate", "inference", "tco"))
    return [
        ("tco --draws 0 --plan plan.toml", "plan.toml", good.plan()),
        ("mix --constant 8 --months 6 --plan supply.toml", "supply.toml", good.SUPPLY),
        (f"{estimate} --pool pool.toml", "pool.toml", good.POOL),
        ("mix demand.csv --gpu h100-sxm", "demand.csv", good.DEMAND),
        (f"{tco} --rent-path curve --rent-curve curve.csv", "curve.csv", _CURVE),
        (f"{inference} --lengths lengths.csv", "lengths.csv", good.LENGTHS),
        (f"{tco} --rent quotes.csv", "quotes.csv", good.QUOTES),
        ("report s.toml", "s.toml", good.SCENARIO),
        ("prices --gpu h100-sxm --limit 9", "book.toml", good.BOOK),
        ("prices --gpu h100-sxm --limit 9", "book/offers.csv", good.BOOK_CSV),
        ("config", "gpucost.toml", _SETTINGS),
        ("models config.json", "config.json", good.configurations()[0]),
        ("report answer.json", "answer.json", good.answers()[0]),
        ("sweep --cases cases.csv", "cases.csv", _CASES),
        ("commit usage.csv --on-demand 4 --committed 2", "usage.csv", good.USAGE),
        ("validate --kind training --measurements m.csv", "m.csv", good.measurements("training")),
    ]


def twin(asked: Case) -> None:
    """Ask over the file and over its twin; that they answer differently is an internal error."""
    name, other = asked.given
    told = []
    for data in (Path(name).read_bytes(), other):
        Path(name).write_bytes(data)
        told.append(_told(asked.arguments))
    if told[0] != told[1]:
        raise InternalError(f"{asked.arguments} of {other[:300]!r}: {_unlike(*told)}")


def _told(arguments: list[str]) -> dict[str, Any] | str:
    """Return what a command writes, or why it refuses."""
    from gpucost.cli import cli
    from gpucost.errors import GpuCostError

    try:
        cli.main(arguments, standalone_mode=False)
    except GpuCostError as error:
        return str(error)
    return dict(flat(json.loads(Path("out.json").read_text("utf-8"))))


def _unlike(plain: dict[str, Any] | str, other: dict[str, Any] | str) -> str:
    if isinstance(other, str) or isinstance(plain, str):
        return f"{str(other)[:300]} against {str(plain)[:100]}"
    way = next(way for way in {**plain, **other} if plain.get(way) != other.get(way))
    return f"{way} is {other.get(way)!r}, not {plain.get(way)!r}"
