"""What every measured row holds once it is read, whatever was measured."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

Row = Mapping[str, Any]  # as a table holds it: columns of models/measurements


class MeasuredRow(Struct, frozen=True, kw_only=True):
    """A row, read: ready for the kernels."""

    id: str
    source: str
    stated_layout: bool
    core: bool  # well suited to calibration and validation
    notes: tuple[str, ...] = field(default=())  # what was assumed, and what was taken as something else
