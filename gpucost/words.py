"""Closed lists of words that arguments offer and physics reads as codes: their order is the order of the codes."""

PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32", "int8")
METHODS = ("full", "lora", "qlora")
DISPATCHERS = ("alltoall", "fused")  # how tokens reach experts on other ranks
RECOMPUTES = ("none", "selective", "full")
STYLES = ("fused", "compiled", "compiled_model", "eager", "autocast", "library", "library_autocast", "trainer")
OFFLOADS = ("none", "states", "all")
# what options are ranked by, by question
RANKS = ("budget", "expected", "quoted", "time")  # what offers are ordered by, where cost is to be small
GOALS = {"estimate": ("cost", "time", "pareto", "carbon"), "inference": ("cost", "latency", "carbon")}
# of training stacks
CLASSES = (
    "vendor",  # Megatron-Core, NeMo and tuned submissions built on them: fused kernels, communication overlapped
    "megatron",  # Megatron-LM of 2021-2023: fused kernels, little overlap
    "deepspeed",  # Megatron-DeepSpeed, GPT-NeoX, ZeRO: library defaults over Megatron's kernels
    "sharded",  # PyTorch FSDP with flash attention: LLM Foundry, torchtitan, lit-gpt
    "eager",  # Hugging Face and plain scripts without compilation
    "compiler",  # XLA: MaxText, PaxML, Levanter
    "native",  # hand-written C and CUDA
    "neuron",  # NeuronX: XLA on Trainium
    "unknown",
)
