"""Writes a Parquet twin of every table into the wheel, beside its CSV files; the source tree stays as it is."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParquetHook(BuildHookInterface):
    """Makes the Parquet files in a temporary folder and has the wheel include them."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads the CSV files of the checkout instead."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from gpucost.catalog.loader import write_twins
        finally:
            sys.path.remove(self.root)
        self._folder = tempfile.TemporaryDirectory()
        made = write_twins(Path(self.root), Path(self._folder.name))
        build_data["force_include"] |= {str(file): f"gpucost/_data/{place}" for place, file in made.items()}
        build_data["force_include"][str(Path(self.root, "docs/glossary.md"))] = "gpucost/agents/GLOSSARY.md"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if version != "editable":
            self._folder.cleanup()
