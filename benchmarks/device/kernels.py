"""Kernel rates on one GPU: matrix products, attention, memory-bound operations, optimizer steps.

python -m benchmarks.device.kernels [--seconds 120] [--tiny]
"""

import argparse
import math

import torch
import torch.nn.functional as F

from benchmarks.device.common import CUDA, DEVICE, Table, TimeBox, graph_seconds, guarded, out, seconds

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def rotating(shape: tuple[int, ...], dtype: torch.dtype, copies: int) -> list[torch.Tensor]:
    return [torch.randn(shape, device=DEVICE, dtype=dtype) for _ in range(copies)]


def matmul(table: Table, precision: str, m: int, k: int, n: int) -> None:
    """One linear layer: m tokens, k inputs, n outputs; several weight sets so that the cache holds none of them."""
    width = 1 if precision == "fp8" else 2
    copies = max(1, min(16, math.ceil(200e6 / (width * (k * n + m * k)))))
    if precision == "fp8":
        inputs = [x.to(torch.float8_e4m3fn) for x in rotating((m, k), torch.bfloat16, copies)]
        weights = [w.to(torch.float8_e4m3fn) for w in rotating((n, k), torch.bfloat16, copies)]
        one = torch.ones((), device=DEVICE)

        def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    else:
        inputs, weights = rotating((m, k), DTYPES[precision], copies), rotating((n, k), DTYPES[precision], copies)
        product = F.linear

    def step() -> None:
        for x, w in zip(inputs, weights, strict=True):
            product(x, w)

    flop = 2.0 * m * k * n
    calls = int(max(1, min(20, 2e-3 / max(flop / 6e14, width * k * n / 4e12) / copies)))
    time_s = graph_seconds(step, calls=calls) / copies
    table.add(
        op="matmul",
        precision=precision,
        m=m,
        k=k,
        n=n,
        time_s=time_s,
        tflops=flop / time_s / 1e12,
        gb_per_s=(width * (m * k + k * n) + 2 * m * n) / time_s / 1e9,
    )


def attention(table: Table, batch: int, sequence: int, heads: int, kv_heads: int, head_dim: int) -> None:
    def heads_of(count: int) -> torch.Tensor:
        return torch.randn(batch, count, sequence, head_dim, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)

    q, k, v = heads_of(heads), heads_of(kv_heads), heads_of(kv_heads)
    output = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)
    grad = torch.randn_like(output)

    def forward() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)

    def backward() -> None:
        torch.autograd.grad(output, (q, k, v), grad, retain_graph=True)

    flop = 2.0 * batch * heads * sequence * sequence * head_dim  # causal: half of 4·b·h·s²·d
    shape = {"m": batch, "k": sequence, "n": head_dim, "heads": heads, "kv_heads": kv_heads, "precision": "bf16"}
    for name, step, factor in (("attention_forward", forward, 1.0), ("attention_backward", backward, 2.5)):
        time_s = seconds(step, warmup=3, repeat=7)
        table.add(op=name, **shape, time_s=time_s, tflops=factor * flop / time_s / 1e12)


def memory_bound(table: Table, tokens: int, hidden: int) -> None:
    """Element-wise and normalising operations, eager and compiled: bytes by the least that must move."""
    x = torch.randn(tokens, hidden, device=DEVICE, dtype=torch.bfloat16)
    y, weight = torch.randn_like(x), torch.ones(hidden, device=DEVICE, dtype=torch.bfloat16)

    def rms(x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (hidden,), weight, 1e-5)

    def gate(x: torch.Tensor) -> torch.Tensor:
        return F.silu(x) * y

    cases = {
        "copy": (lambda x: x.clone(), 4),
        "add": (lambda x: x + y, 6),
        "rms_norm": (rms, 4),
        "silu_mul": (gate, 6),
    }
    for name, (operation, bytes_per_element) in cases.items():
        for mode in ("eager", "compiled"):
            if mode == "compiled" and (name in ("copy", "add") or not CUDA):
                continue
            function = torch.compile(operation) if mode == "compiled" else operation
            time_s = seconds(lambda f=function: f(x), repeat=10)
            table.add(
                op=name,
                precision="bf16",
                mode=mode,
                m=tokens,
                k=hidden,
                time_s=time_s,
                gb_per_s=bytes_per_element * x.numel() / time_s / 1e9,
            )


