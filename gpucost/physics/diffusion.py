"""Image generation: FLOP and parameters of a step of a UNet or of a diffusion transformer, and of the image decoder.

Counts follow the published layer shapes; norms, activations and time embeddings beside the counted ones are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Work(NamedTuple):
    """What a network does once, and what it holds."""

    flop: float
    parameters: float


def _resnet(width_in: int, width_out: int, pixels: float, time_width: int) -> Work:
    """Return two 3×3 convolutions, the projection of the time, and a 1×1 shortcut where the width changes."""
    # 9 weights of each 3×3 kernel; a convolution applies all of its weights at every pixel
    matrices = 9 * width_in * width_out + 9 * width_out**2 + (width_in * width_out if width_in != width_out else 0)
    return Work(2 * matrices * pixels, matrices + time_width * width_out)


def _attention_stack(width: int, depth: int, pixels: float, context_width: int, context_tokens: int) -> Work:
    """Return projections and `depth` layers: self-attention, cross-attention to the text, gated feed-forward of 4×."""
    if not depth:
        return Work(0.0, 0.0)
    of_pixels = 4 * width**2 + 2 * width**2 + 12 * width**2  # self-attention; cross q and o; feed-forward
    of_text = 2 * context_width * width  # cross k and v
    # two products, of queries with keys and of scores with values, over the pixels and over the text
    scores = 4 * pixels * width * (pixels + context_tokens)
    # the last term: a projection into the stack and one out of it
    flop = depth * (2 * of_pixels * pixels + 2 * of_text * context_tokens + scores) + 2 * 2 * width**2 * pixels
    return Work(flop, depth * (of_pixels + of_text) + 2 * width**2)


def unet(
    channels: Sequence[int],
    depths: Sequence[int],
    context_width: int,
    context_tokens: int,
    latent_side: int,
    pooled_width: int = 0,
) -> Work:
    """Return one evaluation of a UNet with cross-attention (arXiv:2112.10752, arXiv:2307.01952), two residual blocks a
    level, three on the way up.

    SDXL's has 2.57e9 parameters, that of Stable Diffusion 1.5 0.86e9.

    >>> sdxl = unet((320, 640, 1280), (0, 2, 10), 2048, 77, 128, 2816)
    >>> older = unet((320, 640, 1280, 1280), (1, 1, 1, 0), 768, 77, 64)
    >>> round(sdxl.parameters / 1e9, 2), round(older.parameters / 1e9, 2)
    (2.57, 0.86)
    """
    # The embedding of the time is four times the first width; each level halves the sides of the image.
    time_width, pixels = 4 * channels[0], [float(latent_side**2) / 4**level for level in range(len(channels))]
    # Convolutions from four latent channels into the first width and back, and the two layers of the time's embedding.
    parts = [Work(2 * 9 * 8 * channels[0] * pixels[0], 9 * 8 * channels[0] + (channels[0] + time_width) * time_width)]
    parts.append(Work(0.0, (pooled_width + time_width) * time_width if pooled_width else 0.0))
    # Down: every block's output is kept, and joins the input of its counterpart on the way up.
    skips, width, last = [channels[0]], channels[0], len(channels) - 1
    for level, (out, depth) in enumerate(zip(channels, depths, strict=True)):
        for _ in range(2):
            parts.append(_resnet(width, out, pixels[level], time_width))
            parts.append(_attention_stack(out, depth, pixels[level], context_width, context_tokens))
            width = out
            skips.append(width)
        if level < last:
            parts.append(Work(2 * 9 * width**2 * pixels[level + 1], 9 * width**2))
            skips.append(width)
    middle = max(depths[-2:])  # Stable Diffusion 1.5 attends in the middle, though not on its last level
    parts += [_resnet(width, width, pixels[last], time_width)] * 2
    parts.append(_attention_stack(width, middle, pixels[last], context_width, context_tokens))
    # Up: the block's own input and one that was kept, side by side.
    for level in range(last, -1, -1):
        out = channels[level]
        for _ in range(3):
            parts.append(_resnet(width + skips.pop(), out, pixels[level], time_width))
            parts.append(_attention_stack(out, depths[level], pixels[level], context_width, context_tokens))
            width = out
        if level:
            parts.append(Work(2 * 9 * width**2 * pixels[level - 1], 9 * width**2))
    return Work(sum(part.flop for part in parts), sum(part.parameters for part in parts))


def transformer(hidden: int, double: int, single: int, image_tokens: float, text_tokens: int) -> Work:
    """Return one evaluation of a multimodal diffusion transformer (arXiv:2403.03206) and of Flux' single blocks.

    A double block has 12·h² of weights for each of the two streams and 6·h² of modulation each; a single block 12·h²
    for all tokens and 3·h². Modulation is computed once an image. Flux.1 has 11.9e9 parameters, its embeddings among
    them.

    >>> round(transformer(3072, 19, 38, 4096, 512).parameters / 1e9, 1)
    11.8
    """
    square, tokens = float(hidden**2), image_tokens + text_tokens
    # either kind of block applies 12·h² to each token, and attends from all tokens to all
    flop = 2 * 12 * square * tokens * (double + single) + 4 * tokens**2 * hidden * (double + single)
    modulation = square * (12 * double + 3 * single)
    return Work(flop + 2 * modulation, square * (24 * double + 12 * single) + modulation)


_DECODER_CHANNELS = (128, 256, 512, 512)


def image_decoder(side: int) -> Work:
    """Return the decoder of latents that these models share: three residual blocks on each of four levels (VAE).

    It has 49.5e6 parameters.

    >>> round(image_decoder(1024).parameters / 1e6)
    49
    """
    # one attention on the smallest level, between its residual blocks: scores over all pixels, four projections
    pixels = [float(side**2) / 4**level for level in range(len(_DECODER_CHANNELS))]
    last, width = len(_DECODER_CHANNELS) - 1, _DECODER_CHANNELS[-1]
    scores = 4 * pixels[last] ** 2 * width + 8 * width**2 * pixels[last]
    parts = [_resnet(width, width, pixels[last], 0)] * 2 + [Work(scores, 4 * width**2)]
    for level in range(last, -1, -1):
        out = _DECODER_CHANNELS[level]
        for _ in range(3):
            parts.append(_resnet(width, out, pixels[level], 0))
            width = out
        if level:
            parts.append(Work(2 * 9 * width**2 * pixels[level - 1], 9 * width**2))
    return Work(sum(part.flop for part in parts), sum(part.parameters for part in parts))
