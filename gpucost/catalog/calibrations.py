"""The calibrations that a catalog holds: the shipped tables, under a user's own where there are any."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpucost.errors import UsageError
from gpucost.physics.calibration import Calibration, Scheme
from gpucost.physics.serving.calibration import SCHEME as SERVING
from gpucost.physics.training.calibration import SCHEME as TRAINING

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog


def loader(scheme: Scheme, table: str) -> "Callable[[Catalog], Calibration]":
    """Return the reader of one table, which reads it once per catalog."""

    def load(catalog: "Catalog") -> Calibration:
        if table not in catalog.derived:
            catalog.derived[table] = scheme.load(catalog.rows(table))
        found: Calibration = catalog.derived[table]
        return found

    return load


training_calibration = loader(TRAINING, "calibration")
serving_calibration = loader(SERVING, "serving_calibration")
_KINDS = {"training": (TRAINING, "calibration"), "serving": (SERVING, "serving_calibration")}


def use(catalog: "Catalog", kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Lay a calibration table over the catalog's own, for this catalog alone."""
    scheme, table = _KINDS[kind]
    try:
        found = scheme.load([*catalog.rows(table), *rows])
    except ValueError:
        raise UsageError(f"the calibration of {kind} holds a value that is no number.") from None
    unknown = sorted((set(found.values) - set(scheme.defaults)) | (set(found.ranges) - set(scheme.default_ranges)))
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no parameter of {kind}. Is it the calibration of another kind?")
    catalog.derived[table] = found
