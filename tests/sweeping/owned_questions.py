"""Random questions of owning against renting, and how a row of a sweep is held to the single answer."""

import inspect

import numpy as np

import gpucost
from gpucost.arguments.signature import python_names
from gpucost.errors import GpuCostError
from tests.sweeping.open_questions import cell_of

ARGUMENTS = {
    "gpu": ["h100-sxm", "b200", "a100-80gb", "h200", "mi300x", "rtx-4090", "l40s", "gb200", "tpu-v5e", None, "h900"],
    "gpus": [1, 4, 8, 12, 24, 64, 100, 1000, 20_000, 0.5],
    "utilisation": [None, 0.05, 0.3, 0.7, 0.95, 1.0, 0.0],
    "hours_per_month": [None, 200],
    "years": [None, 2, 3.5, 4, 5, 2.55],
    "months": [None, 18, 60],
    "rent": [None, 0.6, 1.5, 2.35, 6.0, "acme=2.1/h, 12 months"],
    "provider": [None, "lambda", "aws", "coreweave"],
    "option": [None, "on_demand", "reserved", "spot"],
    "region": [None, "us", "us-east-1"],
    "rent_path": [None, "flat", "decline", "observed_v"],
    "wacc": [None, 0.0, 0.08, 0.15],
    "tax": [None, 0.21, 0.35],
    "tax_regime": [None, "us", "de", "uk", "xx"],
    "site": [None, "us_virginia", "germany", "mars"],
    "use_path": [None, "ramp 20% over 6 months", "from month 25: 120%", "hm"],
    "profile": [None, "desk", "lab", "colocation", "own"],
    "financing": [None, "cash", "loan", "lease", "operating_lease", "barter"],
    "lead_time": [None, 0, 20, 36, 110],
    "electricity_region": [None, "us_texas", "germany_industry"],
    "grid_region": [None, "france"],
    "api_price": [None, 0.9],
    "tokens_per_s_per_gpu": [None, 2500],
}
INPUTS = {
    "pue_ratio": [1.1, 1.4, 0.5],
    "electricity_usd_per_kwh": [0.05, 0.2],
    "server_usd": [250_000, 310_000],
    "gpu_usd": [20_000],
    "residual_scale_ratio": [0.5, 1.2],
    "residual_fraction": [0.1, 0.4],
    "staff_usd_per_fte_year": [150_000, 250_000],
    "loan_term_months": [24, 60],
    "loan_rate_fraction": [0.05, 0.12],
    "loan_fraction": [0.5, 0.9],
    "loan_repayment": ["sculpted"],
    "lease_rate_fraction": [0.0, 0.09],
    "lease_term_months": [24, 48],
    "rent_billing": ["take_or_pay"],
    "rent_term_months": [12],
    "rent_upfront_fraction": [0.5],
    "rent_decline_fraction": [0.1, 0.3],
    "power_cap_fraction": [0.4, 0.6],
    "depreciation_years": [3, 5, 2.5],
    "depreciation_method": ["macrs5"],
    "loss_basis": ["carried_forward"],
    "other_income_usd_per_year": [300_000, 5_000_000],
    "service_limit_months": [20],
    "refresh_month": [20, 30],
    "order_month": [3],
    "bridge_basis": ["none"],
    "facility_basis": ["retail", "own"],
    "deposit_fraction": [0.3, 0.95],
    "retention_fraction": [0.1],
    "gpus_per_node": [4],
    "spares_basis": ["failures", "maintenance"],
    "goodput_fraction": [0.8],
    "electricity_escalation_fraction": [0.03],
}
LOADS = {
    "model": ["8b", "70b"],
    "tokens": [1e11, 1e13],
    "runs_per_year": [None, 4],
    "tokens_per_month": [None, 5e9, 1e13],
    "mfu": [None, 0.35],
}
ALWAYS = ("gpu", "gpus", "utilisation")
EXCLUSIVE = (("utilisation", "hours_per_month"), ("years", "months"), ("tax", "tax_regime"))


