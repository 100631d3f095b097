"""Whether an argument counts: beside others it changes the answer, or is refused; none is ignored without a word."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.meaning import flat

Arguments = dict[str, Any]

# question -> what is asked first, and values of further arguments, each of which must tell where it counts
_BASES: dict[str, list[Arguments]] = {
    "estimate": [{"model": "8b", "tokens": "10b", "gpu": "h100-sxm", "top": 0},
                 {"model": "mixtral-8x7b", "tokens": "3b", "gpu": "a100-80gb", "top": 0}],
    "inference": [{"model": "70b", "gpu": "h100-sxm", "top": 0}, {"model": "8b", "requests_per_s": 20, "gpu": "l40s"}],
    "tco": [{"gpu": "h100-sxm", "gpus": 64, "draws": 0}, {"gpu": "h100-sxm", "draws": 0, "model": "8b", "tokens": "9t"},
            {"gpu": "h100-sxm", "draws": 0, "model": "8b", "tokens_per_month": "500b"}],
    "mix": [{"gpu": "h100-sxm", "constant": 33, "months": 24}],
    "fit": [{"model": "13b", "gpu": "h100-sxm"}, {"model": "70b", "gpu": "h100-sxm", "serving": True},
            {"model": "70b", "gpu": "h100-sxm", "gpus": 16}],
    "throughput": [{"model": "8b", "gpu": "v100-16gb", "gpus": 64}, {"model": "8b", "gpu": "h100-sxm", "gpus": 64},
                   {"model": "70b", "gpu": "h100-sxm", "gpus": 64, "tensor": 8}],
    "audit": [{"model": "8b", "tokens": "100b", "gpu": "a100-80gb", "gpus": 8, "days": 60},
              {"model": "70b", "gpu": "h100-sxm", "gpus": 8, "tokens_per_s": 5000},
              {"buy": "800k", "rent_monthly": "20k", "own_monthly": "5k", "gpus": 80, "gpu_hours_per_month": 10000}],
    "choose": [{"model": "70b", "purpose": "fine-tuning"}, {"model": "8b", "purpose": "serving"}],
    "commit": [{"usage": [8, 12, 9, 16] * 200, "on_demand": 4, "committed": 2}],
}  # fmt: skip
# arguments that several questions take
_LAYOUT: Mapping[str, Sequence[Any]] = {
    "tensor": [4], "pipeline": [2], "data": [8], "sharding": [3], "micro_batch": [2], "sequence": [2000, 32768],
    "recompute": ["full"], "precision": ["fp32"], "method": ["lora", "qlora"], "lora_rank": [200],
    "offload": ["states"],
}  # fmt: skip
_SPEED: Mapping[str, Sequence[Any]] = {"mfu": ["11%"], "tokens_per_s_per_gpu": [900], "step_time": ["37s"]}
_INPUT: Mapping[str, Sequence[Any]] = {
    "dataset": ["150kb/sample"], "loader_workers": [2], "decode_rate": ["0.1MB/s"], "storage_bandwidth": ["0.001GB/s"],
}  # fmt: skip
# values far enough from what is taken without them to move a figure
_ARGUMENTS: dict[str, Mapping[str, Sequence[Any]]] = {
    "estimate": {
        **_SPEED, **_INPUT, "epochs": [2], "gpus": [16], "budget": [250], "sequence": [2000], "document_tokens": [60],
        "global_batch": [128], "precision": ["fp32"], "method": ["lora", "qlora"], "lora_rank": [2000],
        "offload": ["states"], "lora_targets": ["attention"], "software": ["untuned"], "overhead": ["30%"],
        "experiments": ["20%"], "commitment": ["used"], "optimize": ["time", "carbon"], "deadline": ["5h"],
        "all_regions": [True], "strict_prices": [True], "option": ["on_demand"], "as_of": ["2025-12-01"],
    },
    "inference": {
        "prompt_tokens": [3000], "output_tokens": [700], "lengths": ["azure-conversation"], "requests_per_s": [90],
        "tokens_per_month": ["500b"], "tpot": ["9ms"], "precision": ["fp8"], "cache": ["fp8"], "engine": ["eager"],
        "utilisation": ["35%"], "profile": ["office"], "autoscale": [True], "floor": [40], "replicas": [60],
        "redundancy": [2], "prefix_hit": ["60%"], "draft_tokens": [4], "acceptance": ["7%"], "draft_cost": ["90%"],
        "offload": ["30%"], "own_output_tokens_per_s": [300], "own_tpot": ["60ms"], "own_concurrency": [3],
        "replica_gpus": [8], "optimize": ["latency", "carbon"], "strict_prices": [True], "as_of": ["2025-12-01"],
        "budget": [25_000],
    },
    "tco": {
        **_SPEED, "gpus": [128], "utilisation": ["9%"], "years": [3], "months": [30], "rent": [2.35], "region": ["us"],
        "provider": ["lambda"], "option": ["reserved"], "rent_path": ["decline"], "wacc": ["15%"], "tax": ["25%"],
        "tax_regime": ["de"], "site": ["germany"], "use_path": ["ramp 20% over 6 months"], "refresh_gpu": ["b200"],
        "profile": ["own", "desk"], "financing": ["loan", "operating_lease"], "lead_time": ["36w"],
        "electricity_region": ["us_texas"], "grid_region": ["france"], "model": ["70b"], "tokens": ["30t"],
        "runs_per_year": [3], "tokens_per_month": ["100b"], "prompt_tokens": [3000], "output_tokens": [700],
        "api_price": [0.9], "set": [{"pue_ratio": 1.5}, {"refresh_month": 30}, {"residual_fraction": 0.1}],
    },
    "mix": {
        "growth": ["3%"], "months": [12], "rent": [0.5], "provider": ["lambda"], "budget": [100_000], "max_owned": [3],
        "max_on_demand": [8], "spot_share": ["0%"], "own": [False], "wacc": ["40%"], "as_of": ["2026-06-01"],
    },
    "fit": {
        "gpus": [8], "system": ["aws-p5.48xlarge"], "method": ["lora", "qlora"], "optimizer": ["adamw-8bit", "muon"],
        "sequence": [2048, 32768], "micro_batch": [4], "recompute": ["full", "none"], "loss_chunk": [64],
        "offload": ["states"], "lora_rank": [2000], "tensor": [8], "pipeline": [2], "context": [2], "sharding": [0],
        "style": ["library"], "flash": [False], "prompt_tokens": [30_000], "output_tokens": [7000], "tpot": ["9ms"],
        "precision": ["fp8"], "cache": ["fp8"], "engine": ["eager"],
    },
    "throughput": {
        **_LAYOUT, **_SPEED, **_INPUT, "gpus": [128], "global_batch": [96], "document_tokens": [60],
        "software": ["untuned"], "software_year": [2020.5], "flash": [False], "links": ["pcie"],
        "as_of": ["2021-01-01"],
    },
    "audit": {
        "model": ["13b"], "tokens": ["50b"], "gpu": ["l40s"], "gpus": [16], "days": [30], "hours": [700],
        "gpu_hours": [9000], "cost": [6291], "fits": ["training", "serving"], "weights_gb": [10], "training_gb": [100],
        "tokens_per_s": [9000], "batch": [64], "buy": ["900k"], "rent_monthly": ["30k"], "own_monthly": ["9k"],
        "payback_months": [10], "gpu_hours_per_month": [1000], "discount": ["20%"],
    },
    "choose": {
        "model": ["13b"], "purpose": ["research"], "budget": ["2k"], "tokens": ["50t"], "hours_per_month": [2],
        "gpu": ["l40s"], "provider": ["aws"], "option": ["on_demand"], "as_of": ["2026-03-01"],
    },
    "commit": {"on_demand": [9, 2.5], "committed": [1, 3.9]},
}  # fmt: skip
# what may leave an answer as it was beside others: it bounds what is within the bound, or chooses what is chosen anyway
_MAY_REST = {
    "estimate": ("budget", "strict_prices", "all_regions", "option", "deadline", "optimize", "as_of", "commitment"),
    "inference": ("strict_prices", "tpot", "optimize", "as_of", "floor", "budget"),
    "tco": ("region", "option", "provider", "utilisation"),
    "mix": ("budget", "max_owned", "max_on_demand", "spot_share", "own", "provider", "as_of"),
    "fit": ("system", "style", "recompute", "sharding", "tensor", "pipeline"),
    "throughput": ("as_of", "data", "sharding", "recompute", "micro_batch", "tensor"),
    "choose": ("option", "provider", "as_of"),
}


def _answer_of(name: str, arguments: Arguments) -> dict[str, Any]:
    import gpucost

    # the facts that a rerun needs are megabytes that say nothing here
    more = {"with_facts": False} if name == "estimate" else {}
    answer: dict[str, Any] = getattr(gpucost, name)(**arguments, **more).to_dict()
    return answer


def effects(random: Random) -> Case:
    """A question, and the same with one argument more, alone or beside one or two others."""
    name = random.choice(list(_ARGUMENTS))
    base, known = dict(random.choice(_BASES[name])), _ARGUMENTS[name]
    # the last one drawn must count, beside none or some others
    *others, last = random.sample(list(known), min(len(known), random.choice([1, 2, 2, 2, 3])))
    base |= {argument: random.choice(known[argument]) for argument in others}
    value = random.choice([value for value in known[last] if value != base.get(last)] or known[last])
    return Case([name, last], face="effect", inputs=(base, value))


def effect(case: Case) -> None:
    """Ask without and with the argument; that nothing but its own mention differs is an internal error."""
    (name, last), (base, value) = case.arguments, case.inputs
    without = dict(flat(_answer_of(name, base)))
    beside = dict(flat(_answer_of(name, base | {last: value})))
    mentions = (f"/{last}", f"/{last}_fraction", f"/{last}_given")
    differ = [way for way in {*without, *beside} if without.get(way) != beside.get(way) and not way.endswith(mentions)]
    if not differ and last not in _MAY_REST.get(name, ()):
        raise InternalError(f"{name}: {last}={value!r} is ignored beside {base}")
