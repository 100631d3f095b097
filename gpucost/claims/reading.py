"""Reading claims in sentences: the figures, what each is of, and the check that judges it.

A sentence is read as one statement: the accelerators, the model, counts, precisions and sellers that it names hold for
each of its figures; what it does not name is taken from the sentence before it, and said. A figure whose subject or
unit is not stated is asked back, never guessed.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from gpucost.catalog import Catalog
from gpucost.errors import GpuCostError
from gpucost.types import Accelerator, Architecture, System
from gpucost.units import GB, GIB

# --- Figures: a number, or a range of two, with its unit.

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "million": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
    "t": 1e12,
    "trillion": 1e12,
}
_SCALE = r"k|thousand|million|billion|trillion|bn|[MBT](?![A-Za-z/])"

# unit as written -> (quantity, how many of its own unit one is)
_UNITS: tuple[tuple[str, str, float], ...] = (
    (r"tokens? (?:per|a|each) second|tok(?:ens)?/s(?:ec)?|tps|tokens/second", "tokens_per_s", 1),
    (r"EFLOPS?|EFLOP/s|exaflops?|EF(?=\W|$)", "tflops", 1e6),
    (r"PFLOPS?|PFLOP/s|petaflops?|PF(?=\W|$)", "tflops", 1e3),
    (r"TFLOPS?|TFLOP/s|teraflops?|TOPS|TF(?=\W|$)", "tflops", 1),
    (r"PB/s|petabytes (?:per|a) second", "gb_per_s", 1e6),
    (r"TB/s|terabytes (?:per|a) second", "gb_per_s", 1e3),
    (r"GB/s|GBps|gigabytes (?:per|a) second", "gb_per_s", 1),
    (r"MB/s", "gb_per_s", 1e-3),
    (r"Tbps|Tbit/s|Tb/s", "gb_per_s", 125),
    (r"Gbps|Gbit/s|Gb/s", "gb_per_s", 0.125),
    (r"TB|terabytes?", "gb", 1e3),
    (r"GiB", "gb", GIB / GB),
    (r"GB|gigabytes?", "gb", 1),
    (r"MB|megabytes?", "gb", 1e-3),
    (r"MWh", "kwh", 1e3),
    (r"kWh", "kwh", 1),
    (r"MW", "w", 1e6),
    (r"kW", "w", 1e3),
    (r"W|watts?", "w", 1),
    (r"t ?CO2e?|tonnes? (?:of )?CO2e?|tons? (?:of )?CO2e?", "kg", 1e3),
    (r"kg ?(?:of )?CO2e?", "kg", 1),
    (r"(?:GPU|accelerator|[A-Z]+\d+0?|H100|A100)[- ]hours?|GPU-?h", "gpu_hours", 1),
    (r"milliseconds?|ms", "s", 1e-3),
    (r"seconds?|s(?=\W|$)", "s", 1),
    (r"minutes?", "s", 60),
    (r"hours?|h(?=\W|$)", "hours", 1),
    (r"days?", "hours", 24),
    (r"weeks?", "hours", 168),
    (r"months?", "months", 1),
    (r"years?", "months", 12),
    (r"CUDA cores|FP32 cores|shader(?:s| units)|cores", "cores", 1),
    (r"SMs?|streaming multiprocessors|compute units|CUs?", "multiprocessors", 1),
    (r"tokens", "tokens", 1),
    (r"param(?:eter)?s", "parameters", 1),
    (r"times|[x×](?=[\s,.;)]|$)|-?fold", "ratio", 1),
    (r"FLOPs?/(?:byte|B)|FLOPs? per byte", "intensity", 1),
    (r"%|percent|per cent", "percent", 1),
    (r"GHz|MHz|nm|bits?|-bit", "other", 1),
)
_UNIT = "|".join(f"(?P<u{index}>{pattern})" for index, (pattern, _, _) in enumerate(_UNITS))
_FIGURE = re.compile(
    rf"(?<![\w.])(?P<about>~|≈|about |around |roughly |up to |over |more than |at least |under |less than )?"
    rf"(?P<money>US\$|\$|USD ?)?(?P<low>{_NUMBER})(?:\s?(?:-|–|to)\s?\$?(?P<high>{_NUMBER}))?"
    rf"(?:\s?(?P<scale>{_SCALE})(?![A-Za-z]))?"
    rf"(?:(?P<usd>\s?(?:USD|dollars?|US dollars))|\s?-?(?:{_UNIT})(?![A-Za-z]))?(?P<plus>\+)?",
)
_RATE = re.compile(
    r"\s?(?:/|per |an? |each )\s?(?:(?:GPU|card|chip|accelerator)[ -]?)?"
    r"(?P<per>hour|hr|h|GPU|month|year|day|million tokens|Mtok)\b",
    re.IGNORECASE,
)


class Figure(NamedTuple):
    """A figure as written: where it stands, its quantity, its ends in the quantity's own unit, its digits."""

    text: str
    start: int
    quantity: str  # "" where no unit is written
    low: float
    high: float
    per: str = ""  # what a price is of: hour, month …
    slack: float = 0.0  # half of the last digit written, as a share

    @property
    def middle(self) -> float:
        """The figure itself, or the middle of a range."""
        return (self.low + self.high) / 2


