"""Options that describe a training job and its layout, shared by the commands about step time."""

import click


def read_count(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Read a positive count that may be written 8k or 1M; nothing stays nothing."""
    from gpucost.units import parse_count

    return None if value is None else parse_count(value, parameter.opts[0])


OPTIONS = (
    click.option("--model", required=True, metavar="NAME", help="Preset, alias, size such as 11b, or a config.json."),
    click.option("--gpu", required=True, metavar="NAME", help="One accelerator, such as h100-sxm."),
    click.option("--gpus", callback=read_count, default="1", metavar="N", help="How many (default 1)."),
    click.option("--system", metavar="NAME", help="Node and network; else the usual one of the accelerator."),
    click.option("--tensor", callback=read_count, metavar="N", help="Tensor-parallel degree."),
    click.option("--pipeline", callback=read_count, metavar="N", help="Pipeline stages."),
    click.option("--context", callback=read_count, metavar="N", help="Context-parallel degree."),
    click.option("--expert", callback=read_count, metavar="N", help="Expert-parallel degree."),
    click.option("--data", callback=read_count, metavar="N", help="Data-parallel degree; else what the others leave."),
    click.option("--virtual-stages", callback=read_count, metavar="N", help="Model chunks per pipeline stage."),
    click.option(
        "--sharding", type=click.IntRange(0, 3), help="0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP)."
    ),
    click.option("--micro-batch", callback=read_count, metavar="N", help="Sequences per GPU and micro-step."),
    click.option(
        "--global-batch", callback=read_count, metavar="N", help="Sequences per step; else usual for the model's size."
    ),
    click.option("--sequence", callback=read_count, metavar="TOKENS", help="Else the model's, at most 8,192."),
    click.option("--recompute", type=click.Choice(("none", "selective", "full")), help="Activations to recompute."),
    click.option("--precision", metavar="NAME", help="bf16, fp16, fp8, fp4, tf32, fp32 or int8."),
    click.option(
        "--method",
        type=click.Choice(("full", "lora", "qlora")),
        default="full",
        show_default=True,
        help="What is trained.",
    ),
    click.option("--lora-rank", callback=read_count, metavar="N", help="Rank of the adapters (default 16)."),
    click.option(
        "--software",
        metavar="CLASS",
        help="unknown (default), vendor, megatron, deepspeed, sharded, eager, compiler, or native.",
    ),
    click.option("--software-year", type=float, metavar="YEAR", help="Age of the software, such as 2024.5."),
)
