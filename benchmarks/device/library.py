"""What people run without tuning it: Hugging Face as it comes, products of small experts, memory read by few cores.

    python -m benchmarks.device.library [--seconds 420] [--tiny]

Training steps whose attention is not fused ("eager": scores in memory, softmax in fp32), short LoRA steps that wait for
the host, `generate` with its default cache, grouped products of experts against one product of the same work, and how
much of the memory's bandwidth a few multiprocessors reach.
"""

import time
from collections.abc import Callable

import torch
from msgspec import Struct
from torch import Tensor

from benchmarks.device.common import CUDA, DEVICE, Table, TimeBox, clean, guarded, options, out, peak_gb, run_cases
from benchmarks.device.common import synchronize as wait
from benchmarks.device.finetune import TARGETS, configuration
from benchmarks.device.steps import COLUMNS, adapted, add_steps, library_model, recomputing
from gpucost.bench.cases import SHAPES


class Case(Struct, frozen=True):
    model: str
    seq: int
    micro: int
    method: str  # full | lora
    attention: str  # eager | sdpa
    recipe: str = "bf16"
    recompute: str = "none"
    rank: int = 16  # of adapters
    family: str = "llama"


def train(table: Table, case: Case) -> None:
    model = library_model(configuration(case.model), recipe=case.recipe, attention=case.attention)
    if case.method == "lora":
        model = adapted(model, case.rank, TARGETS)
    if case.recompute == "full":
        recomputing(model, frozen=case.method == "lora")
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=CUDA)
    clean()
    row = {"task": case.method, "attention": case.attention}
    add_steps(table, model.train(), optimizer, case, SHAPES[case.model], amp=case.recipe == "amp", warmup=2, **row)


def generate(table: Table, model: str, batch: int, prompt: int, new: int) -> None:
    """Time a token of `generate` as it comes: the difference of two lengths, without the prompt."""
    lm = library_model(configuration(model, cache=True)).eval()
    tokens = torch.randint(SHAPES[model].vocab, (batch, prompt), device=DEVICE)
    times = {}
    for length in (4, new, 4, new):  # the first two warm up: their times are overwritten
        wait()
        begin = time.perf_counter()
        with torch.no_grad():
            lm.generate(tokens, max_new_tokens=length, min_new_tokens=length, do_sample=False, pad_token_id=0)
        wait()
        times[length] = time.perf_counter() - begin
    tpot_ms = 1e3 * (times[new] - times[4]) / (new - 4)
    table.add(model=model, batch=batch, prompt=prompt, new=new, tpot_ms=tpot_ms, peak_memory_gb=peak_gb()[0])


