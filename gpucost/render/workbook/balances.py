"""Checks that a workbook makes on itself, each by another way than the figure that it checks."""

from collections.abc import Callable

from gpucost.money import comparison
from gpucost.render.workbook.calculations import Rows, scalar_reference
from gpucost.render.workbook.live import LiveModel

Check = tuple[str, str, str]  # what holds, the condition, how it is found
_NEAR = "ABS(({0})-({1}))<=check_tolerance*MAX(1,ABS({1}),{2})"


def balances(model: LiveModel, flows: Rows) -> list[Check]:
    """Return the checks of a cash-flow model: totals, balances, depreciation and present values; others have none."""
    if (model.key, "saving_usd") not in flows:
        return []

    def ref(name: str) -> str:
        return scalar_reference(model, flows, name)

    def near(one: str, other: str) -> str:
        return _NEAR.format(one, other, f"ABS({ref('capex_usd')})")

    def total(*names: str) -> str:
        return "+".join(f"SUM({ref(name)})" for name in names)

    sides = [
        (
            f"the total of {side}ing is the sum of its lines",
            near(total(f"{side}_total_usd"), total(*(line.name for line in lines))),
            "line by line over all months",
        )
        for side, lines in (("own", comparison.OWN_LINES), ("rent", comparison.RENT_LINES))
    ]
    last, later = model.months, _worth(ref)
    paid = f"IF({ref('arrival_month')}<{ref('months')},1,0)"
    basis = f"{paid}*{ref('capex_usd')}+{ref('refresh_usd')}"
    leased = f'OR({ref("financing")}="operating_lease",{near(_repaid(ref, "lease"), "0")})'
    return [
        *sides,
        (
            "what owning saves is rent less owning",
            near(total("saving_usd"), f"{total('rent_total_usd')}-SUM({ref('own_total_usd')})"),
            "over all months",
        ),
        ("the loan ends at zero", near(_repaid(ref, "loan"), "0"), "drawn and paid, discounted at the loan's own rate"),
        ("the lease ends at zero", leased, "the same at the lease's own rate"),
        (
            "all that was bought is written off",
            near(total("depreciation_usd", "written_off_usd"), basis),
            "depreciation and what is left at the end, against the purchase and its replacement",
        ),
        ("the present value is that of the cash", near(later, ref("npv_saving_usd")), "discounted month by month"),
        *(
            [
                (
                    "the balance sheet balances",
                    near(ref("unbalanced_usd"), "0"),
                    "assets less debts less equity by period",
                )
            ]
            if model.periods
            else []
        ),
        ("the sheet of months holds the whole comparison", f"{ref('months')}<={last}", f"{last} months at most"),
    ]


def _repaid(ref: Callable[[str], str], kind: str) -> str:
    flows = "+".join(ref(f"own_{kind}_{part}_usd") for part in ("drawn", "payment", "settled"))
    monthly = f"{ref(f'{kind}_rate_fraction')}/{ref('months_per_year')}"
    return f"SUMPRODUCT(({flows})/(1+{monthly})^{ref('m')})"


def _worth(ref: Callable[[str], str]) -> str:
    """Discount the cash month by month: what is financed at the cost of debt, all else at the cost of capital."""
    financing, returned = ref("own_financing_usd"), ref("own_lease_returned_usd")
    plain = f"{ref('rent_total_usd')}-{ref('own_in_cash_usd')}-{returned}"
    capital, debt = (f"(1+{ref(f'monthly_{name}rate_fraction')})^{ref('m')}" for name in ("", "debt_"))
    return f"SUMPRODUCT(({plain})/{capital})-SUMPRODUCT(({financing}-{returned})/{debt})"
