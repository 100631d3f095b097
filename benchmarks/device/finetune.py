"""Fine-tuning steps as library users run them: Hugging Face transformers, adapters by peft, SDPA, eager.

    python -m benchmarks.device.finetune [--seconds 150] [--tiny]

Adapters are rank-r on every linear layer of a
block, fp32 as peft makes them over a bf16 base. `frozen4` holds the frozen base as packed 4-bit weights that
are unpacked to bf16 for each product, forward and backward: the memory pattern of QLoRA.
"""

import torch
from msgspec import Struct
from torch import Tensor, nn

from benchmarks.device.common import DEVICE, Table, TimeBox, clean, options, out, run_cases
from benchmarks.device.steps import COLUMNS, adapted, add_steps, library_config, library_model, recomputing
from gpucost.bench.cases import SHAPES

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Case(Struct, frozen=True):
    model: str
    seq: int
    micro: int
    recompute: str
    method: str  # lora | frozen4 | full
    rank: int = 16
    recipe: str = "bf16"
    family: str = "llama"


class _Packed(torch.autograd.Function):
    """y = x·Wᵀ with W unpacked from 4 bits for each product; only the packed bytes are kept."""

    @staticmethod
    def forward(ctx, x: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(packed, scale)  # not x: no gradient of a frozen matrix is asked for
        return x @ _unpacked(packed, scale).t()

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad @ _unpacked(*ctx.saved_tensors), None, None


def _unpacked(packed: Tensor, scale: Tensor) -> Tensor:
    # two values to a byte, a scale for each 64 of a row
    low, high = (packed & 15).to(torch.bfloat16) - 8, (packed >> 4).to(torch.bfloat16) - 8
    whole = torch.stack((low, high), -1).view(scale.shape[0], -1, 64)
    return (whole * scale[:, :, None]).view(scale.shape[0], -1)


class _FrozenLinear(nn.Module):
    """A frozen matrix in four bits, and its adapters in fp32."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.register_buffer("packed", torch.randint(0, 255, (outputs, inputs // 2), dtype=torch.uint8, device=DEVICE))
        self.register_buffer("scale", torch.full((outputs, inputs // 64), 0.01, dtype=torch.bfloat16, device=DEVICE))
        self.down = nn.Parameter(torch.randn(rank, inputs, device=DEVICE) * 0.01)
        self.up = nn.Parameter(torch.zeros(outputs, rank, device=DEVICE))

    def forward(self, x: Tensor) -> Tensor:
        # adapters in their own precision, as peft does
        update = x.to(self.down.dtype) @ self.down.t() @ self.up.t()
        return _Packed.apply(x, self.packed, self.scale) + update.to(x.dtype)


def configuration(model: str, family: str = "llama", cache: bool = False):
    """Return the configuration of a model in Transformers, of the shape that every benchmark times."""
    tied = model in ("llama3.2-1b", "llama3.2-3b", "qwen2.5-1.5b")
    return library_config(SHAPES[model], family, tied=tied, cache=cache)


def build(case: Case) -> nn.Module:
    model = library_model(configuration(case.model, case.family), recipe=case.recipe)
    if case.method == "lora":
        model = adapted(model, case.rank, TARGETS)
    if case.method == "frozen4":
        model.requires_grad_(False)
        for layer in model.model.layers:
            # every linear layer of a block; embedding and head stay as they are
            for part in (layer.self_attn, layer.mlp):
                for name in [n for n, child in part.named_children() if n in TARGETS]:
                    old = getattr(part, name)
                    setattr(part, name, _FrozenLinear(old.in_features, old.out_features, case.rank))
    if case.recompute == "full":
        recomputing(model, frozen=case.method != "full")
    return model.train()


def run(table: Table, case: Case) -> None:
    model = build(case)
    clean()  # what building took is no part of the steps' peak
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    add_steps(table, model, optimizer, case, SHAPES[case.model], amp=case.recipe == "amp", warmup=1, task=case.method)


# in order of worth: a run that is cut short has measured what matters most
CASES = [
    Case("llama3-8b", 2048, 4, "full", "lora"),
    Case("llama2-13b", 4096, 1, "none", "lora"),
    Case("llama3.2-1b", 2048, 8, "none", "full"),
    Case("llama3.2-3b", 2048, 4, "full", "full"),
    Case("llama3-8b", 2048, 4, "none", "lora"),
    Case("llama3.2-3b", 4096, 2, "none", "full"),
    Case("llama3.2-1b", 4096, 4, "none", "lora", rank=64),
    Case("llama3.2-3b", 8192, 2, "full", "lora"),
    Case("llama3.2-1b", 2048, 4, "none", "full", recipe="amp"),
    Case("llama3.2-1b", 2048, 4, "full", "full", recipe="amp"),
    Case("qwen2.5-1.5b", 2048, 4, "none", "full", family="qwen2"),
    Case("qwen2.5-1.5b", 4096, 4, "full", "lora", family="qwen2"),
    Case("llama3-8b", 1024, 8, "full", "frozen4"),
    Case("llama3-8b", 2048, 2, "none", "frozen4"),
    Case("llama2-13b", 2048, 2, "full", "lora"),
    Case("llama2-7b", 1024, 4, "none", "lora", rank=8),
    Case("34b", 2048, 1, "full", "lora"),
]


def main() -> None:
    arguments = options(__doc__, 150)
    table = Table(out("finetune.csv"), ["task", "lora_rank", "family", *COLUMNS])
    tiny = [  # each kind of case
        Case("tiny", 32, 1, "none", "lora", 4),
        Case("tiny", 32, 1, "full", "lora", 4, family="qwen2"),
        Case("tiny", 32, 1, "none", "full", 4, recipe="amp"),
        Case("tiny", 32, 1, "full", "frozen4", 4),
    ]
    run_cases(run, table, tiny if arguments.tiny else CASES, TimeBox(arguments.seconds))


if __name__ == "__main__":
    main()