def seconds(work: Callable[[], object], tries: int = 5) -> float:
    """Return the median time of a piece of work after a warm-up."""
    times = []
    for _ in range(tries + 2):
        wait()
        begin = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - begin)
    return sorted(times[2:])[tries // 2]


def experts(table: Table, name: str, hidden: int, ffn: int, count: int, chosen: int, tokens: int) -> None:
    """Time the grouped products of a layer's experts, its permutation, and one plain product of the same work."""
    rows = tokens * chosen
    # tokens choose by lot, so that experts get unlike numbers of rows, as they do in training
    sizes = torch.bincount(torch.randint(count, (rows,)), minlength=count)
    ends = torch.cumsum(sizes, 0).to(torch.int32).to(DEVICE)
    x = torch.randn(rows, hidden, dtype=torch.bfloat16, device=DEVICE)
    # rows lie by token and must come to lie by expert, and back
    order = torch.randperm(rows, device=DEVICE)
    up = torch.randn(count, hidden, 2 * ffn, dtype=torch.bfloat16, device=DEVICE)
    single = torch.randn(hidden, 2 * ffn, dtype=torch.bfloat16, device=DEVICE)
    grad = torch.randn(rows, 2 * ffn, dtype=torch.bfloat16, device=DEVICE)

    def permute() -> Tensor:
        return x[order]

    def combine() -> Tensor:
        back = torch.zeros(tokens, hidden, dtype=torch.bfloat16, device=DEVICE)
        return back.index_add_(0, order // chosen, x)

    products = {
        "forward": lambda: torch._grouped_mm(x, up, offs=ends),
        "to_inputs": lambda: torch._grouped_mm(grad, up.transpose(-2, -1), offs=ends),
        "to_weights": lambda: torch._grouped_mm(x.t(), grad, offs=ends),
        "plain": lambda: x @ single,
        "plain_to_weights": lambda: x.t() @ grad,
        "permute": permute,
        "combine": combine,
    }
    flop = 4.0 * rows * hidden * ffn  # two for each product and sum, two matrices side by side
    for kind, work in products.items():
        time_s = seconds(work)
        table.add(
            model=name, hidden=hidden, ffn=ffn, experts=count, chosen=chosen, tokens=tokens, kind=kind, time_s=time_s,
            tflops=0.0 if kind in ("permute", "combine") else flop / time_s / 1e12,
        )  # fmt: skip


def read(table: Table, programs: int) -> None:
    """Time reading 4 GiB by so many programs, one for each multiprocessor that takes part."""
    import triton
    import triton.language as tl

    @triton.jit
    def total(source, target, steps, stride, BLOCK: tl.constexpr):
        start, sums = tl.program_id(0) * BLOCK, tl.zeros([BLOCK], dtype=tl.int32)
        for step in range(steps):
            sums += tl.load(source + start + step * stride + tl.arange(0, BLOCK))
        tl.store(target + start + tl.arange(0, BLOCK), sums)

    block = 16_384  # of integers: 64 KiB a step, enough in flight to hide the latency of memory
    source = torch.zeros(1 << 30, dtype=torch.int32, device=DEVICE)
    target = torch.zeros(programs * block, dtype=torch.int32, device=DEVICE)
    steps = source.numel() // (programs * block)
    time_s = seconds(lambda: total[(programs,)](source, target, steps, programs * block, BLOCK=block, num_warps=16))
    table.add(programs=programs, gb_per_s=4.0 * steps * programs * block / time_s / 1e9)


CASES = [
    Case("llama3-8b", 512, 1, "lora", "sdpa"),
    Case("llama3-8b", 512, 1, "lora", "eager"),
    Case("llama3.2-1b", 1024, 8, "full", "eager"),
    Case("llama3.2-1b", 2048, 4, "full", "eager"),
    Case("llama3.2-1b", 4096, 2, "full", "eager"),
    Case("llama3.2-3b", 2048, 2, "full", "eager"),
    Case("llama3.2-3b", 2048, 2, "full", "eager", recompute="full"),
    Case("llama3-8b", 2048, 2, "lora", "eager", recompute="full"),
    Case("llama3-8b", 1024, 2, "lora", "eager"),
    Case("llama3.2-1b", 2048, 2, "full", "eager", recipe="amp"),
    Case("llama3.2-1b", 256, 1, "lora", "sdpa"),
    Case("llama3.2-3b", 512, 2, "lora", "sdpa"),
]
# model, sequences at once
GENERATED = [("llama3-8b", 1), ("llama3-8b", 16), ("llama3.2-1b", 1), ("llama3.2-3b", 16)]
EXPERTS = {  # hidden, feed-forward, experts (on one GPU) and those that a token chooses
    "qwen3-30b-a3b": (2048, 768, 128, 8),
    "gpt-oss-120b": (2880, 2880, 128, 4),
    "qwen3-235b-a22b": (4096, 1536, 128, 8),
    "deepseek-v3": (7168, 2048, 32, 8),
    "olmoe": (2048, 1024, 64, 8),
    "mixtral-8x7b": (4096, 14336, 8, 2),
}


def main() -> None:
    arguments = options(__doc__, 420)
    box = TimeBox(arguments.seconds)
    steps = Table(out("library-train.csv"), ["task", "attention", "lora_rank", "family", *COLUMNS])
    generated = Table(out("library-generate.csv"), ["model", "batch", "prompt", "new", "tpot_ms", "peak_memory_gb"])
    products = Table(
        out("library-experts.csv"),
        ["model", "hidden", "ffn", "experts", "chosen", "tokens", "kind", "time_s", "tflops"],
    )
    speeds = Table(out("library-read.csv"), ["programs", "gb_per_s"])
    if arguments.tiny:
        guarded(lambda: train(steps, Case("tiny", 32, 1, "full", "eager")), "tiny")
        guarded(lambda: generate(generated, "tiny", 1, 8, 8), "tiny")
        return
    for name, sizes in EXPERTS.items():
        for tokens in (4096, 16_384):
            guarded(lambda n=name, s=sizes, t=tokens: experts(products, n, *s, t), name)
    # as many programs as an H100 has multiprocessors (132), fewer, and two on each
    for programs in (8, 16, 32, 48, 64, 78, 96, 108, 132, 264):
        guarded(lambda p=programs: read(speeds, p), str(programs))
    run_cases(train, steps, CASES, box)
    for model, batch in GENERATED:
        if not box.over():
            guarded(lambda m=model, b=batch: generate(generated, m, b, 512, 64), f"{model} × {batch}")


if __name__ == "__main__":
    main()
