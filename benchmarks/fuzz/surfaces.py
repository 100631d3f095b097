"""The surfaces of the program, how much of a long run each gets, and the case of a number."""

from collections.abc import Callable
from random import Random

from benchmarks.fuzz import blows, cases, desk, effects, orders, rounds, seals, valid, waits
from benchmarks.fuzz.cases import Case

# surface -> its cases, and its share of a long run: as many of each as there are ways in
SURFACES: dict[str, tuple[Callable[[Random], Case], float]] = {
    "commands": (cases.commands, 64),
    "tables": (cases.tables, 5),
    "books": (cases.books, 5),
    "answers": (cases.saved, 4),
    "seals": (seals.seals, 4),
    "models": (cases.models, 5),
    "settings": (cases.settings, 5),
    "writers": (cases.writers, 1),
    "library": (cases.library, 3),
    "sql": (cases.sql, 1),
    "sweeps": (cases.sweeps, 2),
    "stores": (cases.stores, 1),
    "tools": (cases.tools, 2),
    "page": (cases.page, 2),
    "invoices": (desk.invoices, 3),
    "commitments": (desk.commitments, 2),
    "choices": (desk.choices, 1.5),
    "presets": (desk.presets, 2),
    "folders": (desk.folders, 0.2),  # seconds a case: all data are read anew
    "orders": (orders.orders, 2),
    "rounds": (rounds.rounds, 0.5),
    "effects": (effects.effects, 1),
    "disturbed": (cases.disturbed, 0.3),  # these wait, or start programs
    "questions": (valid.questions, 8),
    "servers": (waits.servers, 0.3),
    "races": (waits.races, 0.1),
    "bombs": (blows.bombs, 0.3),
    "disks": (blows.disks, 0.5),
}


def case(surface: str, number: int) -> Case:
    """Return the case of a number; the same for ever as long as this file stays the same."""
    return SURFACES[surface][0](Random(f"{surface}:{number}"))
