"""Models that do not generate tokens: embeddings, rerankers, speech, images; FLOP, bytes and fixed time of a unit.

All is a roofline: arithmetic at a share of the dense 16-bit peak, then memory traffic at a share of the bandwidth, then
the fixed time of steps that cannot be batched further. The shares are assumptions with wide ends, not fits: no
measurement of such models has been entered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from gpucost.physics import diffusion, transformer
from gpucost.physics.hardware import peak
from gpucost.types import Accelerator, Architecture
from gpucost.units import GB, GIB, SECONDS_PER_HOUR, TERA

_UNITS = {
    "embedding": "million tokens",
    "reranker": "million tokens",
    "speech": "hour of audio",
    "unet": "image",
    "dit": "image",
}
PLURALS = {"million tokens": "million tokens", "hour of audio": "hours of audio", "image": "images"}
NAMES = {
    "embedding": "an encoder for embeddings",
    "reranker": "a reranker",
    "vision": "a language model that sees images",
    "speech": "a speech recogniser",
    "unet": "a diffusion model (UNet)",
    "dit": "a diffusion model (transformer)",
}
# of weights and activations alike; formats of 4 bits are not usual for such models
VALUE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}


class Ends(NamedTuple):
    """A slow, a usual and a fast case."""

    slow: float
    typical: float
    fast: float


# Shares of the dense peak. Assumed: well batched encoders reach what prefill of language models does, small widths and
# convolutions less; a pipeline without a compiler lies at the slow end.
_OF_PEAK = {
    "embedding": Ends(0.15, 0.40, 0.65),
    "reranker": Ends(0.15, 0.40, 0.65),
    "vision": Ends(0.15, 0.35, 0.60),
    "speech": Ends(0.15, 0.35, 0.60),
    "unet": Ends(0.18, 0.35, 0.55),
    "dit": Ends(0.25, 0.45, 0.65),
}
_NARROW = 1536  # width below which matrices are too small to fill an accelerator
_NARROW_RATIO = Ends(0.4, 0.65, 1.0)
_OF_BANDWIDTH = Ends(0.4, 0.6, 0.8)  # assumed, a little below what decoding reaches: these steps move less at once
_RUNTIME_GB = 1.5  # context of the driver and the libraries, assumed

# Speech: text tokens per second of talk, sequences decoded at once, time of a decoder layer without a roof. Assumed:
# 150 words a minute of 1.35 tokens; frameworks launch each kernel of a layer, compiled graphs do not.
_SPOKEN_TOKENS_PER_S = Ends(4.5, 3.4, 2.2)
_WINDOW_S = 30.0  # of audio, at once through the encoder
_WINDOWS_AT_ONCE = Ends(8, 24, 64)
_LAYER_S = Ends(8e-4, 3e-4, 5e-5)


class Task(Struct, frozen=True):
    """What one unit takes: `flop`, bytes and fixed seconds in a slow, a usual and a fast case; what memory holds."""

    name: str
    kind: str
    unit: str
    parameters: float
    flop: Ends
    traffic_bytes: Ends
    fixed_s: Ends
    activation_gb: float
    batch: int
    assumptions: tuple[str, ...]  # in words, for the reader
    width: int
    request_units: float = 1.0  # that one request is: of an encoder its tokens, in millions


class TaskSpeed(NamedTuple):
    """How fast one accelerator works: seconds of a unit in a slow, a usual and a fast case, and what binds it."""

    seconds: Ends
    bottleneck: str


def speed(task: Task, chip: Accelerator, precision: str) -> TaskSpeed | None:
    """Return how long a chip takes for a unit; None where it lacks the precision."""
    dense = peak(chip, precision).tflops
    if not dense > 0:  # NaN too
        return None
    shares = _OF_PEAK[task.kind]
    if task.width < _NARROW:
        shares = Ends(*(share * ratio for share, ratio in zip(shares, _NARROW_RATIO, strict=True)))
    arithmetic = [flop / (share * dense * TERA) for flop, share in zip(task.flop, shares, strict=True)]
    memory = [  # traffic was counted at 16 bits
        moved * (VALUE_BYTES[precision] / 2) / (share * chip.hbm_gb_per_s * GB)
        for moved, share in zip(task.traffic_bytes, _OF_BANDWIDTH, strict=True)
    ]
    parts = {"arithmetic": arithmetic[1], "memory bandwidth": memory[1], "fixed time of the kernels": task.fixed_s[1]}
    # Added, not the longer of them: nothing says how far kernels of these models overlap, and the slow end must hold.
    total = Ends(*map(sum, zip(arithmetic, memory, task.fixed_s, strict=True)))
    return TaskSpeed(total, max(parts, key=lambda part: parts[part]))


def memory_gb(task: Task, precision: str) -> float:
    """Return what one accelerator holds: weights, activations of a batch, the runtime."""
    return task.parameters * VALUE_BYTES[precision] / GB + task.activation_gb + _RUNTIME_GB


def usable_gb(chip: Accelerator) -> float:
    """Return an accelerator's memory in GB."""
    return chip.memory_gib * GIB / GB


