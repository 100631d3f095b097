"""What it costs to train or serve a model, on whose GPUs, and whether to rent, reserve or buy.

Importing this package reads no file and opens no database: every public name is loaded on first use.
"""

from importlib import import_module

TYPE_CHECKING = False  # typing takes longer than all else here, and Ctrl-C before the program listens is a traceback
if TYPE_CHECKING:  # what editors and type checkers see of the names below
    from typing import Any

    from gpucost.ask.audit import audit as audit
    from gpucost.ask.catalog import open_catalog as open_catalog
    from gpucost.ask.estimate import estimate as estimate
    from gpucost.ask.fit import fit as fit
    from gpucost.ask.inference import inference as inference
    from gpucost.ask.invoices import commit as commit
    from gpucost.ask.invoices import export as export
    from gpucost.ask.invoices import reconcile as reconcile
    from gpucost.ask.speed import roofline as roofline
    from gpucost.ask.speed import throughput as throughput
    from gpucost.ask.tco import mix as mix
    from gpucost.ask.tco import tco as tco
    from gpucost.catalog import Catalog as Catalog
    from gpucost.errors import GpuCostError as GpuCostError
    from gpucost.library.choose import choose as choose
    from gpucost.library.compare import compare as compare
    from gpucost.library.frames import gpus as gpus
    from gpucost.library.frames import models as models
    from gpucost.library.frames import price_index as price_index
    from gpucost.library.frames import prices as prices
    from gpucost.library.frames import sources as sources
    from gpucost.library.frames import sql as sql
    from gpucost.library.report import report as report
    from gpucost.library.sweep import sweep as sweep

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
    "open_catalog": "gpucost.ask.catalog",
    "Catalog": "gpucost.catalog",
    **dict.fromkeys(("prices", "gpus", "models", "sources", "price_index", "sql"), "gpucost.library.frames"),
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> "Any":
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpucost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
