"""Money on axes, labels, tooltips and sliders: what stands there is read back to the value, over twelve decades."""

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import pytest

from gpucost.render import text
from gpucost.render.build import document
from gpucost.render.document import Axis, Chart, Document, Section
from gpucost.render.money import digits_between, money_text
from gpucost.render.tco import _rent_slider
from gpucost.render.vega import specification
from tests.render import answers

DECADES = [10.0**power * part for power in range(-6, 7) for part in (1, 1.2345, 3.84130893781, 6, 9.996)]
WRITTEN = re.compile(r"[-−]?\$((?:\d{1,3})(?:\.\d+)?)([kMBT]?)")
FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def read_back(written: str) -> float:
    """Return the amount that a text says; it has at most three digits that count, and no prefix that it need not."""
    match = WRITTEN.fullmatch(written)
    assert match, written
    digits = match[1].replace(".", "").lstrip("0")
    assert len(digits.rstrip("0")) <= 3, written
    value = float(match[1]) * FACTORS[match[2]]
    assert (value >= 1000) is bool(match[2]), written
    return -value if written[0] in "-−" else value


def drawn(chart: Chart, **parts: Any) -> list[str]:
    """Return the texts of a chart as a browser draws them."""
    vl_convert = pytest.importorskip("vl_convert")
    picture = html.unescape(vl_convert.vegalite_to_svg({**specification(chart), "width": 600, **parts}))
    return [one for one in re.findall(r"<text[^>]*>([^<]*)</text>", picture) if one]


@pytest.mark.parametrize("usd", DECADES)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_amount_is_read_back_from_what_is_written(usd: float, sign: int) -> None:
    assert read_back(money_text(sign * usd)) == pytest.approx(sign * usd, rel=0.01)


def test_some_amounts_by_eye() -> None:
    amounts = {0.04: "$0.04", 600: "$600", 12_580: "$12.6k", 3.4e6: "$3.4M", 999.9: "$1k", 0: "$0", 2.5e9: "$2.5B"}
    assert {usd: money_text(usd) for usd in amounts} == amounts


def test_a_picture_writes_money_as_the_terminal_does() -> None:
    """The figures of a bridge stand in it as texts: the expression of Vega and the function agree on each."""
    rows = [{"name": f"n{n}", "usd": usd, "low": 0, "high": usd, "way": "more"} for n, usd in enumerate(DECADES)]
    chart = Chart("bridge", "t", "d", rows, Axis("name"), Axis("usd", unit="USD"), "way", low="low", high="high")
    texts = drawn(chart)
    assert [usd for usd in DECADES if money_text(usd) not in texts] == []


@pytest.mark.parametrize("power", range(-6, 7))
@pytest.mark.parametrize("log", [True, False])
def test_the_ticks_of_an_axis_are_read_back_to_where_they_stand(power: int, log: bool) -> None:
    rows = [{"n": n, "usd": 10.0**power * n} for n in (0.6, 2, 4, 9)]
    ticks = [
        one for one in drawn(Chart("line", "t", "d", rows, Axis("n"), Axis("usd", unit="USD", log=log))) if "$" in one
    ]
    values = [read_back(tick) for tick in ticks if tick != "cost ($)"]
    assert len(values) >= 3
    assert values == sorted(set(values)), "each tick says another amount, in order"
    assert max(values) == pytest.approx(9 * 10.0**power, rel=0.2)


def test_ticks_that_lie_close_together_are_told_apart() -> None:
    rows = [{"name": n, "a": 0, "low": 1_231_000 + n, "high": 1_239_000 + n} for n in (1, 2)]
    axis = Axis("saving_usd", unit="USD")
    ticks = [
        one for one in drawn(Chart("tornado", "t", "d", rows, Axis("name"), axis, low="low", high="high")) if "M" in one
    ]
    assert len(set(ticks)) == len(ticks) >= 4
    assert digits_between([1_230_000, 1_235_000]) > 3