def fits(task: Task, chip: Accelerator, precision: str) -> bool:
    """Tell whether the whole model lies in the memory of one accelerator."""
    return memory_gb(task, precision) <= usable_gb(chip)


# --- Text: tokens in, none out.


def encoder(row: Mapping[str, Any], base: Architecture | None, input_tokens: float) -> Task:
    """Return a million tokens through an encoder: 2 FLOP per weight of its layers, and attention both ways.

    BERT base at 512 tokens: 2 × 85e6 + 12 × 4 × 512 × 768 = 189e6 FLOP a token.
    """
    if base is not None:
        shape = transformer.stack([base])
        linear = float(transformer.layers_linear_flop(shape)[0])
        causal = row["id"].startswith("qwen")  # embeds by the last token of a decoder; others attend both ways
        attention = float(transformer.attention_flop(shape, input_tokens, causal=causal)[0])
        # the output projection is not needed
        head = 0.0 if base.tied_embeddings else float(base.vocab * base.hidden)
        parameters, hidden = float(transformer.total_parameters(shape)[0]) - head, base.hidden
    else:
        hidden = int(row["hidden"])
        matrices = row["layers"] * (4 * hidden**2 + (3 if row["gated"] else 2) * hidden * row["ffn_hidden"])
        linear, attention = 2.0 * matrices, 4.0 * row["layers"] * input_tokens * hidden
        parameters = float(
            matrices + row["vocab"] * hidden + 8194 * hidden
        )  # positions of XLM-RoBERTa for 8,192 tokens
    flop = (linear + attention) * 1e6
    batch = max(1, int(16_384 // input_tokens))  # tokens at once that fill an accelerator: an assumption
    return Task(
        name=row["id"],
        kind=row["kind"],
        unit=_UNITS[row["kind"]],
        parameters=parameters,
        flop=Ends(flop, flop, flop),
        traffic_bytes=Ends(*(parameters * 2 * 1e6 / (input_tokens * at_once) for at_once in (8, batch, batch))),
        fixed_s=Ends(0.0, 0.0, 0.0),
        activation_gb=batch
        * input_tokens
        * hidden
        * 2
        * 20
        / GB,  # some twenty 16-bit values of the width, alive at once
        batch=batch,
        request_units=input_tokens / 1e6,
        assumptions=(f"inputs of {input_tokens:,.0f} tokens, {batch:,} at once",),
        width=hidden,
    )


# --- Speech.


def recogniser(row: Mapping[str, Any]) -> Task:
    """Return an hour of audio through an encoder of windows and a decoder of text (arXiv:2212.04356).

    A window of 30 s is 1,500 positions. A decoder step reads its weights for all windows at once, and of each window
    the keys and values of the cross-attention: 2 × 1,500 × width a layer.
    """
    width, positions = int(row["hidden"]), int(row["context_tokens"])
    of_encoder = row["layers"] * (4 * width**2 + 2 * width * row["ffn_hidden"])
    of_decoder = row["decoder_layers"] * (8 * width**2 + 2 * width * row["ffn_hidden"])
    # two convolutions of three taps take 128 mel bands to the width (section 2.2 and the code of large-v3)
    parameters = float(of_encoder + of_decoder + row["vocab"] * width + 3 * width**2 + 3 * 128 * width)
    windows = SECONDS_PER_HOUR / _WINDOW_S
    flops, traffic, fixed = [], [], []
    for spoken, at_once, layer_s in zip(_SPOKEN_TOKENS_PER_S, _WINDOWS_AT_ONCE, _LAYER_S, strict=True):
        steps = spoken * _WINDOW_S
        encoded = 2 * of_encoder * positions + 4 * row["layers"] * positions**2 * width
        # keys and values of the cross-attention, once per window and layer
        cross = row["decoder_layers"] * 2 * 2 * width**2 * positions
        decoded = steps * (2 * (of_decoder + row["vocab"] * width) + 4 * row["decoder_layers"] * positions * width)
        flops.append(windows * (encoded + cross + decoded))
        read = steps * (
            2 * (of_decoder + row["vocab"] * width) / at_once + row["decoder_layers"] * 4 * positions * width
        )
        traffic.append(windows * read)
        fixed.append(windows * steps * row["decoder_layers"] * layer_s / at_once)
    cache_gb = _WINDOWS_AT_ONCE.typical * row["decoder_layers"] * 4 * positions * width / GB
    return Task(
        name=row["id"],
        kind=row["kind"],
        unit=_UNITS["speech"],
        parameters=parameters,
        flop=Ends(*flops),
        traffic_bytes=Ends(*traffic),
        fixed_s=Ends(*fixed),
        activation_gb=cache_gb + 1.0,  # one GB for the encoder's own values: assumed
        batch=int(_WINDOWS_AT_ONCE.typical),
        assumptions=(
            f"{_SPOKEN_TOKENS_PER_S.typical:g} text tokens a second of talk ({_SPOKEN_TOKENS_PER_S.fast:g} to"
            f" {_SPOKEN_TOKENS_PER_S.slow:g})",
            f"{_WINDOWS_AT_ONCE.typical:.0f} windows of {_WINDOW_S:.0f} s at once"
            f" ({_WINDOWS_AT_ONCE.slow:.0f} to {_WINDOWS_AT_ONCE.fast:.0f})",
        ),
        width=_NARROW,  # of no consequence: shares of its kind are stated as they are
    )


# --- Images.


def painter(row: Mapping[str, Any], side: int, steps: int, levels: Sequence[tuple[int, int]] = ()) -> Task:
    """Return an image: steps × evaluations of the network, the text encoders once, the decoder once.

    A UNet has levels, each with its width and its attention layers.
    """
    if row["kind"] == "unet":
        channels, depths = zip(*levels, strict=True)
        pooled = 2816 if row["context_width"] >= 2048 else 0  # SDXL conditions on a pooled text and on sizes
        evaluation = diffusion.unet(channels, depths, row["context_width"], row["context_tokens"], side // 8, pooled)
    else:
        tokens = (side / row["patch"]) ** 2  # of pixels: the patch of latents and their eightfold shrinking together
        evaluation = diffusion.transformer(
            row["hidden"], row["layers"], row["decoder_layers"] or 0, tokens, row["context_tokens"]
        )
    decoder = diffusion.image_decoder(side)
    evaluations = steps * row["evaluations"]
    text = 2 * row["text_parameters"] * row["context_tokens"] * row["evaluations"]
    flop = evaluations * evaluation.flop + text + decoder.flop
    parameters = evaluation.parameters + row["text_parameters"] + decoder.parameters
    read = evaluations * evaluation.parameters * 2
    return Task(
        name=row["id"],
        kind=row["kind"],
        unit=_UNITS[row["kind"]],
        parameters=parameters,
        flop=Ends(flop, flop, flop),
        # between activations that miss the cache as often as weights, and weights that four images share
        traffic_bytes=Ends(2 * read, read, read / 4),
        fixed_s=Ends(0.0, 0.0, 0.0),
        activation_gb=2.5 * (side / 1024) ** 2 + 0.5,  # the decoder's, whose widest level has all pixels: assumed
        batch=1,
        assumptions=(
            f"{side} × {side} pixels, {steps} steps of {row['evaluations']}"
            f" evaluation{'s' if row['evaluations'] > 1 else ''}",
        ),
        width=_NARROW if row["kind"] == "unet" else int(row["hidden"]),
    )


# --- Images into a language model.


class Sight(NamedTuple):
    """What one image is to a language model: the tokens it becomes, and FLOP and parameters of its encoder."""

    tokens: int
    flop: float
    parameters: float


def sight(row: Mapping[str, Any], side: int) -> Sight:
    """Return what an image of a side becomes: (side ÷ patch)² patches, merge² of them a token (arXiv:2409.12191).

    1,024 × 1,024 pixels in patches of 14: 73² patches, by fours 1,332 tokens.
    """
    patches = (side // row["patch"]) ** 2
    tokens = patches // row["merge"] ** 2
    width = row["hidden"]
    matrices = row["layers"] * (4 * width**2 + (3 if row["gated"] else 2) * width * row["ffn_hidden"])
    flop = 2.0 * matrices * patches + 4.0 * row["layers"] * patches**2 * width
    return Sight(int(tokens), flop, float(matrices + 3 * 2 * row["patch"] ** 2 * width))
