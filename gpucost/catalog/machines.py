"""Machines named where an accelerator is asked for: a server, or a cloud's instance type, and what it holds."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from gpucost.catalog.names import NameIndex
from gpucost.errors import AmbiguousNameError

_MOST_KINDS = 6  # a word such as "standard", which machines of more kinds of accelerator share, names no machine


class MachineOnSale(Struct, frozen=True):
    """What a machine's name says of accelerators; a short form may mean machines of several sizes."""

    name: str  # as it was typed
    accelerator_id: str
    gpus: int | None  # None where machines of several sizes are meant
    id: str | None  # of its row, where one alone is meant
    provider: str | None  # who rents it out, where that is one

    @property
    def sentence(self) -> str:
        """Say what the machine holds."""
        holding = f"{self.gpus} × {self.accelerator_id}" if self.gpus else self.accelerator_id
        return f"{self.name} holds {holding} and is taken as that accelerator."

    @property
    def seller(self) -> str:
        """Say how a filter by this machine's accelerator is kept to who rents the machine out."""
        return f" Every seller's offers count; --provider {self.provider} keeps to its own." if self.provider else ""


def machine_among(index: NameIndex, name: str) -> MachineOnSale | None:
    """Return the machine that a name means among those of an index; None where it means none."""
    example_of: dict[str, str] = {}
    ids, counts = index.matches(name), set()
    for id_ in ids:
        example_of.setdefault(str(index.rows[id_]["accelerator_id"]), id_)
        counts.add(int(index.rows[id_]["gpus"]))
    if not 0 < len(example_of) <= _MOST_KINDS:
        return None
    if len(example_of) > 1:
        raise AmbiguousNameError("machine", name, list(example_of.values()))
    (accelerator_id,) = example_of
    providers = {index.rows[id_]["provider"] for id_ in ids}
    return MachineOnSale(name, accelerator_id, _only(counts), _only(ids), _only(providers))


def _only(values: Collection[Any]) -> Any:
    """Return the one value there is; None where there are several."""
    if len(values) != 1:
        return None
    (value,) = values
    return value


def sold_index(offers: Iterable[Any]) -> NameIndex:
    """Index the instance types that offers name and that hold one kind of accelerator in one number."""
    holdings: dict[str, set[tuple[str, int]]] = {}
    providers: dict[str, set[str]] = {}
    for offer in offers:
        # a name that means different machines means none
        holdings.setdefault(offer.instance_type, set()).add((offer.gpu, offer.gpus))
        providers.setdefault(offer.instance_type, set()).add(offer.provider)
    rows: Mapping[str, Mapping[str, Any]] = {
        name: {
            "id": name,
            "name": name,
            "instance_type": name,
            "accelerator_id": gpu,
            "gpus": gpus,
            "provider": _only(providers[name]),
        }
        for name, holding in holdings.items()
        if name and len(holding) == 1
        for gpu, gpus in holding
    }
    return NameIndex("system", rows, {})
