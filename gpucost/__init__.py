"""What it costs to train or serve a model, on whose GPUs, and whether to rent, reserve or buy.

Importing this package reads no file and opens no database: every public name is loaded on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that holds it
_PUBLIC = {
    "GpuCostError": "gpucost.errors",
    "estimate": "gpucost.api.questions",
    "audit": "gpucost.api.questions",
    "inference": "gpucost.api.questions",
    "tco": "gpucost.api.questions",
    "mix": "gpucost.api.questions",
    "fit": "gpucost.api.questions",
    "throughput": "gpucost.api.questions",
    "roofline": "gpucost.api.questions",
    "choose": "gpucost.api.questions",
    "commit": "gpucost.api.questions",
    "reconcile": "gpucost.api.questions",
    "export": "gpucost.api.reconcile",
    "compare": "gpucost.api.questions",
    "sweep": "gpucost.api.sweep",
    "report": "gpucost.api.report",
    "open_catalog": "gpucost.catalog",
    "Catalog": "gpucost.catalog",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpucost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
