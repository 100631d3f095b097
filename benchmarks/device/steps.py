"""Training steps of library models: how they are built and timed, and what a row says of them."""

import time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.device.common import CUDA, DEVICE, WORLD, Table, peak_gb, synchronize
from gpucost.bench.cases import ModelShape

# of a row of steps; forward_backward_s and optimizer_s are measured by the bench's own steps alone
COLUMNS = [
    "model", "params_b", "n_layers", "hidden", "n_heads", "n_kv_heads", "ffn_hidden", "vocab", "seq_len", "n_gpus",
    "tp", "dp", "zero_stage", "micro_batch", "accumulate", "activation_recompute", "recipe", "compiled", "optimizer",
    "loss_chunk_tokens", "loss_chunk_recompute", "forward_backward_s", "optimizer_s", "measured_iter_time_s",
    "measured_tokens_per_s_per_gpu", "after_forward_gb", "before_step_gb", "peak_memory_gb", "peak_reserved_gb",
]  # fmt: skip


def library_config(shape: ModelShape, family: str = "llama", *, tied: bool, cache: bool = False, **more: Any) -> Any:
    """Return the configuration of a model in Transformers: one of Llama's kind, of a shape."""
    import transformers

    kinds = {
        "llama": transformers.LlamaConfig,
        "qwen2": transformers.Qwen2Config,
        "gemma": transformers.GemmaConfig,
        "mistral": transformers.MistralConfig,
        "mixtral": transformers.MixtralConfig,
    }
    return kinds[family](
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.ffn,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.width,
        max_position_embeddings=65536,  # longer than any case
        tie_word_embeddings=tied,
        use_cache=cache,
        **more,
    )


def library_model(config: Any, *, recipe: str = "bf16", attention: str = "sdpa") -> nn.Module:
    """Build a model of Transformers with random weights: time and memory do not depend on their values."""
    from transformers import AutoModelForCausalLM

    # mixed precision keeps its weights in fp32 and casts them for each product
    dtype = torch.float32 if recipe == "amp" else torch.bfloat16
    with torch.device(DEVICE):
        return AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype)


def adapted(model: nn.Module, rank: int, targets: str | list[str]) -> nn.Module:
    """Freeze a model and give it adapters as peft makes them."""
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model, LoraConfig(r=rank, target_modules=targets, lora_dropout=0.0))


def recomputing(model: nn.Module, frozen: bool) -> None:
    """Keep no activations of a block but its input."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if frozen:  # else no input of a block asks for a gradient, and nothing flows back through it
        model.enable_input_require_grads()


def dimensions(model: str, shape: ModelShape, parameters: int) -> dict[str, Any]:
    """What a row says of a model."""
    return {
        "model": model,
        "params_b": parameters / 1e9,
        "n_layers": shape.layers,
        "hidden": shape.hidden,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "ffn_hidden": shape.ffn,
        "vocab": shape.vocab,
    }


def allocated_gb() -> float:
    return torch.cuda.memory_allocated() / 1e9 if CUDA else float("nan")


def add_steps(
    table: Table,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    case: Any,
    shape: ModelShape,
    *,
    amp: bool,
    warmup: int,
    **row: Any,
) -> None:
    """Time steps of a library model and write a row: the median of three; `row` adds to what a case says."""
    tokens = torch.randint(shape.vocab, (case.micro, case.seq), device=DEVICE)
    times, marks = [], {}
    for index in range(warmup + 3):
        if index == warmup and CUDA:  # the first steps also hold what compiling and choosing kernels take
            torch.cuda.reset_peak_memory_stats()
        synchronize()
        begin = time.perf_counter()
        # mixed precision as users ask for it: products in bf16, what is delicate in fp32
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=amp):
            loss = model(input_ids=tokens, labels=tokens)
            # a script returns its loss, a library an object that holds it
            loss = loss if isinstance(loss, Tensor) else loss.loss
        marks["after_forward_gb"] = allocated_gb()
        loss.backward()
        marks["before_step_gb"] = allocated_gb()
        del loss  # it holds the logits, and the next step would find them there
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        times.append(time.perf_counter() - begin)
    time_s = sorted(times[warmup:])[1]  # the median of three: one step may meet another program
    peak, reserved = peak_gb()
    table.add(
        **dimensions(case.model, shape, sum(p.numel() for p in model.parameters())), **marks, **row,
        seq_len=case.seq, micro_batch=case.micro, accumulate=1, activation_recompute=case.recompute,
        recipe=case.recipe, family=case.family, lora_rank=case.rank, loss_chunk_tokens=0, n_gpus=WORLD, tp=1, dp=WORLD,
        zero_stage=getattr(case, "zero", 0), compiled=getattr(case, "compiled", 0),
        optimizer=getattr(case, "optimizer", "fused"), measured_iter_time_s=time_s,
        measured_tokens_per_s_per_gpu=case.micro * case.seq / time_s, peak_memory_gb=peak, peak_reserved_gb=reserved,
    )  # fmt: skip
