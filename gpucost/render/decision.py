"""The page that a board reads: what is decided, what it costs this year, what would change it, and when it ends.

The figures and sentences stand here once. Python writes them into pages, prints and slides; the workbook writes the
same sentences as formulas over its cells, so that they follow the inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Literal, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from gpucost.answers.ownership import TIE, Mix, Tco, leading, promised
from gpucost.money import comparison
from gpucost.money.comparison import AT_DEBT_RATE
from gpucost.options import OPTIONS
from gpucost.render.document import (
    MISSING,
    Axis,
    Block,
    Chart,
    Column,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    amount,
    day_text,
    format_value,
    heading_of,
)
from gpucost.render.workbook.live import LiveModel, Value, compute, ownership_model
from gpucost.units import about, months_after

TITLE = "The decision"
_MILLION = 1e6
_FIRST_MONTHS = 12  # of what this year costs

# --- Figures in words: one rule for Python and for the formulas of the workbook.

Kind = Literal["usd", "count", "price", "share", "rate", "date", "word"]


class Scale(Struct, frozen=True):
    """How amounts are written on the whole page: in millions with some decimals, or in whole dollars."""

    millions: bool
    decimals: int

    def words(self, usd: float) -> str:
        """Write an amount.

        >>> Scale(True, 1).words(48_421_066.0), Scale(False, 0).words(-912.4)
        ('$48.4M', '-$912')
        """
        sign = "-" if usd < 0 else ""
        return f"{sign}${abs(usd) / self.divisor:,.{self.decimals}f}{self.unit}"

    @property
    def divisor(self) -> float:
        """By what an amount in USD is divided before it is written."""
        return _MILLION if self.millions else 1.0

    @property
    def unit(self) -> str:
        """What stands behind an amount."""
        return "M" if self.millions else ""


def _scale_of(*usd: float) -> Scale:
    """Return how a page writes amounts, by the largest of them: no cents on millions, no millions of a small desk.

    >>> [_scale_of(usd).decimals for usd in (4e5, 2e6, 5e7)], _scale_of(9_000.0).millions
    ([3, 2, 1], False)
    """
    largest = max(map(abs, usd), default=0.0)
    if largest < _MILLION / 10:
        return Scale(False, 0)
    if largest < _MILLION:
        return Scale(True, 3)
    return Scale(True, 2 if largest < 10 * _MILLION else 1)


def in_words(kind: Kind, value: Any, scale: Scale) -> str:
    """Write a figure of the page; what does not exist is none."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # not a number, as an IRR of flows of one sign
        return "none"
    if kind == "usd":
        return scale.words(value)
    if kind == "price":
        return f"${value:,.2f}"
    if kind in ("share", "rate"):
        return f"{value:.0%}" if kind == "share" else f"{value:.1%}"
    return f"{value:,.0f}"


# --- The four answers: each a function of the figures in words, said as text here and as a formula in the workbook.


class Wording(Protocol):
    """How a figure is worded, and which of two texts stands: by itself, or by what a cell will hold."""

    def of(self, key: str) -> str:
        """Return a figure in words."""

    def choose(self, key: str, test: str, then: str, other: str = "") -> str:
        """Return one text or another: by whether a figure is `positive`, is `known`, or is the word `test`."""


# A sentence is written once, with figures in braces. `Spoken` below fills it with texts; the workbook gives places of
# cells instead, and joins the same sentence as a formula. A choice between two texts is asked of the wording as well,
# for in a workbook both must be there.
class _SentenceFigures(dict[str, str]):
    """The figures that a sentence names in braces, beside the parts that it is given."""

    def __init__(self, wording: Wording, parts: Mapping[str, str]) -> None:
        super().__init__(parts)
        self._wording = wording

    def __missing__(self, key: str) -> str:
        return self._wording.of(key)


def _say(wording: Wording, sentence: str, **parts: str) -> str:
    """Fill a sentence with figures in words, and with parts that were chosen before."""
    return sentence.format_map(_SentenceFigures(wording, parts))


def _decided(wording: Wording) -> str:
    return _say(
        wording,
        "{best_verb}: {gpus} GPUs cost {best_cost} over {months} months (present value{taxed}, {use} allocated),"
        " {best_less} less than {second_noun}, the next best way.",
        taxed=wording.choose("tax_basis", "after", " after tax"),
    )


def _this_year(wording: Wording) -> str:
    return _say(
        wording,
        "In the first {year_months} months, to {year_end}, {best_noun} takes {best_year} in cash, {best_start} of it at"
        " the start; {second_noun} takes {second_year}.",
    )


def _rent_halved(wording: Wording) -> str:
    even = _say(wording, "Both cost the same at {be_price} per GPU-hour.")
    return _say(
        wording,
        "At {half_price} per GPU-hour renting costs {half_rent} and buying {half_own}: {wins}{half_gap}. {even}",
        wins=wording.choose("half_saving", "positive", "buying still wins by ", "renting wins by "),
        even=wording.choose("be_price", "known", even, "No price of rent makes both cost the same."),
    )


