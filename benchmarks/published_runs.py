"""Write docs/published-runs.md, estimates of published runs: `python -m benchmarks.published_runs [--check]`."""

import sys
from pathlib import Path

from gpucost.catalog import open_catalog
from gpucost.validation.published_runs import as_markdown, compare_run, published_runs

PAGE = Path(__file__).parent.parent / "docs" / "published-runs.md"


def page() -> str:
    catalog = open_catalog()
    rows = published_runs(catalog)
    native = next(row for row in catalog.rows("published_runs") if row["id"] == "gpt-2-124m-llm.c")
    return as_markdown(rows, compare_run(native, catalog, "native"))


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        same = PAGE.is_file() and PAGE.read_text("utf-8") == text
        print(
            "docs/published-runs.md is current"
            if same
            else "docs/published-runs.md is stale: run python -m benchmarks.published_runs"
        )
        return 0 if same else 1
    PAGE.write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
