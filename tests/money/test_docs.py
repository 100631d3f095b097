"""The documented formulas are the ones that are evaluated, and the anchors' figures are what the code gives.

`python -m tests.money.test_docs` writes the formulas into the page.
"""

import re
import textwrap
from pathlib import Path

import gpucost
from gpucost.money import comparison, financing, lender, ownership, renting, statements, tax
from tests.money.plans import catalog
from tests.money.published import epoch_chip_hour

DOCS = Path(__file__).parents[2] / "docs"
PAGE, MARKS = DOCS / "tco-method.md", ("<!-- formulas -->\n", "<!-- /formulas -->\n")

SECTIONS = (
    ("Scalars", (*tax.SCALARS, *ownership.SCALARS)),
    ("Months", ownership.TIMING),
    ("Owning: capital", ownership.CAPITAL),
    ("Owning: running costs", ownership.RUNNING),
    ("Cash available for debt service", lender.AVAILABLE),
    ("Financing", (*financing.SCALARS, *financing.MONTHLY)),
    ("Renting: hours and prices", (*renting.SCALARS, *renting.PRICES)),
    ("Renting: compute", renting.COMPUTE),
    ("Renting: services", renting.SERVICES),
    ("Tax", tax.MONTHLY),
    ("Worth", comparison.WORTH),
    ("Books", (*statements.SCALARS, *statements.MONTHLY)),
    ("Lender", lender.MONTHLY),
    ("Break-even in the workbook", comparison.MOVING),
    ("Answers", comparison.ANSWERS),
)


def formulas() -> str:
    parts = []
    for title, lines in SECTIONS:
        parts.append(f"### {title}\n")
        for line in lines:
            text = textwrap.fill(
                f"{line.name} = {line.text}",
                112,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            parts.append(f"{line.description[0].upper()}{line.description[1:]}:\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def test_the_documented_formulas_are_the_evaluated_ones():
    text = PAGE.read_text("utf-8")
    start, end = (text.index(mark) for mark in MARKS)
    assert text[start + len(MARKS[0]) : end].strip() == formulas().strip()


def test_every_evaluated_formula_is_documented():
    shown = {line.name for _, lines in SECTIONS for line in lines}
    sums = {f"{name}_usd" for name in ("rent_services", "own_running", "own_in_cash", "own_financing", "rent_total")}
    assert {line.name for line in comparison.ALL} - shown == sums


def test_the_anchors_page_says_what_the_code_gives():
    text = (DOCS / "tco-anchors.md").read_text("utf-8")
    payload = gpucost.tco("h100-sxm", 1024, utilisation=1.0, rent=2.35, catalog=catalog(), draws=0).payload
    stated = {
        name: float(value)
        for name, value in re.findall(r"^\| (favourable|base|adverse)\b.* \| ([0-9.]+) \|$", text, re.MULTILINE)
    }
    for row in payload["scenarios"][:3]:
        assert stated[row["name"]] == round(row["levelised_usd_per_gpu_hour"], 2)
    for chip_usd, tdp_kw, tariff in ((12_000, 0.4, 0.07), (30_000, 0.7, 0.0826)):
        cost = epoch_chip_hour(chip_usd * 1.64, tdp_kw, tariff)
        for shown in (cost.hardware_usd, cost.server_usd * (1 - 1 / 1.64), cost.interconnect_usd, cost.energy_usd):
            pair = " / ".join(f"{100 * (1 - staff) * shown / cost.total_usd:.1f}" for staff in (0.49, 0.29))
            assert f"| {pair} % |" in text


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    head, tail = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    PAGE.write_text(f"{head}{MARKS[0]}\n{formulas()}\n{MARKS[1]}{tail}", "utf-8")