def figures_of(sentence: str) -> Iterator[Figure]:
    """Yield the figures of a sentence in order, with those that have no unit.

    >>> [(one.quantity, one.low, one.high) for one in figures_of("7-10 days at $2.50 per hour with 3.35 TB/s")]
    [('hours', 168.0, 240.0), ('usd', 2.5, 2.5), ('gb_per_s', 3350.0, 3350.0)]
    """
    for match in _FIGURE.finditer(sentence):
        low = float(match["low"].replace(",", ""))
        high = float(match["high"].replace(",", "")) if match["high"] else low
        scale = _SCALES[(match["scale"] or "").lower()] if match["scale"] else 1.0
        if high < low and match["high"] and scale > 1:
            high = low
        quantity, factor = "", 1.0
        for index, (_, named, times) in enumerate(_UNITS):
            if match[f"u{index}"]:
                quantity, factor = named, times
        text, per = match.group().strip(), ""
        if match["money"] or match["usd"]:
            quantity, factor = "usd", 1.0
            if rate := _RATE.match(sentence, match.end()):
                per = {"hr": "hour", "h": "hour", "mtok": "million tokens"}.get(
                    rate["per"].lower(), rate["per"].lower()
                )
                text += rate.group()
        yield Figure(
            text, match.start(), quantity, low * scale * factor, high * scale * factor, per, _half_digit(match["low"])
        )


def _half_digit(number: str) -> float:
    """Return half of the last digit that is written, as a share of the number, at most 5 %.

    >>> _half_digit("3.35"), _half_digit("2"), _half_digit("2,000")
    (0.0014925373134328358, 0.05, 0.00025)
    """
    value = float(number.replace(",", ""))
    decimals = len(number.partition(".")[2])
    return min(0.5 * 10**-decimals / value, 0.05) if value else 0.0


# --- Subjects: what a sentence speaks of.


class Mention(NamedTuple):
    """An accelerator as named, with the variants that the name may mean, and the server where one was named."""

    start: int
    end: int
    variants: list[Accelerator]
    system: System | None = None


class SentenceSubject(Struct):
    """What a sentence names; a later sentence that names nothing of a kind speaks of the same."""

    chips: list[Mention] = []  # in the order named
    gpus: int | None = None
    model: Architecture | None = None
    model_told: str = ""
    tokens: float | None = None
    precision: str | None = None
    provider: str | None = None
    instance: str | None = None
    option: str | None = None

    def nearest(self, figure: Figure) -> Mention | None:
        """Return the accelerator that a figure is of: the last one named before it, else the next one."""
        before = [one for one in self.chips if one.end <= figure.start]
        after = [one for one in self.chips if 0 <= one.start - figure.start - len(figure.text) <= _CLOSE]
        if after and (not before or after[0].start - figure.start < figure.start - before[-1].end):
            return after[0]
        return before[-1] if before else next(iter(self.chips), None)


_CLOSE = 12  # characters between a figure and the name behind it that it is of
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]*[A-Za-z0-9]|[A-Za-z0-9]")
_LIKE_A_CHIP = re.compile(
    r"(?i)^(?:[a-z]{1,3}\d{2,4}[a-z]*|rtx|rx|tpu|trainium\d?|inferentia\d?|trn\d|inf\d|gaudi\d?|mi\d+\w*|titan|\d{4}|nvl72|a40|t4|l4|l40s?)$"
)
_MOST_DIGITS = 9  # of a number of accelerators
_LONGEST_NAME = 4  # words
PRECISION = re.compile(
    r"\b(FP64|FP32|TF32|BF16|bfloat16|FP16|half precision|FP8|INT8|FP6|FP4|NVFP4|MXFP4|INT4|float32|single precision"
    r"|16-bit|8-bit|4-bit|32-bit)\b",
    re.IGNORECASE,
)
_PRECISION_WORDS = {
    "bfloat16": "bf16",
    "half precision": "fp16",
    "float32": "fp32",
    "single precision": "fp32",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "16-bit": "bf16",
    "8-bit": "int8",
    "4-bit": "int4",
    "32-bit": "fp32",
}


def precision_of(word: str) -> str:
    """Return the precision that a word of a sentence means.

    >>> precision_of("bfloat16"), precision_of("FP8")
    ('bf16', 'fp8')
    """
    return _PRECISION_WORDS.get(word.lower(), word.lower())


