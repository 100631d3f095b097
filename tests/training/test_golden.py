"""What a person sees, over the small market: texts small enough to be read and judged by eye.

After a wanted change: WRITE_GOLDEN=1 pytest tests/training/test_golden.py, then read the difference.
"""

import os
from pathlib import Path

import pytest

from gpucost.bridges.compare import compare
from gpucost.render import build, text
from gpucost.render.explain import explanation
from tests.training.market import BUCKET, answer, offer

GOLDEN = Path(__file__).parent.parent / "golden"
WIDTH = 100

pytestmark = pytest.mark.usefixtures("round_speeds")


def market():
    return [
        offer(2.0),
        offer(0.9, "slow", age_days=400),
        offer(0.8, option="spot"),
        offer(0.7, option="spot", provider="unmeasured"),
        offer(1.2, option="reserved", term_months=12, billing="take_or_pay", payment="no_upfront"),
        offer(0.5, gpus=1, provider="pods"),
    ]


def found(**wanted):
    return answer(market(), spot=[BUCKET], **wanted)


DOCUMENTS = {
    "estimate": lambda: build.document(found(deadline="20d")),
    "screen": lambda: build.document(found(deadline="20d")),
    "explain": lambda: explanation(found(deadline="20d")),
    "compare": lambda: build.document(compare(found(deadline="20d"), found(deadline="20d", tokens="150b"))),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_text_is_as_it_was_judged(name):
    shown = text.write(
        DOCUMENTS[name](),
        width=80 if name == "screen" else WIDTH,
        color=False,
        unicode=True,
        all_sections=name == "explain",
        one_screen=name == "screen",
    )
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(shown.rstrip("\n") + "\n", "utf-8")
    remedy = "if it was wanted: WRITE_GOLDEN=1 pytest tests/training/test_golden.py, then read the difference"
    assert shown.rstrip("\n") + "\n" == file.read_text("utf-8"), remedy
