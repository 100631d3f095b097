"""Resolving what a person typed: accelerators, systems, models, regions, and filters on rows."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from gpucost import gate
from gpucost.errors import AmbiguousNameError, UnknownNameError, UsageError, nearest
from gpucost.gate import beside
from gpucost.options import OPTIONS
from gpucost.types import Architecture

# --- Accelerators, systems and models that a person may mean.
#
# A name is a set of tokens; it means every record whose own tokens include all of them, in any order. SXM2 to SXM6
# are one form factor here, and a memory size may be written 80gb, 80 GB or 80GiB.

_MEMORY = re.compile(r"\b(\d+)[\s_-]*(?:gib|gb|g)\b")
_SXM = re.compile(r"\bsxm[2-6]?(?![a-z])")
_SEPARATORS = re.compile(r"(?:[^\w.+]|_)+")
_LONGEST_WORD = 24  # that a name without separators is cut into: bounds the work on a long one
# words of makers and sellers that tell no chip from another
_NOISE = frozenset(
    ("gpu", "gpus", "tensor", "core", "nvidia", "amd", "google", "intel", "aws", "cloud", "the", "generation")
)
# words of a model's name that change no dimension: tuning, quantisation, length of context, date of release
_NO_SHAPE = re.compile(
    r"(?<![^-_: ])(instruct|chat|base|hf|it|pt|think|thinking|preview|reasoning|rl|sft|dpo|python|dynamic|terminus"
    r"|latest|unsloth|qat|gguf|ggml|mlx|exl2|fp8|fp4|bf16|fp16|awq|gptq|bnb|[48]bit|int[48]|nvfp4|mxfp4|w\d+a\d+"
    r"|i?q\d([-_](\d|k([-_][sml])?|[sml]))?|\d{1,3}k|1m|v0\.?\d|v1([._]\d)?|[012]\d{3}|(0[1-9]|1[0-2])[-_]20\d\d)"
    r"(?![^-_: ])"
)
# who publishes a model, as some write it before the name without a slash
_PUBLISHERS = re.compile(r"^(meta-|c4ai-|nvidia-|ai21-|xai-)")
LONGEST_NAME = 120
_STRANGE = re.compile(r"[^\w\s.,+:/()@&-]|^-")  # a name with these means an id that has them too
_LETTER = re.compile(r"[^\W\d_]")
_FAMILY = re.compile(r"[a-z]{3,}")
_GENERATION = re.compile(r"(?<![a-z])[a-z]{3,}-?\d+(\.\d+)?(?![a-z0-9.])")  # qwen3.5 of qwen3.5-27b
_SIZED = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)b(?![a-z0-9])")
_SHORT_XL = re.compile(r"(?<=\d)xl$")
_VARIANT = re.compile(r"\d+w")  # a power-limited variant is meant only when its power is named


def tokens_of(name: str) -> frozenset[str]:
    """Split a hardware name into comparable tokens.

    >>> sorted(tokens_of("NVIDIA H100 SXM5 80 GB")) == sorted(tokens_of("h100-80gb-sxm"))
    True
    """
    return frozenset(_spelled(name)) - _NOISE


def _machine_tokens(name: str) -> frozenset[str]:
    """Split a machine's name into comparable tokens, those between dots too; xl is xlarge and mega is megagpu.

    >>> sorted(_machine_tokens("p5.48xl")), sorted(_machine_tokens("a3-megagpu-8g"))
    (['48xlarge', 'p5'], ['8gb', 'a3', 'mega'])
    """
    parts = frozenset(part for token in tokens_of(name) for part in token.split(".") if part)
    return frozenset(_SHORT_XL.sub("xlarge", part.removesuffix("gpu") or part) for part in parts) - _NOISE


def folded(name: str) -> str:
    """Return a name without the case of its letters and the ways in which Unicode may write them."""
    if name.isascii():
        return name.lower()
    import unicodedata

    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def squeezed(name: str) -> str:
    """Reduce a name to its letters, digits and decimal points: `Llama 3.1-8B` is `llama-3.1-8b`, 1.1b is not 11b."""
    return re.sub(r"(?<!\d)\.|\.(?!\d)|[^\w.]|_", "", folded(name))


def model_stem(name: str) -> str:
    """Drop the publisher and the words, such as -Instruct, that change no dimension.

    >>> model_stem("meta-llama/Meta-Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    >>> model_stem("Olmo-3-1125-32B"), model_stem("llama3:8b-instruct-q4_K_M")
    ('olmo-3-32b', 'llama3-8b')
    """
    text = _PUBLISHERS.sub("", name.strip().lower().rsplit("/", 1)[-1])
    stem = re.sub(r"[-_: ]+", "-", _NO_SHAPE.sub("", text)).strip("-")
    return stem or text


class NameIndex(Struct, frozen=True, dict=True):
    """The names of one kind of record: canonical ids, aliases, and the tokens that each id answers to."""

    kind: str
    rows: Mapping[str, Mapping[str, Any]]  # id -> its row
    aliases: Mapping[str, str]  # other name -> id

    @cached_property
    def tokens(self) -> dict[str, frozenset[str]]:
        """The tokens of each id: accelerators answer to much, systems to id, name and product, models to their id."""
        if self.kind == "accelerator":
            return {id_: accelerator_tokens(row) for id_, row in self.rows.items()}
        if self.kind == "model":
            return {id_: tokens_of(id_) for id_ in self.rows}
        return {
            id_: _machine_tokens(" ".join(str(row[column] or "") for column in ("id", "name", "instance_type")))
            for id_, row in self.rows.items()
        }

    @property
    def _tokens_of(self) -> Callable[[str], frozenset[str]]:
        return _machine_tokens if self.kind == "system" else tokens_of

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        return self._spelled_as(folded)

    @cached_property
    def _squeezed(self) -> dict[str, list[str]]:
        return self._spelled_as(squeezed)

    def _spelled_as(self, spelled: Callable[[str], str]) -> dict[str, list[str]]:
        """Return the ids of each spelling: every id that has it, else that of the last alias."""
        ids: dict[str, list[str]] = {}
        for id_ in self.rows:
            ids.setdefault(spelled(id_), []).append(id_)
        spellings = {spelled(alias): [id_] for alias, id_ in self.aliases.items()} | ids
        # a name of signs alone is squeezed to nothing, which no name may mean
        spellings.pop("", None)
        return spellings

    @cached_property
    def _known_tokens(self) -> dict[str, str]:
        """The tokens of all names, by how they are squeezed."""
        return {squeezed(token): token for token in sorted(_NOISE.union(*self.tokens.values())) if squeezed(token)}

    def _stem(self, name: str) -> str:
        return model_stem(name) if self.kind == "model" else name

    def exact(self, name: str) -> str | None:
        """Return the one id that a name or alias spells out, whatever its case and separators."""
        ids = self._spelled_out(name)
        return ids[0] if len(ids) == 1 else None

    def _spelled_out(self, name: str) -> list[str]:
        """Return the ids that a name spells out: by every sign of it, else but for case, else but for separators."""
        if name in self.rows:
            return [name]
        if len(name) > LONGEST_NAME:
            return []
        unpublished = _PUBLISHERS.sub("", name.strip().lower().rsplit("/", 1)[-1]) if self.kind == "model" else name
        # from the name as it stands to what is left of it: the nearest spelling wins
        for text in (name.strip(), unpublished, self._stem(name)):
            if ids := self._folded.get(folded(text)):
                return ids
            if not _STRANGE.search(name) and (ids := self._squeezed.get(squeezed(text))):
                return ids
        return []

    def matches(self, name: str) -> list[str]:
        """Return the ids that a name may mean: those that it spells out, else every match of its tokens."""
        if exact := self._spelled_out(name):
            return exact
        if len(name) > LONGEST_NAME or _STRANGE.search(name):
            return []
        if not _LETTER.search(name):  # a number alone means no chip, however many have it in their names
            return []
        text = self._stem(name)
        tokens = self._tokens_of(text)
        ids = self._containing(tokens)
        sizes = [size for token in tokens if (size := _memory_of(token))]
        if not ids and len(sizes) == 1:
            # a memory size that is off by less than 7 %: 192 GB as marketed is 180 GB as sold
            without_size = frozenset(token for token in tokens if _memory_of(token) is None)
            ids = [
                id_
                for id_ in self._containing(without_size)
                if any(abs(size / sizes[0] - 1) < 0.07 for token in self.tokens[id_] if (size := _memory_of(token)))
            ]
        if not ids:  # written as one word: rtx4090
            parts = _segments(squeezed(" ".join(_spelled(text))), self._known_tokens)
            ids = self._containing(frozenset(parts) - _NOISE) if parts else []
        return ids

    def one(self, name: str) -> str:
        """Return the one id that a name means, or raise with the candidates or the nearest names."""
        ids = self.matches(name)
        if len(ids) > 1:
            raise AmbiguousNameError(self.kind, name, ids)
        return ids[0] if ids else self.unknown(name)

    def several(self, name: str) -> list[str]:
        """Return every id that a name means, at least one."""
        return self.matches(name) or [self.unknown(name)]

    def nearest(self, name: str) -> list[str]:
        """Return up to three known names that look like a name: of the same family first, and of a size like it."""
        stem = self._stem(name[:LONGEST_NAME])
        if self.kind != "model":
            return [id_ for _, id_ in sorted(self.resembling(stem))[:3]]
        import difflib

        size = _size_of(stem)

        def distance(id_: str) -> tuple[float, float, str]:
            away = abs(math.log((_size_of(id_) or 1e3) / size)) if size else 0.0  # one without a size is far off
            return away, -difflib.SequenceMatcher(None, stem, id_).ratio(), id_

        # of the same generation, else of the same family; then what is spelled like the name
        kin: list[str] = []
        for sign in (_GENERATION, _FAMILY):
            family = sign.match(stem)
            kin = [id_ for id_ in self.tokens if family and squeezed(id_).startswith(squeezed(family[0]))]
            if kin:
                break
        near = nearest(squeezed(stem), self._squeezed, 6, 0.5)
        alike = [id_ for key in near for id_ in self._squeezed[key]]
        return list(dict.fromkeys(sorted(kin, key=distance)[:3] + alike))[:3]

    def resembling(self, name: str) -> Iterator[tuple[tuple[float, float], str]]:
        """Yield each id of hardware that looks like a name, with how far it is: in edits, then in what they share.

        Each token of the name is held against the nearest one of the id, and the whole name against every spelling.
        """
        import difflib

        whole, tokens = squeezed(name[:LONGEST_NAME]), self._tokens_of(name[:LONGEST_NAME])
        spellings: dict[str, list[str]] = {}
        for spelling, ids in self._squeezed.items():
            for id_ in ids:
                spellings.setdefault(id_, []).append(spelling)
        for id_, known in self.tokens.items():
            by_token = sum(min((edits(token, other) for other in known), default=len(token)) for token in tokens)
            away = min(by_token or len(whole), *(edits(whole, spelling) for spelling in spellings.get(id_, [id_])))
            if away <= 2 or away < len(whole) / 2:  # a slip or two, or less than half of the name
                yield (away, -difflib.SequenceMatcher(None, whole, squeezed(id_)).ratio()), id_

    def unknown(self, name: str, near: Callable[[str], Sequence[str]] | None = None) -> str:
        """Raise: a name resolves to nothing; `near` finds what else it may mean where more than this index is asked."""
        command = {"accelerator": "gpus", "system": "systems", "model": "models"}.get(self.kind, "")
        hint = f"`gpucost {command}` lists them." if command else ""
        if self.kind == "model":
            hint += " The path of a model's config.json works too."
        reason = why_not(self.kind, name)
        shortened = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        raise UnknownNameError(
            self.kind, shortened, () if reason else lambda: (near or self.nearest)(name), reason or hint
        )

    def _containing(self, tokens_of_name: frozenset[str]) -> list[str]:
        if not tokens_of_name:
            return []
        ids = [id_ for id_, tokens in self.tokens.items() if tokens_of_name <= tokens]
        # the id that says no more than the name, else all but power-limited variants
        exact = [id_ for id_ in ids if self._tokens_of(id_) <= tokens_of_name]
        plain = [
            id_ for id_ in ids if not any(_VARIANT.fullmatch(token) for token in self.tokens[id_] - tokens_of_name)
        ]
        return (exact if len(exact) == 1 else plain) or ids


def edits(word: str, other: str) -> int:
    """Return how many letters are to be left out or put in, or change places, until a word is another.

    >>> edits("h1000", "h100"), edits("a1000", "a4000"), edits("5900", "5090"), edits("", "l4")
    (1, 2, 1, 2)
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, match in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + 2 * (letter != match))
            if i > 1 and j > 1 and letter == other[j - 2] and match == word[i - 2]:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]


