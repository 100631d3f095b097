"""The arguments of every question, once: commands, library, scenario files, their schema, docs and completion."""

from gpucost.arguments.questions import QUESTIONS, Question
from gpucost.arguments.reading import by_field, flag_of, giving_way, read, read_list, refuse_idle, renamed
from gpucost.arguments.table import LISTS, Argument

__all__ = [
    "LISTS",
    "QUESTIONS",
    "Argument",
    "Question",
    "by_field",
    "flag_of",
    "giving_way",
    "read",
    "read_list",
    "refuse_idle",
    "renamed",
]
