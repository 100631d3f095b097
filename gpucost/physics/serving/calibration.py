"""What a calibration of serving is made of: its parameters, and what makes a prediction less certain."""

from gpucost.physics.calibration import Scheme
from gpucost.physics.serving.efficiency import PARAMETERS

USUAL_FAMILIES = ("ampere", "ada", "hopper", "blackwell")
USUAL_ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp")
HOST_BOUND_FRACTION = 0.3

SCHEME = Scheme(
    parameters=PARAMETERS,
    traits={
        "saturation": "the batch is not stated",
        "unstated_layout": "the layout is not stated",
        "unstated_lengths": "prompt or output lengths are not stated",
        "mixture_of_experts": "the model is a mixture of experts",
        "unusual_family": "the accelerator is not of a family with many measurements",
        "unusual_engine": "the engine is not one with many measurements",
        "host_bound": "three tenths of the step or more wait for the host",
        "first_token": "the figure is a time to the first token, or prompts alone",
    },
    width=0.22,
    ratio=1.2,
    usual=0.15,
)
