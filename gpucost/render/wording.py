"""Texts as somebody reads them who has no command line: without flags and commands, and labels in place of codes."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpucost.options import OPTIONS
from gpucost.render.document import Chart, Document, Paragraph, Table, heading_of

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
    sentences = []
    for sentence in _SENTENCE.split(shorter):
        # clauses go from the strongest mark to the weakest, so that no more of the sentence goes than must
        for mark in ("; ", ", ", ": "):
            if not _SPOKEN.search(sentence):
                break
            clauses = [clause for clause in sentence.split(mark) if not _SPOKEN.search(clause)]
            if clauses:
                end = sentence[-1] if sentence[-1] in ".!?" else ""
                sentence = _JOINED.sub(lambda first: first[1].upper(), mark.join(clauses).rstrip(".!? ") + end)
        if sentence and not _SPOKEN.search(sentence):
            sentences.append(sentence)
    if sentences:
        return " ".join(sentences)
    # Every sentence is about a flag or command, so nothing would be left: their names become words instead.
    flags_as_words = re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", " "), text)
    return re.sub(r"`?(?<![\w./-])gpucost ([a-z]+)`?", r"\1", flags_as_words)


@lru_cache(maxsize=8192)
def labelled(text: str) -> str:
    """Return a text with labels in place of codes such as on_demand; names of files and machines stay.

    >>> labelled("reserved_3y_then_rent"), labelled("8 × h100 on_demand"), labelled("gpu_8x_h100_sxm5")
    ('reserved 3y then rent', '8 × h100 on demand', 'gpu_8x_h100_sxm5')
    """
    if "_" not in text:  # most texts, and to look is quicker than the pattern
        return text
    return _CODE.sub(lambda code: OPTIONS[code[0]].label if code[0] in OPTIONS else heading_of(code[0]), text)


def for_readers(document: Document) -> Document:
    """Return a document in words: what a page shows, whose reader neither has the program nor knows its codes."""
    texts = ("title", "lead", "headline", "warnings", "remarks", "sections")
    return replace(document, **{name: _worded(getattr(document, name), "") for name in texts})


def _worded(value: Any, key: str) -> Any:
    """Return a part of a document in words, whatever it is; `key` is what its row or record calls it."""
    if isinstance(value, str):
        return value if key in _IDS else labelled(without_commands(value))
    if isinstance(value, (list, tuple)):
        return value if key in _IDS else type(value)(_worded(item, key) for item in value)
    if isinstance(value, Mapping):
        return {name: _worded(item, str(name)) for name, item in value.items()}
    if isinstance(value, Paragraph):
        return value if value.style == "code" else replace(value, text=_worded(value.text, ""))
    if isinstance(value, Table):
        # answers to SQL, and codes that were asked for by their key, stay as they are
        exact = {column.key for column in value.columns if column.verbatim}
        rows = [
            {name: item if name in exact else _worded(item, str(name)) for name, item in row.items()}
            for row in value.rows
        ]
        heads = tuple(
            replace(column, heading=_worded(column.heading, "")) if column.heading else column
            for column in value.columns
        )
        texts = {name: _worded(getattr(value, name), "") for name in ("title", "note", "paper", "total")}
        return replace(value, columns=heads, rows=rows, **texts)
    if isinstance(value, Chart):
        return replace(
            value,
            **{name: _worded(getattr(value, name), "") for name in ("title", "description", "note")},
            data=[{name: _worded(item, str(name)) for name, item in row.items()} for row in value.data],
            # formulas are known by the series that they draw, whose names in the data became labels as well
            formulas={labelled(name): formula for name, formula in value.formulas.items()},
            label=labelled(value.label) if value.kind == "area" else value.label,  # there it names a series, no key
        )
    if isinstance(value, Struct):
        return type(value)(*(_worded(getattr(value, name), name) for name in value.__struct_fields__))
    return value


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
    first, *others = gpu.split("-")
    spoken = [
        part for part in others if not _UNSAID.fullmatch(part) or (_MEMORY.fullmatch(part) and first in _BY_MEMORY)
    ]
    if first == "tpu":  # Google writes the version in small letters
        return " ".join(["TPU", *spoken])
    return " ".join(  # four letters in a row are a word (Trainium), fewer are a code (H100)
        _SPELLED.get(part) or (part.capitalize() if re.match("[a-z]{4}", part) else part.upper())
        for part in ([] if _UNSAID.fullmatch(first) else [first]) + spoken
    )


def option_text(option: str, term_months: int) -> str:
    """Name an option with its term.

    >>> option_text("reserved", 36), option_text("on_demand", 0)
    ('reserved 3 y', 'on demand')
    """
    years, months = divmod(term_months, 12)  # whole years are said as such, 18 months are not
    term = "" if not term_months else f" {term_months} mo" if months else f" {years} y"
    return OPTIONS[option].label.replace("calendar reservation", "calendar") + term