def _ended(wording: Wording) -> str:
    sold = wording.choose("resale", "positive", _say(wording, ", when what was bought is sold for {resale}"))
    paid_back = _say(
        wording,
        "Buying{in_cash} has paid back by {payback_on}.",
        in_cash=wording.choose("financing", "cash", "", ", paid in cash,"),
    )
    return _say(
        wording,
        "On {end}, after {months} months{left}. {paid_back}{owed}",
        left=wording.choose("financing", "operating_lease", ", when the hardware goes back to the lessor", sold),
        paid_back=wording.choose("payback", "known", paid_back, "Buying never pays back."),
        owed=wording.choose("debt_on", "known", _say(wording, " The {debt} ends on {debt_on}.")),
    )


_BRIEF = {  # of a question: its label on one screen, and its answer where there is less room
    "What does it cost this year?": (
        "This year",
        "{best_noun} takes {best_year} in cash to {year_end}, {second_noun} {second_year}.",
    ),
    "What if rent halves?": ("Half rent", "buying costs {half_own}, renting {half_rent} at {half_price} an hour."),
    "When does it end?": ("Ends", ""),  # the name of the answer says it
}


SENTENCES: dict[str, Callable[[Wording], str]] = {
    "What do we decide?": _decided,
    "What does it cost this year?": _this_year,
    "What if rent halves?": _rent_halved,
    "When does it end?": _ended,
}


class Spoken(Struct, frozen=True):
    """A wording as text: figures by key, and each of them in words."""

    figures: Mapping[str, Any]
    words: Mapping[str, str]

    def of(self, key: str) -> str:
        """Return a figure in words."""
        return self.words[key]

    def choose(self, key: str, test: str, then: str, other: str = "") -> str:
        """Return one text or another by the figure as it is."""
        value = self.figures[key]
        is_figure = isinstance(value, (int, float)) and value == value
        if test == "positive":
            holds = is_figure and value > 0
        elif test == "known":  # a day is known too; any other text is a word
            holds = is_figure or (isinstance(value, str) and value[:1].isdigit())
        else:
            holds = value == test
        return then if holds else other


# --- Owning against renting.

# what a board owns beside each figure: who answers for which kind of input
_ROLES = {
    "Finance": ("finance", "accounting", "tax"),
    "Infrastructure": ("scope", "workload", "facility", "energy", "staff", "carbon"),
    "Procurement": ("purchase", "contracts", "rent", "residual"),
}
# what the page calls a group of inputs
_MEANINGS = {
    "finance": "capital and financing",
    "accounting": "depreciation in the books",
    "tax": "income tax",
    "scope": "size, use and length",
    "workload": "workload",
    "facility": "data centre",
    "energy": "energy",
    "staff": "people",
    "carbon": "carbon",
    "purchase": "purchase",
    "contracts": "support, insurance",
    "rent": "rental price and terms",
    "residual": "resale",
}
# one bar of the bridge -> the lines of both sides in it, without the name of the side
_BRIDGE: dict[str, tuple[str, ...]] = {
    "GPU-hours rented": ("compute", "upfront", "cancellation", "after", "bridge_rent", "bridge"),
    "servers less resale": ("servers", "resale", "trade_in", "refresh", "disposal", "spares", "payable"),
    "network, storage": ("network", "storage", "control_plane", "egress"),
    "installing, import": ("installation", "purchase_tax"),
    "data centre": ("colocation", "facility"),
    "energy": ("energy", "demand"),
    "people": ("staff",),
    "support, insurance": ("support", "insurance", "property_tax", "maintenance", "licence", "replacement", "failures"),
    "income tax": ("tax", "financing_tax"),
}
_FINANCED = "financing"
REST = "other"
# what to do, and what to call it, of the two sides as asked
NAMES = {"own": ("Buy", "buying"), "rent": ("Rent", "renting")}
HALF, RESALE, USE, PRICE = "rent halves", "nothing is resold", "use halves", "servers cost half more"
_HALF, _MORE = 0.5, 1.5  # of what an input is, in these cases
_NOTHING_USD = 0.005  # half a cent: less is rounding
_PRICES = {"quote": "server_usd", "gpu_share": "gpu_usd"}  # by how a server is priced; else one price a GPU


class Reversal(Struct, frozen=True):
    """An input, its value now, and where both sides cost the same."""

    condition: str
    name: str
    kind: Kind
    now: Any
    flips: Any


class Decision(Struct, frozen=True):
    """What the page says of owning against renting."""

    scale: Scale
    figures: Mapping[str, tuple[Kind, Any]]
    bridge: Sequence[tuple[str, float]]  # from rent to own: what each cost line adds or takes away
    cases: Mapping[str, Mapping[str, Value]]  # what each "what if" changes
    what_if: Sequence[tuple[str, float, float]]  # owning and renting under it
    reversals: Sequence[Reversal]
    dates: Sequence[tuple[str, str]]

    @property
    def words(self) -> dict[str, str]:
        """Return every figure in words."""
        return {key: in_words(kind, value, self.scale) for key, (kind, value) in self.figures.items()}

    @property
    def answers(self) -> dict[str, str]:
        """Return the four questions with their answers."""
        wording = Spoken({key: value for key, (_, value) in self.figures.items()}, self.words)
        return {question: answer(wording) for question, answer in SENTENCES.items()}

    @property
    def brief(self) -> list[tuple[str, str, str]]:
        """Return the answers of one screen: label, the answer, and what is said of it where there is less room."""
        words = {
            **self.words,
            **{key: about(usd) for key, (kind, usd) in self.figures.items() if kind == "usd" and usd is not None},
            **{key: day_text(day) for key, (kind, day) in self.figures.items() if kind == "date" and day is not None},
        }
        wording = Spoken({key: value for key, (_, value) in self.figures.items()}, words)
        # where there is less room a way is named without its seller, who stands in the table above
        bare = {**words, **{key: words[key].partition(" from ")[0] for key in ("best_noun", "second_noun")}}
        short = {question: text.format_map(bare) for question, (_, text) in _BRIEF.items()}
        return [
            (label, SENTENCES[question](wording), short[question][:1].upper() + short[question][1:])
            for question, (label, _) in _BRIEF.items()
        ]


