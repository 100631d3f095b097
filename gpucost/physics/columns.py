"""Structs of arrays that the kernels share: one element per case, strings as small integer codes."""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from math import prod
from typing import Any, Self, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, fields
from numpy.typing import ArrayLike, NDArray

from gpucost.errors import UsageError
from gpucost.types import Layout
from gpucost.words import METHODS as METHODS
from gpucost.words import PRECISIONS as PRECISIONS
from gpucost.words import RECOMPUTES as RECOMPUTES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

CHUNK = 32_768  # rows per pass: 256 kB a column, so that the working set of a kernel stays in cache

# bytes of one value, without the scales of blocks
VALUE_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}


def code_of(name: str, names: Sequence[str], kind: str) -> int:
    """Return the code of a name in a closed list, or say which names there are.

    >>> code_of("full", RECOMPUTES, "recompute")
    2
    """
    if name not in names:
        raise UsageError(f"unknown {kind} {name!r}. Choose one of {', '.join(names)}.")
    return names.index(name)


class ColumnStruct(Struct, frozen=True):
    """A frozen struct whose fields are arrays of one length."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the columns."""
        return cls.__struct_fields__

    def __len__(self) -> int:
        return len(getattr(self, self.names()[0]))

    def take(self, indices: Any) -> Self:
        """Return the rows that `indices` (integers, a mask or a slice) names, in that order."""
        columns = astuple(self)
        if not (isinstance(indices, np.ndarray) and indices.dtype.kind == "i"):
            return type(self)(*[column[indices] for column in columns])
        # `take` is twice as fast as indexing; a single value spread over a column (stride 0) stays one value
        return type(self)(
            *[
                _spread(column[:1], len(indices)) if column.strides == (0,) and len(column) else column.take(indices, 0)
                for column in columns
            ]
        )

    def chunks(self, size: int = CHUNK) -> Iterator[slice]:
        """Yield the slices that cut the rows into pieces which stay in cache."""
        for start in range(0, len(self), size):
            yield slice(start, start + size)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join structs end to end."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.names()})


class Gathered(Struct, frozen=True):
    """A frozen record of structs and arrays with one row each for every case."""

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[-1]))  # earlier ones may hold one row for all cases

    def take(self, rows: Any) -> Self:
        """Return the cases that `rows` names."""
        return type(self)(*(part[rows] if isinstance(part, np.ndarray) else part.take(rows) for part in astuple(self)))


def pick(condition: Flags, yes: Any, no: Any) -> Any:
    """Return `yes` where a condition holds, else `no`; one that holds for all rows alike chooses without a copy.

    >>> pick(np.array([True]), 2.0, 1.0), pick(np.array([True, False]), 2.0, 1.0)
    (2.0, array([2., 1.]))
    """
    # a column of stride 0 holds one value however long it is
    alike = condition.size == 1 or (condition.strides == (0,) and condition.size > 0)
    return (yes if condition[0] else no) if alike else np.where(condition, yes, no)


def _spread(value: NDArray[Any], count: int) -> NDArray[Any]:
    spread = np.ndarray((count,), value.dtype, value, 0, (0,))  # as np.broadcast_to does, ten times as fast
    spread.flags.writeable = False
    return spread


def constant(value: ArrayLike, count: int, kind: type = np.float64) -> NDArray[Any]:
    """Return a column that holds one value, or the column that is given, as numbers of a kind.

    >>> constant(2, 3), constant([1, 0], 2, np.bool_)
    (array([2., 2., 2.]), array([ True, False]))
    """
    column: NDArray[Any] = np.asarray(value, dtype=kind)
    return _spread(column, count) if column.size == 1 else np.broadcast_to(column, (count,))


