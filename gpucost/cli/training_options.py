"""Options that describe a training job and its layout, shared by the commands about step time."""

from typing import Any

import click


class Count(click.ParamType):
    """A positive count that may be written 8k or 1M."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the count."""
        from gpucost.units import parse_count

        return parse_count(value, param.opts[0] if param else "a count")


COUNT = Count()

OPTIONS = (
    click.option("--model", required=True, metavar="NAME", help="Preset, alias, size such as 11b, or a config.json."),
    click.option("--gpu", required=True, metavar="NAME", help="One accelerator, such as h100-sxm."),
    click.option("--gpus", type=COUNT, default=1.0, metavar="N", help="How many (default 1)."),
    click.option("--system", metavar="NAME", help="Node and network; else the usual one of the accelerator."),
    click.option("--tensor", type=COUNT, metavar="N", help="Tensor-parallel degree."),
    click.option("--pipeline", type=COUNT, metavar="N", help="Pipeline stages."),
    click.option("--context", type=COUNT, metavar="N", help="Context-parallel degree."),
    click.option("--expert", type=COUNT, metavar="N", help="Expert-parallel degree."),
    click.option("--data", type=COUNT, metavar="N", help="Data-parallel degree; else what the others leave."),
    click.option("--virtual-stages", type=COUNT, metavar="N", help="Model chunks per pipeline stage."),
    click.option("--sharding", type=click.IntRange(0, 3), help="0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP)."),
    click.option("--micro-batch", type=COUNT, metavar="N", help="Sequences per GPU and micro-step."),
    click.option("--global-batch", type=COUNT, metavar="N", help="Sequences per step; else usual for the model's size."),
    click.option("--sequence", type=COUNT, metavar="TOKENS", help="Sequence; else the model's, at most 8,192."),
    click.option("--recompute", type=click.Choice(("none", "selective", "full")), help="Activations to recompute."),
    click.option("--precision", metavar="NAME", help="bf16, fp16, fp8, fp4, tf32, fp32 or int8."),
    click.option("--method", type=click.Choice(("full", "lora", "qlora")), default="full", show_default=True, help="What is trained."),
    click.option("--lora-rank", type=COUNT, metavar="N", help="Rank of the adapters (default 16)."),
    click.option("--software", metavar="CLASS", help="vendor (default), megatron, deepspeed, sharded, eager, compiler, native or unknown."),
    click.option("--software-year", type=float, metavar="YEAR", help="Age of the software, such as 2024.5."),
)  # fmt: skip
