"""Filling a workbook of one's own: cells that bear the name of a figure get it; formulas and styles stay."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucost.errors import DataError, UsageError, nearest

Figures = dict[str, Any]
_RESERVED = ("_xl", "print_")  # names that spreadsheet programs give
# what a workbook may hold beside cells -> its parts in the zip
_RELATED_FILES = {
    "charts": r"xl/charts/chart(Ex)?\d+\.xml",
    "pictures": r"xl/media/",
    "pivot tables": r"xl/pivotTables/[^/]+$",
    "slicers": r"xl/(slicers|timelines)/[^/]+$",
    "controls": r"xl/ctrlProps/",
    "embedded files": r"xl/embeddings/",
    "macros": r"xl/vbaProject",
    "data connections": r"xl/(connections\.xml|queryTables/[^/]+$)",
}
_SHAPE = re.compile(rb"<xdr:(?:sp|cxnSp)\b")
_NAMED = ("value", "total_usd", "cost_usd")  # what a row with a name stands for


def figures(payload: Mapping[str, Any]) -> Figures:
    """Return every figure of an answer by the name that a cell may bear, in small letters.

    A key inside another is joined to it (npv_usd_saving), an entry of a list by its number (options_2_provider), a
    column of a list stands under both (cash_flows_saving_usd). The first option, and rows that have a name (inputs and
    lines of a plan), go by their own names. In a report a part's name comes first (64_h100_npv_usd_own).

    >>> figures({"npv_usd": {"own": 5.0}, "lines": [{"name": "own_energy_usd", "total_usd": 2.0}]})["own_energy_usd"]
    2.0
    """
    if payload.get("kind") == "scenario":
        by_part: Figures = {}
        for part in payload["parts"]:
            word = re.sub(r"[^a-z0-9]+", "_", str(part["name"]).lower()).strip("_")
            by_part |= {f"{word}_{name}": value for name, value in figures(part["payload"]).items()}
            by_part = {**figures(part["payload"]), **by_part} if len(payload["parts"]) == 1 else by_part
        return {**dict(_flat("", {k: v for k, v in payload.items() if k != "parts"})), **by_part}
    plan = payload.get("model")  # of a tco; elsewhere the name of a model
    named = (plan.get("inputs") if isinstance(plan, Mapping) else None) or []
    rows = [*named, *(payload.get("lines") or []), *((payload.get("options") or [{}])[0].get("lines") or [])]
    named_rows = {_cell_name(row["name"]): row.get(key) for row in rows for key in _NAMED if key in row}
    first = dict(_flat("", (payload.get("options") or [{}])[0]))
    return {**named_rows, **first, **dict(_flat("", payload))}


def _cell_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield figures with their names; a list of plain values is one figure."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{prefix}_{_cell_name(str(key))}" if prefix else _cell_name(str(key)), inner)
    elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        for key in value[0]:
            if not isinstance(value[0][key], (Mapping, list)):
                yield f"{prefix}_{_cell_name(str(key))}", [row.get(key) for row in value]
        for number, row in enumerate(value, 1):
            yield from _flat(f"{prefix}_{number}", row)
    else:
        yield prefix, value


def fill(payload: Mapping[str, Any], template: str, path: str) -> list[str]:
    """Write a copy of a workbook with its named cells filled, whole or not at all; return what is to be said of it."""
    from io import BytesIO
    from warnings import catch_warnings, simplefilter
    from xml.etree import ElementTree

    from gpucost.catalog.book_files import looked_into
    from gpucost.gate import read_bytes
    from gpucost.store.files import replacing

    if Path(template).suffix.lower() != ".xlsx" or Path(path).suffix.lower() != ".xlsx":
        raise UsageError("--template takes an .xlsx and writes an .xlsx.")
    data = read_bytes(template, "limit_workbook_bytes")
    looked_into(data, template)
    try:
        import openpyxl

        with catch_warnings(record=True) as gone:
            simplefilter("always")
            book = openpyxl.load_workbook(BytesIO(data))
            if book.loaded_theme:  # which alone goes into the copy as it came
                ElementTree.fromstring(book.loaded_theme)
    except ImportError:
        raise UsageError(
            "a template needs the package openpyxl, which is not installed. Run: pip install openpyxl"
        ) from None
    except Exception:  # openpyxl fails in many ways over a file that is none of a spreadsheet program
        raise DataError("is not an .xlsx workbook. Save it again as .xlsx.", file=template) from None
    remarks = _filled(book, figures(payload), template)
    book.calculation.fullCalcOnLoad = True
    with replacing(path) as temporary:
        try:
            book.save(temporary)
        except OSError:
            raise
        except Exception as error:  # parts that were read and cannot be written, as where every sheet is hidden
            raise DataError(f"cannot be written again: {error}. Save it again as .xlsx.", file=template) from None
        remarks += _lost(_parts(data), _parts(Path(temporary).read_bytes()), [str(warning.message) for warning in gone])
    return remarks


def _parts(data: bytes) -> Counter[str]:
    """Count what a workbook holds beside cells, by the names of the parts in its zip, and the shapes of drawings."""
    import zipfile
    from io import BytesIO

    with zipfile.ZipFile(BytesIO(data)) as packed:
        names = packed.namelist()
        drawings = [packed.read(name) for name in names if re.match(r"xl/drawings/drawing\d+\.xml", name)]
    counts = Counter(
        {part_name: sum(bool(re.match(part, name)) for name in names) for part_name, part in _RELATED_FILES.items()}
    )
    return counts + Counter({"shapes or text boxes": sum(len(_SHAPE.findall(drawing)) for drawing in drawings)})


def _lost(before: Counter[str], after: Counter[str], gone: Iterable[str]) -> list[str]:
    """Say what the copy lacks, and that charts were drawn anew: openpyxl keeps their data, not all of their looks."""
    lost = [f"{part_name} ({count:,})" for part_name, count in (before - after).items()]
    lost += [
        unsupported[1]
        for text in dict.fromkeys(gone)
        if (unsupported := re.match(r"(.+?) is not supported and will", text))
    ]
    return [
        *([f"Not kept in the copy, for openpyxl does not read them: {', '.join(lost)}."] if lost else []),
        *(["Charts were written anew: look at their colours and fonts."] if after["charts"] else []),
    ]


def _filled(book: Any, figures_by_name: Figures, template: str) -> list[str]:
    filled, unknown, untouched = 0, list[str](), list[str]()
    for name, target in _names(book):
        if name.lower().startswith(_RESERVED):
            continue
        if name.lower() not in figures_by_name:
            unknown.append(name)
            continue
        value = figures_by_name[name.lower()]
        cells = list(_cells(book, target))
        if not cells or value is None or value == {}:
            untouched.append(f"{name} ({'refers to no cells' if not cells else 'has no value'})")
        for cell, item in zip(cells, value if isinstance(value, list) else [value], strict=False):
            if cell.data_type == "f":
                untouched.append(f"{name} (holds a formula)")
            elif item is not None and not isinstance(item, (Mapping, list)):
                _write(cell, item)
                filled += 1
    if not filled and not unknown and not untouched:
        raise DataError("has no named cells: name them after figures, such as cost_usd", file=template)
    return [
        f"{filled} cells filled.",
        *(
            [f"Names that are not a figure of this answer, left as they are: {_near(unknown, figures_by_name)}."]
            if unknown
            else []
        ),
        *([f"Left as they are: {', '.join(dict.fromkeys(untouched))}."] if untouched else []),
    ]


def _names(book: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names of the workbook and of its sheets."""
    yield from book.defined_names.items()
    for sheet in book.worksheets:
        yield from sheet.defined_names.items()


def _cells(book: Any, target: Any) -> Iterator[Any]:
    """Yield the cells that a name refers to, row by row; none where it is a constant or refers to another file."""
    from openpyxl.cell.cell import MergedCell

    for sheet, area in target.destinations if target.type == "RANGE" else ():
        if sheet in book.sheetnames:
            cells: Any = book[sheet][area.replace("$", "")]
            for row in cells if isinstance(cells, tuple) else ((cells,),):
                yield from (
                    cell for cell in (row if isinstance(row, tuple) else (row,)) if not isinstance(cell, MergedCell)
                )


def _write(cell: Any, value: Any) -> None:
    """Write a value; a text stays a text, whatever sign it begins with."""
    from gpucost.render.document import visible

    cell.value = visible(value) if isinstance(value, str) else value
    if isinstance(value, str):
        cell.data_type = "s"


def _near(unknown: Sequence[str], names_known: Iterable[str]) -> str:
    names = list(names_known)
    suggestions = []
    for name in unknown:
        near = nearest(name.lower(), names, cutoff=0.8)
        suggestions.append(f"{name} (did you mean {near[0]}?)" if near else name)
    return ", ".join(suggestions)
