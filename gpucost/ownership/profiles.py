"""Where a cluster of some size usually stands and who runs it: other defaults than those of a data centre."""

from dataclasses import replace

from gpucost.errors import UsageError
from gpucost.ownership.plan import Assumption
from gpucost.types import Accelerator

# Assumed: what stands under a desk or in a room of its own needs no fee, tier of network, storage system or staff
# beyond a share of somebody's time; renting as little needs none of them either.
_SMALL: dict[str, float | str] = {
    "facility_basis": "none", "storage_basis": "none", "spares_basis": "none", "control_plane_fraction": 0.0,
    "rent_control_plane_usd_per_month": 0.0, "rent_staff_ratio": 0.0, "support_fraction": 0.0,
    "insurance_fraction": 0.0, "property_tax_fraction": 0.0, "installation_fraction": 0.0,
}  # fmt: skip
PROFILES: dict[str, dict[str, float | str]] = {
    "desk": {**_SMALL, "pue_ratio": 1.0, "staff_minimum_fte": 0.0, "staff_fte_per_1000_gpus": 0.0},
    "lab": {**_SMALL, "pue_ratio": 1.4, "staff_minimum_fte": 0.1},
    "colocation": {},
    "own": {"facility_basis": "own"},
}
DESK_GPUS, LAB_GPUS = 4, 16  # cards of workstations; anything else stands in a data centre
_WORKSTATION = ("RTX", "RADEON")


def usual_profile(accelerator: Accelerator | None, gpus: float) -> str:
    """Return the profile of a size: a few cards of workstations at a desk, some in a room, all else in colocation."""
    if accelerator is None or gpus > LAB_GPUS or not any(word in accelerator.name.upper() for word in _WORKSTATION):
        return "colocation"
    return "desk" if gpus <= DESK_GPUS else "lab"


def apply(defaults: dict[str, Assumption], name: str) -> str:
    """Put a profile's values in place of the defaults, as assumptions; return what must be said of it."""
    if name not in PROFILES:
        raise UsageError(f"profile = {name!r} is none of {', '.join(PROFILES)}.")
    for key, value in PROFILES[name].items():
        defaults[key] = replace(
            defaults[key], value=value, low=None, high=None, status="assumed", source_id="", note=f"profile {name}"
        )
    listed = ", ".join(f"{key} = {value}" for key, value in PROFILES[name].items())
    return f"profile {name}: {listed}; another with --profile {' | '.join(PROFILES)}" if listed else ""
