"""What starts what an answer costs: torchrun or vllm serve, as a command for a shell on each of the instances."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpucost.errors import UsageError

# format of the weights -> what vLLM's --quantization calls a checkpoint of it
_VLLM_FORMATS = {"fp8": "fp8", "int4": "awq", "gguf": "gguf", "mxfp4": "mxfp4", "nvfp4": "modelopt_fp4"}
_PORT, _SERVED_AT = 29500, 8000  # the defaults of torchrun and of vLLM


class Start(NamedTuple):
    """What runs on each instance of a group, how many instances a group has, and how many groups there are."""

    arguments: tuple[str, ...]  # of the command, in lines
    follower_arguments: tuple[str, ...]  # on instances beside the first, where they differ
    instances: int
    groups: int
    note: str


def launch(answer: Mapping[str, Any]) -> str:
    """Return the command for the first option of an answer about training or serving."""
    kinds = {"estimate": _torchrun, "inference": _serve}
    if answer.get("kind") not in kinds or not answer.get("options"):
        raise UsageError(f"--launch works for estimate and inference, not for {answer.get('kind')}.")
    option = answer["options"][0]
    start = kinds[answer["kind"]](answer, option)
    machines = f"{start.instances * start.groups:,} × {option['instance_type']} at {option['provider']}"
    lines = [f"# on {'each of ' if start.instances > 1 else ''}{machines}, {start.note}"]
    if start.instances > 1:
        lines.append("# FIRST_HOST is the address of the first of them, NODE_RANK the number of each from 0")
    next_line = " \\\n  "  # a shell reads on
    lines.append(next_line.join(start.arguments))
    if start.follower_arguments:
        lines += ["# on the others of a group", next_line.join(start.follower_arguments)]
    return "\n".join(lines) + "\n"


def _count(option: Mapping[str, Any]) -> int:
    return int(option.get("instances") or option.get("nodes") or 1)


def _torchrun(answer: Mapping[str, Any], option: Mapping[str, Any]) -> Start:
    """Return torchrun over the instances; the options of the script are the layout of the answer."""
    workload, layout, nodes = answer["workload"], option["layout"], _count(option)
    degrees = ("tensor", "pipeline", "context", "expert")
    parallel = [f"--{name} {layout[name]}" for name in degrees if layout[name] > 1]  # data fills what is left
    lines = [f"torchrun --nnodes {nodes} --nproc-per-node {option['gpus'] // nodes}"]
    if nodes > 1:
        lines[0] += " --node-rank $NODE_RANK"
        lines.append(f"--rdzv-backend c10d --rdzv-id gpucost --rdzv-endpoint $FIRST_HOST:{_PORT}")
    lines += [
        f"train.py --model {workload['model']} --sequence {workload['sequence_tokens']}",
        f"--global-batch {workload['global_batch']} --micro-batch {layout['micro_batch']}",
        " ".join([f"--precision {layout['precision']} --sharding {layout['sharding']}", *parallel]),
    ]
    if layout["recompute"] != "none":
        lines.append(f"--recompute {layout['recompute']}")
    return Start(tuple(lines), (), nodes, 1, "train.py being your own script")


def _serve(answer: Mapping[str, Any], option: Mapping[str, Any]) -> Start:
    """Return vllm serve for the replicas of one instance, or for one replica over several instances.

    The batch is as large as the answer counts on, the context as long as a request may get.
    """
    request, layout, count = answer["request"], option["layout"], _count(option)
    unit = max(option["gpus"] // count, 1)  # accelerators of one instance
    instances = -(-layout["gpus"] // unit)  # of one replica
    beside_each = max(unit // layout["gpus"], 1) if instances == 1 else 1  # replicas in one instance
    groups = -(-option["replicas"] // beside_each)
    # of an answer that does not say: four times a mean request, so that few are turned away
    longest = answer.get("longest_tokens") or int(4 * (request["prompt_tokens"] + request["output_tokens"]))
    model = answer.get("repository") or "$MODEL"
    lines = [f"vllm serve {model} -tp {layout['tensor']}"]
    if layout["pipeline"] > 1:
        lines[0] += f" -pp {layout['pipeline']}"
    # To vLLM both are data parallel: whole replicas beside each other, and the ranks of one replica that share experts.
    ranks = layout["data"] * beside_each
    if ranks > 1:
        lines[0] += f" -dp {ranks}"
    if layout["data"] > 1:
        lines[0] += " --enable-expert-parallel"
    # vLLM counts sequences for each rank, the answer for a replica
    lines.append(f"--max-num-seqs {max(option['batch'] // layout['data'], 1)} --max-model-len {longest}")
    if option["precision"] in _VLLM_FORMATS:
        lines.append(f"--quantization {_VLLM_FORMATS[option['precision']]}")
    follower_lines: list[str] = []
    if instances > 1:
        lines.append(f"--nnodes {instances} --node-rank $NODE_RANK --master-addr $FIRST_HOST")
        follower_lines = [*lines, "--headless"]  # only the first of a group answers requests
    lines.append(f"--port {_SERVED_AT}")
    replicas = f"{option['replicas']:,} replica{'s' if option['replicas'] != 1 else ''} of {layout['gpus']}"
    note = f"{replicas} × {option['gpu']}"
    if model == "$MODEL":
        note += f"; MODEL is the repository or folder of {answer['said'][0].partition(',')[0]}"
    return Start(tuple(lines), tuple(follower_lines), instances, groups, note)
