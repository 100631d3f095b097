"""The command that starts what an answer costs: torchrun on every instance of a run, vllm serve on every replica."""

from collections.abc import Mapping
from typing import Any

from gpucost.errors import UsageError

_VLLM_FORMATS = {"fp8": "fp8", "int4": "awq", "gguf": "gguf", "mxfp4": "mxfp4", "nvfp4": "modelopt_fp4"}
_PORT = 29500


def launch(answer: Mapping[str, Any]) -> str:
    """Return the command for the first option of an answer about training or serving."""
    kinds = {"estimate": _torchrun, "inference": _serve}
    if answer.get("kind") not in kinds or not answer.get("options"):
        raise UsageError(f"--launch starts what estimate and inference cost, not {answer.get('kind')}.")
    return kinds[answer["kind"]](answer, answer["options"][0])


def _broken(words: list[str]) -> str:
    """Join options with the command, one a line where they are many."""
    return " \\\n  ".join(words)


def _torchrun(answer: Mapping[str, Any], option: Mapping[str, Any]) -> str:
    """Return torchrun over the instances; the options of the script are the layout of the answer."""
    workload, layout = answer["workload"], option["layout"]
    nodes = option.get("instances") or option["nodes"]
    degrees = ("tensor", "pipeline", "context", "expert")
    spread = [f"--{name} {layout[name]}" for name in degrees if layout[name] > 1]
    start = f"torchrun --nnodes {nodes} --nproc-per-node {option['gpus'] // nodes}"
    if nodes > 1:
        start += f" --rdzv-backend c10d --rdzv-endpoint $FIRST_HOST:{_PORT}"
    words = [
        f"{start} train.py",
        f"--model {workload['model']} --sequence {workload['sequence_tokens']}",
        f"--global-batch {workload['global_batch']} --micro-batch {layout['micro_batch']}",
        " ".join([f"--precision {layout['precision']} --sharding {layout['sharding']}", *spread]),
    ]
    if layout["recompute"] != "none":
        words.append(f"--recompute {layout['recompute']}")
    return f"# on each of {nodes:,} × {option['instance_type']} at {option['provider']}\n{_broken(words)}\n"


def _serve(answer: Mapping[str, Any], option: Mapping[str, Any]) -> str:
    """Return vllm serve for one replica, as large a batch and as long a context as the answer counts on."""
    request, layout = answer["request"], option["layout"]
    longest = int(request["prompt_tokens"] + 2 * request["output_tokens"] + request.get("longer_tokens", 0))
    model = answer["said"][0].partition(",")[0]
    words = [f"vllm serve {model} -tp {layout['tensor']}"]
    if layout["pipeline"] > 1:
        words.append(f"-pp {layout['pipeline']}")
    if layout["data"] > 1:
        words.append(f"-dp {layout['data']} --enable-expert-parallel")
    words.append(f"--max-num-seqs {max(option['batch'] // layout['data'], 1)} --max-model-len {longest}")
    if option["precision"] in _VLLM_FORMATS:
        words.append(f"--quantization {_VLLM_FORMATS[option['precision']]}")
    replicas = option["replicas"]
    return f"# {replicas:,} × on {layout['gpus']} × {option['gpu']} at {option['provider']}\n{_broken(words)}\n"
