"""Training steps written as others write them: GPT-2 style scripts, other library models, default settings.

    python -m benchmarks.device.variants [--seconds 200] [--tiny]
    torchrun --nproc-per-node 2 -m benchmarks.device.variants [--seconds 200]

They hold the memory model against software that it was not derived from.
"""

import torch
import torch.nn.functional as F
from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from benchmarks.device.common import DEVICE, WORLD, Table, TimeBox, clean, options, out, ranks, run_cases
from benchmarks.device.steps import COLUMNS, adapted, add_steps, library_config, library_model, recomputing
from gpucost.bench.cases import ModelShape

SHAPES = {  # as published, where the bench's GPT-2 has a gated feed-forward of as many parameters
    "gpt2-124m": ModelShape(12, 768, 12, 12, 3072, 50304),
    "gpt2-xl": ModelShape(48, 1600, 25, 25, 6400, 50304),
    "llama3.2-1b": ModelShape(16, 2048, 32, 8, 8192, 128256),
    "llama3-8b": ModelShape(32, 4096, 32, 8, 14336, 128256),
    "qwen2.5-7b": ModelShape(28, 3584, 28, 4, 18944, 152064),
    "gemma-2b": ModelShape(18, 2048, 8, 1, 16384, 256000, 256),
    "mixtral-small": ModelShape(12, 1024, 16, 4, 3584, 32000),
    "mistral-7b": ModelShape(32, 4096, 32, 8, 14336, 32000),
    "tiny": ModelShape(2, 64, 4, 4, 256, 256),
}


class Case(Struct, frozen=True):
    """One kind of training to measure; marks are 0 or 1, as the table's cells are."""

    model: str  # of SHAPES
    family: str  # gpt2-script | llama | qwen2 | gemma | mixtral | mistral | gpt2
    seq: int  # tokens
    micro: int  # sequences of a step
    recompute: str = "none"
    recipe: str = "bf16"
    compiled: int = 0
    targets: str = ""  # of adapters; none: all weights are trained
    rank: int = 0  # of adapters
    zero: int = 0  # 3: sharded; else each rank holds a copy
    optimizer: str = "fused"
    views: int = 0  # gradients are views of the buckets that ranks exchange, and take no memory of their own