def questions(count, seed, loads=0.0):
    """Return random questions, with some arguments and some inputs of the plan left out; few contradict themselves."""
    draw = np.random.default_rng(seed)
    cases = []
    for _ in range(count):
        case = {}
        for name, values in ARGUMENTS.items():
            if name in ALWAYS or draw.random() < 0.35:
                place = draw.integers(len(values) if draw.random() < 0.2 else max(1, len(values) - 2))
                case[name] = values[place]
        for names in EXCLUSIVE:
            for name in names[: len(names) - 1 if draw.random() < 0.5 else 0]:
                if case.get(names[1]) is not None and draw.random() < 0.95:
                    case.pop(name, None)
        if case.get("rent") is not None and draw.random() < 0.95:
            for name in ("provider", "option", "region"):
                case.pop(name, None)
        if case.get("utilisation") is not None:
            case.pop("hours_per_month", None)
        if case.get("years") is not None:
            case.pop("months", None)
        chosen = draw.choice(list(INPUTS), draw.integers(0, 5), replace=False).tolist()
        for name in sorted(chosen, key=list(INPUTS).index):  # an error names two of them in the order of the columns
            case[name] = INPUTS[name][draw.integers(len(INPUTS[name]))]
        if draw.random() < loads:
            case |= {name: values[draw.integers(len(values))] for name, values in LOADS.items()}
        cases.append({name: value for name, value in case.items() if value is not None})
    return cases


def coded(cases):
    """Return questions as columns of codes and what they mean, as a sweep has them."""
    values, codes = {}, {}
    for name in (name for name in (*ARGUMENTS, *INPUTS, *LOADS) if any(name in case for case in cases)):
        column = [case.get(name) for case in cases]
        values[name] = list(dict.fromkeys(column))
        codes[name] = np.array([values[name].index(value) for value in column])
    return values, codes


def single(case, catalog):
    """Return the figures of one question, or why there is none."""
    asked = {name: value for name, value in case.items() if name in ARGUMENTS or name in LOADS}
    inputs = {name: value for name, value in case.items() if name not in asked}
    try:
        answer = gpucost.tco(**asked, **({"set": inputs} if inputs else {}), draws=0, catalog=catalog).payload
    except GpuCostError as error:
        return " ".join(str(error).split())
    worth, even = answer["npv_usd"], answer["breakeven"]
    return {
        "cheaper": "own" if worth["saving"] > 0 else "rent",
        **{f"{name}_usd" if name == "saving" else f"{name}_npv_usd": worth[name] for name in ("own", "rent", "saving")},
        **{f"breakeven_{name}": even[name] for name in ("utilisation_fraction", "usd_per_gpu_hour", "months")},
        **{name: answer[name] for name in ("payback_months", "irr_fraction", "levelised_usd_per_gpu_hour")},
        **{name: answer[name] for name in ("levelised_rent_usd_per_gpu_hour", "levelised_usd_per_mtok")},
    }


def in_python(sentence, question):
    """Return a refusal of a sweep as Python says it."""
    return python_names(sentence, {*inspect.signature(question).parameters})


def differences(columns, row, alone, precision=1e-9):
    """Return in what a row of a sweep differs from the answer to its single question."""

    def cell(name):
        return cell_of(columns[name], row)

    if isinstance(alone, str):
        reason = in_python(cell("reason") or "", gpucost.tco)  # a sweep's file speaks of options, Python of arguments
        return [] if reason == alone else [f"reason: {alone} | {reason}"]
    assert set(columns) - {"reason", "nearest_change"} == set(alone)
    if cell("reason") is not None:
        return [f"refused: {cell('reason')}"]
    scale = abs(alone["own_npv_usd"]) + abs(alone["rent_npv_usd"])
    found = []
    for name, wanted in alone.items():
        value, slack = cell(name), precision * (scale if name == "saving_usd" else 0.0)
        same = value == wanted if not isinstance(wanted, float) or value is None else (
            abs(value - wanted) <= max(precision * abs(wanted), slack)
        )  # fmt: skip
        if not same:
            found.append(f"{name}: {value} for {wanted}")
    return found
