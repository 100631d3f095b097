"""What a training run takes where nobody says: the sequence, the batch. One rule, whoever asks."""

import numpy as np

from gpucost.physics.transformer import active_parameters, stack
from gpucost.types import Architecture

DEFAULT_SEQUENCE = 8192  # of Llama 3 (arXiv:2407.21783)
_FINE_TUNING_SEQUENCES = 128  # assumed: more than the 16 to 64 of QLoRA (arXiv:2305.14314)
_TOKENS_PER_BATCH_AT_7B = 4e6  # Llama 2 (arXiv:2307.09288, table 1)
_SMALLEST_BATCH_TOKENS, _LARGEST_BATCH_TOKENS = 0.5e6, 16e6


def default_sequence(architecture: Architecture) -> int:
    """Return the tokens of a sequence where none are given: as it was trained, else the model's own, at most 8,192."""
    longest = architecture.max_sequence_tokens or DEFAULT_SEQUENCE
    return architecture.trained_sequence_tokens or min(longest, DEFAULT_SEQUENCE)


def default_batch(architecture: Architecture, sequence_tokens: float, method: str = "full") -> int:
    """Return sequences per step: as many tokens as it was trained on, else 4M at 7B active parameters, 0.5M to 16M.

    They grow with the square root of the parameters, in line with published runs (GPT-2 124M 0.5M, Llama 2 4M,
    Llama 3.1 405B 16M tokens), rounded to a power of two, so that they divide over clusters. Adapters are trained on
    128 sequences.
    """
    if method != "full":
        return _FINE_TUNING_SEQUENCES
    # the tokens of its batch, at whatever sequence is asked about
    if trained := (architecture.trained_sequence_tokens or 0) * (architecture.trained_batch_sequences or 0):
        return max(1, round(trained / sequence_tokens))
    parameters = float(active_parameters(stack([architecture]))[0])
    tokens = min(
        max(_TOKENS_PER_BATCH_AT_7B * (parameters / 7e9) ** 0.5, _SMALLEST_BATCH_TOKENS), _LARGEST_BATCH_TOKENS
    )
    return int(2 ** max(0, round(float(np.log2(tokens / sequence_tokens)))))
