"""What a calibration of serving is made of: its parameters, and what makes a prediction less certain."""

from gpucost.physics.calibration import Scheme
from gpucost.physics.serving.efficiency import PARAMETERS, TRAITS

USUAL_FAMILIES = ("ampere", "ada", "hopper", "blackwell")
USUAL_ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp")
HOST_BOUND_FRACTION = 0.3

SCHEME = Scheme(
    parameters=PARAMETERS,
    traits=TRAITS,
    width=0.22,
    ratio=1.2,
    usual=0.15,
)
