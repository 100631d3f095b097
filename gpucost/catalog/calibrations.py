"""The calibrations that a catalog holds: the shipped tables, under a user's own where there are any."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpucost.errors import UsageError
from gpucost.physics.calibration import Calibration, Scheme

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog


_TABLES = {"training": "calibration", "serving": "serving_calibration"}


def _scheme(kind: str) -> Scheme:
    """Return what a kind's calibration is made of; an answer of one kind does without the physics of the other."""
    if kind == "training":
        from gpucost.physics.training.calibration import SCHEME
    else:
        from gpucost.physics.serving.calibration import SCHEME
    return SCHEME


def loader(kind: str) -> "Callable[[Catalog], Calibration]":
    """Return the reader of one table, which reads it once per catalog."""
    table = _TABLES[kind]

    def load(catalog: "Catalog") -> Calibration:
        if table not in catalog.derived:
            catalog.derived[table] = _scheme(kind).load(catalog.rows(table))
        calibration: Calibration = catalog.derived[table]
        return calibration

    return load


training_calibration, serving_calibration = loader("training"), loader("serving")


def use(catalog: "Catalog", kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Lay a calibration table over the catalog's own, for this catalog alone."""
    scheme, table = _scheme(kind), _TABLES[kind]
    try:
        # a later row of a parameter overrules an earlier one: what the user left out stays as it is shipped
        calibration = scheme.load([*catalog.rows(table), *rows])
    except ValueError:
        raise UsageError(f"the calibration of {kind} holds a value that is not a number.") from None
    unknown = sorted(
        (set(calibration.values) - set(scheme.defaults)) | (set(calibration.ranges) - set(scheme.default_ranges))
    )
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a parameter of {kind}. Is it the calibration of another kind?")
    catalog.derived[table] = calibration
    # another process that opens this catalog again takes these along
    catalog.derived["laid_over"] = (*catalog.derived.get("laid_over", ()), table)
