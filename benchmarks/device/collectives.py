"""Collectives over the GPUs of one node: seconds by operation, ranks and message size.

    torchrun --nproc-per-node 8 -m benchmarks.device.collectives [--seconds 90] [--tiny]

`bytes` is the size of the full (unsharded) tensor; the bus bandwidth is what each GPU sends over its links:
all-reduce 2(n−1)/n, the others (n−1)/n, point to point 1 (as nccl-tests defines it).
"""

import argparse

import torch
import torch.distributed as dist

from benchmarks.device.common import CUDA, DEVICE, RANK, WORLD, Table, TimeBox, graph_seconds, guarded, out, seconds

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")


def step_of(operation: str, full: torch.Tensor, group: dist.ProcessGroup, ranks: int):
    part = full.chunk(ranks)[0]
    other = torch.empty_like(full)
    peer = RANK ^ 1

    def p2p() -> None:
        kinds = [dist.P2POp(dist.isend, full, peer, group), dist.P2POp(dist.irecv, other, peer, group)]
        for request in dist.batch_isend_irecv(kinds):
            request.wait()

    return {
        "all_reduce": lambda: dist.all_reduce(full, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(full, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, full, group=group),
        "all_to_all": lambda: dist.all_to_all_single(other, full, group=group),
        "p2p": p2p,
    }[operation]


def measure(table: Table, operation: str, ranks: int, size_bytes: int, group: dist.ProcessGroup) -> None:
    full = torch.ones(size_bytes // 2, device=DEVICE, dtype=torch.bfloat16)
    step = step_of(operation, full, group, ranks)
    repeat = 20 if size_bytes < 2**24 else 6
    factor = {"all_reduce": 2 * (ranks - 1) / ranks, "p2p": 1.0}.get(operation, (ranks - 1) / ranks)
    modes = [("eager", seconds(step, warmup=3, repeat=repeat))]
    if CUDA and size_bytes <= 2**23 and operation in ("all_reduce", "all_gather", "reduce_scatter"):
        modes.append(("graph", graph_seconds(step, calls=20)))
    for mode, time_s in modes:
        table.add(
            op=operation,
            mode=mode,
            ranks=ranks,
            bytes=size_bytes,
            time_s=time_s,
            bus_gb_per_s=factor * size_bytes / time_s / 1e9,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if CUDA:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if CUDA else "gloo", device_id=DEVICE if CUDA else None)
    box = TimeBox(options.seconds)
    table = Table(out("collectives.csv"), ["op", "mode", "ranks", "bytes", "time_s", "bus_gb_per_s"])
    sizes = [2**13] if options.tiny else [2**e for e in (13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 27, 29, 30)]
    for ranks in [r for r in (8, 4, 2) if r <= WORLD]:
        group = dist.new_group(list(range(ranks)))
        for operation in OPERATIONS if ranks != 4 else OPERATIONS[:3]:
            for size in sizes:
                if box.over():
                    break
                if ranks > RANK:
                    guarded(
                        lambda o=operation, r=ranks, s=size, g=group: measure(table, o, r, s, g),
                        f"{operation} {ranks} {size}",
                    )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
