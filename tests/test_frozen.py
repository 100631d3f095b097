"""A frozen record behaves as a frozen dataclass does; the two are asked the same things."""

import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace

import pytest

from gpucost.frozen import Frozen


class Ours(Frozen):
    name: str
    size: int = 2
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Theirs:
    name: str
    size: int = 2
    notes: list[str] = field(default_factory=list)


class Named(Ours):
    colour: str = "red"


@pytest.mark.parametrize("values", [("a",), ("a", 3), ("a", 3, ["b"])])
def test_both_hold_the_same(values):
    ours, theirs = Ours(*values), Theirs(*values)
    assert asdict(ours) == asdict(theirs)
    assert repr(ours).removeprefix("Ours") == repr(theirs).removeprefix("Theirs")
    assert ours == Ours(**asdict(ours))
    assert replace(ours, size=9) == Ours(values[0], 9, ours.notes)
    assert [one.name for one in fields(ours)] == [one.name for one in fields(theirs)]
    assert is_dataclass(ours)
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert Ours("a").notes is not Ours("a").notes


WRONG = [((), {}), (("a", 1, [], 4), {}), (("a",), {"name": "b"}), (("a", 1, []), {"size": 2}), (("a",), {"age": 1})]


@pytest.mark.parametrize(("values", "named"), WRONG)
def test_both_refuse_the_same(values, named):
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_fields_are_set_once_and_inherited():
    with pytest.raises(AttributeError):
        Ours("a").size = 3
    assert issubclass(FrozenInstanceError, AttributeError)
    assert [one.name for one in fields(Named)] == ["name", "size", "notes", "colour"]
    assert hash(replace(Named("a"), notes=())) == hash(Named("a", 2, (), "red"))
    assert Named("a") != Ours("a")
