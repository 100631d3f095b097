"""The SkyPilot catalog: one CSV of instances per cloud, with on-demand and spot prices by region and zone.

Its GCP file lists accelerators and hosts apart: a machine is the sum of both, in a zone that has both.
"""

from datetime import date
from functools import partial
from pathlib import Path

from gpucost.refresh import source
from gpucost.refresh.machines import machines
from gpucost.refresh.source import Desk, Source

ADDRESS = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8/{cloud}/vms.csv"
_CLOUDS = source.providers("skypilot")
_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
_TPU = r"tpu-(v\d+[a-z]*)-(\d+)"
_MOST_TPU_CHIPS = 256
_NO_GPU = "upper(InstanceType) LIKE 'CPU%'"  # by its name; an accelerator beside it belongs to another row


def fetch(desk: Desk) -> None:
    """Fetch the file of each cloud; one that is missing or malformed leaves the others."""

    def read_cloud(cloud: str) -> None:
        address = ADDRESS.format(cloud=cloud)
        file = desk.client.file(address, desk.path(f"{cloud}.csv"))
        read(desk, str(file), _CLOUDS[cloud], source.last_change(desk, address))

    desk.each({cloud: partial(read_cloud, cloud) for cloud in _CLOUDS})


def read(desk: Desk, file: str, provider: str, seen_on: date | None) -> None:
    """Read the file of one cloud; it says no day of its own."""
    reader = source.csv_text(Path(file))
    source.require(source.columns_of(desk, reader), _COLUMNS)
    rows = f"SELECT * FROM {reader}"
    if provider == "gcp":
        _gcp(desk, rows, source.day_sql(seen_on))
        return
    # memory of the chip, where its catalogue says it: it tells variants apart
    informed = rows if "GpuInfo" in source.columns_of(desk, reader) else f"SELECT *, '' AS GpuInfo FROM ({rows})"
    region = "NULL" if provider in source.ONE_LIST else "Region"
    tier = "'marketplace'" if provider in source.MARKETS else "NULL"
    for option, price in (("on_demand", "Price"), ("spot", "SpotPrice")):
        desk.select(f"""SELECT '{provider}' AS provider, InstanceType AS instance_type, AcceleratorName AS listed_as,
            try_cast(regexp_extract(GpuInfo, 'SizeInMiB.{{1,4}}?(\\d+)', 1) AS DOUBLE) / 1024 AS gpu_memory_gib,
            {source.cell_sql("AcceleratorCount", "INTEGER")} AS gpus, {region} AS region,
            '{option}' AS option, {tier} AS tier, try_cast({price} AS DOUBLE) AS usd_per_hour,
            try_cast(vCPUs AS DOUBLE) AS vcpus, try_cast(MemoryGiB AS DOUBLE) AS memory_gib,
            {source.day_sql(seen_on)} AS observed_on
            FROM ({informed}) WHERE AcceleratorName IS NOT NULL AND InstanceType IS NOT NULL
            AND {price} IS NOT NULL AND NOT ('{option}' = 'spot' AND try_cast({price} AS DOUBLE) = 0)
            AND NOT {_NO_GPU}""")
    desk.select(
        f"""SELECT DISTINCT '{provider}' AS provider, InstanceType || ' with ' || AcceleratorName AS description,
        '{source.NOT_READ}' AS reason FROM ({informed}) WHERE AcceleratorName IS NOT NULL AND {_NO_GPU}""",
        "unknown",
    )


def _gcp(desk: Desk, rows: str, seen_on: str) -> None:
    """Add up hosts and accelerators; an accelerator alone is no machine."""
    parts = " UNION ALL ".join(
        f"SELECT '{machine.name}' AS machine, '{machine.catalog_name}' AS chip, {machine.gpus} AS chips,"
        f" {bool(machine.host_sku)} AS has_host, {machine.vcpus} AS vcpus, {machine.memory_gib} AS memory_gib"
        for machine in machines("gcp")
    )
    desk.run(f"CREATE OR REPLACE TEMP TABLE gcp AS SELECT * FROM ({rows})")
    desk.connection.execute(f"CREATE OR REPLACE TEMP TABLE parts AS {parts}")
    for option, price in (("on_demand", "Price"), ("spot", "SpotPrice")):
        host, chip = f"try_cast(h.{price} AS DOUBLE)", f"try_cast(a.{price} AS DOUBLE)"
        desk.select(f"""SELECT 'gcp' AS provider, h.InstanceType AS instance_type, p.chip AS listed_as, p.chips AS gpus,
            h.Region AS region, '{option}' AS option, {host} + {chip} AS usd_per_hour, p.vcpus, p.memory_gib,
            {seen_on} AS observed_on
            FROM gcp AS h JOIN parts AS p ON p.machine = h.InstanceType
            JOIN gcp AS a ON a.InstanceType IS NULL AND a.AcceleratorName = p.chip
                AND try_cast(a.AcceleratorCount AS DOUBLE) = p.chips AND a.AvailabilityZone = h.AvailabilityZone
            WHERE {chip} > 0 AND ({host} > 0 OR NOT p.has_host)""")
        kind, size = f"regexp_extract(AcceleratorName, '{_TPU}', 1)", f"regexp_extract(AcceleratorName, '{_TPU}', 2)"
        # the numbers in names of TPUs are chips of v5e and v6e, cores of the others, two to a chip
        chips = f"CASE WHEN {kind} IN ('v5litepod', 'v6e') THEN {size}::INTEGER ELSE {size}::INTEGER // 2 END"
        desk.select(f"""SELECT 'gcp' AS provider, AcceleratorName AS instance_type, {chips} AS gpus, Region AS region,
            CASE WHEN {kind} = 'v5litepod' THEN 'tpu v5e' ELSE 'tpu ' || {kind} END AS listed_as,
            '{option}' AS option, try_cast({price} AS DOUBLE) AS usd_per_hour, {seen_on} AS observed_on
            FROM gcp WHERE regexp_full_match(AcceleratorName, '{_TPU}') AND {chips} <= {_MOST_TPU_CHIPS}
            AND try_cast({price} AS DOUBLE) > 0""")


SOURCES = (
    Source(
        "skypilot",
        "skypilot-org/skypilot-catalog",
        "SkyPilot catalog",
        ADDRESS.format(cloud="<cloud>"),
        fetch,
        copied=True,
    ),
)
