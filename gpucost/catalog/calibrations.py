"""The calibrations that a catalog holds: the shipped tables, under a user's own where there are any."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gpucost.physics.calibration import Calibration, Scheme
from gpucost.physics.serving.calibration import SCHEME as SERVING
from gpucost.physics.training.calibration import SCHEME as TRAINING

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog


def loader(scheme: Scheme, table: str) -> "Callable[[Catalog], Calibration]":
    """Return the reader of one table, which reads it once per catalog."""
    read: WeakKeyDictionary[Any, Calibration] = WeakKeyDictionary()

    def load(catalog: "Catalog") -> Calibration:
        if catalog not in read:
            read[catalog] = scheme.load(catalog.rows(table))
        return read[catalog]

    return load


training_calibration = loader(TRAINING, "calibration")
serving_calibration = loader(SERVING, "serving_calibration")
