"""The questions: what each is for, examples, the arguments that it takes and which of them exclude each other."""

from typing import NamedTuple

from gpucost.arguments import finance, judging, loading, table
from gpucost.arguments.table import Argument


class Question(NamedTuple):
    """A question that the library, a command and, for some, a part of a scenario ask."""

    arguments: tuple[Argument, ...]
    help: str
    examples: tuple[str, ...]
    result: str  # class of the answer, in gpucost.api
    places: int = 0  # how many arguments may be given by place in the library
    exclusive: tuple[tuple[str, ...], ...] = ()  # say the same thing: at most one of each
    returns: str = ""  # the answer in one clause, for the library


OWN_FORMS = (tuple(argument.name for argument in table.OWN_SPEED),)
QUESTIONS = {
    "estimate": Question(
        table.ESTIMATE + loading.LOADING,
        "Rank real offers by the cost of a whole training run, with days, accelerators, layout, range and price age.",
        (
            "estimate --model 8b --tokens 100b",
            "estimate --model llama-3-70b --tokens 2t --gpu h100 --option on_demand --deadline 60d",
            "estimate --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --explain",
        ),
        "estimate.EstimateResult",
        2,
        OWN_FORMS,
        returns="what it costs to train `model` on `tokens`, on every offer that can do it, best first",
    ),
    "inference": Question(
        table.INFERENCE,
        "Rank real offers by the cost of a million tokens, with replicas, latency and range; beside hosted prices.",
        (
            "inference --model llama-3.1-70b --precision fp8 --prompt-tokens 2000 --output-tokens 300",
            "inference --model 8b --requests-per-s 20 --profile office --autoscale --tpot 50ms",
            "inference --model gpt-oss-120b --lengths azure-conversation --tokens-per-month 20b --gpu h100",
        ),
        "inference.InferenceResult",
        1,
        (("requests_per_s", "tokens_per_month"), ("own_output_tokens_per_s", "own_tpot")),
        returns="what it costs to serve `model`, on every offer that can, cheapest tokens first",
    ),
    "tco": Question(
        table.TCO,
        "Own a cluster or rent the same productive hours: cash flows, NPV, break-even, risk.",
        (
            "tco --gpu h100-sxm --gpus 64 --utilisation 70% --years 4 --rent 2.35",
            "tco --gpu h100-sxm --gpus 64 --provider lambda --lead-time 36w --set pue_ratio=1.2",
            "tco --gpu h100-sxm --gpus 64 --print-plan -o plan.toml",
        ),
        "tco.TcoResult",
        2,
        (("years", "months"), *OWN_FORMS),
        returns="owning a cluster compared with renting the same productive hours",
    ),
    "mix": Question(
        table.MIX,
        "Find the cheapest combination of capacity for a demand by month (a CSV with the columns month and gpus).",
        (
            "mix demand.csv --gpu h100-sxm --lead-time 36w",
            "mix --constant 64 --growth 50% --months 36 --gpu h100-sxm --budget 2000000",
        ),
        "mix.MixResult",
        1,
        (("demand", "constant"),),
        returns="the cheapest mix of owned, reserved, on-demand and spot capacity for a demand",
    ),
    "fit": Question(
        table.FIT,
        "Memory of training on the fullest GPU, by component: does it fit, on how many, and what would help.\n\n"
        "Without --gpus the fewest GPUs that fit are found, without --gpu on every accelerator. Every change shown "
        "was tried, the gentlest that works first. The exit code is 6 where it does not fit.",
        (
            "fit --model 13b",
            "fit --model llama-3-70b --gpu h100-sxm",
            "fit --model 8b --gpu rtx-4090 --gpus 1 --method qlora --sequence 2048 --explain",
            "fit --model 70b --serving --prompt-tokens 2k --output-tokens 256 --tpot 50ms",
        ),
        "fit.FitResult | fit.FitsResult | fit.ServingFitResult",
        3,
        returns="whether training `model` fits, on `gpus` accelerators or on the fewest that do, or what serves it",
    ),
    "throughput": Question(
        table.THROUGHPUT + loading.LOADING,
        "Step time of training, by part, with what bounds each part, and a range.\n\nA layout is taken as given; "
        "degrees that are left out are one, and data parallelism takes the rest. Without any degree the layouts in "
        "common use are timed and the fastest is shown, with those behind it.",
        (
            "throughput --model llama-3-70b --gpu h100-sxm --gpus 512",
            "throughput --model llama-3-8b --gpu h200-sxm --gpus 8 --sharding 3 --micro-batch 2 --recompute none",
        ),
        "throughput.ThroughputResult | throughput.ThroughputTable",
        3,
        OWN_FORMS,
        returns="the speed of training `model`: one result, or columns with a reason per case where lists are given",
    ),
    "roofline": Question(
        table.ROOFLINE,
        "What bounds an operation, or each part of a step: compute, memory bandwidth, network or host.\n\n"
        "The ridge is the intensity (FLOP per byte) above which compute bounds and below which bandwidth does.\n\n"
        "Without an operation or a model, the usual operations of a transformer stand side by side.",
        (
            "roofline --gpu h100-sxm",
            "roofline --gpu h100-sxm --matmul 64x8192x8192",
            "roofline --gpu h100-sxm --model llama-3-8b --gpus 8 -o roofline.html",
        ),
        "roofline.RooflineResult",
        1,
        (("matmul", "attention", "norm", "gelu", "copy", "all_reduce", "model"),),
        returns="what bounds one operation, the usual ones, or each part of a step of `model`, and what would help",
    ),
    "choose": Question(
        judging.CHOOSE,
        "Which GPU for this workload and this budget: to rent and to buy, consumer cards beside data-centre ones.\n\n"
        "Several workloads are assigned together, so that all cost least, over what you own and what is for rent.",
        (
            "choose --purpose desk --budget 2k",
            "choose --purpose fine-tuning --model 70b --budget 50k",
            "choose --workload chat='serving 8b 5b' --workload tune='fine-tuning 70b' --pool h100-sxm=8",
        ),
        "choose.ChoiceResult",
        1,
        returns="which accelerators suit a workload and a budget, the cheapest first, or several workloads together",
    ),
    "compare": Question(
        judging.COMPARE,
        "What two answers differ in and why: what changed first, then what each cause does; effects add up.\n\n"
        "Takes two saved answers of estimate, inference, tco, mix, throughput or fit, two reports, or the parts of a "
        "scenario. With --model and --gpu: models on accelerators side by side.",
        (
            "compare before.json after.json",
            "compare scenario.toml#plan-a scenario.toml#plan-b",
            "compare --model 8b,70b --gpu h100-sxm,h200 --tokens 100b",
        ),
        "compare.CompareResult",
        2,
        tuple(("first", name) for name in ("model", "gpu", "tokens")),
        returns="why two answers differ, or models on accelerators side by side",
    ),
    "audit": Question(
        judging.AUDIT,
        "Say whether a claim is possible, what it implies and what would be true; exit code 5 if it is impossible.",
        (
            "audit --model 8b --tokens 100b --gpu a100-80gb --gpus 8 --days 8 --cost 6291",
            "audit --model 70b --gpu h100-sxm --gpus 8 --fits training",
            "audit --buy 800k --rent-monthly 20k --own-monthly 5k --gpus 80 --hours-per-month 10000",
        ),
        "audit.AuditResult",
        0,
        (("days", "hours", "gpu_hours"),),
        returns="whether a claim is possible, and what would be true",
    ),
    "reconcile": Question(
        finance.RECONCILE,
        "Hold an invoice against what was planned: price, mix, quantity, efficiency, use of commitments, exchange "
        "rate.\n\nThe parts add up to the difference, as billed and as used. Unmatched charges are shown with the "
        "reason.",
        (
            "reconcile invoice.csv --estimate saved.json",
            "reconcile invoice.parquet --estimate plan.csv --done 95% --map map.csv",
            "reconcile invoice.csv --showback team --idle-by cost",
        ),
        "reconcile.ReconcileResult",
        2,
        returns="why an invoice differs from a plan, in parts that add up, or what each value of a tag bears",
    ),
    "commit": Question(
        finance.COMMIT,
        "How much to commit for a history of use, with the regret at a low and a high demand; the bill under the "
        "agreements that hold, the ladder of commitments and when they end.",
        (
            "commit usage.csv --on-demand 3.99 --committed 2.10 --term 12 --step 8",
            "commit usage.csv --gpu h100-sxm --provider aws --rungs 4 --agreements agreements.csv",
        ),
        "commit.CommitResult",
        1,
        returns="how much to commit for `usage`, and what the agreements that hold make of it",
    ),
}
