"""What a calibration of serving is made of: its parameters, and what makes a prediction less certain.

The fit and the ranges are physics/calibration.py; the priors of the parameters parameters.csv beside it.
"""

from gpucost.gate import beside
from gpucost.physics.calibration import Scheme
from gpucost.physics.serving.cases import ServedReplica
from gpucost.physics.serving.efficiency import PARAMETERS, TRAITS

# with many measurements on record: elsewhere the range is wider
USUAL_FAMILIES = ("ampere", "ada", "hopper", "blackwell")
USUAL_ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp")
HOST_BOUND_FRACTION = 0.3  # of a step that waits for the host: beyond it the range widens
# Engines that keep the beginnings of prompts unless told not to (vLLM V1, automatic prefix caching; SGLang,
# RadixAttention; TensorRT-LLM, enable_block_reuse): whether prompts repeat then changes what is measured.
PREFIX_CACHING = ("vllm", "sglang", "trtllm")
MOST_CACHED = 0.99  # of a prompt that an engine finds in its cache: it reads the last token at least

# Makers of accelerators on which somebody measured an engine: a port to another maker's chips is another engine.
MEASURED_ON = frozenset((vendor, engine) for vendor, engine in beside(__file__, "measured_engines")[1:])
_UNMEASURED_RATIO = 2.0  # by which a range widens elsewhere: an assumption, as early ports run at a third of the speed

SCHEME = Scheme(
    parameters=PARAMETERS,
    traits=TRAITS,
    width=0.22,  # before any fit: a range of e^±0.22, from 20 % slower to 25 % faster
    ratio=1.2,
    usual=0.15,
    assumed={"unmeasured_engine": _UNMEASURED_RATIO},
)


def doubts(deployment: ServedReplica) -> dict[str, bool]:
    """Return what makes the predictions of a deployment less certain, whatever is asked of it."""
    chip, engine = deployment.accelerator, deployment.engine
    return {
        "mixture_of_experts": deployment.architecture.experts > 0,
        "unusual_family": chip.family not in USUAL_FAMILIES,
        "unusual_engine": engine not in USUAL_ENGINES,
        "unmeasured_engine": (chip.vendor, engine) not in MEASURED_ON,
        "served": deployment.server == "default",
        "integer_experts": deployment.architecture.experts > 0 and deployment.format == "int4",
        "unmeasured_chip": chip.serving_sources == 0,
        "one_source": chip.serving_sources <= 1,
        # the three of sources add up: a chip that nobody measured widens by the product of all of them
        "two_sources": chip.serving_sources <= 2,
    }
