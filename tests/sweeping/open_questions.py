"""Random training questions that leave the size of the cluster open, and how a row is held to the single answer."""

import numpy as np

import gpucost
from gpucost.errors import GpuCostError, changed

AXES = {
    "model": ["8b", "70b", "mixtral-8x7b", "1b"],
    "gpu": [None, "h100", "h100,h200", "a100", "b200", "mi300x", "l40s", "trn2", "tpu-v5e"],
    "tokens": [2e9, 1e10, 5e10, 2e11, 1e12, 5e12, 1.5e13],
    "deadline": [None, "none", "3d", "10d", "25d", "60d", "200d"],
    "budget": [None, None, None, 2000, 50_000, 1_000_000],
    "overhead": [None, "0%", "35%"],
    "experiments": [None, "50%"],
    "epochs": [None, 2.5],
    "option": [None, None, "on_demand", "spot", "reserved", "capacity_block"],
    "region": [None, None, "us", "europe"],
    "optimize": [None, None, None, "time", "carbon"],
    "method": [None, None, "lora", "qlora"],
    "precision": [None, None, "fp8"],
    "commitment": [None, "used"],
    "max_age": [None, None, "60d"],
    "strict_prices": [None, None, True],
    "sequence": [None, 32_768],
    "max_gpus": [None, None, None, 256],
}
FIGURES = (
    "provider", "instance_type", "region", "option", "gpu", "gpus", "nodes", "cost_usd", "cost_low_usd",
    "cost_high_usd", "days", "days_low", "days_high", "gpu_hours", "tokens_per_s_per_gpu", "mfu_fraction",
    "usd_per_gpu_hour", "usd_per_mtok", "energy_kwh", "kgco2e", "age_days",
)  # fmt: skip


def questions(count, seed):
    """Return random questions, each with about half of the arguments left out."""
    draw = np.random.default_rng(seed)
    cases = []
    for _ in range(count):
        case = {name: values[draw.integers(len(values))] for name, values in AXES.items()}
        for name in AXES:
            if name not in ("model", "tokens", "gpu", "deadline") and draw.random() < 0.6:
                case[name] = None
        cases.append(case)
    return cases


def single(case, catalog):
    """Return the first option of a question, or the error that says why there is none."""
    try:
        asked = {name: value for name, value in case.items() if value is not None}
        return gpucost.estimate(**asked, top=1, with_facts=False, catalog=catalog).options[0]
    except GpuCostError as error:
        return error


def cell_of(column, row):
    """Return the cell of a column: a number or a word, None where there is none."""
    if not isinstance(column, tuple):
        return None if np.isnan(column[row]) else float(column[row])
    codes, words = column
    return None if codes[row] < 0 else words[codes[row]]


def differences(columns, row, alone):
    """Return in what a row of a sweep differs from the answer to its single question."""

    def cell(name):
        return cell_of(columns[name], row)

    if isinstance(alone, GpuCostError):
        wanted = {"nearest_change": changed(alone) or None, "provider": None}
        wanted |= {f"nearest_{name}": alone.nearest.get(name) for name in ("gpus", "days", "cost_usd")}
        found = {name: cell(name) for name in wanted}
        short = [f"{name}: {found[name]} for {wanted[name]}" for name in wanted if found[name] != wanted[name]]
        short += [str(alone)] if short else []
        return short if cell("reason") is not None else [*short, f"no reason for {alone}"]
    wanted = {name: alone[name] for name in FIGURES}
    wanted["region"] = wanted["region"] or None
    found = {name: cell(name) for name in FIGURES}
    return [f"{name}: {found[name]} for {wanted[name]}" for name in FIGURES if found[name] != wanted[name]]
