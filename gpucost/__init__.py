"""What it costs to train or serve a model, on whose GPUs, and whether to rent, reserve or buy.

Importing this package reads no file and opens no database: every public name is loaded on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that holds it
_ASKED = (
    "estimate", "audit", "inference", "tco", "mix", "fit", "throughput", "roofline", "choose", "commit", "reconcile",
    "compare",
)  # fmt: skip
_PUBLIC = dict.fromkeys(_ASKED, "gpucost.api.questions") | {
    "GpuCostError": "gpucost.errors", "export": "gpucost.api.reconcile", "sweep": "gpucost.api.sweep",
    "report": "gpucost.api.report", "open_catalog": "gpucost.catalog", "Catalog": "gpucost.catalog",
}  # fmt: skip

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpucost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