class Packing:
    """Several small codes as one integer, each below its size.

    >>> packing = Packing(pair=3, combo=10)
    >>> packing.pack(pair=np.array([2]), combo=np.array([7]))
    array([27])
    >>> packing.unpack(np.array([27]))
    {'pair': array([2]), 'combo': array([7])}
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.size = prod(sizes.values())

    def pack(self, **codes: Integers) -> Integers:
        """Return one integer per row."""
        number = np.zeros(1, dtype=np.int64)
        # mixed radix, as hours, minutes and seconds: the first code counts most
        for name, size in self.sizes.items():
            number = number * size + codes[name]
        return number

    def unpack(self, number: Integers) -> dict[str, Integers]:
        """Return the codes that were packed."""
        codes = {}
        for name, size in reversed(self.sizes.items()):
            number, codes[name] = np.divmod(number, size)
        return {name: codes[name] for name in self.sizes}


def distinct(numbers: Integers, size: int) -> tuple[Integers, Integers]:
    """Return the distinct numbers below `size` in order, and each number's position among them, without sorting.

    >>> distinct(np.array([5, 2, 5]), 8)
    (array([2, 5]), array([1, 0, 1]))
    """
    # two tables as long as all numbers that may occur: cheaper than sorting while these are not many times the rows
    present = np.zeros(size, dtype=np.bool_)
    present[numbers] = True
    numbers_present = np.flatnonzero(present)
    position = np.zeros(size, dtype=np.int64)
    position[numbers_present] = np.arange(len(numbers_present))
    return numbers_present, position[numbers]


Record = TypeVar("Record")
Counted = TypeVar("Counted")


def remembered(count: Callable[[Record], Counted]) -> Callable[[Record], Counted]:
    """Keep the answer for the struct that was asked about last: kernels count the same model again and again.

    >>> remembered(len)([1, 2])
    2
    """
    last: list[tuple[Record, Counted]] = []

    @wraps(count)
    def ask(struct: Record) -> Counted:
        latest = last[:]  # one look at the list: another thread may replace what is in it
        if latest and latest[0][0] is struct:
            return latest[0][1]
        answer = count(struct)
        last[:] = [(struct, answer)]
        return answer

    return ask


class LayoutColumns(ColumnStruct, frozen=True):
    """How training jobs are spread over GPUs: the fields of `Layout` as arrays, with what the software makes of them.

    `recompute` holds codes into RECOMPUTES and `precision` codes into PRECISIONS. Under hybrid sharding (HSDP) a group
    of `shard_ranks` ranks holds one copy of what is sharded, and every group of the job has its own.
    """

    gpus: Floats
    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats
    data: Floats
    sharding: Integers
    micro_batch: Floats
    global_batch: Floats
    virtual_stages: Floats
    recompute: Integers
    precision: Integers
    flash: Flags  # fused attention: no score matrix in memory, the causal half skipped
    sequence_parallel: Flags  # norms and residuals split over the tensor group
    shard_ranks: Floats  # data- and context-parallel ranks that share one copy; 0: all of them

    @property
    def shards(self) -> Floats:
        """The ranks over which weights, gradients and states are sharded, where they are."""
        ranks = self.data * self.context
        return np.where(self.shard_ranks > 0, np.minimum(self.shard_ranks, ranks), ranks)

    @property
    def micro_batches(self) -> Floats:
        """Micro-batches per step on each pipeline, rounded up: global ÷ (data × micro)."""
        # less the noise of a division, which must not make a micro-batch more
        return np.maximum(np.ceil(self.global_batch / (self.data * self.micro_batch) - 1e-9), 1.0)

    def layout(self, row: int) -> Layout:
        """Return one row as a record."""
        values: dict[str, Any] = {field.name: int(getattr(self, field.name)[row]) for field in fields(Layout)}
        values["recompute"] = RECOMPUTES[values["recompute"]]
        values["precision"] = PRECISIONS[values["precision"]]
        return Layout(**values)


def layout_columns(
    layouts: Sequence[Layout],
    *,
    flash: bool | Flags = True,
    sequence_parallel: bool | Flags = True,
    shard_ranks: float | Floats = 0.0,
) -> LayoutColumns:
    """Turn layout records into arrays.

    >>> layout_columns([Layout(gpus=16, tensor=8, data=2, global_batch=32)]).micro_batches
    array([16.])
    """
    count = len(layouts)
    # degrees are whole, but kept as floats: products of a few of them outgrow no type, and nothing is converted
    names = ("gpus", "tensor", "pipeline", "context", "expert", "data", "micro_batch", "global_batch", "virtual_stages")
    numbers = {name: np.array([getattr(layout, name) for layout in layouts], dtype=np.float64) for name in names}
    return LayoutColumns(
        **numbers,
        sharding=np.array([layout.sharding for layout in layouts], dtype=np.int64),
        recompute=np.array([code_of(x.recompute, RECOMPUTES, "recompute") for x in layouts], dtype=np.int64),
        precision=np.array([code_of(x.precision, PRECISIONS, "precision") for x in layouts], dtype=np.int64),
        flash=constant(flash, count, np.bool_),
        sequence_parallel=constant(sequence_parallel, count, np.bool_),
        shard_ranks=constant(shard_ranks, count),
    )