class _Layer(nn.Module):
    """A pre-norm layer of GPT-2: one projection for queries, keys and values, GELU, biases."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        d = shape.hidden
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, shape.ffn), nn.Linear(shape.ffn, d)

    def forward(self, x: Tensor) -> Tensor:
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(d, dim=2)
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).contiguous().view(b, s, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class _Script(nn.Module):
    """A GPT-2 as small training scripts write it: learned positions, tied embeddings, the loss over all logits."""

    def __init__(self, shape: ModelShape, seq: int, recompute: str) -> None:
        super().__init__()
        self.recompute = recompute
        self.tokens, self.positions = nn.Embedding(shape.vocab, shape.hidden), nn.Embedding(seq, shape.hidden)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.LayerNorm(shape.hidden), nn.Linear(shape.hidden, shape.vocab, bias=False)
        self.head.weight = self.tokens.weight  # one matrix at both ends

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        x = self.tokens(input_ids) + self.positions(torch.arange(input_ids.shape[1], device=input_ids.device))
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute == "full" else layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def build(case: Case) -> nn.Module:
    """Build the model of a case, ready to train: adapted, recomputing, compiled as the case says."""
    if case.family == "gpt2-script":
        dtype = torch.float32 if case.recipe == "amp" else torch.bfloat16
        model: nn.Module = _Script(SHAPES[case.model], case.seq, case.recompute).to(DEVICE, dtype)
        return torch.compile(model) if case.compiled else model
    if case.family == "gpt2":
        from transformers import GPT2Config

        shape = SHAPES[case.model]
        sizes = {"vocab_size": shape.vocab, "n_embd": shape.hidden, "n_layer": shape.layers, "n_head": shape.heads}
        # dropout would keep a mask for each activation
        dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        config = GPT2Config(n_positions=case.seq, use_cache=False, **sizes, **dropout)
    else:
        experts = {"num_local_experts": 8, "num_experts_per_tok": 2} if case.family == "mixtral" else {}
        tied = case.model in ("llama3.2-1b", "gemma-2b")
        config = library_config(SHAPES[case.model], case.family, tied=tied, **experts)
    model = library_model(config, recipe=case.recipe)
    if case.targets:
        # peft takes a list of modules' names, or one of its own words for many, such as all-linear
        targets = case.targets.split(",") if "," in case.targets else case.targets
        model = adapted(model, case.rank, targets)
    if case.recompute == "full":
        recomputing(model, frozen=bool(case.targets))
    model.train()
    return torch.compile(model) if case.compiled else model


def spread(model: nn.Module, case: Case) -> nn.Module:
    """Share a model among the ranks: sharded, or a copy on each."""
    if WORLD == 1:
        return model
    if case.zero == 3:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        # as FSDP is used: weights gathered in bf16, gradients summed in fp32
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
        return model
    return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=bool(case.views))


def run(table: Table, case: Case) -> None:
    """Measure the steps of a case, and add them to the table."""
    torch._dynamo.reset()  # else graphs of the case before stay in memory
    model = spread(build(case), case)
    clean()
    trained = [p for p in model.parameters() if p.requires_grad]
    if case.optimizer == "fused":
        optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    else:  # as a script gets it that sets nothing
        optimizer = torch.optim.AdamW(trained, lr=1e-5)
    amp = case.recipe == "amp" and case.zero < 2  # a sharded model casts by its policy
    row = {"targets": case.targets, "views": case.views}
    add_steps(table, model, optimizer, case, SHAPES[case.model], amp=amp, warmup=2, **row)


# on one GPU
SINGLE = [
    Case("gpt2-124m", "gpt2-script", 1024, 32, recipe="amp", compiled=1),
    Case("gpt2-124m", "gpt2-script", 1024, 32, recipe="amp"),
    Case("gpt2-xl", "gpt2-script", 1024, 8, "full", recipe="amp"),
    Case("gpt2-xl", "gpt2-script", 1024, 4),
    Case("gpt2-124m", "gpt2", 1024, 16, recipe="amp"),
    Case("gpt2-xl", "gpt2", 1024, 4),
    Case("llama3.2-1b", "llama", 4096, 2, compiled=1),
    Case("qwen2.5-7b", "qwen2", 2048, 2, targets="q_proj,v_proj", rank=8),
    Case("qwen2.5-7b", "qwen2", 4096, 2, "full"),
    Case("gemma-2b", "gemma", 2048, 4),
    Case("gemma-2b", "gemma", 4096, 2, "full", optimizer="default"),
    Case("mixtral-small", "mixtral", 2048, 4),
    Case("mixtral-small", "mixtral", 2048, 4, "full", recipe="amp"),
    Case("mistral-7b", "mistral", 8192, 1, targets="all-linear", rank=32),
    Case("mistral-7b", "mistral", 2048, 1, "full", optimizer="default"),
    Case("llama3.2-1b", "llama", 2048, 1, optimizer="default", recipe="amp"),
]
# on two
_PAIR = [
    Case("llama3.2-1b", "llama", 2048, 4, recipe="amp"),
    Case("llama3.2-1b", "llama", 2048, 4, recipe="amp", views=1),
    Case("gpt2-124m", "gpt2-script", 1024, 32, recipe="amp", compiled=1),
    Case("mistral-7b", "mistral", 4096, 1, recipe="amp", zero=3),
    Case("mistral-7b", "mistral", 4096, 4, "full", recipe="amp", zero=3),
    Case("qwen2.5-7b", "qwen2", 2048, 2, "full", recipe="amp", zero=3),
    Case("llama3-8b", "llama", 2048, 2, targets="all-linear", rank=16, zero=0),
]


def main() -> None:
    arguments = options(__doc__, 200)
    cases = SINGLE if WORLD == 1 else _PAIR
    if arguments.tiny:
        # each kind once, of a model that any machine holds; Gemma's heads are wider than it
        small = {"model": "tiny", "seq": 32, "micro": 1, "compiled": 0, "rank": 4, "optimizer": "fused"}
        kinds = dict.fromkeys(replace(case, **small) for case in cases if case.family != "gemma")
        cases = list(kinds)
    with ranks():
        table = Table(out(f"variants-{WORLD}.csv"), ["family", "targets", "lora_rank", "views", *COLUMNS])
        run_cases(run, table, cases, TimeBox(arguments.seconds))


if __name__ == "__main__":
    main()