def _size_of(text: str) -> float:
    """Return the billions of parameters that a name states; 0 where it states none."""
    size = _SIZED.search(text)
    return float(size[1]) if size else 0.0


def _memory_of(token: str) -> float | None:
    match = _MEMORY.fullmatch(token)
    return float(match[1]) if match else None


def near(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three of the known names that look like a name, whatever the case."""
    lowered = {item.lower(): item for item in names}
    return [lowered[item] for item in nearest(name.lower(), lowered, 3, 0.5)]


def _spelled(text: str) -> list[str]:
    lowered = _SXM.sub("sxm ", _MEMORY.sub(r"\1gb", folded(text))).replace("pci-e", "pcie")
    return [token for token in _SEPARATORS.split(lowered) if token]


def _segments(text: str, tokens: Mapping[str, str]) -> list[str]:
    """Cut a string without separators into the fewest known tokens, or return an empty list.

    >>> _segments("rtx4090", {"rtx": "rtx", "4090": "4090", "40": "40"})
    ['rtx', '4090']
    """
    best: list[list[str] | None] = [[], *([None] * len(text))]
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - _LONGEST_WORD), end):
            # best[end] is the shortest cut of the text up to there
            before, token, shortest = best[start], tokens.get(text[start:end]), best[end]
            if before is not None and token is not None and (shortest is None or len(before) + 1 < len(shortest)):
                best[end] = [*before, token]
    return best[len(text)] or []


def accelerator_tokens(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the tokens that an accelerator answers to: id, name, form factor, memory as marketed and its type."""
    id_, form = str(row["id"]), str(row["form_factor"] or "")
    tokens = tokens_of(id_) | tokens_of(str(row["name"]).replace("(", " ").replace(")", " "))
    if "nvl" not in tokens:  # an NVL card is a PCIe board, yet "PCIe" never means it
        tokens |= tokens_of(form)
    tokens |= tokens_of(str(row["memory_type"] or "")) | tokens_of(str(row["family"] or ""))
    if row["memory_marketed_gb"]:
        tokens |= {f"{row['memory_marketed_gb']:g}gb"}
    return tokens


def index(kind: str, rows: Sequence[Mapping[str, Any]], aliases: Mapping[str, str]) -> NameIndex:
    """Index the rows of one kind of record; systems also by the provider's product."""
    products = {str(row["instance_type"]): str(row["id"]) for row in rows if row.get("instance_type")}
    return NameIndex(kind, {str(row["id"]): row for row in rows}, {**products, **aliases})


# --- Names that people type and that no row can answer: each with the sentence that says why.

_SENTENCES = [(kind, re.compile(sign), why) for kind, sign, why in beside(__file__, "unlisted")[1:]]


def why_not(kind: str, name: str) -> str:
    """Return why a well-known name has no row; empty for any other name.

    >>> why_not("accelerator", "Groq LPU")[:16]
    'It keeps weights'
    """
    text = name.strip().lower().rsplit("/", 1)[-1]
    return next((sentence for of, sign, sentence in _SENTENCES if of == kind and sign.match(text)), "")


# --- Architectures that are no preset: read from a file, or synthesised for a bare size.


def from_file_or_size(name: str, index: NameIndex, presets: Callable[[], list[Architecture]]) -> Architecture | None:
    """Return the architecture of a config.json or of a bare size without an alias; None for any other name."""
    if not name.strip():
        raise UsageError("the model's name is empty. Name a preset, a size such as 8b, or a config.json.")
    if name in index.rows and name.lower().endswith(".json"):
        return None
    path = gate.expanded(name)
    is_file = name.lower().endswith(".json")
    try:  # a folder with a configuration is one too
        config_names = ("config.json", "params.json")
        is_file = is_file or (gate.may_look_at(path) and any((path / file).is_file() for file in config_names))
    except (OSError, ValueError):  # a name that no file can have
        pass
    if is_file:
        from gpucost.architectures.reader import read_config

        return read_config(path)
    if not name[:1].isdigit() or index.exact(name):
        return None
    from gpucost.architectures.synthesise import size_of, synthesise

    size = size_of(name)
    if size is None:
        return None
    return synthesise(name, size, presets())


# --- Filters on offers and rows: what a person typed, as the set of values that a column may have.

Names = str | Sequence[str] | None
Row = TypeVar("Row", bound=Mapping[str, Any])


def listed(value: str | Sequence[str]) -> list[str]:
    """Split one name, several names, or a comma-separated list.

    >>> listed("aws, gcp"), listed(["aws", "gcp"])
    (['aws', 'gcp'], ['aws', 'gcp'])
    """
    parts = value.split(",") if isinstance(value, str) else [part for text in value for part in text.split(",")]
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise UsageError("the name to filter by is empty. Leave the filter out, or give a name.")
    return names


def admits(filters: Mapping[str, set[str] | None], row: Mapping[str, Any]) -> bool:
    """Tell whether a row passes a filter; a row with several candidate GPUs passes when one of them does."""
    return all(
        allowed is None or not allowed.isdisjoint(str(row[field]).split("|")) for field, allowed in filters.items()
    )


def condition(filters: Mapping[str, set[str] | None]) -> tuple[str, dict[str, list[str]]]:
    """Return what `admits` tests, as an SQL condition on a table's columns with its parameters."""
    parameters = {field: sorted(allowed) for field, allowed in filters.items() if allowed is not None}
    tests = [
        f"coalesce(list_has_any(string_split(CAST({field} AS VARCHAR), '|'), ${field}), false)" for field in parameters
    ]
    return " AND ".join(tests) or "true", parameters


def chosen(rows: Sequence[Row], column: str, names: str | None, others: Iterable[str] = ()) -> list[Row]:
    """Keep the rows whose column equals one of the wanted values, whatever the case; an unknown value is an error.

    So is one of `others`, which rows that were not asked for have.
    """
    if names is None:
        return list(rows)
    values = {str(row[column]) for row in rows if row[column]}
    allowed = matching(column, names, {*values, *others})
    matches = [row for row in rows if row[column] in allowed]
    if rows and not matches:
        listed_values = ", ".join(sorted(values)[:12]) or "none that is known"
        raise UsageError(
            f"--{column} {names}: no matching row has it; they have: {listed_values}. Leave one of the two out."
        )
    return matches


def matching(column: str, names: str | Sequence[str], known: Iterable[str], others: Iterable[str] = ()) -> set[str]:
    """Return the known values that the wanted names mean, whatever the case; an unknown name is an error."""
    known = set(known)
    values: set[str] = set()
    for name in listed(names):
        matches = {item for item in known if item.lower() == name.lower()}
        if not matches:
            examples = ", ".join(sorted(known)[:12]) + (" …" if len(known) > 12 else "")
            raise UnknownNameError(column, name, near(name, {*known, *others}), f"Known: {examples}." if known else "")
        values |= matches
    return values


def options(names: Names) -> set[str] | None:
    """Return the purchase options that names mean; None is any."""
    if names is None:
        return None
    known_options = set()
    for name in listed(names):
        option = name.lower().replace("-", "_").replace(" ", "_")
        if option not in OPTIONS:
            raise UnknownNameError("option", name, near(option, OPTIONS), f"Options: {', '.join(OPTIONS)}.")
        known_options.add(option)
    return known_options


# --- Regions as people mean them: a continent, a country or a place, as the regions that offers name.

_RegionRow = Mapping[str, Any]


class Regions:
    """Groups of regions, kept as data, over the regions whose countries are on record."""

    def __init__(self, groups: Iterable[_RegionRow], regions: Iterable[_RegionRow]) -> None:
        self._in_country: dict[str, set[str]] = {}
        for row in regions:
            if row["country"]:
                self._in_country.setdefault(str(row["country"]).lower(), set()).add(str(row["region"]))
        self._groups: dict[str, set[str]] = {}
        for row in groups:
            member = str(row["member"])
            regions_of_member = self._in_country.get(member.lower(), set()) if row["kind"] == "country" else {member}
            self._groups.setdefault(str(row["name"]), set()).update(regions_of_member)

    @property
    def names(self) -> list[str]:
        """Return what groups are called: continents, countries with their codes, places."""
        return sorted({*self._groups, *self._in_country})

    def members(self, name: str) -> set[str] | None:
        """Return the regions that a name means, whatever its case; None where it names no group.

        >>> known = [{"country": "DE", "region": "eu-central-1"}, {"country": "US", "region": "us-east-1"}]
        >>> groups = [{"name": "europe", "kind": "country", "member": "DE"}]
        >>> Regions(groups, known).members("Europe"), Regions(groups, known).members("de")
        ({'eu-central-1'}, {'eu-central-1'})
        """
        group = " ".join(name.strip().lower().replace("_", " ").split())
        return self._groups.get(group, self._in_country.get(group))

    def grouped(self, names: Iterable[str]) -> bool:
        """Tell whether any of some names means a group."""
        return any(self.members(name) is not None for name in names)

    def around(self, name: str, sold: Iterable[str]) -> tuple[str, int] | None:
        """Return the narrowest wider group in which something is sold, and how much of `sold` lies in it."""
        inner, places = self.members(name) or set(), list(sold)
        core = {region for regions in self._in_country.values() if regions & inner for region in regions}
        wider = [
            (len(regions), group, count)
            for group, regions in self._groups.items()
            if core and regions > core and (count := sum(place in regions for place in places))
        ]
        return min(wider)[1:] if wider else None
