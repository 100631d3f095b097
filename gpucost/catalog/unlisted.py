"""Names that people type and that no row can answer: each with the sentence that says why."""

import re

_CLOSED = "Its publisher does not say how large it is. Name an open model, a size such as 70b, or a config.json."
_SRAM = (
    "It keeps weights in the memory on its chips, spread over many of them; times here follow from the bandwidth of"
    " HBM or GDDR memory and would not hold for it."
)
_SENTENCES = {
    "model": (
        (r"(gpt[- ]?(3\.5|4|5)|chatgpt|o[134](-|$)|claude|gemini|grok-[345]|nova-|qwen3-max|sonar)", _CLOSED),
        (r".*(nemotron-ultra-253b)", "Each of its layers has a shape of its own; give the path of its config.json."),
        (r".*(stable-?diffusion|flux\.?1|sdxl|whisper|clip-vit|bge-|e5-)", "It is no decoder-only language model."),
    ),
    "accelerator": (
        (r".*(groq|lpu\b)", _SRAM),
        (r".*(cerebras|wse|cs-?[23]\b)", _SRAM),
        (r".*(sambanova|sn40)", "Its publisher gives no dense peak or bandwidth by chip that could be checked."),
        (r".*(ascend|910[bc])", "Its maker publishes no datasheet; what others say of its bandwidth differs fourfold."),
        (r".*(cpu|xeon|epyc|grace$)", "Processors are not modelled, only accelerators."),
    ),
}  # fmt: skip
_COMPILED = {
    kind: [(re.compile(sign), why) for sign, why in sentences] for kind, sentences in _SENTENCES.items()
}  # fmt: skip


def why_not(kind: str, name: str) -> str:
    """Return why a well-known name has no row; empty for any other name.

    >>> why_not("accelerator", "Groq LPU")[:16]
    'It keeps weights'
    """
    text = name.strip().lower().rsplit("/", 1)[-1]
    return next((why for sign, why in _COMPILED.get(kind, ()) if sign.match(text)), "")
