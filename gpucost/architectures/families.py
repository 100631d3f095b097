"""The families of models: a row of families.csv each, with the rule that reads layers unlike a plain decoder's.

A row names the model types, the traits of `Family` that differ from Llama's, and for `blocks`, `extra` and `per_layer`
a rule of this room (module.function) or a sum such as 2 * hidden + ffn. A family that is not listed is read by its keys
as a plain decoder, and a warning says so.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

from gpucost.architectures.decoder import Decoder, Family
from gpucost.gate import beside

LLAMA = Family()


def rule(text: str) -> Callable[[Decoder], Any] | None:
    """Return the rule of a cell: a function whose module is imported when it is asked, a sum of dimensions, or none."""
    module, _, name = text.partition(".")
    if name:
        return lambda d: getattr(import_module(f"gpucost.architectures.{module}"), name)(d)
    terms = [term.split("*") for term in text.replace(" ", "").split("+")]
    return (lambda d: sum(prod(_factor(d, word) for word in term) for term in terms)) if text else None


def _factor(d: Decoder, word: str) -> int:
    return int(word) if word.isdigit() else int(getattr(d, word))


def _trait(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or value == "no":
        return name, not sign
    return name, int(value) if value.lstrip("-").isdigit() else value


@cache
def families() -> dict[str, Family]:
    """Return the family of every known model type."""
    found: dict[str, Family] = {}
    for model_types, traits, *rules in beside(__file__, "families")[1:]:
        blocks, extra, per_layer = map(rule, rules)
        made = Family(**dict(map(_trait, traits.split())), blocks=blocks, extra=extra, per_layer=per_layer)
        found |= dict.fromkeys(model_types.split(), made)
    return found


def family_of(kind: str, architectures: list[str]) -> Family | None:
    """Return the rule of a model type, or None where it is not known; Grok gives itself away by its class alone."""
    if any("grok" in name.lower() for name in architectures):
        kind = "grok"
    return families().get(kind) or families().get(kind.removesuffix("_text"))
