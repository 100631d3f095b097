"""`gpucost.fit(...)`: does a model fit a GPU, on how many, and what is the smallest change that helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpucost.api.asking import opened
from gpucost.api.result import Result, copied
from gpucost.arguments import flag_of
from gpucost.arguments.table import arguments_of
from gpucost.catalog import Catalog
from gpucost.errors import ContradictionError, UsageError


@dataclass(frozen=True, slots=True, repr=False)
class Fitting(Result):
    """An answer to whether something fits."""

    @property
    def exit_code(self) -> int:
        """6 where it does not fit."""
        return 0 if self.fits else 6

    @property
    def fits(self) -> bool:
        """Whether the peak stays within what is usable, or anything serves it."""
        return bool(self.payload["fits"])


@dataclass(frozen=True, slots=True, repr=False)
class FitResult(Fitting):
    """A verdict on memory: the footprint by component, the layout, and the changes that were tried."""

    @property
    def gpus(self) -> int:
        """The accelerators of the layout: those asked for, else the fewest that fit."""
        return int(self.payload["gpus"])

    @property
    def needed_gb(self) -> float:
        """The allocator's peak on the fullest GPU, in units of 1e9 bytes."""
        return float(self.payload["needed_gb"])

    @property
    def smallest_change(self) -> Mapping[str, Any] | None:
        """The gentlest change that makes it fit (or fit on fewer GPUs), or None where none was found."""
        return next((copied(row) for row in self.payload["changes"] if row["helps"]), None)


@dataclass(frozen=True, slots=True, repr=False)
class ServingFitResult(Fitting):
    """Which accelerators serve a model within the targets: the fewest, the cheapest, and why others do not."""

    @property
    def smallest(self) -> Mapping[str, Any] | None:
        """The option with the least memory in all."""
        found: Mapping[str, Any] | None = copied(self.payload["smallest"])
        return found

    @property
    def cheapest(self) -> Mapping[str, Any] | None:
        """The option with the lowest price per hour."""
        found: Mapping[str, Any] | None = copied(self.payload["cheapest"])
        return found


@dataclass(frozen=True, slots=True, repr=False)
class FitsResult(Fitting):
    """Which accelerators a training job fits, the cheapest per hour first."""

    @property
    def fits(self) -> bool:
        """Whether anything holds it."""
        return bool(self.payload["rows"])


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> FitResult | FitsResult | ServingFitResult:
    """Answer from arguments as they were given: of training, or with `serving` of serving."""
    values, catalog = opened("fit", given, catalog)
    others = arguments_of("@fit_training" if values["serving"] else "@fit_serving")
    if foreign := [item.name for item in others if item.name in given]:
        flags, how = ", ".join(map(flag_of, foreign)), "without" if values["serving"] else "with"
        raise ContradictionError(f"{flags}: only {how} --serving.", foreign[:1])
    common = ("model", "gpu", "serving", "as_of", "known_as_of")
    asked = {name: values[name] for name in given if name not in common}
    if values["serving"]:
        from gpucost.serving.run import serving_fit_payload

        return ServingFitResult(serving_fit_payload(catalog, values["model"], values["gpu"], **asked))
    if "style" in asked:
        asked["software"] = asked.pop("style")
    if values["gpu"] is None and values["system"] is None:
        from gpucost.fitting.fit import everywhere

        if "gpus" in asked:
            raise UsageError("--gpus needs --gpu; without it, the fewest of every accelerator are counted.")
        return FitsResult(everywhere(catalog, values["model"], **asked))
    from gpucost.fitting.fit import answer as fitted

    return FitResult(fitted(catalog, values["model"], values["gpu"], **asked))