def test_cells_their_names_and_the_legend_are_written_for_people() -> None:
    cells = [{"usd_per_gpu_hour": hour, "utilisation_fraction": use, "saving_usd": hour * use * 1e-3}
             for hour in (1.23456789, 4.341576380699999) for use in (0.38413089378155885, 0.7)]  # fmt: skip
    axes = Axis("usd_per_gpu_hour"), Axis("utilisation_fraction")
    texts = drawn(Chart("heat", "t", "d", cells, *axes, value="saving_usd"))
    assert {"$1.23", "$4.34", "38.4%", "70%", "$0.00304"} <= set(texts)
    for one in texts:
        if one.lstrip("-−").startswith("$"):
            read_back(one)


def test_a_tooltip_writes_money_and_not_an_exponent() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    rows = [{"days": 1, "cost_usd": 1_234_567.0}, {"days": 2, "cost_usd": 0.04}, {"days": 3, "cost_usd": None}]
    spec = specification(Chart("scatter", "t", "d", rows, Axis("days"), Axis("cost_usd")))
    (field,) = [one["field"] for one in spec["layer"][0]["encoding"]["tooltip"] if "cost" in one["title"]]
    spec["layer"][0]["encoding"]["text"] = {"field": field, "type": "nominal"}
    spec["layer"][0]["mark"] = "text"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", vl_convert.vegalite_to_svg({**spec, "width": 300}))
    assert {"$1.23M", "$0.04"} <= set(texts)


@pytest.mark.parametrize("rent", [0.0123, 0.38413089378155885, 2.35, 4.341576380699999, 9.87654, 123.456])
def test_a_slider_stands_on_three_digits_and_holds_the_exact_value_until_it_is_moved(rent: float) -> None:
    slider = _rent_slider(rent)
    assert slider.low <= slider.start <= slider.high
    assert slider.start == pytest.approx(rent, rel=0.01)
    assert len(f"{slider.start!r}".replace(".", "").strip("0")) <= 3
    chart = Chart(
        "line", "t", "d", [{"n": 1, "usd": 1.0}, {"n": 2, "usd": 2.0}], Axis("n"), Axis("usd"), sliders=(slider,),
        spoken="'exactly ' + rent_price",
    )  # fmt: skip
    assert f"exactly {rent!r}" in drawn(chart)
    control = specification(chart)["params"][0]
    assert control["value"] == slider.start
    assert control["bind"]["step"] == slider.step


def test_a_plot_of_the_terminal_writes_money_by_the_same_rule() -> None:
    rows = [{"n": n, "usd": usd} for n, usd in ((1, 0.04), (2, 0.6))]
    for kind in ("line", "bar"):
        chart = Chart(kind, "t", "d", rows, Axis("n"), Axis("usd", unit="USD"))
        written = text.write(Document("t", (Section("", (chart,)),)), width=80)
        assert "$0.04" in written
        assert "$0.6" in written


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_page_writes_money_by_the_same_rule() -> None:
    script = files("gpucost.page").joinpath("assets", "page.js").read_text()
    rule = re.search(r"^function dollars.*?^}", script, re.MULTILINE | re.DOTALL)
    three = re.search(r"^const three = .*$", script, re.MULTILINE)
    assert rule
    assert three
    amounts = [sign * usd for usd in [0, *DECADES, 2.5e9] for sign in (1, -1)]
    program = f"{three[0]}\n{rule[0]}\nconsole.log(JSON.stringify({json.dumps(amounts)}.map(dollars)))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [money_text(usd) for usd in amounts]


@pytest.mark.parametrize("kind", ["training", "ownership", "serving"])
def test_no_chart_of_a_real_answer_shows_a_raw_figure(kind: str) -> None:
    made = document(getattr(answers, kind)())
    for section in made.sections:
        for block in section.blocks:
            if isinstance(block, Chart):
                assert not [one for one in drawn(block) if re.search(r"\.\d{5}|\$[\d.,]+m\b", one)], block.title
