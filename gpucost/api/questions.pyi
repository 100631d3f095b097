"""The questions as functions, with typed signatures: made by docs/generate.py from gpucost.arguments."""

# fmt: off

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from gpucost.api.audit import AuditResult
from gpucost.api.choose import ChoiceResult
from gpucost.api.commit import CommitResult
from gpucost.api.compare import CompareResult
from gpucost.api.estimate import EstimateResult
from gpucost.api.fit import FitResult, FitsResult, ServingFitResult
from gpucost.api.inference import InferenceResult
from gpucost.api.mix import MixResult
from gpucost.api.reconcile import ReconcileResult
from gpucost.api.result import Result
from gpucost.api.roofline import RooflineResult
from gpucost.api.tco import TcoResult
from gpucost.api.throughput import ThroughputResult, ThroughputTable
from gpucost.catalog import Catalog
from gpucost.types import Architecture

def estimate(
    model: str | PathLike[str], tokens: str | float, *, epochs: str | float = 1, gpus: str | int | None = None,
    gpu: str | None = None, provider: str | None = None, region: str | None = None, option: str | None = None,
    max_age: str | float | None = None, deadline: str | float | date | None = None, max_cost: str | float | None = None,
    sequence: str | int | None = None, document_tokens: str | float | None = None,
    global_batch: str | int | None = None, precision: str | None = None, method: str = "full",
    lora_rank: str | int = 16, offload: str = "none", lora_targets: str = "all", software: str = "typical",
    software_year: str | float | None = None, mfu: str | float | None = None,
    tokens_per_s_per_gpu: str | float | None = None, step_time: str | float | None = None, optimize: str = "cost",
    top: str | int = 10, all_regions: bool = False, strict_prices: bool = False, commitment: str = "full",
    overhead: str | float = "20%", experiments: str | float = "0%", pool: str | None = None, pool_view: str = "both",
    as_of: str | date | None = None, known_as_of: str | date | None = None, with_facts: bool = True,
    dataset: str | float | None = None, loader_workers: str | int | None = None, decode_rate: str | float | None = None,
    storage_bandwidth: str | float | None = None, catalog: Catalog | None = None,
) -> EstimateResult:
    """Return what it costs to train `model` on `tokens`, on every offer that can do it, best first.

    Args:
        model: Preset, size such as 8b, or path to a config.json.
        tokens: Tokens of one epoch, such as 100b.
        epochs: Passes over the tokens.
        gpus: Take exactly this many accelerators.
        gpu: GPU or family, such as h100-sxm or h100; a list takes commas.
        provider: Who sells it.
        region: Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.
        option: Purchase option: on_demand, spot, reserved …
        max_age: Leave out prices older than this, such as 90d.
        deadline: Longest run: a duration, a day, or none. Default: 30d; none with gpus.
        max_cost: Budget; exit code 3 if no option keeps it.
        sequence: Tokens per sequence. Default: the model's, at most 8,192.
        document_tokens: Tokens of a document, where several share a sequence and attend to themselves alone. Default:
            the sequence's.
        global_batch: Sequences per step. Default: as models of its size use.
        precision: Precision of the products. One of bf16, fp16, fp8, fp4, tf32, fp32. Default: bf16, or fp16 on chips
            without it.
        method: What is trained: all weights, or adapters. One of full, lora, qlora.
        lora_rank: Rank of the adapters.
        offload: What host memory takes. One of none, states, all.
        lora_targets: Matrices with adapters. One of all, attention, feed_forward.
        software: Training stack. One of typical, vendor, megatron, deepspeed, sharded, eager, compiler, native, neuron.
        software_year: Age of the software, such as 2024.5.
        mfu: Your own speed as MFU over the steps, such as 35%, not the predicted one.
        tokens_per_s_per_gpu: Your own speed: tokens per second on each accelerator.
        step_time: Your own speed: seconds of a step on --gpus accelerators.
        optimize: What to rank by. One of cost, time, pareto, carbon.
        top: Options to show; 0 shows all.
        all_regions: A row for every region, not for the cheapest only.
        strict_prices: Leave out prices that are old for their kind.
        commitment: full: a run pays for its whole term; used: for its hours. One of full, used.
        overhead: Hours beside the steps (evaluations, stalls, slower phases), as a share of them.
        experiments: Trial runs before the run, as a share of it.
        pool: TOML file with your own accelerators; they enter as offers.
        pool_view: What your own accelerators cost. One of both, loaded, incremental.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        with_facts: Embed the facts that `gpucost rerun` needs.
        dataset: What is read: bytes in all, such as 2TB, or of a token or a sample (a sequence), such as 150kb/sample.
            Default: token ids of 2 or 4 bytes.
        loader_workers: Workers of the data loader on each accelerator.
        decode_rate: What one of them prepares in a second: 50MB/s, or 200 samples/s.
        storage_bandwidth: What storage delivers to the whole run, such as 10GB/s.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def inference(
    model: str | PathLike[str], *, prompt_tokens: str | float | None = None, output_tokens: str | float | None = None,
    lengths: str | None = None, requests_per_s: str | float | None = None, tokens_per_month: str | float | None = None,
    ttft: str | float | None = None, tpot: str | float | None = None, precision: str = "auto", cache: str = "auto",
    engine: str = "vllm", server: str | None = None, utilisation: str | float | None = None, profile: str = "flat",
    autoscale: bool = False, floor: str | int = 1, replicas: str | int | None = None, redundancy: str | int = 0,
    prefix_hit: str | float = 0, draft_tokens: str | int = 0, acceptance: str | float = 0,
    draft_cost: str | float = "5%", offload: str | float = 0, own_output_tokens_per_s: str | float | None = None,
    own_tpot: str | float | None = None, own_concurrency: str | int | None = None,
    replica_gpus: str | int | None = None, optimize: str = "cost", max_cost: str | float | None = None,
    top: str | int = 10, strict_prices: bool = False, gpu: str | None = None, provider: str | None = None,
    region: str | None = None, option: str | None = None, max_age: str | float | None = None,
    as_of: str | date | None = None, known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> InferenceResult:
    """Return what it costs to serve `model`, on every offer that can, cheapest tokens first.

    Args:
        model: Preset, size such as 8b, or path to a config.json.
        prompt_tokens: Mean prompt of a request, or a named length distribution. Default: 1024.
        output_tokens: Mean output of a request, or a named length distribution. Default: 256.
        lengths: Named length distribution, or a CSV of prompt,output.
        requests_per_s: Mean load in requests per second.
        tokens_per_month: Load in tokens, prompt and output together.
        ttft: Longest time to the first token without a queue: 300ms, 1s.
        tpot: Longest time per output token: 50ms.
        precision: Precision of the weights; auto: as published. One of auto, bf16, fp16, fp8, int8, w8a16, nvfp4,
            mxfp4, int4, gguf.
        cache: Precision of the key-value cache. One of auto, bf16, fp16, fp8, int8, nvfp4, fp4, int4.
        engine: What serves it. One of vllm, sglang, trtllm, tuned, wide, plain, eager, vllm-tpu, vllm-xpu, habana,
            neuron, unknown, vllm-2025, vllm-2024, vllm-2023, vllm-rocm, transformers, llama.cpp, mlc, exllama.
        server: How it is served: by a server as it comes, by one set up for this model, or in batches without a server.
            One of default, tuned, offline. Default: default, with a range that holds tuned ones too.
        utilisation: Load at the busiest hour against capacity. Default: 70%; 100% at saturation.
        profile: Load over the day: flat, office, consumer, or a file of 24 or 168 numbers.
        autoscale: Switch replicas by the hour.
        floor: Replicas that stay on when scaling.
        replicas: Run exactly this many serving replicas.
        redundancy: Replicas beside those that serve.
        prefix_hit: Share of prompt tokens found in the prefix cache.
        draft_tokens: Tokens proposed per step by speculation.
        acceptance: Probability that a proposed token is kept.
        draft_cost: Time of proposing a token, as a share of a step.
        offload: Share of the weights left in host memory.
        own_output_tokens_per_s: Your own speed: output tokens per second of a saturated replica.
        own_tpot: Your own speed: time per output token of a replica with own_concurrency requests.
        own_concurrency: Requests that ran at once when own_tpot was measured.
        replica_gpus: Accelerators of one replica. Default: searched.
        optimize: What to rank by. One of cost, latency, carbon.
        max_cost: Budget of a month; exit code 3 if no offer keeps it.
        top: Options to show of those that stay and of those that may be interrupted; 0 shows all.
        strict_prices: Leave out prices that are old for their kind.
        gpu: GPU or family, such as h100-sxm or h100; a list takes commas.
        provider: Who sells it.
        region: Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.
        option: Purchase option: on_demand, spot, reserved …
        max_age: Leave out prices older than this, such as 90d.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def tco(
    gpu: str | None = None, gpus: str | int | None = None, *, utilisation: str | float | None = None,
    years: str | float | None = None, months: str | int | None = None,
    rent: str | float | Sequence[str | float] | Mapping[str, str] | None = None, provider: str | None = None,
    region: str | None = None, option: str | None = None, rent_path: str | None = None, rent_curve: str | None = None,
    wacc: str | float | None = None, tax: str | float | None = None, tax_regime: str | None = None,
    site: str | None = None, use_path: str | None = None, refresh_gpu: str | None = None, profile: str | None = None,
    financing: str | None = None, lead_time: str | float | None = None, electricity_region: str | None = None,
    grid_region: str | None = None, model: str | PathLike[str] | None = None, tokens: str | float | None = None,
    mfu: str | float | None = None, tokens_per_s_per_gpu: str | float | None = None,
    step_time: str | float | None = None, runs_per_year: str | float | None = None,
    tokens_per_month: str | float | None = None, prompt_tokens: str | float | None = None,
    output_tokens: str | float | None = None, api_price: str | float | None = None, currency: str | None = None,
    plan: str | Mapping[str, Any] | None = None, set: Mapping[str, Any] | None = None, draws: str | int | None = None,
    seed: str | int | None = None, as_of: str | date | None = None, known_as_of: str | date | None = None,
    catalog: Catalog | None = None,
) -> TcoResult:
    """Return owning a cluster compared with renting the same productive hours.

    Args:
        gpu: Accelerator to own, such as h100-sxm.
        gpus: How many.
        utilisation: Share of the owned hours that are allocated, such as 70%; of a workload at most that.
        years: Length of the comparison. Default: 4.
        months: The same in months.
        rent: Rental price per GPU-hour, or quotes: acme=2.46/h, 12 months, take-or-pay, or a .csv or .xlsx of them; may
            be repeated. Default: the market's.
        provider: Take the rental price of this provider from the catalog.
        region: The provider's region.
        option: The provider's purchase option: on_demand, reserved, spot …
        rent_path: How the rental price moves. One of flat, decline, observed_v, curve. Default: flat.
        rent_curve: CSV of rental prices: month, usd_per_gpu_hour.
        wacc: Cost of capital, effective, a year. Default: 10%.
        tax: Income tax; cash flows are then after tax.
        tax_regime: Tax law of a country: rate, depreciation, limits on losses, tax on purchases; cash flows are then
            after tax. One of de, ie, sg, uk, us.
        site: Colocation, sales and property tax of a region, such as us_virginia, germany.
        use_path: How use moves against the utilisation: ramp 20% over 6 months; from month 25: 120%; seasons and 12
            shares; or a CSV of month and use.
        refresh_gpu: Newer chip at a replacement (refresh_month), with its speed.
        profile: Where it stands and who runs it. One of desk, lab, colocation, own. Default: by the number and form of
            the GPUs.
        financing: How the purchase is paid. One of cash, loan, lease, operating_lease. Default: cash.
        lead_time: Wait for delivery, such as 36w; bridged by rent.
        electricity_region: Tariff of a region in the energy table, such as us_texas.
        grid_region: Carbon of a grid in the energy table, such as france.
        model: Model of the workload that sets utilisation and cost per token.
        tokens: Tokens of one training run.
        mfu: Your own training speed as MFU over the steps, such as 35%.
        tokens_per_s_per_gpu: Your own speed: tokens per second on each accelerator; for serving, prompt and reply.
        step_time: Your own seconds of a training step on the gpus.
        runs_per_year: Training runs a year. Default: 1.
        tokens_per_month: Tokens to serve a month, prompt and reply together.
        prompt_tokens: Prompt of a request, for a serving load.
        output_tokens: Reply of a request, for a serving load.
        api_price: Price of a hosted API per million tokens, for the same tokens.
        currency: Show the result in this currency as well.
        plan: TOML file with any input by name; in the library and in scenarios also a table.
        set: Set any input of the plan; may be repeated.
        draws: Monte Carlo draws; 0 leaves it out. Default: 1000.
        seed: Seed of the draws. Default: 1.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def mix(
    demand: str | Sequence[float] | None = None, *, constant: str | float | None = None,
    growth: str | float | None = None, months: str | int = 36, gpu: str | None = None, rent: str | float | None = None,
    provider: str | None = None, budget: str | float | None = None, max_owned: str | float | None = None,
    max_on_demand: str | float | None = None, spot_share: str | float | None = None, own: bool | None = None,
    life_months: str | int | None = None, lead_time: str | float | None = None, wacc: str | float | None = None,
    gap: str | float | None = None, time_limit: str | float | None = None, plan: str | Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None, as_of: str | date | None = None, known_as_of: str | date | None = None,
    catalog: Catalog | None = None,
) -> MixResult:
    """Return the cheapest mix of owned, reserved, on-demand and spot capacity for a demand.

    Args:
        demand: CSV with the columns month and gpus; in the library also GPUs by month.
        constant: Instead of a file: this many GPUs in every month.
        growth: Yearly growth of the constant, such as 20%. Default: 0%.
        months: Length, with constant.
        gpu: One accelerator, such as h100-sxm.
        rent: On-demand price per GPU-hour. Default: the market's.
        provider: Take prices and terms of this provider from the catalog.
        budget: Most capital to spend on owned servers.
        max_owned: Most GPUs to own.
        max_on_demand: Most GPUs that on demand can give.
        spot_share: Share of each month's demand that spot may carry. Default: 30%.
        own: Whether owning is allowed; without it everything is rented. Default: yes.
        life_months: Life of owned servers. Default: 60.
        lead_time: From order to use, such as 36w.
        wacc: Cost of capital, effective, a year. Default: 10%.
        gap: Stop once no mix can be cheaper by more than this. Default: 0.01%.
        time_limit: Stop by the clock too; a busy machine then finds another mix.
        plan: TOML file with any input by name, and [[supply]] entries; elsewhere also a table.
        set: Set any input of the plan; may be repeated.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def fit(
    model: str | PathLike[str] | Architecture, gpu: str | None = None, gpus: str | int | None = None, *,
    system: str | None = None, method: str = "full", optimizer: str = "adamw", sequence: str | int | None = None,
    micro_batch: str | int | None = None, recompute: str = "auto", loss_chunk: str | int | None = None,
    offload: str = "none", lora_rank: str | int = 16, tensor: str | int | None = None,
    pipeline: str | int | None = None, context: str | int | None = None, expert: str | int | None = None,
    sharding: str | int | None = None, style: str | None = None, flash: bool = True, serving: bool = False,
    prompt_tokens: str | float | None = None, output_tokens: str | float | None = None, ttft: str | float | None = None,
    tpot: str | float | None = None, precision: str = "auto", cache: str = "auto", engine: str = "vllm",
    as_of: str | date | None = None, known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> FitResult | FitsResult | ServingFitResult:
    """Return whether training `model` fits, on `gpus` accelerators or on the fewest that do, or what serves it.

    Args:
        model: Preset, alias, size such as 11b, or a config.json.
        gpu: One accelerator, such as h100-sxm; all of them else.
        gpus: How many; else the fewest that fit.
        system: Node and network. Default: the usual one of the accelerator.
        method: What is trained: all weights, or adapters. One of full, lora, qlora.
        optimizer: Optimizer and the precision of its states. One of adamw, adamw-fp32-gradients, adamw-bf16,
            adamw-8bit, adamw-8bit-bf16, adafactor, adafactor-bf16, sgd, sgd-momentum, muon, lion.
        sequence: Tokens per sequence. Default: the model's, at most 4,096.
        micro_batch: Sequences per GPU and micro-step. Default: 1.
        recompute: Activations to recompute; auto: the least that fits. One of auto, none, selective, full.
        loss_chunk: Tokens whose logits exist at a time. Default: all.
        offload: What host memory takes. One of none, states, all.
        lora_rank: Rank of the adapters.
        tensor: Tensor-parallel degree. Default: searched.
        pipeline: Pipeline stages. Default: searched.
        context: Context-parallel degree. Default: searched.
        expert: Expert-parallel degree. Default: searched.
        sharding: 0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP). Default: searched.
        style: How the stack keeps activations. One of fused, compiled, compiled_model, eager, autocast, library,
            library_autocast. Default: fused; library for adapters.
        flash: Fused attention, or the scores in memory.
        serving: Serve the model instead of training it.
        prompt_tokens: Serving: mean prompt of a request, or a named length distribution. Default: 1024.
        output_tokens: Serving: mean output of a request, or a named length distribution. Default: 256.
        ttft: Serving: longest time to the first token without a queue: 300ms, 1s.
        tpot: Serving: longest time per output token: 50ms.
        precision: Serving: precision of the weights; auto: as published. One of auto, bf16, fp16, fp8, int8, w8a16,
            nvfp4, mxfp4, int4, gguf.
        cache: Serving: precision of the key-value cache. One of auto, bf16, fp16, fp8, int8, nvfp4, fp4, int4.
        engine: Serving: what serves it. One of vllm, sglang, trtllm, tuned, wide, plain, eager, vllm-tpu, vllm-xpu,
            habana, neuron, unknown, vllm-2025, vllm-2024, vllm-2023, vllm-rocm, transformers, llama.cpp, mlc, exllama.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def throughput(
    model: str | PathLike[str] | Architecture | Sequence[str], gpu: str | Sequence[str],
    gpus: str | int | ArrayLike = 1, *, system: str | None = None, tensor: str | int | ArrayLike | None = None,
    pipeline: str | int | ArrayLike | None = None, context: str | int | ArrayLike | None = None,
    expert: str | int | ArrayLike | None = None, data: str | int | ArrayLike | None = None,
    virtual_stages: str | int | ArrayLike | None = None, sharding: str | int | ArrayLike | None = None,
    micro_batch: str | int | ArrayLike | None = None, global_batch: str | int | ArrayLike | None = None,
    sequence: str | int | ArrayLike | None = None, document_tokens: str | float | None = None, offload: str = "none",
    recompute: str | Sequence[str] | None = None, precision: str | Sequence[str] | None = None, method: str = "full",
    lora_rank: str | int = 16, software: str = "typical", software_year: str | float | None = None, flash: bool = True,
    links: str = "own", mfu: str | float | None = None, tokens_per_s_per_gpu: str | float | None = None,
    step_time: str | float | None = None, as_of: str | date | None = None, known_as_of: str | date | None = None,
    dataset: str | float | None = None, loader_workers: str | int | None = None, decode_rate: str | float | None = None,
    storage_bandwidth: str | float | None = None, catalog: Catalog | None = None,
) -> ThroughputResult | ThroughputTable:
    """Return the speed of training `model`: one result, or columns with a reason per case where lists are given.

    Args:
        model: Preset, alias, size such as 11b, or a config.json.
        gpu: One accelerator, such as h100-sxm.
        gpus: How many.
        system: Node and network. Default: the usual one of the accelerator.
        tensor: Tensor-parallel degree.
        pipeline: Pipeline stages.
        context: Context-parallel degree.
        expert: Expert-parallel degree.
        data: Data-parallel degree. Default: what the others leave.
        virtual_stages: Model chunks per pipeline stage.
        sharding: 0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP).
        micro_batch: Sequences per GPU and micro-step.
        global_batch: Sequences per step. Default: as models of its size use.
        sequence: Tokens per sequence. Default: the model's, at most 8,192.
        document_tokens: Tokens of a document, where several share a sequence and attend to themselves alone. Default:
            the sequence's.
        offload: What host memory takes. One of none, states, all.
        recompute: Activations to recompute. One of none, selective, full.
        precision: Precision of the products. One of bf16, fp16, fp8, fp4, tf32, fp32, int8. Default: bf16, or fp16 on
            chips without it.
        method: What is trained: all weights, or adapters. One of full, lora, qlora.
        lora_rank: Rank of the adapters.
        software: Training stack. One of typical, vendor, megatron, deepspeed, sharded, eager, compiler, native, neuron.
        software_year: Age of the software, such as 2024.5.
        flash: Fused attention, or the scores in memory.
        links: What joins the GPUs of a node: their own links, or PCIe alone. One of own, pcie.
        mfu: Your own speed as MFU over the steps, such as 35%, not the predicted one.
        tokens_per_s_per_gpu: Your own speed: tokens per second on each accelerator.
        step_time: Your own speed: seconds of a step on --gpus accelerators.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        dataset: What is read: bytes in all, such as 2TB, or of a token or a sample (a sequence), such as 150kb/sample.
            Default: token ids of 2 or 4 bytes.
        loader_workers: Workers of the data loader on each accelerator.
        decode_rate: What one of them prepares in a second: 50MB/s, or 200 samples/s.
        storage_bandwidth: What storage delivers to the whole run, such as 10GB/s.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def roofline(
    gpu: str, *, matmul: str | None = None, attention: str | None = None, norm: str | None = None,
    gelu: str | None = None, copy: str | float | None = None, all_reduce: str | float | None = None,
    model: str | PathLike[str] | Architecture | None = None, gpus: str | int = 1, system: str | None = None,
    tensor: str | int | None = None, pipeline: str | int | None = None, context: str | int | None = None,
    expert: str | int | None = None, data: str | int | None = None, virtual_stages: str | int | None = None,
    sharding: str | int | None = None, micro_batch: str | int | None = None, global_batch: str | int | None = None,
    sequence: str | int | None = None, document_tokens: str | float | None = None, offload: str = "none",
    recompute: str | None = None, precision: str | None = None, method: str = "full", lora_rank: str | int = 16,
    software: str = "typical", software_year: str | float | None = None, flash: bool = True,
    as_of: str | date | None = None, known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> RooflineResult:
    """Return what bounds one operation, the usual ones, or each part of a step of `model`, and what would help.

    Args:
        gpu: One accelerator, such as h100-sxm.
        matmul: A matrix product.
        attention: Causal attention over one sequence; naive with --no-flash.
        norm: A norm over each token.
        gelu: An activation such as GELU over every value.
        copy: An element-wise pass over so many bytes, such as 2GiB.
        all_reduce: An all-reduce over the gpus, such as of 16gb.
        model: A whole training step of this model.
        gpus: How many.
        system: Node and network. Default: the usual one of the accelerator.
        tensor: Tensor-parallel degree.
        pipeline: Pipeline stages.
        context: Context-parallel degree.
        expert: Expert-parallel degree.
        data: Data-parallel degree. Default: what the others leave.
        virtual_stages: Model chunks per pipeline stage.
        sharding: 0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP).
        micro_batch: Sequences per GPU and micro-step.
        global_batch: Sequences per step. Default: as models of its size use.
        sequence: Tokens per sequence. Default: the model's, at most 8,192.
        document_tokens: Tokens of a document, where several share a sequence and attend to themselves alone. Default:
            the sequence's.
        offload: What host memory takes. One of none, states, all.
        recompute: Activations to recompute. One of none, selective, full.
        precision: Precision of the products. One of bf16, fp16, fp8, fp4, tf32, fp32, int8. Default: bf16, or fp16 on
            chips without it.
        method: What is trained: all weights, or adapters. One of full, lora, qlora.
        lora_rank: Rank of the adapters.
        software: Training stack. One of typical, vendor, megatron, deepspeed, sharded, eager, compiler, native, neuron.
        software_year: Age of the software, such as 2024.5.
        flash: Fused attention, or the scores in memory.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def choose(
    model: str | PathLike[str] = "8b", *, purpose: str = "training", budget: str | float | None = None,
    tokens: str | float | None = None, hours_per_month: str | float = 176.0, workload: Mapping[str, Any] | None = None,
    pool: Mapping[str, Any] | None = None, gpu: str | None = None, provider: str | None = None,
    region: str | None = None, option: str | None = None, as_of: str | date | None = None,
    known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> ChoiceResult:
    """Return which accelerators suit a workload and a budget, the cheapest first, or several workloads together.

    Args:
        model: Preset, size such as 8b, or path to a config.json.
        purpose: What it is for. One of training, fine-tuning, serving, research, desk.
        budget: What may be spent, such as 2k, 50k or 1m.
        tokens: Tokens of the run; serving: a month. Default: 100b, 100m to fine-tune, 1b to serve.
        hours_per_month: Hours of use a month, for research and a desk.
        workload: One of several workloads, such as chat='serving 8b 5b': purpose, model, tokens.
        pool: Accelerators that you own, such as h100-sxm=8.
        gpu: GPU or family, such as h100-sxm or h100; a list takes commas.
        provider: Who sells it.
        region: Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.
        option: Purchase option: on_demand, spot, reserved …
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def compare(
    first: str | PathLike[str] | Mapping[str, Any] | Result | None = None,
    second: str | PathLike[str] | Mapping[str, Any] | Result | None = None, *, rank: str | int = 1,
    model: str | Sequence[str] | None = None, gpu: str | Sequence[str] | None = None, speed: bool = False,
    gpus: str | int | None = None, tokens: str | float | None = None, provider: str | None = None,
    region: str | None = None, option: str | None = None, as_of: str | date | None = None,
    known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> CompareResult:
    """Return why two answers differ, or models on accelerators side by side.

    Args:
        first: Saved answer or scenario, FILE#PART for one part of it.
        second: The one to set against it; else the other parts of the first.
        rank: Which option of each answer.
        model: Instead of files: models, with commas or repeated. Default: 8b.
        gpu: Accelerators, with commas or repeated: every model on each.
        speed: Time one job on two, or on one over its own links and over PCIe: what links cost.
        gpus: With --speed: accelerators of the job.
        tokens: Tokens of the run. Default: 100b.
        provider: Who sells it.
        region: Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.
        option: Purchase option: on_demand, spot, reserved …
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def audit(
    *, model: str | PathLike[str] | None = None, tokens: str | float | None = None, gpu: str | None = None,
    gpus: str | int | None = None, days: str | float | None = None, hours: str | float | None = None,
    gpu_hours: str | float | None = None, cost: str | float | None = None, precision: str | None = None,
    method: str = "full", sequence: str | int | None = None, fits: str | None = None,
    weights_gb: str | float | None = None, training_gb: str | float | None = None,
    tokens_per_s: str | float | None = None, batch: str | int | None = None, buy: str | float | None = None,
    rent_monthly: str | float | None = None, own_monthly: str | float | None = None,
    payback_months: str | float | None = None, hours_per_month: str | float | None = None,
    discount: str | float = "10%", as_of: str | date | None = None, known_as_of: str | date | None = None,
    catalog: Catalog | None = None,
) -> AuditResult:
    """Return whether a claim is possible, and what would be true.

    Args:
        model: Preset, size such as 8b, or path to a config.json.
        tokens: Tokens trained on.
        gpu: Accelerator; a family is judged by its most favourable variant.
        gpus: How many.
        days: Claimed duration.
        hours: Claimed duration in hours.
        gpu_hours: Claimed accelerator-hours.
        cost: Claimed cost of the run.
        precision: Precision claimed. One of fp32, tf32, bf16, fp16, fp8, int8, fp4, int4. Default: bf16, or fp16 on
            chips without it.
        method: What is trained: all weights, or adapters. One of full, lora, qlora.
        sequence: Tokens per sequence. Default: the model's, at most 8,192.
        fits: Claim: it fits on these accelerators. One of training, serving.
        weights_gb: Claimed size of the weights.
        training_gb: Claimed memory of training in all.
        tokens_per_s: Claimed output tokens per second in serving, over all accelerators.
        batch: Sequences decoded at once, for tokens_per_s. Default: the most favourable.
        buy: Claimed price of buying.
        rent_monthly: Claimed rent per month.
        own_monthly: Claimed running cost of owning per month.
        payback_months: Claimed months until buying pays back.
        hours_per_month: Accelerator-hours needed per month, for how busy the gpus would be.
        discount: Annual rate for the present value.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def reconcile(
    invoice: str, estimate: str | Mapping[str, Any] | None = None, *, start: str | date | None = None,
    rank: str | int = 1, side: str | None = None, done: str | float | None = None, map: str | None = None,
    rate: Mapping[str, Any] | None = None, budget_rate: Mapping[str, Any] | None = None, showback: str | None = None,
    idle_by: str = "cost", as_of: str | date | None = None, known_as_of: str | date | None = None,
    catalog: Catalog | None = None,
) -> ReconcileResult:
    """Return why an invoice differs from a plan, in parts that add up, or what each value of a tag bears.

    Args:
        invoice: FOCUS 1.x file: .csv, .parquet or .json, also .gz.
        estimate: Saved answer (.json), or a FOCUS file of what was planned; in the library also a payload.
        start: Day on which the plan starts. Default: the invoice's first.
        rank: Which option of a saved answer.
        side: Which side of a saved tco. One of own, rent. Default: the cheaper.
        done: Work done, as a share of what was planned for the time: splits quantity from efficiency.
        map: CSV with the columns invoice and estimate: what the same product is called.
        rate: USD per unit of a currency, as paid. Default: the catalog's at the invoice's end.
        budget_rate: USD per unit of a currency, as planned. Default: the catalog's on the plan's day.
        showback: Show the effective cost by the values of this tag.
        idle_by: How the cost of unused commitments is shared among the tags. One of cost, quantity, even.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """

def commit(
    usage: str | Sequence[float], *, gpu: str | None = None, provider: str | None = None, region: str | None = None,
    on_demand: str | float | None = None, committed: str | float | None = None, term: str | int = 12,
    step: str | int = 1, rungs: str | int = 1, agreements: str | None = None, as_of: str | date | None = None,
    known_as_of: str | date | None = None, catalog: Catalog | None = None,
) -> CommitResult:
    """Return how much to commit for `usage`, and what the agreements that hold make of it.

    Args:
        usage: CSV with time and gpus (or gpu_hours) by hour or day; in the library also GPUs by hour.
        gpu: GPU whose prices are looked up where they are not said.
        provider: Look prices up at this provider.
        region: Region as the provider names it, or a group: eu, us, apac, uk, germany, frankfurt.
        on_demand: Price per GPU-hour without a commitment. Default: the cheapest on record.
        committed: Price per GPU-hour under a commitment. Default: the cheapest of the term on record.
        term: Months of a commitment.
        step: GPUs of the smallest commitment.
        rungs: Purchases over which to spread what is committed, so that not all ends at once.
        agreements: CSV of agreements that hold: name, kind (contract, reservation, savings_plan, private, credit,
            annual), start, end and their figures.
        as_of: The day that prices are asked for. Default: today.
        known_as_of: Hide what was recorded after this day.
        catalog: A catalog that is already open; else one is opened for the days asked for.
    """
