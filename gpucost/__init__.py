"""What it costs to train or serve a model, on whose GPUs, and whether to rent, reserve or buy.

Importing this package reads no file and opens no database: every public name is loaded on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# question -> module that holds its function
QUESTION_MODULES = {
    "estimate": "gpucost.ask.estimate",
    "inference": "gpucost.ask.inference",
    "tco": "gpucost.ask.tco",
    "mix": "gpucost.ask.tco",
    "fit": "gpucost.ask.fit",
    "throughput": "gpucost.ask.speed",
    "roofline": "gpucost.ask.speed",
    "choose": "gpucost.library.choose",
    "compare": "gpucost.library.compare",
    "audit": "gpucost.ask.audit",
    "reconcile": "gpucost.ask.invoices",
    "commit": "gpucost.ask.invoices",
}
_PUBLIC = {
    **QUESTION_MODULES,
    "GpuCostError": "gpucost.errors",
    "export": "gpucost.ask.invoices",
    "sweep": "gpucost.library.sweep",
    "report": "gpucost.library.report",
    "open_catalog": "gpucost.catalog",
    "Catalog": "gpucost.catalog",
}

__all__ = ["__version__", *_PUBLIC]


_WITHIN = {"relations": "gpucost.ask.relations"}  # what a room asks of one above it


def __getattr__(name: str) -> Any:
    if name in _WITHIN:
        return getattr(import_module(_WITHIN[name]), name)
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpucost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
