"""Write the public functions with their typed signatures from the table of arguments."""

from inspect import Parameter

from gpucost.api.signatures import meaning_of, signature_of, wrapped
from gpucost.arguments import QUESTIONS, Question

HEAD = '''"""The questions as functions, with typed signatures: made by docs/generate.py from gpucost.arguments."""

# fmt: off

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from gpucost.api.audit import AuditResult
from gpucost.library.choose import ChoiceResult
from gpucost.api.commit import CommitResult
from gpucost.api.compare import CompareResult
from gpucost.api.estimate import EstimateResult
from gpucost.api.fit import FitResult, FitsResult, ServingFitResult
from gpucost.api.inference import InferenceResult
from gpucost.api.mix import MixResult
from gpucost.api.reconcile import ReconcileResult
from gpucost.ask.result import Result
from gpucost.api.roofline import RooflineResult
from gpucost.api.tco import TcoResult
from gpucost.api.throughput import ThroughputResult, ThroughputTable
from gpucost.catalog import Catalog
from gpucost.types import Architecture
'''


def functions() -> str:
    """Return the stub's text."""
    return HEAD + "".join(f"\n{_function(name, found)}" for name, found in QUESTIONS.items())


def _function(name: str, found: Question) -> str:
    signature = signature_of(found)
    takes = [_parameter(parameter) for parameter in signature.parameters.values()]
    takes.insert(found.places, "*")
    listed = wrapped(", ".join(text.replace(" ", "\0") for text in takes) + ",", 4, 4).replace("\0", " ")
    return f'def {name}(\n{listed}\n) -> {signature.return_annotation}:\n    """{meaning_of(found)}"""\n'


def _parameter(parameter: Parameter) -> str:
    text = f"{parameter.name}: {parameter.annotation}"
    if parameter.default is Parameter.empty:
        return text
    return f'{text} = "{parameter.default}"' if isinstance(parameter.default, str) else f"{text} = {parameter.default}"
