"""What starts what an answer costs: torchrun or vllm serve, as a command for a shell on each of the instances."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpucost.errors import UsageError

_VLLM_FORMATS = {"fp8": "fp8", "int4": "awq", "gguf": "gguf", "mxfp4": "mxfp4", "nvfp4": "modelopt_fp4"}
_PORT, _SERVED_AT = 29500, 8000


class Start(NamedTuple):
    """What runs on each instance of a group, how many instances a group has, and how many groups there are."""

    words: tuple[str, ...]  # of the command
    others: tuple[str, ...]  # of the command on instances beside the first, where it differs
    instances: int
    groups: int
    what: str


def launch(answer: Mapping[str, Any]) -> str:
    """Return the command for the first option of an answer about training or serving."""
    option, start = _first(answer)
    lines = [f"# on {'each of ' if start.instances > 1 else ''}{_instances(option, start)}, {start.what}"]
    if start.instances > 1:
        lines.append("# FIRST_HOST is the address of the first of them, NODE_RANK the number of each from 0")
    lines.append(_broken(start.words))
    if start.others:
        lines += ["# on the others of a group", _broken(start.others)]
    return "\n".join(lines) + "\n"


def _first(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Start]:
    """Return the first option of an answer and what starts it."""
    kinds = {"estimate": _torchrun, "inference": _serve}
    if answer.get("kind") not in kinds or not answer.get("options"):
        raise UsageError(f"--launch works for estimate and inference, not for {answer.get('kind')}.")
    option = answer["options"][0]
    return option, kinds[answer["kind"]](answer, option)


def _count(option: Mapping[str, Any]) -> int:
    return int(option.get("instances") or option.get("nodes") or 1)


def _instances(option: Mapping[str, Any], start: Start) -> str:
    return f"{start.instances * start.groups:,} × {option['instance_type']} at {option['provider']}"


def _broken(words: tuple[str, ...]) -> str:
    """Join options with the command, one a line where they are many."""
    return " \\\n  ".join(words)


def _torchrun(answer: Mapping[str, Any], option: Mapping[str, Any]) -> Start:
    """Return torchrun over the instances; the options of the script are the layout of the answer."""
    workload, layout, nodes = answer["workload"], option["layout"], _count(option)
    degrees = ("tensor", "pipeline", "context", "expert")
    spread = [f"--{name} {layout[name]}" for name in degrees if layout[name] > 1]
    words = [f"torchrun --nnodes {nodes} --nproc-per-node {option['gpus'] // nodes}"]
    if nodes > 1:
        words[0] += " --node-rank $NODE_RANK"
        words.append(f"--rdzv-backend c10d --rdzv-id gpucost --rdzv-endpoint $FIRST_HOST:{_PORT}")
    words += [
        f"train.py --model {workload['model']} --sequence {workload['sequence_tokens']}",
        f"--global-batch {workload['global_batch']} --micro-batch {layout['micro_batch']}",
        " ".join([f"--precision {layout['precision']} --sharding {layout['sharding']}", *spread]),
    ]
    if layout["recompute"] != "none":
        words.append(f"--recompute {layout['recompute']}")
    return Start(tuple(words), (), nodes, 1, "train.py being your own script")


def _serve(answer: Mapping[str, Any], option: Mapping[str, Any]) -> Start:
    """Return vllm serve for the replicas of one instance, or for one replica over several instances.

    The batch is as large as the answer counts on, the context as long as a request may get.
    """
    request, layout, count = answer["request"], option["layout"], _count(option)
    unit = max(option["gpus"] // count, 1)  # accelerators of one instance
    instances = -(-layout["gpus"] // unit)  # of one replica
    beside_each = max(unit // layout["gpus"], 1) if instances == 1 else 1  # replicas in one instance
    groups = -(-option["replicas"] // beside_each)
    longest = answer.get("longest_tokens") or int(4 * (request["prompt_tokens"] + request["output_tokens"]))
    model = answer.get("repository") or "$MODEL"
    words = [f"vllm serve {model} -tp {layout['tensor']}"]
    if layout["pipeline"] > 1:
        words[0] += f" -pp {layout['pipeline']}"
    ranks = layout["data"] * beside_each
    if ranks > 1:
        words[0] += f" -dp {ranks}"
    if layout["data"] > 1:
        words[0] += " --enable-expert-parallel"
    words.append(f"--max-num-seqs {max(option['batch'] // layout['data'], 1)} --max-model-len {longest}")
    if option["precision"] in _VLLM_FORMATS:
        words.append(f"--quantization {_VLLM_FORMATS[option['precision']]}")
    others: list[str] = []
    if instances > 1:
        words.append(f"--nnodes {instances} --node-rank $NODE_RANK --master-addr $FIRST_HOST")
        others = [*words, "--headless"]
    words.append(f"--port {_SERVED_AT}")
    replicas = f"{option['replicas']:,} replica{'s' if option['replicas'] != 1 else ''} of {layout['gpus']}"
    what = f"{replicas} × {option['gpu']}"
    if model == "$MODEL":
        what += f"; MODEL is the repository or folder of {answer['said'][0].partition(',')[0]}"
    return Start(tuple(words), tuple(others), instances, groups, what)
