"""The gallery: a picture for each question, drawn from real answers, and the page that shows them."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

FOLDER = "docs/pictures"


class Picture(NamedTuple):
    """A question, the command that asks it, its answer in the library, and which of its charts is shown."""

    name: str
    question: str
    command: str
    answer: Callable[[], Any]
    chart: str


# asked when it is drawn: importing this module answers nothing
def _ask(question: str, *places: Any, **arguments: Any) -> Any:
    import gpucost

    return getattr(gpucost, question)(*places, **arguments)


# in the order of the questions that people ask
PICTURES = (
    Picture(
        "estimate",
        "What does a training run cost, and how long does it take?",
        "gpucost estimate --model 8b --tokens 100b",
        partial(_ask, "estimate", "8b", "100b"),
        "Cost against days",
    ),
    Picture(
        "inference",
        "Is it cheaper to host a model or to buy tokens?",
        "gpucost inference --model 70b --tokens-per-month 5b",
        partial(_ask, "inference", "70b", tokens_per_month="5b"),
        "Self-host or API",
    ),
    Picture(
        "tco",
        "From which utilisation on is owning cheaper than renting?",
        "gpucost tco --gpu h100-sxm --gpus 64",
        partial(_ask, "tco", gpu="h100-sxm", gpus=64),
        "by utilisation",
    ),
    Picture(
        "tco-risks",
        "What changes that answer most?",
        "gpucost tco --gpu h100-sxm --gpus 64 --details",
        partial(_ask, "tco", gpu="h100-sxm", gpus=64),
        "What changes the",
    ),
    Picture(
        "fit",
        "Where does the memory go?",
        "gpucost fit --model 70b --gpu h100-sxm",
        partial(_ask, "fit", "70b", "h100-sxm"),
        "Where the memory goes",
    ),
    Picture(
        "throughput",
        "Where does the time of a step go?",
        "gpucost throughput --model 70b --gpu h100-sxm --gpus 64",
        partial(_ask, "throughput", "70b", gpu="h100-sxm", gpus=64),
        "Where the time",
    ),
    Picture(
        "roofline",
        "Which operations does memory bandwidth bound?",
        "gpucost roofline --gpu h100-sxm",
        partial(_ask, "roofline", gpu="h100-sxm"),
        "Speed against intensity",
    ),
    Picture(
        "compare",
        "Why does one run cost more than another?",
        "gpucost estimate --model 8b --tokens 100b --gpu a100-80gb -o a100.json\n"
        "gpucost estimate --model 8b --tokens 100b --gpu h100-sxm -o h100.json\n"
        "gpucost compare a100.json h100.json",
        lambda: _ask("compare", *(_ask("estimate", "8b", "100b", gpu=gpu) for gpu in ("a100-80gb", "h100-sxm"))),
        "",  # a comparison has one chart
    ),
)


@cache
def drawn(name: str) -> str:
    """Return a picture as SVG; Vega draws it."""
    picture = {picture.name: picture for picture in PICTURES}[name]
    return svg(picture.answer().chart(picture.chart).to_dict())


def svg(specification: dict[str, Any]) -> str:
    """Draw a Vega-Lite specification, with the same bytes each time."""
    from vl_convert import vegalite_to_svg

    margin = {"left": 5, "top": 5, "bottom": 5, "right": 40}  # other fonts write words wider than Vega's
    text: str = vegalite_to_svg({**specification, "padding": margin})
    # the last digits are those of a version of NumPy: pictures would differ between machines
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}", text)


def page() -> str:
    """Return the page that shows every picture below its question and its command."""
    parts = [
        "# Gallery",
        "A picture for each question. Every answer draws its own: `-o answer.html` writes a page with all of them, and"
        " `.chart()` returns one in a notebook.",
    ]
    for picture in PICTURES:
        image = f"![{picture.question}](pictures/{picture.name}.svg)"
        parts += [f"## {picture.question}", f"```bash\n{picture.command}\n```", image]
    return "\n\n".join(parts) + "\n"