_COUNT = re.compile(
    r"\b(\d[\d,]*)\s?(?:[x×]\s?|-)?(?=(?:NVIDIA |AMD |Nvidia )?"
    r"(?:[A-Z]{1,3}\d{2,4}|GPUs?\b|accelerators?\b|RTX|L40|MI\d|chips?\b|cards?\b|of them\b))"
)
_SIZE = re.compile(
    r"\b(\d+(?:\.\d+)?)\s?([BTbM])\b(?!\s?(?:tokens|tok|USD|/))(?!ytes)(?:[- ]?(?:parameters?|params?|model))?"
)
OPTION_WORDS = {
    "on-demand": "on_demand",
    "on demand": "on_demand",
    "spot": "spot",
    "preemptible": "spot",
    "reserved": "reserved",
    "capacity block": "capacity_block",
}


class Names:
    """The names of a catalog as sentences write them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._chips: dict[str, list[Accelerator]] = {}
        self._providers = {
            str(name).replace("-", " ").lower(): str(name) for name in catalog.offer_values("provider") if name
        } | {"google cloud": "gcp", "amazon": "aws", "lambda labs": "lambda", "vast.ai": "vast", "google": "gcp"}
        self._instances = {str(name).lower(): str(name) for name in catalog.offer_values("instance_type") if name}

    def subject(self, sentence: str) -> SentenceSubject:
        """Return what a sentence names."""
        found = SentenceSubject()
        self._find_chips(sentence, found)
        self._find_model(sentence, found)
        if count := _COUNT.search(sentence):
            found.gpus = int(count[1].replace(",", "")[:_MOST_DIGITS]) or None
        if stated := PRECISION.search(sentence):
            found.precision = precision_of(stated[1])
        lowered = f" {re.sub(r'[^a-z0-9._-]+', ' ', sentence.lower())} "
        for name, provider in self._providers.items():
            if f" {name} " in lowered and len(name) > 2:
                found.provider = provider
        for word in lowered.split():
            if word in self._instances and re.search("[._-]", word):
                found.instance = self._instances[word]
        for word, option in OPTION_WORDS.items():
            if word in sentence.lower():
                found.option = option
        for figure in figures_of(sentence):
            if figure.quantity == "tokens":
                found.tokens = figure.high or None
        return found

    def _find_chips(self, sentence: str, found: SentenceSubject) -> None:
        words = list(_WORD.finditer(sentence))
        place = 0
        while place < len(words):
            taken = 0
            for size in range(min(_LONGEST_NAME, len(words) - place), 0, -1):
                name = " ".join(word.group() for word in words[place : place + size])
                start, end = words[place].start(), words[place + size - 1].end()
                if system := self._system(name):
                    held = self._catalog.accelerators(system.accelerator_id)
                    found.chips.append(Mention(start, end, held, system))
                    taken = size
                    break
                if chips := self._variants(name):
                    found.chips.append(Mention(start, end, chips))
                    taken = size
                    break
            place += max(taken, 1)

    def _variants(self, name: str) -> list[Accelerator]:
        """Return the accelerators that some words name; a word that is a number alone, or no chip's, is none."""
        if name not in self._chips:
            head, *rest = name.split()
            ids = []
            if _LIKE_A_CHIP.match(head) and not (head.isdigit() and not rest):
                plain = re.sub(r"s$", "", name) if re.search(r"\d0s$", name) else name
                ids = self._catalog.accelerator_names.matches(plain)
            self._chips[name] = [chip for id_ in ids for chip in self._catalog.accelerators(id_)]
        return self._chips[name]

    def _system(self, name: str) -> System | None:
        if not re.match(r"(?i)(dgx|hgx|gb[23]00 nvl72|nvl72)\b", name) or len(name.split()) > 3:
            return None
        ids = self._catalog.system_names.matches(name)
        named = [self._catalog.system(id_) for id_ in ids]
        own = [system for system in named if system.kind in ("node", "rack", "baseboard") and system.max_power_kw]
        return own[0] if own else None

    def _find_model(self, sentence: str, found: SentenceSubject) -> None:
        words = list(_WORD.finditer(sentence))
        for size in range(5, 1, -1):
            for place in range(len(words) - size + 1):
                name = "-".join(word.group() for word in words[place : place + size])
                if not re.search(r"[A-Za-z]{3}", name) or not re.search(r"\d", name):
                    continue
                ids = self._catalog.model_names.matches(name)
                if len(ids) == 1 and re.match(r"(?i)[a-z]{3}", name):
                    found.model, found.model_told = self._catalog.architecture(ids[0]), name
                    return
        if stated := _SIZE.search(sentence):
            size_text = stated[1] + stated[2].lower()
            if stated[2] in "BbT" and float(stated[1]) > 0:
                with suppress(GpuCostError):  # a size that no model has
                    found.model, found.model_told = self._catalog.architecture(size_text), size_text


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text: they end at a line's end, and at . ! ? ; before a space.

    >>> sentences_of("One card has 3.35 TB/s. Two have 6.7!")
    ['One card has 3.35 TB/s.', 'Two have 6.7!']
    """
    parts = (part.strip(" \t-*•|>#") for line in text.splitlines() for part in re.split(r"(?<=[.!?;])\s+", line))
    return [part for part in parts if part]
