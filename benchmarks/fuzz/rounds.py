"""What was answered is never refused later: written in every form, compared, run again, exported, held to an invoice.

A case draws two questions that a user may well ask, of one kind; what they answer goes through the commands.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.orders import GPUS, MODELS

CHIPS = [gpu for gpu in GPUS if gpu]
PARTS = {"estimate": "training", "inference": "serving", "tco": "ownership"}  # of a plan
# question -> what it is always asked, and what now and then
ALWAYS: dict[str, dict[str, Sequence[Any]]] = {
    "estimate": {"model": [*MODELS, "11.3b"], "tokens": ["100m", "20b", "105b", "3t"]},
    "inference": {"model": [*MODELS, "11.3b"], "requests_per_s": [0.3, 5, 80]},
    "tco": {"gpu": [gpu for gpu in CHIPS if gpu not in ("t4", "v100-16gb")], "gpus": [1, 8, 72, 500, 1024]},
    "throughput": {"model": MODELS, "gpu": CHIPS, "gpus": [1, 8, 24, 72, 512]},
    "fit": {"model": MODELS, "gpu": CHIPS, "gpus": [8, 64]},
    "mix": {"gpu": ["h100-sxm", "b200", "l40s"], "constant": [1, 33, 200], "months": [3, 12, 36]},
}
_AT_TIMES: dict[str, dict[str, Sequence[Any]]] = {
    "estimate": {
        "gpu": CHIPS, "gpus": [8, 24, 64, 72, 100], "deadline": ["none", "10d", "2027-06-01"], "sequence": [2048, 4000],
        "method": ["lora", "qlora"], "precision": ["fp8", "fp16"], "optimize": ["time", "carbon", "pareto"],
        "top": [0, 1, 3], "option": ["on_demand", "spot", "reserved"], "overhead": ["0%", "35%"], "mfu": ["35%"],
        "experiments": ["50%"], "global_batch": [96, 2048], "software": ["megatron", "eager"], "epochs": [2.5],
        "software_year": [2023.5], "offload": ["states"], "document_tokens": [700], "commitment": ["used"],
    },
    "inference": {
        "gpu": CHIPS, "prompt_tokens": [100, 3000], "output_tokens": [50, 700], "tpot": ["30ms", "100ms"],
        "ttft": ["500ms"], "precision": ["fp8", "int4"], "engine": ["sglang", "trtllm"], "utilisation": ["40%", "100%"],
        "profile": ["office", "consumer"], "autoscale": [True], "redundancy": [1, 2], "prefix_hit": ["30%"],
        "top": [0, 1, 4], "optimize": ["latency", "carbon"], "option": ["spot"], "lengths": ["azure-conversation"],
    },
    "tco": {
        "utilisation": ["20%", "95%"], "years": [1, 2.5, 6], "rent": [1.5, 4], "rent_path": ["decline", "observed_v"],
        "wacc": ["5%", "25%"], "tax": ["25%"], "financing": ["loan", "lease", "operating_lease"], "draws": [0, 50],
        "lead_time": ["12w"], "profile": ["desk", "lab", "colocation", "own"], "grid_region": ["france"],
        "electricity_region": ["us_texas"], "tax_regime": ["de", "us"], "site": ["germany"], "currency": ["EUR"],
    },
}  # fmt: skip


def rounds(random: Random) -> Case:
    """Two answers of a kind, and what is done with them."""
    name = random.choice([*PARTS, *PARTS, *ALWAYS])
    ending = random.choice(["json", "md", "html", "txt", "xlsx"])
    return Case([name], face="round_trip", inputs=(_drawn(random, name), _drawn(random, name), ending))


def _drawn(random: Random, name: str) -> dict[str, Any]:
    # few at once: most pairs of these exclude nothing, yet many together are refused
    sure = {key: random.choice(values) for key, values in ALWAYS[name].items()}
    more = {key: random.choice(values) for key, values in _AT_TIMES.get(name, {}).items() if random.random() < 0.15}
    return sure | more


def round_trip(case: Case) -> None:
    """Ask, and hand each answer to the commands that take it; that one refuses it is an internal error."""
    import gpucost
    from gpucost.cli import cli
    from gpucost.errors import GpuCostError
    from gpucost.invoices.rows import MOST_DAYS
    from gpucost.render.json import dumps

    def go_on(arguments: list[str]) -> None:
        try:
            cli.main(arguments, standalone_mode=False)
        except GpuCostError as error:
            raise InternalError(f"{arguments[0]} refuses what is answered: {error} {case.inputs}") from error

    name, (*questions, ending) = case.arguments[0], case.inputs
    first, second = (getattr(gpucost, name)(**arguments).to_dict() for arguments in questions)
    Path("a.json").write_text(dumps(first), "utf-8")
    Path("b.json").write_text(dumps(second), "utf-8")
    go_on(["report", "a.json", "-o", f"out.{ending}"])
    go_on(["compare", "a.json", "b.json", "--format", "json"])
    if name == "estimate":
        go_on(["saved", "rerun", "a.json"])
    if name not in PARTS or any(option.get("days", 0) > MOST_DAYS for option in first["options"][:1]):
        return  # no charges are written for a run of more than a century
    go_on(["saved", "export", "--focus", "a.json", "-o", "charges.csv"])
    go_on(["reconcile", "charges.csv", "--estimate", "a.json"])
    # the second question once more, as a part of a scenario file
    lines = [f"{key} = {dumps(value).strip()}" for key, value in questions[1].items()]
    Path("plan.toml").write_text("\n".join([f"[[{PARTS[name]}]]", 'name = "Part"', *lines]), "utf-8")
    go_on(["report", "plan.toml", "-o", f"plan.{ending}"])
