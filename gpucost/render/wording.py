"""Texts as somebody reads them who has no command line: without flags and commands, and labels in place of codes."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpucost.options import OPTIONS
from gpucost.render.document import Chart, Column, Document, Paragraph, Table, heading_of

_FLAG = r"--[a-z][a-z0-9-]*"
_NOT_COMMANDS = "offline|reads|and|is|has|can"  # what may follow the name in a sentence
_COMMAND = rf"(?<![\w./-])gpucost (?!(?:{_NOT_COMMANDS})\b)[a-z]+"
# what only a command line has; words that stand in code of another program stay as they are
_SPOKEN = re.compile(rf"(?<![\w-]){_FLAG}\b|{_COMMAND}\b")
_SUBJECT = re.compile(r"^--([a-z][a-z0-9-]*)(?=:| is | are | and | takes | needs | goes )")
_ASIDE = re.compile(r" ?\([^()]*\)")
_JOINED = re.compile(r"^(?:or|and) (\w)")  # what was left of an enumeration
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CODE = re.compile(r"(?<![\w/.:@-])[a-z]+(?:_[a-z]+|_[0-9]+[a-z])+(?![\w/@(-])(?!\.\w)")
# cells that are typed or looked up as they stand, and what a row is known by
_IDS = frozenset(("instance_type", "offer_id", "source_id", "source_ids", "model", "gpu", "region", "where", "formula"))


@lru_cache(maxsize=8192)
def without_commands(text: str) -> str:
    """Return a text without what it says of flags and commands: asides, clauses and sentences that name one go.

    >>> without_commands("owes 36 months for a run of 27 days; --option reserved shows it")
    'owes 36 months for a run of 27 days'
    >>> without_commands("engine vllm, served with default settings (--server says otherwise). Cheapest first.")
    'engine vllm, served with default settings. Cheapest first.'
    >>> without_commands("--deadline is missing")
    'deadline is missing'
    >>> without_commands("--gpus: 12 is no multiple of 8; give 8 or 16")
    'gpus: 12 is no multiple of 8; give 8 or 16'
    >>> without_commands("None is fast enough. Loosen --ttft or --tpot, or allow faster accelerators.")
    'None is fast enough. Allow faster accelerators.'
    """
    if not _SPOKEN.search(text):
        return text
    text = _SUBJECT.sub(lambda flag: flag[1].replace("-", " "), text)  # what a refusal speaks of
    shorter = _ASIDE.sub(lambda aside: "" if _SPOKEN.search(aside[0]) else aside[0], text)
    sentences = [_said(sentence) for sentence in _SENTENCE.split(shorter)]
    return " ".join(sentence for sentence in sentences if sentence) or _named(text)


def _said(sentence: str) -> str:
    """Return a sentence without the clauses that name a flag or command; empty where nothing is left."""
    for mark in ("; ", ", ", ": "):
        if not _SPOKEN.search(sentence):
            break
        kept = [clause for clause in sentence.split(mark) if not _SPOKEN.search(clause)]
        if kept:
            end = sentence[-1] if sentence[-1] in ".!?" else ""
            sentence = _JOINED.sub(lambda first: first[1].upper(), mark.join(kept).rstrip(".!? ") + end)
    return "" if _SPOKEN.search(sentence) else sentence


def _named(text: str) -> str:
    """Return a text that is about a flag alone with the flag's name as words."""
    words = re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", " "), text)
    return re.sub(r"`?(?<![\w./-])gpucost ([a-z]+)`?", r"\1", words)


@lru_cache(maxsize=8192)
def labelled(text: str) -> str:
    """Return a text with labels in place of codes such as on_demand; names of files and machines stay.

    >>> labelled("reserved_3y_then_rent"), labelled("8 × h100 on_demand"), labelled("gpu_8x_h100_sxm5")
    ('reserved 3y then rent', '8 × h100 on demand', 'gpu_8x_h100_sxm5')
    """
    return _CODE.sub(_label, text) if "_" in text else text


def _label(code: re.Match[str]) -> str:
    return OPTIONS[code[0]].label if code[0] in OPTIONS else heading_of(code[0])


