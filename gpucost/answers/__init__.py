"""The typed answer of every question, from which JSON schemas, the columns of CSV and the renderers' keys follow.

One module per room: what an answer holds, key by key. Producers are annotated with these types and renderers take
them, so that the type checker proves every key on both sides; a test holds real answers against their schemas.

A type in `Annotated[Row, float]` is a row that holds further keys beside its own, each of that type.
"""

from importlib import import_module

from gpucost.gate import beside

SCHEMA_VERSION = "2"  # of every JSON answer: a key that changes its meaning or its name raises it

# kind of answer -> the module of this package, its type there, and the key of its main list: what CSV and frames hold
KINDS = {kind: (module, type_, main) for kind, module, type_, main, _ in beside(__file__, "kinds")[1:]}
PRICED = frozenset(kind for kind, *_, priced in beside(__file__, "kinds")[1:] if priced)  # whose figures are prices


def answer_type(kind: str) -> type:
    """Return the type of a kind of answer.

    >>> answer_type("tco").__name__
    'Tco'
    """
    module, name, _ = KINDS[kind]
    type_: type = getattr(import_module(f"gpucost.answers.{module}"), name)
    return type_


def main_list(kind: str) -> str:
    """Return the key of an answer's main list."""
    return KINDS[kind][2] if kind in KINDS else "rows"


__all__ = ["KINDS", "PRICED", "SCHEMA_VERSION", "answer_type", "main_list"]
