"""The arguments of every question: kinds of values, the signatures that declare them, and how they are read."""

from gpucost.arguments.reading import flag_of, giving_way, known, read, read_list, read_stated, refuse_idle
from gpucost.arguments.signature import Argument, Needs, Question, by_field

__all__ = [
    "Argument",
    "Needs",
    "Question",
    "by_field",
    "flag_of",
    "giving_way",
    "known",
    "read",
    "read_list",
    "read_stated",
    "refuse_idle",
]
