"""Resolving names: which accelerators, systems and models a person may mean by what they typed.

A name is a set of tokens; it means every record whose own tokens include all of them, in any order. SXM2 to SXM6
are one form factor here, and a memory size may be written 80gb, 80 GB or 80GiB.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpucost.errors import AmbiguousNameError, UnknownNameError

_MEMORY = re.compile(r"\b(\d+)[\s_-]*(?:gib|gb|g)\b")
_SXM = re.compile(r"\bsxm[2-6]?(?![a-z])")
_SEPARATORS = re.compile(r"[^a-z0-9.+]+")
_LONGEST_WORD = 24
_NOISE = frozenset(
    ("gpu", "gpus", "tensor", "core", "nvidia", "amd", "google", "intel", "aws", "cloud", "the", "generation")
)
_MODEL_SUFFIXES = re.compile(
    r"([-_ ](instruct|chat|base|hf|it|pt|thinking|preview"
    r"|fp8|bf16|fp16|awq|gptq|int4|int8|nvfp4|mxfp4|gguf|terminus|v0\.\d|[02]\d{3}))+$"
)
LONGEST_NAME = 120
_STRANGE = re.compile(r"[^\w\s.,+:/()@&-]|^-")  # no name of a chip or a model has these
_LETTER = re.compile(r"[a-zA-Z]")
_VARIANT = re.compile(r"\d+w")  # a power-limited variant is meant only when its power is named


def tokens_of(name: str) -> frozenset[str]:
    """Split a hardware name into comparable tokens.

    >>> sorted(tokens_of("NVIDIA H100 SXM5 80 GB")) == sorted(tokens_of("h100-80gb-sxm"))
    True
    """
    text = _MEMORY.sub(r"\1gb", name.lower())
    text = _SXM.sub("sxm ", text).replace("pci-e", "pcie")
    return frozenset(token for token in _SEPARATORS.split(text) if token and token not in _NOISE)


def squeezed(name: str) -> str:
    """Reduce a name to its letters, digits and decimal points: `Llama 3.1-8B` is `llama-3.1-8b`, 1.1b is not 11b."""
    return re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9.]", "", name.lower())


def model_stem(name: str) -> str:
    """Drop the publisher, a `meta-` prefix and suffixes such as -Instruct, which change no dimension.

    >>> model_stem("meta-llama/Meta-Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    """
    text = name.strip().lower().rsplit("/", 1)[-1]
    return _MODEL_SUFFIXES.sub("", text.removeprefix("meta-"))


@dataclass(frozen=True)
class NameIndex:
    """The names of one kind of record: canonical ids, aliases, and the tokens that each id answers to."""

    kind: str
    tokens: Mapping[str, frozenset[str]]  # id -> tokens
    aliases: Mapping[str, str]  # other name -> id

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        others = {squeezed(alias): id_ for alias, id_ in self.aliases.items()}
        return others | {squeezed(id_): id_ for id_ in self.tokens}

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset().union(*self.tokens.values())

    def _stem(self, name: str) -> str:
        return model_stem(name) if self.kind == "model" else name

    def exact(self, name: str) -> str | None:
        """Return the id that a name or alias spells out, whatever its case and separators."""
        spellings = (squeezed(name), squeezed(self._stem(name)))
        return next((self._squeezed[spelling] for spelling in spellings if spelling in self._squeezed), None)

    def matches(self, name: str) -> list[str]:
        """Return the ids that a name may mean: one for an exact name or alias, else every match of its tokens."""
        if len(name) > LONGEST_NAME or _STRANGE.search(name):
            return []
        if exact := self.exact(name):
            return [exact]
        if not _LETTER.search(name):
            return []
        text = self._stem(name)
        wanted = tokens_of(text)
        found = self._containing(wanted) or self._containing_about(wanted)
        if not found:
            parts = _segments(squeezed(" ".join(_spelled(text))), self._vocabulary | _NOISE)
            found = self._containing(frozenset(parts) - _NOISE) if parts else []
        return found

    def one(self, name: str) -> str:
        """Return the one id that a name means, or raise with the candidates or the nearest names."""
        found = self.matches(name)
        if len(found) > 1:
            raise AmbiguousNameError(self.kind, name, found)
        return found[0] if found else self.unknown(name)

    def several(self, name: str) -> list[str]:
        """Return every id that a name means, at least one."""
        return self.matches(name) or [self.unknown(name)]

    def nearest(self, name: str) -> list[str]:
        """Return up to three known names that look like a name."""
        import difflib

        text = squeezed(self._stem(name[:LONGEST_NAME]))
        near = difflib.get_close_matches(text, self._squeezed, n=6, cutoff=0.5)
        return list(dict.fromkeys(self._squeezed[key] for key in near))[:3]

    def unknown(self, name: str) -> str:
        """Raise: a name resolves to nothing."""
        command = {"accelerator": "gpus", "system": "systems", "model": "models"}.get(self.kind, "")
        hint = f"`gpucost {command}` lists them." if command else ""
        if self.kind == "model":
            hint += " The path of a model's config.json works too."
        shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        raise UnknownNameError(self.kind, shown, self.nearest(name), hint)

    def _containing_about(self, wanted: frozenset[str]) -> list[str]:
        """Match with a memory size that is off by less than 7 %: 192 GB as marketed is 180 GB as sold."""
        sizes = [size for token in wanted if (size := _memory_of(token))]
        if len(sizes) != 1:
            return []
        rest = frozenset(token for token in wanted if _memory_of(token) is None)
        return [
            id_ for id_ in self._containing(rest)
            if any(abs(size / sizes[0] - 1) < 0.07 for token in self.tokens[id_] if (size := _memory_of(token)))
        ]  # fmt: skip

    def _containing(self, wanted: frozenset[str]) -> list[str]:
        if not wanted:
            return []
        found = [id_ for id_, tokens in self.tokens.items() if wanted <= tokens]
        whole = [id_ for id_ in found if tokens_of(id_) <= wanted]
        plain = [id_ for id_ in found if not any(_VARIANT.fullmatch(token) for token in self.tokens[id_] - wanted)]
        return (whole if len(whole) == 1 else plain) or found


def _memory_of(token: str) -> float | None:
    match = _MEMORY.fullmatch(token)
    return float(match[1]) if match else None


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known names that look like a name, whatever the case."""
    import difflib

    lowered = {item.lower(): item for item in known}
    return [lowered[item] for item in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]


def _spelled(text: str) -> list[str]:
    lowered = _SXM.sub("sxm ", _MEMORY.sub(r"\1gb", text.lower()))
    return [token for token in _SEPARATORS.split(lowered) if token]


def _segments(text: str, vocabulary: Iterable[str]) -> list[str]:
    """Cut a string without separators into the fewest known tokens, or return an empty list.

    >>> _segments("rtx4090", {"rtx", "4090", "40"})
    ['rtx', '4090']
    """
    words = {squeezed(word): word for word in vocabulary if squeezed(word)}
    best: list[list[str] | None] = [[], *([None] * len(text))]
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - _LONGEST_WORD), end):
            before = best[start]
            word = words.get(text[start:end])
            if (
                before is not None
                and word is not None
                and (best[end] is None or len(before) + 1 < len(best[end] or ()))
            ):
                best[end] = [*before, word]
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


def index_accelerators(rows: Sequence[Mapping[str, Any]], aliases: Mapping[str, str]) -> NameIndex:
    """Index accelerators by their tokens."""
    return NameIndex("accelerator", {str(row["id"]): accelerator_tokens(row) for row in rows}, aliases)


def index_systems(rows: Sequence[Mapping[str, Any]], aliases: Mapping[str, str]) -> NameIndex:
    """Index systems by id, name and the provider's instance type."""
    instances = {str(row["instance_type"]): str(row["id"]) for row in rows if row["instance_type"]}
    tokens = {str(row["id"]): tokens_of(str(row["id"])) | tokens_of(str(row["name"])) for row in rows}
    return NameIndex("system", tokens, {**instances, **aliases})


def index_models(rows: Sequence[Mapping[str, Any]], aliases: Mapping[str, str]) -> NameIndex:
    """Index models by id."""
    return NameIndex("model", {str(row["id"]): tokens_of(str(row["id"])) for row in rows}, aliases)
