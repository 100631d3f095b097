"""What every answer can do: be saved, shown in a notebook, and turned into a frame, a workbook or a page.

A result is its payload: a plain, JSON-able mapping with `kind`, `schema_version`, `request`, `as_of`,
`catalog_version`, the answer's own keys, `warnings` and `sources` (the rows of sources.csv that it leans on).
Rendering needs the payload alone, so that a saved result renders like a fresh one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from gpucost.errors import GpuCostError, UsageError
from gpucost.gate import shown
from gpucost.render.document import Chart, Document

if TYPE_CHECKING:
    import pandas


_WRITTEN = ("table", "json", "csv", "md")
_LONGEST_REPR = 160  # characters: two lines of a notebook
_USUAL = 20  # columns of a frame, unless all are asked for
_LONGEST_CELL = 40  # characters of a column that stands first in a frame
_Args = ParamSpec("_Args")
_Returned = TypeVar("_Returned")
_Answer = TypeVar("_Answer", bound="Result")


def guarded(
    method: Callable[Concatenate[_Answer, _Args], _Returned],
) -> Callable[Concatenate[_Answer, _Args], _Returned]:
    """Have a method of a result say what is wrong with its payload where that breaks it."""

    @wraps(method)
    def safe(self: _Answer, /, *args: _Args.args, **kwargs: _Args.kwargs) -> _Returned:
        with self._guard():
            return method(self, *args, **kwargs)

    return safe


def flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what is nested in them."""
    return [{key: value for key, value in row.items() if not isinstance(value, (dict, list))} for row in rows]


def copied(value: Any) -> Any:
    """Return what a payload holds as its reader may change it: every mapping and list within is another one.

    >>> payload = {"options": [{"cost_usd": 2.0}]}
    >>> copied(payload)["options"][0].clear(), payload
    (None, {'options': [{'cost_usd': 2.0}]})
    """
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    # only plain lists and tuples: of a NamedTuple or an array the type takes other arguments
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


class AnswerRow(dict[str, Any]):
    """A row of an answer: its keys are attributes too, and completed as such.

    >>> AnswerRow(cost_usd=2.0).cost_usd
    2.0
    """

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key."""
        try:
            return self[name]
        except KeyError:
            from gpucost.errors import nearest

            near = nearest(name, self, 3, 0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"the row has no {name!r}.{hint}") from None

    def __dir__(self) -> list[str]:
        """Return the keys beside what a dictionary has."""
        return [*super().__dir__(), *self]


def entry_of(value: Any) -> Any:
    """Return what a payload holds as its reader may change it, with rows whose keys are attributes."""
    if isinstance(value, Mapping):
        return AnswerRow({key: entry_of(item) for key, item in value.items()})
    return type(value)(map(entry_of, value)) if type(value) in (list, tuple) else value


def _is_long(name: str, values: Sequence[Any]) -> bool:
    """Tell whether a column of a frame is nested, or holds lists or long texts."""
    return "." in name or any(
        isinstance(value, (list, dict)) or (isinstance(value, str) and len(value) > _LONGEST_CELL) for value in values
    )


class _Sealed:
    """Says of any attribute that it cannot be set; a frozen dataclass with slots breaks at one that is no field."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        if "__setattr__" in vars(cls):  # the dataclass has been there  # set by the dataclass, after the class was made
            cls.__setattr__ = cls.__delattr__ = _refuse  # type: ignore[method-assign]


def _refuse(answer: object, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"{name} cannot be set: {type(answer).__name__} is frozen. Change a copy: to_dict().")


