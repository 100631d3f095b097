"""Counts that cannot be mistaken for one another: accelerators, replicas, instances.

A total of accelerators holds all replicas. It has no product with anything, so that it cannot be multiplied by the
replicas a second time; what makes one total of parts is named here.
"""

import numpy as np
from msgspec import Struct

from gpucost.physics.columns import Floats


def units_for(replicas: Floats, replica_gpus: Floats, unit_gpus: Floats, minimum_units: Floats | float = 0.0) -> Floats:
    """Return the units that hold so many replicas: several replicas share a unit, or several units hold one.

    Three replicas of 2 in units of 8 take one unit; two of 16 take four; three of 3 take two, as none is cut in half.

    >>> replicas, gpus = np.array([3.0, 2.0, 3.0]), np.array([2.0, 16.0, 3.0])
    >>> units_for(replicas, gpus, np.array([8.0, 8.0, 8.0]))
    array([1., 4., 2.])
    """
    in_unit = np.floor(unit_gpus / replica_gpus)  # whole replicas; 0 where a replica spans units
    shared = np.ceil(replicas / np.maximum(in_unit, 1.0))
    spanning = replicas * np.ceil(replica_gpus / unit_gpus)
    # some sellers rent no fewer than so many, and nothing is rented for nothing
    units: Floats = np.maximum(np.where(in_unit >= 1, shared, spanning), np.where(replicas > 0, minimum_units, 0.0))
    return units


def whole_units(gpus: Floats | float, unit_gpus: float) -> float:
    """Return the accelerators of the whole units that hold at least so many.

    >>> whole_units(9.5, 8)
    16.0
    """
    return float(np.ceil(gpus / unit_gpus) * unit_gpus)


class Accelerators(Struct, frozen=True, order=True):
    """A number of accelerators: of one replica, of one instance or of a whole deployment.

    >>> Accelerators(8) + Accelerators(4)
    Accelerators(number=12)
    """

    number: int

    def __add__(self, other: "Accelerators") -> "Accelerators":
        return Accelerators(self.number + other.number)

    def __int__(self) -> int:
        return self.number

    def replicas_of(self, replica: "Accelerators") -> "Replicas":
        """Return how many whole replicas so many accelerators hold.

        >>> Accelerators(7).replicas_of(Accelerators(2))
        Replicas(number=3)
        """
        return Replicas(self.number // replica.number)  # what is left over serves nobody


class Replicas(Struct, frozen=True, order=True):
    """A number of copies of a model that serve or train side by side."""

    number: int

    def __int__(self) -> int:
        return self.number

    def of(self, replica: Accelerators) -> Accelerators:
        """Return the accelerators of so many replicas.

        >>> Replicas(3).of(Accelerators(2))
        Accelerators(number=6)
        """
        return Accelerators(self.number * replica.number)

    def placed(self, replica: Accelerators, instance: Accelerators) -> "Instances":
        """Return the instances that so many replicas take, as `units_for`.

        >>> [Replicas(n).placed(Accelerators(g), Accelerators(8)).number for n, g in ((3, 2), (2, 16), (3, 3))]
        [1, 4, 2]
        """
        counts = (np.array(float(count.number)) for count in (self, replica, instance))
        return Instances(int(units_for(*counts)))


class Instances(Struct, frozen=True, order=True):
    """A number of machines as a seller rents them."""

    number: int

    def __int__(self) -> int:
        return self.number

    def of(self, instance: Accelerators) -> Accelerators:
        """Return the accelerators that so many instances hold, and that are paid.

        >>> Instances(2).of(Accelerators(8))
        Accelerators(number=16)
        """
        return Accelerators(self.number * instance.number)