def decision_of(answer: Tco) -> Decision | None:
    """Return what the page says; None where the answer carries no formulas of this version to ask what if."""
    if not answer.get("model") or answer["model"].get("formulas") != comparison.FORMULAS:
        return None
    # The figures come from the answer where it has them, else from its own formulas, evaluated again: what halves, what
    # is paid until when. Nothing is asked of the catalog.
    model = ownership_model(answer, "own", "")
    assert model is not None
    values = compute(model)
    inputs = model.starting_values()
    npv = answer["npv_usd"]
    scale = _scale_of(npv["own"], npv["rent"])
    cases = what_if_cases(inputs)
    worth = {name: _worth(model, changes) for name, changes in cases.items()}
    saving_usd = npv["saving"]
    start = date.fromisoformat(answer["cash_flows"][0]["on"])
    months = int(float(inputs["months"] or 0))
    payback = answer["payback_months"]
    year = min(_FIRST_MONTHS, months)
    best, second = ways_of(answer)[:2]
    cash = {row["name"]: cash_so_far(row, model, values, year) for row in (best, second)}
    straight = inputs["tax_basis"] == "before" or inputs["loss_basis"] == "at_once"

    # After tax, losses that wait for profits bend the line: there is no multiple at which to name the turn.
    def flip(name: str, ratio: float) -> float | None:
        own, rent = worth[name]
        multiple = flipping_ratio(saving_usd, rent - own, ratio) if straight else None
        if multiple is None or name != RESALE:
            return multiple
        (key,) = cases[RESALE]  # resale brings at most the price: no line beyond that
        then = _worth(model, {key: multiple * float(inputs[key] or 0)})
        return multiple if abs(then[1] - then[0]) < _NEAR * abs(then[0]) else None

    # the last payment of a loan or lease; of what is paid in cash there is none
    arrival, debt_on = float(values["arrival_month"]), None
    if inputs["financing"] != "cash":
        term = inputs["loan_term_months" if inputs["financing"] == "loan" else "lease_term_months"]
        debt_on = min(int(arrival + float(term or 0)), months)
    # a toss-up: close in cost, or called one by the draws
    confidence = answer.get("confidence")
    is_close = second["npv_usd"] - best["npv_usd"] < NOISE * abs(best["npv_usd"])
    is_tie = is_close or bool(confidence and confidence["toss_up"])
    # the input that prices a server here: the turn of the decision is said in its unit
    server_key = _PRICES.get(str(inputs["server_price_basis"]), "all_in_usd_per_gpu")
    server_usd = float(values["server_usd_per_gpu"])
    server_flip = flip(PRICE, _MORE)
    half_own, half_rent = worth[HALF]
    point = answer["breakeven"]
    figures: dict[str, tuple[Kind, Any]] = {
        "best_verb": ("word", TIE.format(noun(best), noun(second)) if is_tie else verb(best)),
        "best_noun": ("word", noun(best)),
        "second_noun": ("word", noun(second)),
        "best_cost": ("usd", best["npv_usd"]),
        "best_less": ("usd", second["npv_usd"] - best["npv_usd"]),
        "best_year": ("usd", cash[best["name"]][0]),
        "best_start": ("usd", cash[best["name"]][1]),
        "second_year": ("usd", cash[second["name"]][0]),
        "own": ("usd", npv["own"]),
        "rent": ("usd", npv["rent"]),
        "saving": ("usd", saving_usd),
        "irr": ("rate", answer["irr_fraction"]),
        "payback": ("count", payback),
        "peak": ("usd", answer["peak_cash_usd"]["funding_until_payback"]),
        "be_use": ("rate", point["utilisation_fraction"]),
        "be_price": ("price", point["usd_per_gpu_hour"]),
        "be_resale": ("share", flip(RESALE, 0.0)),
        "be_server": ("usd", None if server_flip is None else server_flip * server_usd),
        "gpus": ("count", inputs["gpus"]),
        "months": ("count", inputs["months"]),
        "use": ("share", inputs["utilisation_fraction"]),
        "tax_basis": ("word", inputs["tax_basis"]),
        "financing": ("word", inputs["financing"]),
        "debt": ("word", "loan" if inputs["financing"] == "loan" else "lease"),
        "year_months": ("count", year),
        "year_end": ("date", month_on(start, year)),
        "end": ("date", month_on(start, months)),
        "payback_on": ("date", None if payback is None else month_on(start, -int(-payback // 1))),
        "debt_on": ("date", None if debt_on is None else month_on(start, debt_on)),
        "resale": ("usd", -float(values["own_resale_usd"].sum())),
        "half_price": ("price", float(inputs["rent_usd_per_gpu_hour"] or 0) * _HALF),
        "half_own": ("usd", half_own),
        "half_rent": ("usd", half_rent),
        "half_saving": ("usd", half_rent - half_own),
        "half_gap": ("usd", abs(half_rent - half_own)),
    }
    values_by_key = {key: value for key, (_, value) in figures.items()}
    reversals = [
        Reversal(
            "the rental price of a GPU-hour stays above",
            "rent_usd_per_gpu_hour",
            "price",
            inputs["rent_usd_per_gpu_hour"],
            values_by_key["be_price"],
        ),
        Reversal(
            "utilisation stays above", "utilisation_fraction", "rate", values_by_key["use"], values_by_key["be_use"]
        ),
        Reversal(
            "resale brings, of the expected value, more than",
            "residual_scale_ratio",
            "share",
            1.0,
            values_by_key["be_resale"],
        ),
        Reversal("servers cost less per GPU than", server_key, "usd", server_usd, values_by_key["be_server"]),
        Reversal("the comparison runs for more months than", "months", "count", months, point.get("months")),
    ]
    ends = answer.get("contract_ends") or []
    year_end, payback_on, debt_end = (values_by_key[key] for key in ("year_end", "payback_on", "debt_on"))
    dates = [
        ("start" if arrival else "start; the purchase is paid", str(start)),
        *([("the cluster arrives", month_on(start, int(arrival)))] if arrival else []),
        ("end of the first year of cost", year_end),
        *([("buying has paid back", payback_on)] if payback_on else []),
        *([(f"last payment of the {values_by_key['debt']}", debt_end)] if debt_end else []),
        *((f"{row['option'].replace('_', ' ')} ends, then {row['then']}", row["ends_on"]) for row in ends),
        ("end of the comparison", values_by_key["end"]),
    ]
    return Decision(
        scale,
        figures,
        _bridge_of(answer),
        cases,
        [("as planned", npv["own"], npv["rent"]), *((name, *worth[name]) for name in cases)],
        reversals,
        sorted(dates, key=lambda row: row[1]),
    )


def ways_of(answer: Tco) -> list[Row]:
    """Return the ways to get the capacity that are promised, the cheapest first; without rivals the two sides.

    Where no way to rent is promised, the cheapest one that can be interrupted stands beside owning.
    """
    ranked = promised(answer["options"])
    ways: list[Row] = [dict(row) for row in (ranked if len(ranked) > 1 else leading(answer["options"]))]
    rivals = [row for row in ways if "rival" in row]
    return rivals if len(rivals) > 1 else [row for row in ways if row["name"] in NAMES]


SURE = "How sure is it?"
_NEAR = 1e-6  # of the cost: less is what rounding leaves
NOISE = 0.01  # of its cost: a smaller lead is none


def sure_of(answer: Tco) -> str:
    """Say how sure the answer is, in the words of the first screen."""
    stated = answer.get("confidence")
    return stated["sentence"] if stated else ""


def noun(row: Row) -> str:
    """Name a way in the middle of a sentence."""
    if row["name"] in NAMES:
        return NAMES[row["name"]][1]
    sold_by = row.get("seller") or row.get("provider")
    seller = f" from {sold_by}" if sold_by else ""
    return str(row["name"]).replace("_", " ") + seller


def verb(row: Row) -> str:
    """Say what to do."""
    return NAMES[row["name"]][0] if row["name"] in NAMES else f"Take {noun(row)}"


def what_if_cases(inputs: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Return the cases that a board asks for, and what each changes."""
    # each case moves the input that counts: which one holds the price, or the resale, is a choice of the plan
    price = _PRICES.get(str(inputs["server_price_basis"]), "all_in_usd_per_gpu")
    resale = "residual_fraction" if inputs["residual_basis"] == "given" else "residual_scale_ratio"
    halves = {HALF: "rent_usd_per_gpu_hour", USE: "utilisation_fraction"}
    cases: dict[str, dict[str, Value]] = {name: {key: float(inputs[key] or 0) * _HALF} for name, key in halves.items()}
    return {**cases, RESALE: {resale: 0.0}, PRICE: {price: float(inputs[price] or 0) * _MORE}}


def case_ratio(name: str) -> float:
    """Return by what a case multiplies its input."""
    return {RESALE: 0.0, PRICE: _MORE}.get(name, _HALF)


def flipping_ratio(saving_usd: float, then_usd: float, ratio: float) -> float | None:
    """Return the multiple of an input at which nothing is saved, on the straight line through two multiples.

    s(x) = s(1) + (x − 1) × (s(ratio) − s(1)) ÷ (ratio − 1), which is nothing at the multiple returned; None below zero.

    >>> flipping_ratio(100.0, 40.0, 0.0), flipping_ratio(100.0, 50.0, 1.5), flipping_ratio(-10.0, -20.0, 0.0)
    (None, 2.0, 2.0)
    """
    if abs(then_usd - saving_usd) < _NOTHING_USD:  # the input does not move the saving
        return None
    multiple = 1 - saving_usd * (ratio - 1) / (then_usd - saving_usd)
    return multiple if multiple >= 0 else None


def _worth(model: LiveModel, changes: Mapping[str, Value]) -> tuple[float, float]:
    """Return the present values of owning and renting with some inputs changed."""
    values = compute(model, changes)
    return float(values["npv_own_usd"]), float(values["npv_rent_usd"])


def cash_so_far(row: Row, model: LiveModel, values: Mapping[str, Any], months: int) -> tuple[float, float]:
    """Return what a way takes in cash until a month, and at the start."""
    if row["name"] in NAMES:
        paid = values[f"{row['name']}_total_usd"]
        return float(paid[: months + 1].sum()), float(paid[0])
    legs = row.get("legs") or ()
    if not legs:  # a hosted API is paid as it is used
        used = values["in_use"]
        return float(row["cash_usd"] * used[: months + 1].sum() / max(used.sum(), 1e-12)), 0.0
    # a way may be several contracts in turn or beside each other, each with its share
    until = at_once = 0.0
    for leg in legs:
        paid = (compute(model, leg["changes"]) if leg["changes"] else values)["rent_total_usd"]
        until += leg["weight"] * float(paid[: months + 1].sum())
        at_once += leg["weight"] * float(paid[0])
    return until, at_once


def month_on(start: date, months: int) -> str:
    """Return the day so many months later, the last of the month where there is no such day.

    >>> month_on(date(2026, 1, 31), 1)
    '2026-02-28'
    """
    return str(months_after(start, months))


def _bridge_of(answer: Tco) -> list[tuple[str, float]]:
    """Return what leads from the present value of renting to that of owning, by cost line; they add up."""
    effects = dict.fromkeys((*_BRIDGE, _FINANCED), 0.0)  # in this order, whatever comes first in the answer
    for row in answer["lines"]:
        bar = concept(row["name"])
        effects[bar] = effects.get(bar, 0.0) + (row["npv_usd"] if row["side"] == "own" else -row["npv_usd"])
    npv = answer["npv_usd"]
    drawn = max(abs(npv["own"]), abs(npv["rent"])) / 500  # a bar that nobody would see joins the others
    shown = {label: usd for label, usd in effects.items() if label != REST and abs(usd) > drawn}
    remainder_usd = npv["own"] - npv["rent"] - sum(shown.values())
    return [*shown.items(), *([(REST, remainder_usd)] if abs(remainder_usd) > drawn / 100 else [])]


def concept(line: str) -> str:
    """Return the bar of the bridge that a cost line belongs to."""
    if line in AT_DEBT_RATE or line.startswith(("own_loan_", "own_lease_", "own_financing_")):
        return _FINANCED
    name = line.removesuffix("_usd").split("_", 1)[1]  # own_energy_usd and rent_energy_usd are both energy
    return next((label for label, names in _BRIDGE.items() if name in names), REST)


def _bridge_chart(
    title: str, ends: tuple[tuple[str, float], tuple[str, float]], effects: Sequence[tuple[str, float]], scale: Scale
) -> Chart:
    """Return the bars that lead from one end to the other, all drawn from nothing."""
    levels = [ends[0][1]]  # after the first end and after each effect
    for _, usd in effects:
        levels.append(levels[-1] + usd)
    rows: list[Row] = [_bar(*ends[0], 0.0, ends[0][1], "end", scale)]
    for (label, usd), pair in zip(effects, pairwise(levels), strict=True):
        rows.append(_bar(label, usd, *pair, "more" if usd > 0 else "less", scale))
    rows.append(_bar(*ends[1], 0.0, ends[1][1], "end", scale))
    description = f"Each bar starts where the one before it ends, from {ends[0][0]} to {ends[1][0]}."
    return Chart(
        "bridge",
        title,
        description,
        rows,
        Axis("part"),
        Axis("present_usd", "present value", "USD"),
        low="low",
        high="high",
        series="direction",
        label="words",
    )


def _bar(label: str, usd: float, start_usd: float, end_usd: float, direction: str, scale: Scale) -> Row:
    sign = "+" if direction == "more" else ""
    return {
        "part": label,
        "present_usd": usd,
        "low": min(start_usd, end_usd),
        "high": max(start_usd, end_usd),
        "direction": direction,
        "words": f"{sign}{scale.words(usd)}",
    }


def owner_of(answer: Any, name: str) -> str:
    """Return the role that answers for an input."""
    group = next((row["group"] for row in answer["assumptions"] if row["name"] == name), "")
    return next((role for role, groups in _ROLES.items() if group in groups), "Finance")


def owners(answer: Any) -> list[Row]:
    """Return who answers for which inputs, how many there are and how many have no source; names are left open."""
    rows: list[Row] = []
    for role, groups in _ROLES.items():
        for group in groups:
            inputs = [row for row in answer["assumptions"] if row["group"] == group and row["counts"]]
            assumed = sum(row["status"] == "assumed" for row in inputs)
            counts = {"count": len(inputs), "assumed": assumed}
            if inputs:
                rows.append({"role": role, "inputs_of": _MEANINGS[group], **counts, "name": "", "agreed": ""})
    return rows


def risks(answer: Tco, scale: Scale) -> list[Row]:
    """Return the three inputs that move the saving most, with what is saved at their ends."""
    rows: list[Row] = []
    for row in answer["sensitivity"][:3]:
        # the value at which the decision flips; on the forward curve it lies between the middle and one of its ends
        value, unit = row["flip_value"], row["unit"]
        if not row["flips"]:
            flips = "no"
        elif row["name"] == _OUTLOOK and value is not None:
            flips = f"{abs(value):.0%} of the way to {'P10' if value < 0 else 'P90'}"
        else:
            flips = about(value) if value is not None and unit.startswith("USD per") else amount(value, unit)
        rows.append(
            {
                "risk": heading_of(row["name"]),
                "range": range_of(row["name"], row["low"], row["high"], unit),
                "at_low": scale.words(row["saving_at_low_usd"]),
                "at_high": scale.words(row["saving_at_high_usd"]),
                "moves": scale.words(abs(row["saving_at_high_usd"] - row["saving_at_low_usd"])),
                "flips": flips,
                "owner": owner_of(answer, row["name"]),
            }
        )
    return rows


_OUTLOOK = "rent_outlook_ratio"  # -1 is the 10th percentile of the forward curve, 1 the 90th


def range_of(name: str, low: float, high: float, unit: str) -> str:
    """Write the ends between which an input was moved."""
    if name == _OUTLOOK:  # its ends are -1 and 1, which nobody could read
        return "P10 to P90"
    if unit.startswith("USD per"):
        return f"{about(low)} to {about(high)} {unit.removeprefix('USD ')}"
    return f"{amount(low, unit)} to {amount(high, unit)}"


_RISKS = (
    Column("risk", "input"),
    Column("range", "from … to"),
    Column("at_low", "saved at low"),
    Column("at_high", "saved at high"),
    Column("flips", "flips at"),
    Column("owner", "who answers"),
)
_REVERSALS = (
    Column("condition", "buying beats renting while"),
    Column("flips", "this", right=True),
    Column("now", right=True),
)
_WHAT_IF = (
    Column("case", "what if"),
    Column("own", "buying"),
    Column("rent", "renting"),
    Column("saving", "buying saves"),
    Column("wins", "cheaper"),
)
_YEARS = (
    Column("period", "cash by year"),
    Column("own", "buying"),
    Column("rent", "renting"),
    Column("saving", "buying saves"),
)
_OWNERS = (
    Column("role"),
    Column("inputs_of", "answers for"),
    Column("count", "inputs"),
    Column("assumed", "without a source"),
    Column("name", "name"),
    Column("agreed", "agreed on"),
)
_DATES = (Column("on", "date"), Column("event", "what happens"))


ALWAYS = ("none: buying wins at any", "none: renting wins at any")


def never(decision: Decision) -> str:
    """Say which side wins where no value of an input makes both cost the same."""
    return ALWAYS[0] if decision.figures["saving"][1] > 0 else ALWAYS[1]


def section(answer: Mapping[str, Any]) -> Section | None:
    """Return the page of an answer as a section; None where there is nothing to decide."""
    makers: dict[str, Callable[[Any], list[Block]]] = {"tco": _tco_blocks, "mix": _mix_blocks}
    maker = makers.get(str(answer.get("kind")))
    blocks = maker(answer) if maker else []
    return Section(TITLE, blocks, board=True) if blocks else None


def _tco_blocks(answer: Tco) -> list[Block]:
    """Return the page of owning against renting: the answers, the bridge, what would change them, and who owns what."""
    decision = decision_of(answer)
    if decision is None:
        return []
    words, scale, plain = decision.words, decision.scale, Scale(False, 0)  # plain: prices are no amounts of millions
    # where the decision turns, and where things stand now
    reversals: list[Row] = [
        {
            "condition": row.condition,
            "flips": in_words(row.kind, row.flips, plain) if row.flips is not None else never(decision),
            "now": in_words(row.kind, row.now, plain),
        }
        for row in decision.reversals
    ]
    npv = answer["npv_usd"]
    ends = (("Renting", npv["rent"]), ("Buying", npv["own"]))
    what_if = [
        {
            "case": name,
            "own": scale.words(own),
            "rent": scale.words(rent),
            "saving": scale.words(rent - own),
            "wins": "buying" if rent > own else "renting",
        }
        for name, own, rent in decision.what_if
    ]
    start, months = date.fromisoformat(answer["cash_flows"][0]["on"]), len(answer["cash_flows"]) - 1
    years: list[Row] = []
    for row in answer["by_year"]:
        end = month_on(start, min(row["year"] * 12, months))  # the last year may be a part of one
        years.append(
            {
                "period": f"start, {end}" if row["year"] == 0 else f"year {row['year']}, to {end}",
                "own": scale.words(row["own_total_usd"]),
                "rent": scale.words(row["rent_total_usd"]),
                "saving": scale.words(row["saving_usd"]),
            }
        )
    # also in the currency that was asked for
    money, foreign = answer["currency"], list[Fact]()
    if money is not None:
        code, money_scale = money["currency"], _scale_of(money["npv_own"], money["npv_rent"])
        for side, worth in (("Buying", money["npv_own"]), ("Renting", money["npv_rent"])):
            foreign.append(Fact(f"{side}, in {code}", money_scale.words(worth).replace("$", f"{code} ")))
    chance, financed = answer["probability_buy_wins_fraction"], bool(answer.get("financing"))
    payback = "never" if words["payback"] == "none" else f"{words['payback']} months"
    figures = (
        Fact("Buying, present value in USD", words["own"]),
        Fact("Renting, present value in USD", words["rent"]),
        Fact("Buying saves against renting", words["saving"]),
        *foreign,
        Fact("IRR of buying, paid in cash" if financed else "IRR of buying", words["irr"]),
        Fact("Payback, paid in cash" if financed else "Payback", payback),
        Fact("Peak funding until payback", words["peak"]),
        Fact("Break-even utilisation", words["be_use"]),
        Fact("Break-even rent per GPU-hour", words["be_price"]),
        *([] if chance is None else [Fact("Buying beats renting in", f"{chance:.0%} of draws")]),
    )
    answers = [Fact(question, text) for question, text in decision.answers.items()]
    if sure := sure_of(answer):
        answers.append(Fact(SURE, sure))
    return [
        KeyFigures(tuple(answers), style="answers"),
        KeyFigures(figures),
        _bridge_chart("From renting to buying, by cost line", ends, decision.bridge, scale),
        Table(_RISKS, risks(answer, scale), "Three risks: what moves the saving most"),
        Table(_REVERSALS, reversals, "What would change our mind"),
        Table(_WHAT_IF, what_if, "What if: present values, the rest as planned"),
        Table(_YEARS, years, "Cash by year"),
        Table(_DATES, [{"on": on, "event": event} for event, on in decision.dates], "When it ends"),
        Table(_OWNERS, owners(answer), "Who owns which assumption"),
        Paragraph(answer["conventions"], "note"),
    ]


# --- A mix of capacity.


def _mix_blocks(answer: Mix) -> list[Block]:
    """Return the page of a mix: what to sign, what it costs, and how far the plan bears other prices."""
    page = mix_page(answer)
    scale, cost = page.scale, answer["cost_usd"]
    alone = answer["best_pure_usd"]
    effects = [*page.parts]
    ends: tuple[tuple[str, float], tuple[str, float]] = (("Nothing yet", 0.0), ("The mix", cost))
    chart = _bridge_chart("What the mix is made of", ends, effects, scale)
    # The supplies begin at nothing; behind the mix stand what it saves and, where one exists, the best single option.
    data = [row for row in chart.data if row["part"] != "Nothing yet"]
    if alone is not None:
        best = min(
            (row for row in answer["pure"] if row["cost_usd"] is not None), key=lambda row: float(row["cost_usd"] or 0)
        )
        data += [
            _bar("saved", alone - cost, cost, alone, "less", scale),
            _bar(f"{best['option'].replace('_', ' ')} alone", alone, 0.0, alone, "end", scale),
        ]
    description = "What each supply costs, up to the mix, and the best single option beside it."
    chart = replace(chart, description=description, data=data)
    pure = [
        {
            "option": row["option"].replace("_", " "),
            "cost": MISSING if row["cost_usd"] is None else scale.words(row["cost_usd"]),
            "note": row["note"],
        }
        for row in answer["pure"]
    ]
    what_if = [
        {"case": name, "cost": scale.words(usd), "change": scale.words(usd - cost)} for name, usd in page.what_if
    ]
    years = [{"period": label, "cost": scale.words(usd)} for label, usd in page.years]
    binding = [
        {
            "constraint": row["constraint"].replace("_", " "),
            "worth": f"${row['usd_per_gpu_month']:,.0f} per GPU-month",
            "note": row["note"],
        }
        for row in answer["marginal_values"][:3]
    ]
    return [
        KeyFigures(tuple(Fact(question, text) for question, text in page.answers.items()), style="answers"),
        KeyFigures(tuple(Fact(label, text) for label, text in page.figures.items())),
        chart,
        Table(
            (Column("case", "the plan held"), Column("cost", "the mix costs"), Column("change")),
            what_if,
            "Three risks: what moves the cost",
        ),
        Table(
            (Column("constraint"), Column("worth", "one more would save, or cost"), Column("note")),
            binding,
            "What would change our mind: the limits that bind",
        ),
        Table((Column("option", "one option alone"), Column("cost"), Column("note")), pure, "Against one option alone"),
        Table((Column("period", "cash by year"), Column("cost", "the mix")), years, "Cash by year"),
        Table(_OWNERS, owners(answer), "Who owns which assumption"),
    ]


_UNSIGNED = tuple(name for name, rule in OPTIONS.items() if not rule.take_or_pay)  # used as needed
MIX_MOVED = "Prices were changed on the sheet of the cash: the sentences above are as delivered."


class MixPage(Struct, frozen=True):
    """What the page says of a mix."""

    scale: Scale
    answers: Mapping[str, str]
    figures: Mapping[str, str]
    parts: Sequence[tuple[str, float]]  # what each supply costs, in present value
    what_if: Sequence[tuple[str, float]]
    years: Sequence[tuple[str, float]]


def mix_page(answer: Mix) -> MixPage:
    """Return the sentences and figures of a mix's page."""
    cost, alone = answer["cost_usd"], answer["best_pure_usd"]
    scale = _scale_of(cost, alone or 0.0)
    months, start = len(answer["months"]), date.fromisoformat(answer["as_of"])
    year = min(_FIRST_MONTHS, months)
    cash: Sequence[Row] = answer["cash_by_month"]  # older answers have no total beside the kinds
    paid = [
        float(row["total_usd"] if "total_usd" in row else sum(usd for key, usd in row.items() if key != "month"))
        for row in cash
    ]
    until = sum(paid[: year + 1])
    # Present values of each kind of cash at the cost of capital of the plan: a nominal rate is divided by twelve, an
    # effective one compounds to itself over twelve months.
    inputs = {row["name"]: row["value"] for row in answer["assumptions"]}
    wacc = float(cast(float, inputs.get("wacc_fraction") or 0.0))
    monthly = wacc / 12 if inputs.get("wacc_convention") == "nominal" else (1 + wacc) ** (1 / 12) - 1
    worth: dict[str, float] = {}
    for month in cash:
        for key, usd in month.items():
            if key not in ("month", "total_usd"):
                worth[key] = worth.get(key, 0.0) + float(usd) / (1 + monthly) ** month["month"]
    rent, servers = worth.get("rent_usd", 0.0), worth.get("servers_usd", 0.0)
    # What there is to sign: what is owned, contracts that are owed, and what is rented as it is needed.
    # none of the single options may carry the demand: then there is nothing to compare with
    wins = alone is not None and alone > cost
    less = f", {scale.words(alone - cost)} less than the best single option" if wins and alone is not None else ""
    signed = [row for row in answer["plan"] if not row["option"].startswith("use of ") and row["gpus"]]
    by_option: dict[str, float] = {}
    for row in signed:
        by_option[row["option"]] = by_option.get(row["option"], 0.0) + float(row["gpus"] or 0)
    owned = by_option.get("own", 0.0)
    signed_for = [
        f"{gpus:,.0f} GPUs of {option.replace('_', ' ')}"
        for option, gpus in by_option.items()
        if option not in ("own", *_UNSIGNED)
    ]
    at_will = [
        f"up to {gpus:,.0f} {option.replace('_', ' ')}" for option, gpus in by_option.items() if option in _UNSIGNED
    ]
    steps = [f"buy {owned:,.0f} GPUs"] if owned else []
    steps += [f"sign {' and '.join(signed_for)}"] if signed_for else []
    steps += [f"rent {' and '.join(at_will)} as needed"] if at_will else []
    bought = ", ".join(steps) or "rent as needed"
    # and when each of it ends; the last contract of an option counts
    ends = {
        row["option"]: row["signed_in_month"] + row["months"] - 1
        for row in signed
        if row["signed_in_month"] is not None and row["months"] is not None
    }
    last = "; ".join(
        f"{'what is owned' if option == 'own' else option.replace('_', ' ')} runs to"
        f" {month_on(start, min(int(month), months))}"
        for option, month in ends.items()
    )
    answers = {
        "What do we decide?": f"{bought[0].upper()}{bought[1:]}: the mix costs {scale.words(cost)} over"
        f" {months} months (present value){less}.",
        "What does it cost this year?": f"In the first {year} months, to {month_on(start, year)}, the mix takes"
        f" {scale.words(until)} in cash.",
        "What if rent halves?": f"With the same plan the mix costs {scale.words(cost - rent * _HALF)},"
        f" {scale.words(rent * _HALF)} less."
        " Ask again before you buy more.",
        "When does it end?": f"On {month_on(start, months)}, after {months} months. {last[:1].upper()}{last[1:]}"
        f"{'.' if last else ''}".rstrip(),
    }
    peak = max(0.0, max(paid))
    demand = max(float(row["demand_gpus"]) for row in answer["months"])
    figures = {
        "The mix, present value in USD": scale.words(cost),
        "Best single option": MISSING if alone is None else scale.words(alone),
        "The mix saves": MISSING if alone is None else scale.words(alone - cost),
        "Most cash in one month": scale.words(peak),
        "GPUs owned in all": format_value(owned),
        "Largest demand, GPUs": format_value(demand),
    }
    # With the plan held each kind of cash only scales, so that its present value is all that is needed.
    what_if = [
        ("rent costs 20% more", cost + 0.2 * rent),
        ("servers cost 20% more (resale too)", cost + 0.2 * servers),
        ("rent halves", cost - _HALF * rent),
    ]
    years = [("start", paid[0])]  # month 0 stands by itself; year n holds the months 12 n - 11 to 12 n
    for number in range(1, -(-months // 12) + 1):
        end = month_on(start, min(12 * number, months))
        years.append((f"year {number}, to {end}", sum(paid[12 * number - 11 : 12 * number + 1])))
    # what each supply costs; a part that nobody would see as a bar joins what belongs to no supply
    parts: dict[str, float] = {}
    for entry in answer["plan"]:
        label = entry["option"].removeprefix("use of ").replace("_", " ")
        label = "owned servers" if label == "own" else label
        parts[label] = parts.get(label, 0.0) + entry["cost_usd"]
    small = max(abs(cost), 1.0) / 500
    remainder_usd = cost - sum(parts.values())
    remainder_usd += sum(usd for usd in parts.values() if abs(usd) <= small)
    shown = [(label, usd) for label, usd in parts.items() if abs(usd) > small]
    shown += [(REST, remainder_usd)] if abs(remainder_usd) > small / 100 else []
    return MixPage(scale, answers, figures, shown, what_if, years)
