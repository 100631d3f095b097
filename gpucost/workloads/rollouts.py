"""Reinforcement learning by answers that the model writes itself (GRPO and its kin): what a step takes beside training.

On the same accelerators a step writes answers to prompts, scores every token by the policy that wrote it (and by a
frozen reference, where one is asked for), trains on them, and hands the new weights back to the engine; one after the
other (Shao et al. 2024, arXiv:2402.03300, section 4.1; HybridFlow, arXiv:2409.19256, for engines that share the cards).
Nothing here is fitted: writing is the physics of serving, scoring the forward part of a training step.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.market.supply import Key
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import ColumnStruct, Floats, Integers
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.bursts import varied_burst
from gpucost.physics.serving.calibration import doubts
from gpucost.physics.serving.cases import ServedReplica, build, plain_options
from gpucost.physics.training.cases import FULL, HALF_BYTES, PARTS
from gpucost.physics.transformer import stack, total_parameters
from gpucost.units import GB
from gpucost.workloads.training import Workload

_SEATS = 1024.0  # answers that an engine writes at once (verl, rollout.max_num_seqs)
_DEGREES = (1, 2, 4, 8, 16)  # of tensor parallelism in an engine
_ONCE = ("optimizer_s", "offload_s", "overhead_s")  # parts of a training step that no forward pass has
# Priced is a step that is off by less than half in the median over rows and over sources, in a range of less than four.
NOT_PRICED = (
    "Reinforcement learning is not priced well enough to stake a budget on: published steps took between 0.3"
    " and 6 times the predicted time. Use it to compare, and time a few steps of your own before you order."
)


class Phases(ColumnStruct, frozen=True):
    """Seconds of a step by phase, per case; infinite where the engine has no room for the model."""

    writing_s: Floats
    scoring_s: Floats
    training_s: Floats
    handing_s: Floats  # of the new weights to the engine

    @property
    def total_s(self) -> Floats:
        """Return the whole step."""
        return self.writing_s + self.scoring_s + self.training_s + self.handing_s


class Writing(ColumnStruct, frozen=True):
    """The fastest engine of each case: seconds, tensor degree, and half the logarithm of its range."""

    seconds: Floats
    tensor: Floats
    width: Floats


def writer_of(workload: Workload, keys: Sequence[Key], gpus: Integers, calibration: Calibration) -> Writing:
    """Return how long the answers of a workload's step take, by the tensor degree that is fastest on each case.

    Replicas share the answers evenly. Those start together and end one by one, for lengths differ; a prompt is read
    once for all its answers.
    """
    generation, rollouts = calibration.generation, workload.rollouts
    if generation is None or rollouts is None:
        raise UsageError("answers are written by a model that is served: its calibration is missing.")
    architecture, batch = workload.architecture, float(workload.global_batch)
    best = Writing(*(np.full(len(keys), value) for value in (np.inf, 1.0, 0.0)))
    chips = list(dict.fromkeys(keys))
    chip = np.array([chips.index(key) for key in keys], dtype=np.int64)
    prompt, output = (np.full(len(keys), each) for each in (rollouts.prompt_tokens, rollouts.output_tokens))
    for degree in _DEGREES:
        replicas = [
            ServedReplica(architecture, key.accelerator, key.system, "vllm", tensor=degree, server="offline")
            for key in chips
        ]
        # all but the first answer to a prompt find it in the prefix cache
        options = replace(plain_options(len(chips)), prefix_hit=np.full(len(chips), 1 - 1 / rollouts.answers))
        cases, _ = build(replicas, generation.values, options)
        domain = np.array([max(key.system.gpus, key.system.scaleup_gpus) for key in chips])
        allowed = (degree <= domain) & (architecture.heads % degree == 0)

        # Half the logarithm of the engine's range: inside a trainer nobody tuned it, as for a server as it comes.
        width = np.full(len(chips), generation.ranges["base"])
        for row, replica in enumerate(replicas):
            for trait, applies in (doubts(replica) | {"served": True}).items():
                width[row] *= generation.ranges[trait] if applies else 1.0

        case = cases.take(chip)
        sent = np.maximum(batch * degree / gpus, 1.0)  # answers of one replica
        places = np.minimum(np.minimum(serving.capacity_sequences(case, prompt, output), _SEATS), sent)
        possible = allowed[chip] & (gpus >= degree) & (places >= 1)
        speed = varied_burst(case, np.maximum(places, 1.0), sent, prompt, output)
        seconds = np.where(possible, sent * output / speed, np.inf)
        faster = seconds < best.seconds
        best = Writing(
            np.where(faster, seconds, best.seconds),
            np.where(faster, float(degree), best.tensor),
            np.where(faster, width[chip], best.width),
        )
    return best


def phases_of(
    workload: Workload,
    writer: Writing,
    keys: Sequence[Key],
    gpus: Integers,
    training_s: Floats,
    parts_s: Floats,
    recompute: Integers,
    end: int = 0,
) -> Phases:
    """Return the seconds of a step by phase around a training step; at the slow (1) or fast (-1) end of writing, too.

    `parts_s` are the parts of the training step, whose shares count.

    A critic of the policy's size reads every answer once more and is trained as the policy is (PPO, arXiv:1707.06347).
    A forward pass is a third of what forward and backward passes take, a quarter where activations are computed again.
    """
    # A forward pass has no update: its share of a step is of what comes once for each token.
    with np.errstate(invalid="ignore", divide="ignore"):  # cases without a layout
        once = parts_s[:, [PARTS.index(name) for name in _ONCE]].sum(axis=1) / parts_s.sum(axis=1)
    passes = np.where(recompute == FULL, 4.0, 3.0)
    forward = training_s * (1 - once) / passes
    parameters = float(total_parameters(stack([workload.architecture]))[0])
    # Weights come over to an accelerator by the network beyond a node, else by its link or PCIe.
    links = []
    for key, count in zip(keys, gpus.tolist(), strict=True):
        link = key.system.scaleup_gb_per_s or key.accelerator.pcie_gb_per_s or 32.0  # PCIe 4.0 x16
        if count > max(key.system.gpus, key.system.scaleup_gpus) and key.system.scaleout_gb_per_s:
            link = key.system.scaleout_gb_per_s
        links.append(link)
    # Every rank of an engine takes its shard of the weights; ranks do so side by side.
    handing = HALF_BYTES * parameters / writer.tensor / (np.array(links) * GB)
    written = writer.seconds * np.exp(end * writer.width)
    reference = workload.rollouts is not None and workload.rollouts.reference
    critic = workload.rollouts is not None and workload.rollouts.critic
    return Phases(written, (1.0 + reference + critic) * forward, (1.0 + critic) * training_s, handing)
