"""What feeds a run: the bytes that its steps read against what storage and the workers of the data loader deliver."""

from math import ceil, floor, inf, isfinite, log10
from typing import Any, NamedTuple

import numpy as np

from gpucost.answers.speed import Feeding
from gpucost.arguments.loading import dataset_of, decode_of
from gpucost.errors import UsageError
from gpucost.units import GB

_MB = 1e6


class DataFlow(NamedTuple):
    """What was said of the data that feed a run; None where nothing was."""

    dataset: str | None = None
    loader_workers: int | None = None
    decode_rate: str | None = None
    storage_gb_per_s: float | None = None

    @property
    def whole(self) -> bool:
        """Whether the dataset is stated as a whole, so that its tokens say what each of them weighs."""
        return self.dataset is not None and not dataset_of(self.dataset)[1]


class Loading(NamedTuple):
    """The data of a run: bytes of a token, and what delivers them; infinite where nobody said."""

    bytes_per_token: float
    storage_gb_per_s: float = inf  # to the whole run
    loader_workers: int = 0  # on each accelerator
    worker_gb_per_s: float = inf
    assumed: bool = False  # token ids, since no dataset was stated

    def workers_gb_per_s(self, gpus: Any) -> Any:
        """Return what all workers deliver: accelerators × workers on each × rate."""
        return gpus * (self.loader_workers * self.worker_gb_per_s if self.loader_workers else inf)

    def tokens_per_s(self, gpus: Any) -> Any:
        """Return the most tokens per second that the data allow: the lesser flow ÷ bytes of a token.

        Workers add up over accelerators; storage is one for all of them. 2 workers of 50 MB/s on each of 8
        accelerators deliver 0.8 GB/s, storage 0.5 GB/s: at 1,000 bytes 500,000 tokens per second.

        >>> Loading(1000.0, 0.5, 2, 0.05).tokens_per_s(np.array([2, 8]))
        array([200000., 500000.])
        """
        return np.minimum(self.workers_gb_per_s(gpus), self.storage_gb_per_s) * GB / self.bytes_per_token

    def feeding(self, tokens_per_s: float, gpus: int) -> Feeding:
        """Say what a run of so many tokens per second waits for: stall = max(0, 1 − delivered ÷ needed).

        Loading runs beside the steps, so that a step waits only for what comes later than it ends; a run then takes
        needed ÷ delivered times as long.

        >>> Loading(1000.0, 0.5, 2, 0.05).feeding(1e6, 8)["said"].rpartition(": ")[2]
        'storage makes it wait 50% of the time; 1 GB/s of storage and 3 workers on each GPU would end it.'
        """
        needed = tokens_per_s * self.bytes_per_token / GB
        flows = {"storage": self.storage_gb_per_s, "workers": float(self.workers_gb_per_s(gpus))}
        bottleneck, delivered = min(flows.items(), key=lambda flow: flow[1])
        stall = max(0.0, 1 - delivered / needed)
        each = self.worker_gb_per_s * gpus
        enough = ceil(needed / each * (1 - 1e-12)) if self.loader_workers else None
        return {
            "dataset_bytes_per_token": self.bytes_per_token,
            "needed_gb_per_s": needed,
            "storage_gb_per_s": flows["storage"] if isfinite(flows["storage"]) else None,
            "workers_gb_per_s": flows["workers"] if isfinite(flows["workers"]) else None,
            "stall_fraction": stall,
            "bottleneck": bottleneck if stall else None,
            "needed_loader_workers": enough,
            "said": self._said(needed, flows, bottleneck, stall, enough),
        }

    def _said(self, needed: float, flows: dict[str, float], bottleneck: str, stall: float, enough: int | None) -> str:
        """Say it in a sentence: needed, delivered, who is short, what would end it."""
        of = "token ids of {} bytes, as no --dataset is given" if self.assumed else "{} bytes per token"
        each = f"{self.bytes_per_token:,.0f}" if self.bytes_per_token >= 1e4 else f"{self.bytes_per_token:,.4g}"
        reads = f"Loading: {_rate(needed)} are needed ({of.format(each)})"
        given = [
            f"{name} {'delivers' if name == 'storage' else 'deliver'} {_rate(flow)}"
            for name, flow in flows.items()
            if isfinite(flow)
        ]
        if not given:
            return f"{reads}; --storage-bandwidth, --loader-workers and --decode-rate say what is delivered."
        if not stall:
            return f"{reads}, {' and '.join(given)}: no stall."
        unit = 10.0 ** (floor(log10(needed)) - 2)  # rounded up: what is written must be enough
        enough_storage = ceil(needed / unit * (1 - 1e-12)) * unit
        cures = [f"{_rate(enough_storage)} of storage"] if flows["storage"] < needed else []
        if enough and enough > self.loader_workers:
            cures.append(f"{enough:,} workers on each GPU")
        makes = "makes" if bottleneck == "storage" else "make"
        return (
            f"{reads}, {' and '.join(given)}: {bottleneck} {makes} it wait {stall:.0%} of the time;"
            f" {' and '.join(cures)} would end it."
        )


def _rate(gb_per_s: float) -> str:
    """Write a flow."""
    return f"{gb_per_s:,.3g} GB/s" if gb_per_s >= 1 else f"{gb_per_s * GB / _MB:,.3g} MB/s"


def make_loading(given: DataFlow, sequence_tokens: int, id_bytes: float, tokens: float | None = None) -> Loading | None:
    """Read what was said of the data; a dataset that nobody states holds token ids."""
    if given == DataFlow():
        return None
    if (given.loader_workers is None) != (given.decode_rate is None):
        raise UsageError(
            "--loader-workers and --decode-rate belong together: how many workers, and what each prepares in a second"
            " (`gpucost bench` measures a loader)."
        )
    size, of = dataset_of(given.dataset) if given.dataset is not None else (id_bytes, "token")
    if not of and tokens is None:
        raise UsageError(f"--dataset: {given.dataset} of how many tokens? Write 4/token or 150kb/sample.")
    each = size / {"token": 1.0, "sample": float(sequence_tokens), "": tokens or 1.0}[of]
    rate, samples = decode_of(given.decode_rate) if given.decode_rate is not None else (inf, False)
    return Loading(
        each,
        given.storage_gb_per_s if given.storage_gb_per_s is not None else inf,
        given.loader_workers or 0,
        rate * (each * sequence_tokens if samples else 1.0) / GB,
        given.dataset is None,
    )
