"""The gpuhunt catalog: an archive with one CSV per provider, on demand and spot."""

from pathlib import Path

from gpucost.errors import DataError, UsageError
from gpucost.importers.archive import unpacked
from gpucost.importers.source import (
    MARKETS,
    ONE_LIST,
    Desk,
    Source,
    cell_sql,
    columns_of,
    csv_text,
    providers,
    require,
)

ADDRESS = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v2"
NAMES = providers("gpuhunt")  # of files in the archive, where they differ
_COLUMNS = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot")
_MOST_BYTES = 512e6


def fetch(desk: Desk) -> None:
    """Fetch the newest archive and read every provider's file in it."""
    version = desk.client.body(f"{ADDRESS}/version", most_bytes=200).decode("ascii", "replace").strip()
    if not version.isdigit():
        raise UsageError("the source names no version of its catalog: its format has changed.")
    archive = desk.client.file(f"{ADDRESS}/{version}/catalog.zip", desk.path("catalog.zip"))
    found = 0
    for name, file in unpacked(archive, desk.folder, ".csv", _MOST_BYTES):
        if name.replace("-", "").isalnum():
            read(desk, file, NAMES.get(name, name))
            found += 1
    if not found:
        raise DataError("holds no CSV file", file="catalog.zip")


def read(desk: Desk, file: Path, provider: str) -> None:
    """Read the file of one provider."""
    source = csv_text(file)
    require(columns_of(desk, source), _COLUMNS)
    region = "NULL" if provider in ONE_LIST else "location"
    if provider == "gcp":
        region = "regexp_replace(location, '-[a-z]$', '')"
    tier = "'marketplace'" if provider in MARKETS else "NULL"
    desk.select(f"""SELECT '{provider}' AS provider, instance_name AS instance_type, gpu_name AS listed_as,
        try_cast(gpu_memory AS DOUBLE) AS gpu_memory_gib,
        {cell_sql("gpu_count", "INTEGER")} AS gpus, {region} AS region, {tier} AS tier,
        CASE WHEN lower(spot) IN ('true', '1') THEN 'spot' ELSE 'on_demand' END AS option,
        try_cast(price AS DOUBLE) AS usd_per_hour, try_cast(cpu AS DOUBLE) AS vcpus,
        try_cast(memory AS DOUBLE) AS memory_gib
        FROM {source} WHERE gpu_name IS NOT NULL AND try_cast(gpu_count AS DOUBLE) > 0""")


SOURCES = (Source("gpuhunt", "dstackai/gpuhunt", "gpuhunt catalog", f"{ADDRESS}/<version>/catalog.zip", fetch),)
