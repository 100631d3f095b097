"""Which planned product a charge is for, and in which unit: by its names, words in them, or a map of one's own."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpucost.errors import DataError
from gpucost.gate import read_table, shown
from gpucost.invoices.columns import NAMES, UNITS
from gpucost.invoices.reading import Charges

_WORDS = re.compile(r"[\s:/,;()]+")
_SKU, _LINE = NAMES.index("SkuId"), NAMES.index("x_Line")
_GENERAL = NAMES.index("ServiceName")  # too wide to name a product


class Product(NamedTuple):
    """A planned product."""

    name: str
    unit: str
    gpus_per_unit: float


def unit_of(text: str) -> str:
    """Return a unit under its usual name.

    >>> unit_of("Hrs"), unit_of("GPU-Hours"), unit_of("Requests")
    ('hour', 'GPU-hour', 'Requests')
    """
    return UNITS.get(text.strip().lower(), text.strip())


def name_of(charge: Charges) -> str:
    """Return what a charge is for: its SKU, else the first name that it has."""
    return charge.names[_SKU] or next((name for name in charge.names if name), "") or charge.category


class Book:
    """The planned products and the names under which charges for them are found."""

    def __init__(self, planned: Iterable[Charges], mapped: Mapping[str, str]) -> None:
        self.products: dict[str, Product] = {}
        self._names: dict[str, str] = {}
        several: set[str] = set()
        for charge in sorted(planned, key=lambda charge: charge.category == "Purchase"):  # usage says the unit
            key = name_of(charge).lower()
            self.products.setdefault(key, Product(name_of(charge), unit_of(charge.unit), charge.gpus_per_unit))
            for name in (charge.names[place].lower() for place in range(len(NAMES)) if place not in (_GENERAL, _LINE)):
                if name and self._names.setdefault(name, key) != key:
                    several.add(name)
        for name in several:
            del self._names[name]
        self._mapped = {name.lower(): self._found(target) for name, target in mapped.items()}
        self._seen: dict[tuple[str, ...], str | None] = {}

    def _found(self, target: str) -> str:
        key = self._names.get(target.lower(), target.lower())
        if key not in self.products:
            known = ", ".join(product.name for product in self.products.values())
            raise DataError(f"names {target[:60]!r}, which is not planned; planned are {known[:300]}", file="--map")
        return key

    def product(self, charge: Charges) -> str | None:
        """Return the key of the planned product that a charge is for."""
        if charge.names not in self._seen:
            self._seen[charge.names] = self._look(charge.names)
        return self._seen[charge.names]

    def _look(self, names: tuple[str, ...]) -> str | None:
        low = [name.lower() for name in names]
        for known in (self._mapped, self._names):
            if found := next((known[name] for name in low if name in known), None):
                return found
        words = [word for name in low[:_GENERAL] for word in _WORDS.split(name)]
        return next((self._names[word] for word in words if word in self._names), None)

    def factor(self, charge: Charges, key: str) -> float | None:
        """Return what turns a charge's quantity into the product's unit; None where nothing does."""
        product, unit = self.products[key], unit_of(charge.unit)
        if unit in (product.unit, ""):
            return 1.0
        if (unit, product.unit) == ("hour", "GPU-hour") and product.gpus_per_unit:
            return product.gpus_per_unit
        return None


def read_map(path: str | None) -> dict[str, str]:
    """Read a CSV with the columns invoice and estimate: what a charge is called on either side."""
    if path is None:
        return {}
    head, rows = read_table(path)
    if head[:2] != ["invoice", "estimate"]:
        raise DataError("needs the columns invoice,estimate", file=path, row=1)
    found: dict[str, str] = {}
    for number, row in rows:
        if not row.keys() >= {"invoice", "estimate"}:
            raise DataError("needs two names", file=path, row=number)
        name, target = row["invoice"].lower(), row["estimate"]
        if found.setdefault(name, target).lower() != target.lower():
            reason = f"maps {shown(row['invoice'])} to {shown(target)}, and a row above to {shown(found[name])}"
            raise DataError(f"{reason}. Keep one.", file=path, row=number, column="invoice")
    return found
