"""`gpucost.fit(...)`: does a model fit a GPU, on how many, and what is the smallest change that helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpucost.api.result import Result

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@dataclass(frozen=True, slots=True)
class FitResult(Result):
    """A verdict on memory: the footprint by component, the layout, and the changes that were tried."""

    kind: ClassVar[str] = "fit"
    rows_key: ClassVar[str] = "components"

    @property
    def fits(self) -> bool:
        """Whether the peak stays within what is usable."""
        return bool(self.payload["fits"])

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
        return next((row for row in self.payload["changes"] if row["helps"]), None)


@dataclass(frozen=True, slots=True)
class ServingFitResult(Result):
    """Which accelerators serve a model within the targets: the fewest, the cheapest, and why others do not."""

    kind: ClassVar[str] = "serving_fit"
    rows_key: ClassVar[str] = "options"

    @property
    def fits(self) -> bool:
        """Whether anything serves it."""
        return bool(self.payload["fits"])

    @property
    def smallest(self) -> Mapping[str, Any] | None:
        """The option with the least memory in all."""
        found: Mapping[str, Any] | None = self.payload["smallest"]
        return found

    @property
    def cheapest(self) -> Mapping[str, Any] | None:
        """The option with the lowest price per hour."""
        found: Mapping[str, Any] | None = self.payload["cheapest"]
        return found


def fit(
    model: Any,
    gpu: str | None = None,
    gpus: float | None = None,
    *,
    serving: bool = False,
    catalog: "Catalog | None" = None,
    as_of: str | None = None,
    **wanted: Any,
) -> FitResult | ServingFitResult:
    """Return whether training `model` fits, on `gpus` accelerators or on the fewest that do.

    Takes what the command takes: method, optimizer, sequence, micro_batch, recompute, loss_chunk, offload,
    lora_rank, software, flash, system, tensor, pipeline, context, expert, sharding. With `serving` it answers for
    serving instead, on every accelerator where none is named: prompt, output, ttft, tpot, precision, cache, engine.
    """
    from gpucost.errors import UsageError

    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(as_of)
    if serving:
        from gpucost.serving.chips import serving_fit_payload

        return ServingFitResult(serving_fit_payload(catalog, model, gpu, **wanted))
    if gpu is None:
        raise UsageError("--gpu is missing: name one accelerator, such as h100-sxm. `gpucost gpus` lists them.")
    from gpucost.fitting.answer import answer

    return FitResult(answer(catalog, model, gpu, gpus=gpus, **wanted))