def cross_entropy(table: Table, tokens: int, vocab: int) -> None:
    logits = torch.randn(tokens, vocab, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(vocab, (tokens,), device=DEVICE)

    def eager() -> None:
        torch.autograd.grad(F.cross_entropy(logits.float(), labels), logits)

    compiled_loss = torch.compile(lambda z, t: F.cross_entropy(z.float(), t)) if CUDA else None

    def compiled() -> None:
        torch.autograd.grad(compiled_loss(logits, labels), logits)

    for mode, step in (("eager", eager), ("compiled", compiled)):
        if mode == "compiled" and compiled_loss is None:
            continue
        time_s = seconds(step, repeat=5)
        table.add(
            op="cross_entropy",
            precision="bf16",
            mode=mode,
            m=tokens,
            n=vocab,
            time_s=time_s,
            gb_per_s=6.0 * tokens * vocab / time_s / 1e9,
        )


def optimizer(table: Table, parameters: int, dtype: torch.dtype, mode: str) -> None:
    """AdamW over 32 equal tensors: seconds and bytes per parameter (read p, g, m, v; write p, m, v)."""
    weights = [torch.randn(parameters // 32, device=DEVICE, dtype=dtype, requires_grad=True) for _ in range(32)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    adamw = torch.optim.AdamW(weights, lr=1e-4, fused=mode == "fused", foreach=mode == "foreach")
    time_s = seconds(adamw.step, warmup=2, repeat=5)
    width = weights[0].element_size()
    table.add(
        op="adamw",
        precision={4: "fp32", 2: "bf16"}[width],
        mode=mode,
        m=parameters,
        time_s=time_s,
        gb_per_s=7.0 * width * parameters / time_s / 1e9,
    )


def matmul_cases(tiny: bool) -> list[tuple[str, int, int, int]]:
    if tiny:
        return [("bf16", 32, 64, 64)]
    widths = [
        (1024, 1024),
        (2048, 2048),
        (4096, 4096),
        (4096, 14336),
        (14336, 4096),
        (8192, 8192),
        (8192, 28672),
        (4096, 128256),
    ]
    cases = [("bf16", m, k, n) for k, n in widths for m in (1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)]
    cases += [
        ("bf16", m, k, n)
        for k, n in ((512, 512), (768, 3072), (16384, 16384), (8192, 1024), (1024, 8192))
        for m in (16, 128, 1024, 8192, 32768)
    ]
    cases += [("bf16", m, k, n) for m, k, n in ((4096, 8192, 4096), (14336, 8192, 4096), (4096, 32768, 14336))]
    cases += [("fp8", m, k, n) for k, n in widths[2:7] for m in (16, 64, 256, 1024, 4096, 16384)]
    cases += [("fp16", m, 4096, n) for n in (4096, 14336) for m in (128, 1024, 8192)]
    return cases


def attention_cases(tiny: bool) -> list[tuple[int, int, int, int, int]]:
    if tiny:
        return [(1, 64, 4, 2, 16)]
    cases = [(max(1, 16384 // s), s, 32, 8, 128) for s in (512, 1024, 2048, 4096, 8192, 16384, 32768)]
    cases += [(max(1, 16384 // s), s, 12, 12, 64) for s in (1024, 4096, 16384)]
    return [*cases, (8, 2048, 8, 2, 128), (2, 8192, 64, 8, 128), (4, 4096, 16, 16, 256)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to try the script without a GPU")
    options = parser.parse_args()
    tiny, box = options.tiny, TimeBox(options.seconds)
    table = Table(
        out("kernels.csv"),
        ["op", "precision", "mode", "m", "k", "n", "heads", "kv_heads", "time_s", "tflops", "gb_per_s"],
    )
    for tokens, hidden in [(64, 64)] if tiny else [(4096, 4096), (16384, 4096), (65536, 8192)]:
        guarded(lambda t=tokens, h=hidden: memory_bound(table, t, h), f"memory_bound {tokens} {hidden}")
    for dtype, mode in ((torch.float32, "fused"), (torch.float32, "foreach"), (torch.bfloat16, "fused")):
        guarded(lambda d=dtype, m=mode: optimizer(table, 1024 if tiny else 2**30, d, m), f"adamw {mode}")
    guarded(lambda: cross_entropy(table, 16 if tiny else 8192, 64 if tiny else 128256), "cross_entropy")
    for case in attention_cases(tiny):
        guarded(lambda c=case: attention(table, *c), f"attention {case}")
    for case in matmul_cases(tiny):
        if box.over():
            break
        guarded(lambda c=case: matmul(table, *c), f"matmul {case}")


if __name__ == "__main__":
    main()
