"""The measuring process: reads cases as lines of JSON, answers each with one, and never stops at a failure.

Started as `python -m gpucost.bench.gpu.worker`, once per GPU where a case spans several (the variables RANK,
LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which). All ranks read the same cases; only rank 0 answers.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from msgspec.structs import fields

from gpucost.bench.gpu import clock, kernels, steps


def _train(**values: Any) -> dict[str, Any]:
    # what is no field of the step is an argument of its measurement, such as `repeat`
    field_names = {field.name for field in fields(steps.TrainStep)}
    return steps.measure_training(
        steps.TrainStep(**{name: value for name, value in values.items() if name in field_names}),
        **{name: value for name, value in values.items() if name not in field_names},
    )


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "copy": kernels.copy,
    "matmul": kernels.matmul,
    "attention": kernels.attention,
    "norm": kernels.norm,
    "adamw": kernels.adamw,
    "host": kernels.host,
    "launch": kernels.launch,
    "collective": kernels.collective,
    "train": _train,
    "serve": steps.measure_serving,
    "loader": kernels.loader,
}


def software() -> dict[str, Any]:
    """Say what measures: versions and the device as PyTorch sees it."""
    versions: dict[str, Any] = {"pytorch": torch.__version__, "device": "cpu", "gpus": 0}
    if clock.CUDA:
        properties = torch.cuda.get_device_properties(clock.DEVICE)
        versions |= {
            "device": properties.name,
            "gpus": torch.cuda.device_count(),
            "memory_gib": properties.total_memory / 2**30,
            "multiprocessors": properties.multi_processor_count,
            "toolkit": f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}",
            "capability": ".".join(str(part) for part in torch.cuda.get_device_capability(clock.DEVICE)),
            "free_fraction": torch.cuda.mem_get_info(clock.DEVICE)[0] / properties.total_memory,
        }
        if torch.distributed.is_nccl_available():
            versions["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return versions


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Measure one case; what fails is said in one line."""
    try:
        return {"id": case["id"], "figures": MEASURES[case["op"]](**case["arguments"])}
    except Exception as error:
        # of memory it matters who holds it; of anything else the first line is enough, and a trace would fill the file
        lacks = isinstance(error, torch.OutOfMemoryError)
        text = clock.memory() if lacks else str(error).splitlines()[0][:200] if str(error) else ""
        kind = "out of memory" if lacks or isinstance(error, MemoryError) else type(error).__name__
        return {"id": case["id"], "failed": f"{kind}: {text}" if text else kind}
    finally:
        clock.clean()


def main() -> None:
    """Answer cases until the input ends."""
    if clock.CUDA:
        torch.cuda.set_device(clock.DEVICE)
    if clock.WORLD > 1:
        device = clock.DEVICE if clock.CUDA else None
        torch.distributed.init_process_group("nccl" if clock.CUDA else "gloo", device_id=device)
    _say({"software": software()})
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if "failed" in reply and clock.RANK:
            print(reply["failed"], file=sys.stderr, flush=True)
            os._exit(1)  # or the first would wait for it; nothing is awaited that a collective holds
        _say(reply)
    if clock.WORLD > 1:
        torch.distributed.destroy_process_group()


def _say(message: dict[str, Any]) -> None:
    """Write one line, from rank 0 only."""
    if clock.RANK == 0:
        print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
