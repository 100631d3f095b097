"""Where a cluster of some size usually stands and who runs it: other defaults than those of a data centre."""

from dataclasses import replace

from gpucost.errors import UsageError
from gpucost.ownership.plan import Assumption
from gpucost.types import Accelerator
from gpucost.units import counted

# Assumed: what stands under a desk or in a room of its own needs no fee, tier of network, storage system, contract or
# staff beyond a share of somebody's time, but broken parts are replaced; renting as little needs no people either.
_SMALL: dict[str, float | str] = {
    "facility_basis": "none",
    "storage_basis": "none",
    "spares_basis": "maintenance",
    "control_plane_fraction": 0.0,
    "rent_control_plane_usd_per_month": 0.0,
    "rent_staff_ratio": 0.0,
    "support_fraction": 0.0,
    "insurance_fraction": 0.0,
    "property_tax_fraction": 0.0,
    "installation_fraction": 0.0,
}
_STEP = {"staff_step_fte": 0.25}  # nobody shares an engineer by the hour
PROFILES: dict[str, dict[str, float | str]] = {
    "desk": {**_SMALL, "pue_ratio": 1.0, "staff_minimum_fte": 0.0, "staff_fte_per_1000_gpus": 0.0},
    "lab": {**_SMALL, "pue_ratio": 1.4, "staff_minimum_fte": 0.1},
    "colocation": {**_STEP},
    "own": {**_STEP, "facility_basis": "own"},
}
# a single server takes a quarter of somebody, the low end of what small clusters need; one that is rented takes nobody
_ONE_SERVER: dict[str, float | str] = {"staff_minimum_fte": 0.25, "rent_staff_ratio": 0.0}
DESK_GPUS, LAB_GPUS = 4, 16  # cards of workstations; anything else stands in a data centre
OWN_GPUS = 16_384  # some 20 MW: beyond what is let by the cabinet or hall
_WORKSTATION = ("RTX", "RADEON")


def usual_profile(accelerator: Accelerator, gpus: float) -> str:
    """Return the profile of a size: a few cards of workstations at a desk, some in a room, all else in colocation."""
    if gpus <= LAB_GPUS and any(word in accelerator.name.upper() for word in _WORKSTATION):
        return "desk" if gpus <= DESK_GPUS else "lab"
    return "colocation" if gpus < OWN_GPUS else "own"


def apply(defaults: dict[str, Assumption], asked: str | None, accelerator: Accelerator | None, gpus: float) -> str:
    """Put a profile's values in place of the defaults, as assumptions; return what must be said of it."""
    if asked is not None and asked not in PROFILES:
        raise UsageError(f"profile = {asked!r} is none of {', '.join(PROFILES)}.")
    if asked is None and accelerator is None:
        return "none, as no accelerator is named"
    name = asked or usual_profile(accelerator, gpus) if accelerator else str(asked)
    values = dict(PROFILES[name])
    if name in ("colocation", "own") and gpus <= float(defaults["gpus_per_node"].value or 0):
        values |= _ONE_SERVER
    for key, value in values.items():
        defaults[key] = replace(
            defaults[key], value=value, low=None, high=None, status="assumed", source_id="", note=f"profile {name}"
        )
    listed = ", ".join(f"{key} = {value}" for key, value in values.items())
    how = (
        "as asked"
        if asked
        else f"by {counted(gpus, 'GPU')} of this form; another with --profile {' | '.join(PROFILES)}"
    )
    return f"{name} ({listed}), {how}"
