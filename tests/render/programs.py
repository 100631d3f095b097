"""LibreOffice for tests, told to recalculate."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

# LibreOffice keeps the values stored in a workbook unless told otherwise: 0 recalculates always.
_ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
</item>
</oor:items>
"""


def recalculate(soffice: str, books: Sequence[Path], folder: Path, to: str = "xlsx") -> list[Path]:
    """Let LibreOffice open the books, recalculate every formula, and save them into a folder."""
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(_ALWAYS, encoding="utf-8")
    out = folder / "recalculated"
    command = [
        soffice,
        f"-env:UserInstallation=file://{profile}",
        "--headless",
        "--convert-to",
        to,
        "--outdir",
        str(out),
        *map(str, books),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return [out / f"{book.stem}.{to}" for book in books]
