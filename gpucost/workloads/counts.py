"""Counts that cannot be mistaken for one another: accelerators, replicas, instances.

A total of accelerators holds all replicas. It has no product with anything, so that it cannot be multiplied by the
replicas a second time; what makes one total of parts is named here.
"""

from math import ceil

from msgspec import Struct


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
        return Replicas(self.number // replica.number)


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
        """Return the instances that so many replicas take: several share one, or several instances hold one replica.

        Three replicas of 2 take one instance of 8; two of 16 take four; three of 3 take two, as none is cut in half.

        >>> [Replicas(n).placed(Accelerators(g), Accelerators(8)).number for n, g in ((3, 2), (2, 16), (3, 3))]
        [1, 4, 2]
        """
        together = instance.number // replica.number
        if together:
            return Instances(ceil(self.number / together))
        return Instances(self.number * ceil(replica.number / instance.number))


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
