"""LibreOffice for tests, told to recalculate."""

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

# LibreOffice keeps the values stored in a workbook unless told otherwise: 0 recalculates always.
_ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
</item>
</oor:items>
"""

# every sheet a file, words in quotes, figures bare and in full: half the work of writing a workbook anew
_CELLS = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,true,true,false,false,false,-1"
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^,\n]*))([,\n])')


class Recalculated(NamedTuple):
    """The values that LibreOffice found in a book."""

    folder: Path
    stem: str

    def rows(self, sheet: str) -> list[list[str | float]]:
        """Return the rows of a sheet from its first cell on; an empty cell is an empty word."""
        rows: list[list[str | float]] = [[]]
        for word, figure, end in _CELL.findall((self.folder / f"{self.stem}-{sheet}.csv").read_text(encoding="utf-8")):
            share = figure.endswith("%")
            bare = figure and (float(figure[:-1]) / 100 if share else float(figure))
            rows[-1].append(bare if figure else word.replace('""', '"'))
            if end == "\n":
                rows.append([])
        return rows[:-1]


@cache
def profile() -> str:
    """Return the flag of the one profile of this process: LibreOffice takes seconds to make its own at first."""
    folder = Path(tempfile.mkdtemp(prefix="libreoffice-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "user").mkdir()
    (folder / "user" / "registrymodifications.xcu").write_text(_ALWAYS, encoding="utf-8")
    return f"-env:UserInstallation=file://{folder}"


def recalculate(soffice: str, books: Sequence[Path], folder: Path) -> list[Recalculated]:
    """Let LibreOffice open the books, recalculate every formula, and save what it finds into a folder."""
    out = folder / "recalculated"
    command = [soffice, profile(), "--headless", "--convert-to", _CELLS]
    subprocess.run([*command, "--outdir", str(out), *map(str, books)], check=True, capture_output=True, timeout=600)
    return [Recalculated(out, book.stem) for book in books]