class Unabridged:
    """Asks a question again for what its answer left out, once; a copy that was pickled has nobody to ask."""

    # a lambda cannot be pickled; the payload can

    def __init__(self, ask: Callable[[], Mapping[str, Any]] | None, payload: Mapping[str, Any]) -> None:
        self._ask, self._payload = ask, payload

    def __call__(self) -> Mapping[str, Any]:
        """Return the payload with all of its main list."""
        if self._ask is not None:
            self._payload, self._ask = self._ask(), None
        return self._payload

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep what is known."""
        return Unabridged, (None, self._payload)


@dataclass(frozen=True, slots=True, repr=False)
class Result(_Sealed):
    """An answer: its payload and the ways to render it."""

    payload: Mapping[str, Any]
    # a question that shows its first options hands over how to have all of them: frames hold all
    all_of_it: "Unabridged | None" = field(default=None, compare=False, kw_only=True)

    @property
    def kind(self) -> str:
        """Which kind of answer it is."""
        return str(self.payload.get("kind"))

    @property
    def main_list(self) -> str:
        """The key of its main list in the payload: what CSV and data frames hold."""
        from gpucost.answers import main_list

        return main_list(self.kind)

    @property
    def exit_code(self) -> int:
        """The exit code that a command ends with: 0, unless the answer is that it cannot be."""
        return 0

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Refuse a payload that is no answer where reading it breaks; what breaks a real one is a fault of ours."""
        try:
            yield
        except (GpuCostError, OSError):
            raise
        except Exception:
            from gpucost.answers.saved import checked
            from gpucost.render.json import plain

            # only now: anybody may build a result of any mapping, and checking each would cost more than showing it
            checked({"kind": None, **plain(self.payload)}, "the answer")
            raise

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the payload as a plain dictionary; nothing that is changed in it changes the answer."""
        return {key: copied(item) for key, item in self.payload.items()}

    def to_json(self) -> str:
        """Return the payload as JSON text under a seal; floats carry 12 significant digits."""
        from gpucost.answers.saved import sealed
        from gpucost.render.json import dumps

        return sealed(dumps(self.payload))

    @guarded
    def to_frame(self, *, all: bool = False) -> "pandas.DataFrame":
        """Return the whole main list as a data frame, a row per entry, with the columns of the screen and the like.

        Frames of one kind of answer have the same columns. An answer that was read from a file gives the entries that
        the file holds.

        Parameters
        ----------
        all : bool, default False
            Every column: plain ones first, nested and long ones last. Else some twenty plain ones, of a cash flow
            all its lines.
        """
        import pandas

        payload = self.all_of_it() if self.all_of_it is not None else self.payload
        frame = pandas.json_normalize(list(payload[self.main_list]))
        for name in self._always():
            if name not in frame:
                # not NaN: a part that an answer lacks costs nothing
                frame[name] = 0.0
        values = frame.to_dict("list")
        if all:
            # the sort is stable: plain columns keep their order, and nested and long ones follow
            return frame[sorted(frame.columns, key=lambda name: _is_long(str(name), values[name]))]
        return frame[self._usual([name for name in frame.columns if not _is_long(str(name), values[name])])]

    def _usual(self, plain: Sequence[str]) -> list[str]:
        """Return some twenty of the plain columns: those that the screen's table has, then the first of the others."""
        from gpucost.render.document import columns_of

        shown_first = {column.key for column in columns_of(self.kind)}
        spare = _USUAL - sum(name in shown_first for name in plain)
        others = [name for name in plain if name not in shown_first][: max(0, spare)]
        return [name for name in plain if name in shown_first or name in others]

    def _always(self) -> Sequence[str]:
        """Return the columns of a frame that hold zero where an answer has no such part: frames can be joined."""
        return ()

    @guarded
    def document(self) -> Document:
        """Return the medium-neutral document that every writer walks."""
        from gpucost.render.build import document

        return document(self.payload)

    def explanation(self) -> "Document":
        """Return the document that explains the figures; where there is none, the answer with all its sections."""
        return self.document()

    def explain(self) -> str:
        """Return how the figures come about: formulas, numbers, sources."""
        from gpucost.render.text import write

        return write(self.explanation(), all_sections=True)

    def written(
        self,
        format_: str,
        fields: str | Sequence[str] | None = None,
        *,
        explain: bool = False,
        lines: bool = False,
        details: bool = False,
    ) -> str:
        """Return the answer as a command writes it: table, json, csv of its main list, or md; `fields` of that list."""
        if format_ not in _WRITTEN:
            raise UsageError(f"an answer cannot be written as {shown(format_)}. Formats: {', '.join(_WRITTEN)}.")
        if isinstance(fields, (list, tuple)) and all(isinstance(name, str) for name in fields):
            fields = ",".join(fields)
        if fields is not None and not isinstance(fields, str):
            raise UsageError(f"fields: found {shown(fields)}; give names with commas between them, or a list of names.")
        if fields:
            from gpucost.render.rows import render_rows

            rows = self._lines() if lines else self._rows()
            # without rows the names that were asked for are the columns; else the writer knows the keys
            columns = [] if rows else [name.strip() for name in fields.split(",")]
            # what every JSON list carries beside its rows
            envelope = {key: self.payload.get(key) for key in ("schema_version", "catalog_version", "as_of")}
            envelope["warnings"] = list(self.payload.get("warnings") or ())
            return render_rows(rows, columns=columns, format_=format_, fields=fields, envelope=envelope)
        if format_ == "json":
            return self.to_json()
        if format_ == "csv":
            return self.to_csv(lines=lines)
        if format_ == "md":
            from gpucost.render.markdown import write

            return write(self.explanation()) if explain else self.to_markdown()
        return self.explain() if explain else self.to_text(details=details)

    def _rows(self) -> list[dict[str, Any]]:
        """Return the main list without what is nested in it."""
        return flat(self.payload.get(self.main_list) or [])

    def _lines(self) -> list[dict[str, Any]]:
        """Return a row per line of each bill, where there are bills."""
        return self._rows()

    @guarded
    def to_csv(self, *, lines: bool = False) -> str:
        """Return the main list as CSV; `lines` gives a row per line of each bill, where there are bills."""
        from gpucost.render.rows import render_rows

        rows = self._rows()
        return render_rows(rows, columns=list(rows[0]) if rows else [], format_="csv", fields=None, envelope={})

    @guarded
    def to_text(self, *, details: bool = False) -> str:
        """Return what the terminal shows: one screen, where the answer has one, or with `details` all of it."""
        from gpucost.render.text import write

        return write(self.document(), one_screen=not details)

    @property
    def headline(self) -> str:
        """The answer in one line; of several parts a line each."""
        with self._guard():
            if line := self.payload.get("headline") or self.payload["lead"]:
                return str(line)
            # a scenario has several parts, each with a line of its own
            parts = [(part["name"], part["payload"]) for part in self.payload.get("parts", ())]
            return "\n".join(f"{name}: {part.get('headline') or part['lead']}" for name, part in parts)

    @property
    def options(self) -> list[Mapping[str, Any]]:
        """What the answer sets side by side: its options, else its main list; best first where it ranks them."""
        with self._guard():
            return [*map(entry_of, self.payload["options" if "options" in self.payload else self.main_list])]

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The option that the answer advises; None where it advises none, as a comparison or an invoice."""
        return None

    def to_markdown(self) -> str:
        """Return the document as Markdown."""
        from gpucost.render.markdown import write

        return write(self.document())

    def charts(self) -> list[str]:
        """Return the titles of the charts that this answer can draw."""
        return [chart.title for chart in self._charts()]

    def chart(self, title: str = "") -> Any:
        """Return a chart as an Altair object: the first one, or the one whose title contains `title`."""
        from gpucost.render.vega import altair_chart

        return altair_chart(self._charts(), title)

    def _charts(self) -> list[Chart]:
        return [block for part in self.document().sections for block in part.blocks if isinstance(block, Chart)]

    @guarded
    def to_html(self, path: str) -> None:
        """Write a self-contained page to `path`."""
        from gpucost.render.build import boarded
        from gpucost.render.html import write_page

        write_page(boarded(self.payload), path)

    @guarded
    def to_pdf(self, path: str) -> None:
        """Write the page that a board reads as a PDF, without a browser; of other answers the sections."""
        from gpucost.render.build import boarded
        from gpucost.render.pdf import write_pdf

        write_pdf(boarded(self.payload), path)

    @guarded
    def to_excel(self, path: str) -> None:
        """Write a workbook with live formulas to `path`."""
        from gpucost.render.excel import write_workbook

        write_workbook(self.payload, path)

    def _repr_html_(self) -> str:
        from gpucost.render.html import fragment

        return fragment(self.document())

    def __repr__(self) -> str:
        """Return one line: what it is and the answer."""
        line = f"<{type(self).__name__}: {self.headline}>"
        return line if len(line) <= _LONGEST_REPR else f"{line[:_LONGEST_REPR]}…>"

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True, repr=False)
class RankedResult(Result):
    """An answer that ranks its options."""

    @property
    def best(self) -> Mapping[str, Any]:
        """The first option."""
        with self._guard():
            option: Mapping[str, Any] = entry_of(
                self.payload["options" if "options" in self.payload else self.main_list][0]
            )
        return option


@dataclass(frozen=True, slots=True, repr=False)
class BilledResult(RankedResult):
    """An answer that ranks options, each with its bill."""

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The bill of the first option; its rounded lines add up to its cost."""
        return [*map(entry_of, self.payload["options"][0]["lines"])]

    def _rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.payload["options"]]

    def _lines(self) -> list[dict[str, Any]]:
        from gpucost.render.table_csv import bill_lines

        return bill_lines(self.payload)

    @guarded
    def to_csv(self, *, lines: bool = False) -> str:
        """Return the options as CSV; `lines` gives a row per line of each bill."""
        from gpucost.render.table_csv import rows_csv

        return rows_csv(self.payload, lines=lines)
