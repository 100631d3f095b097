"""What it costs to train or serve a model, on whose GPUs, and whether to rent, reserve or buy.

Importing this package reads no file and opens no database: every public name is loaded on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that holds it
_PUBLIC = {
    "GpuCostError": "gpucost.errors",
    "estimate": "gpucost.api.estimate",
    "audit": "gpucost.api.audit",
    "inference": "gpucost.api.inference",
    "tco": "gpucost.api.tco",
    "mix": "gpucost.api.mix",
    "fit": "gpucost.api.fit",
    "throughput": "gpucost.api.throughput",
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