def for_readers(document: Document) -> Document:
    """Return a document in words: what a page shows, whose reader neither has the program nor knows its codes."""
    said = ("title", "lead", "headline", "warnings", "remarks", "sections")
    return replace(document, **{name: _worded(getattr(document, name), "") for name in said})


def _fields(record: Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _worded(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return value if key in _IDS else labelled(without_commands(value))
    if isinstance(value, (list, tuple)):
        return value if key in _IDS else type(value)(_worded(item, key) for item in value)
    if isinstance(value, Mapping):
        return {name: _worded(item, str(name)) for name, item in value.items()}
    if isinstance(value, Paragraph):
        return value if value.style == "code" else replace(value, text=_worded(value.text, ""))
    if isinstance(value, Table):
        return _table(value)
    if isinstance(value, Chart):
        return _chart(value)
    if isinstance(value, Struct):
        return type(value)(*(_worded(item, name) for name, item in _fields(value).items()))
    return value


def _table(table: Table) -> Table:
    """Return a table in words; answers to SQL and codes that were asked for stay as they are."""
    exact = {column.key for column in table.columns if column.verbatim}
    rows = [
        {name: item if name in exact else _worded(item, str(name)) for name, item in row.items()} for row in table.rows
    ]
    heads = tuple(_head(column) for column in table.columns)
    said = {name: _worded(getattr(table, name), "") for name in ("title", "note", "paper", "total")}
    return replace(table, columns=heads, rows=rows, **said)


def _head(column: Column) -> Column:
    return replace(column, heading=_worded(column.heading, "")) if column.heading else column


def _chart(chart: Chart) -> Chart:
    """Return a chart in words: what it draws is named by labels, also where a formula is known by such a name."""
    return replace(
        chart,
        **{name: _worded(getattr(chart, name), "") for name in ("title", "description", "note")},
        data=[{name: _worded(item, str(name)) for name, item in row.items()} for row in chart.data],
        formulas={labelled(name): formula for name, formula in chart.formulas.items()},
        label=labelled(chart.label) if chart.kind == "area" else chart.label,  # there it names a series, no key
    )


# --- What accelerators and options are called on screens.

_SPELLED = {"pcie": "PCIe", "ti": "Ti", "ada": "Ada", "max": "Max", "arc": "Arc"}  # other short words are capitals
_BY_MEMORY = ("a100", "v100", "h20", "gh200", "rtx")  # chips that are sold with several
_UNSAID = re.compile(r"sxm\d?|bw|gpu|nvl72|apple|\d{1,2}c|\d+w|\d+gb")  # what nobody says of a chip
_MEMORY = re.compile(r"\d+gb")


def chip_label(gpu: str) -> str:
    """Return the label that people use of an accelerator: its memory and its form where they tell two apart.

    >>> chip_label("h100-sxm5-80gb"), chip_label("h100-nvl-94gb"), chip_label("a100-sxm4-40gb"), chip_label("mi300x")
    ('H100', 'H100 NVL', 'A100 40GB', 'MI300X')
    >>> chip_label("rtx-4070-ti"), chip_label("rtx-pro-6000-bw-max-q"), chip_label("tpu-v5p"), chip_label("trainium2")
    ('RTX 4070 Ti', 'RTX PRO 6000 Max Q', 'TPU v5p', 'Trainium2')
    """
    first, *others = parts = gpu.split("-")
    kept = [part for part in others if not _UNSAID.fullmatch(part) or (_MEMORY.fullmatch(part) and first in _BY_MEMORY)]
    if first == "tpu":
        return " ".join(["TPU", *kept])
    return " ".join(
        _SPELLED.get(part) or (part.capitalize() if re.match("[a-z]{4}", part) else part.upper())
        for part in ([] if _UNSAID.fullmatch(parts[0]) else [first]) + kept
    )


def option_text(option: str, term_months: int) -> str:
    """Name an option with its term.

    >>> option_text("reserved", 36), option_text("on_demand", 0)
    ('reserved 3 y', 'on demand')
    """
    years, months = divmod(term_months, 12)
    term = "" if not term_months else f" {term_months} mo" if months else f" {years} y"
    return OPTIONS[option].label.replace("calendar reservation", "calendar") + term
