"""From files to the device: how fast a data loader with some workers feeds a step."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from gpucost.bench.gpu.clock import DEVICE, synchronize


class Shards(Dataset[torch.Tensor]):
    """Files of raw tokens, read in pieces of one sample."""

    def __init__(self, paths: list[str], sample_bytes: int) -> None:
        self.paths, self.sample_bytes = paths, sample_bytes
        self.per_file = os.path.getsize(paths[0]) // sample_bytes

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.paths) * self.per_file

    def __getitem__(self, index: int) -> torch.Tensor:
        """Read one sample."""
        number, place = divmod(index, self.per_file)
        with open(self.paths[number], "rb") as file:
            file.seek(place * self.sample_bytes)
            return torch.frombuffer(bytearray(file.read(self.sample_bytes)), dtype=torch.uint8)


def loader(workers: int, size_bytes: int, folder: str | None) -> dict[str, Any]:
    """Write files, forget them from the cache where the system lets us, and read them to the device."""
    sample_bytes, files = 2**16, 8
    with tempfile.TemporaryDirectory(prefix="gpucost-bench-", dir=folder) as place:
        paths = []
        for number in range(files):
            path = Path(place, f"{number}.bin")
            path.write_bytes(os.urandom(2**20) * max(1, size_bytes // files // 2**20))
            paths.append(str(path))
            _forget(path)
        data = DataLoader(
            Shards(paths, sample_bytes),
            batch_size=64,
            shuffle=True,
            num_workers=workers,
            pin_memory=DEVICE.type == "cuda",
        )
        begin = time.perf_counter()
        moved = sum(batch.to(DEVICE, non_blocking=True).numel() for batch in data)
        synchronize()
        whole = time.perf_counter() - begin
    return {
        "time_s": whole,
        "bound": "host",
        "gb_per_s": moved / whole / 1e9,
        "samples_per_s": moved / sample_bytes / whole,
    }


def _forget(path: Path) -> None:
    """Write a file out and drop it from the page cache, where the system offers that."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
