"""The gpuhunt catalog: an archive with one CSV per provider, on demand and spot.

Since August 2026 each provider has a version and an archive of its own (v3); the older common archive (v2) is read
where v3 has nothing. A version is `YYYYMMDD-run`: its day is the one on which the prices were seen.
"""

import re
from datetime import date
from functools import partial
from pathlib import Path

from gpucost.errors import DataError, UsageError
from gpucost.refresh import source
from gpucost.refresh.archive import unpacked
from gpucost.refresh.source import Desk, Source
from gpucost.store.client import FetchError

ADDRESS = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com"
NAMES = source.providers("gpuhunt")  # the name of an archive or file -> the name of its provider here
_COLUMNS = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot")
_VERSION = re.compile(r"(\d{4})(\d\d)(\d\d)(-\d+)?")
_MOST_BYTES = 512e6  # of an archive, unpacked


def fetch(desk: Desk) -> None:
    """Fetch the newest archive of each provider, else the common one."""

    def read_provider(name: str) -> None:
        version, seen_on = _version(desk, f"v3/{name}")
        _read_archive(desk, f"{ADDRESS}/v3/{name}/{version}/catalog.zip", seen_on, f"{name}.zip", only=name)

    try:
        desk.each({name: partial(read_provider, name) for name in NAMES})
        return
    except UsageError:  # v3 has nothing at all
        desk.failures.clear()
    try:
        version, seen_on = _version(desk, "v2")
    except FetchError as error:
        raise UsageError(f"neither v3 nor v2 of the catalog can be read: {error}") from None
    _read_archive(desk, f"{ADDRESS}/v2/{version}/catalog.zip", seen_on, "catalog.zip")


def _version(desk: Desk, place: str) -> tuple[str, date]:
    """Return the newest version of the catalog at a place, and the day on which its prices were seen."""
    text = desk.client.body(f"{ADDRESS}/{place}/version", most_bytes=200).decode("ascii", "replace").strip()
    match = _VERSION.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        seen_on = date(int(match[1]), int(match[2]), int(match[3]))  # raises where there is no such day
    except ValueError:
        raise UsageError("it names no version of its catalog: its format has changed.") from None
    return text, min(seen_on, desk.today)  # a clock ahead of ours does not make a price of tomorrow


def _read_archive(desk: Desk, url: str, seen_on: date, file_name: str, only: str | None = None) -> None:
    archive = desk.client.file(url, desk.path(file_name))
    files_read = 0
    for name, file in unpacked(archive, desk.folder, ".csv", _MOST_BYTES):
        # a name goes into SQL: letters, digits and dashes
        if name.replace("-", "").isalnum() and only in (None, name):
            read(desk, file, NAMES.get(name, name), seen_on)
            files_read += 1
    if not files_read:
        raise DataError("holds no CSV file", file=file_name)


def read(desk: Desk, file: Path, provider: str, seen_on: date) -> None:
    """Read the file of one provider; what Google sells by Dynamic Workload Scheduler carries a flag that says so."""
    reader = source.csv_text(file)
    columns = source.columns_of(desk, reader)
    source.require(columns, _COLUMNS)
    region = "NULL" if provider in source.ONE_LIST else "location"
    if provider == "gcp":  # its locations are zones
        region = "regexp_replace(location, '-[a-z]$', '')"
    tier = "'marketplace'" if provider in source.MARKETS else "NULL"
    flags = "lower(coalesce(flags, ''))" if "flags" in columns else "''"
    option = f"""CASE WHEN contains({flags}, 'dws') AND contains({flags}, 'calendar') THEN 'calendar'
        WHEN contains({flags}, 'dws') THEN 'flex_start' WHEN lower(spot) IN ('true', '1') THEN 'spot'
        WHEN lower(spot) IN ('false', '0') THEN 'on_demand' ELSE 'not said' END"""
    # Google publishes no price on demand for its a3-edgegpu (pricing/price_gaps.csv)
    desk.select(f"""SELECT '{provider}' AS provider, instance_name AS instance_type, gpu_name AS listed_as,
        try_cast(gpu_memory AS DOUBLE) AS gpu_memory_gib,
        {source.cell_sql("gpu_count", "INTEGER")} AS gpus, {region} AS region, {tier} AS tier, {option} AS option,
        try_cast(price AS DOUBLE) AS usd_per_hour, try_cast(cpu AS DOUBLE) AS vcpus,
        try_cast(memory AS DOUBLE) AS memory_gib, DATE '{seen_on}' AS observed_on
        FROM {reader} WHERE gpu_name IS NOT NULL AND try_cast(gpu_count AS DOUBLE) > 0
            AND NOT starts_with(instance_name, 'a3-edgegpu')""")


SOURCES = (Source("gpuhunt", "dstackai/gpuhunt", "gpuhunt catalog", f"{ADDRESS}/v3/<provider>/<version>", fetch),)
