"""The AWS price list: bulk files by region, as CSV and as JSON, and the savings plans that refer to them.

Linux on shared tenancy without further software; of reservations the standard class. A reservation's upfront fee
stands in a row of its own, with the unit Quantity.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpucost.catalog.loader import quoted
from gpucost.errors import UsageError
from gpucost.refresh.source import Desk, Source, columns_of, content_of, csv_text, require
from gpucost.units import HOURS_PER_MONTH

ADDRESS = "https://pricing.us-east-1.amazonaws.com"
OFFER = "/offers/v1.0/aws/AmazonEC2/current/{region}/index.{ending}"
PLANS = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/region_index.json"
REGIONS = ("us-east-1", "us-west-2")  # asked unless others are named: a file holds 200 MB and more
_LINES_ABOVE = 5  # about the file, before its header
# instances with accelerators: P and G with GPUs, Trainium, Inferentia, and DL with Gaudi or Qualcomm's AI 100
INSTANCES = r"(p\d|g\d|trn|inf|dl)[a-z0-9-]*\.[a-z0-9-]+"
_COLUMNS = (
    "SKU",
    "OfferTermCode",
    "TermType",
    "Unit",
    "PricePerUnit",
    "Currency",
    "LeaseContractLength",
    "PurchaseOption",
    "OfferingClass",
    "Instance Type",
    "Tenancy",
    "Operating System",
    "CapacityStatus",
    "Pre Installed S/W",
    "Region Code",
    "vCPU",
    "Memory",
    "EffectiveDate",
)
_PLAN_COLUMNS = (
    "DiscountedRate",
    "Currency",
    "DiscountedUsageType",
    "DiscountedOperation",
    "PurchaseOption",
    "LeaseContractLength",
    "Product Family",
)
_PAYMENT = "CASE {0} WHEN 'No Upfront' THEN 'no_upfront' WHEN 'Partial Upfront' THEN 'partial_upfront'"
_PAYMENT += " WHEN 'All Upfront' THEN 'all_upfront' END"
_MONTHS = "CASE {0} WHEN '1yr' THEN 12 WHEN '3yr' THEN 36 WHEN '1' THEN 12 WHEN '3' THEN 36 END"


def _regions(desk: Desk) -> tuple[str, ...]:
    return tuple(desk.options.get("regions") or REGIONS)


def _fetch(desk: Desk, ending: str, read: Callable[[Desk, Path], None]) -> None:
    """Fetch and read the file of each region."""
    for region in _regions(desk):
        url = ADDRESS + OFFER.format(region=region, ending=ending)
        file = desk.client.file(url, desk.path(f"{region}.{ending}"))
        read(desk, file)
        file.unlink()  # before the next one comes: each takes hundreds of megabytes


def read_csv(desk: Desk, file: Path) -> None:
    """Read one bulk CSV file: on demand, and reservations with their fees beside their hours."""
    source = csv_text(file, skip=_LINES_ABOVE)
    require(columns_of(desk, source), _COLUMNS)
    desk.run(f"""CREATE OR REPLACE TEMP TABLE terms AS
        SELECT "SKU" AS sku, "OfferTermCode" AS code, "TermType" AS kind, "Unit" AS unit,
            try_cast("PricePerUnit" AS DOUBLE) AS usd, "LeaseContractLength" AS lease, "PurchaseOption" AS purchase,
            "Instance Type" AS instance_type, "Region Code" AS region, try_cast("vCPU" AS DOUBLE) AS vcpus,
            try_cast(replace(split_part("Memory", ' ', 1), ',', '') AS DOUBLE) AS memory_gib,
            try_cast("EffectiveDate" AS DATE) AS valid_from
        FROM {source} WHERE regexp_full_match("Instance Type", {quoted(INSTANCES)}) AND "Currency" = 'USD'
            AND "Tenancy" = 'Shared' AND "Operating System" = 'Linux' AND "Pre Installed S/W" = 'NA'
            AND "CapacityStatus" = 'Used' AND coalesce("OfferingClass", 'standard') = 'standard'""")
    _take_terms(desk)


def _take_terms(desk: Desk) -> None:
    desk.select("""SELECT 'aws' AS provider, instance_type, region, 'on_demand' AS option, usd AS usd_per_hour,
        vcpus, memory_gib, valid_from FROM terms WHERE kind = 'OnDemand' AND unit = 'Hrs'""")
    # a reservation has a row of hours and one of its fee, joined by product and terms
    desk.select(f"""SELECT 'aws' AS provider, instance_type, region, 'reserved' AS option,
        {_MONTHS.format("lease")} AS term_months, {_PAYMENT.format("purchase")} AS payment,
        coalesce(sum(usd) FILTER (unit = 'Hrs'), 0) AS usd_per_hour,
        coalesce(sum(usd) FILTER (unit = 'Quantity'), 0) AS upfront_usd, max(vcpus) AS vcpus,
        max(memory_gib) AS memory_gib, max(valid_from) AS valid_from
        FROM terms WHERE kind = 'Reserved' GROUP BY sku, code, instance_type, region, lease, purchase""")


def read_json(desk: Desk, file: Path) -> None:
    """Read one bulk JSON file: products by SKU, and their terms with dimensions of price."""
    # the file is one object, typed as far as it is needed
    price = 'MAP(VARCHAR, STRUCT(unit VARCHAR, "pricePerUnit" STRUCT("USD" VARCHAR)))'
    term = (
        f'MAP(VARCHAR, STRUCT("offerTermCode" VARCHAR, "effectiveDate" VARCHAR, "priceDimensions" {price},'
        ' "termAttributes" STRUCT("LeaseContractLength" VARCHAR, "PurchaseOption" VARCHAR, "OfferingClass" VARCHAR)))'
    )
    attributes = (
        "instanceType",
        "regionCode",
        "vcpu",
        "memory",
        "tenancy",
        "operatingSystem",
        "preInstalledSw",
        "capacitystatus",
    )
    product = "STRUCT(attributes STRUCT(" + ", ".join(f'"{name}" VARCHAR' for name in attributes) + "))"
    kinds = f'STRUCT("OnDemand" MAP(VARCHAR, {term}), "Reserved" MAP(VARCHAR, {term}))'
    columns = f"{{products: 'MAP(VARCHAR, {product})', terms: '{kinds}'}}"
    how = f"format='unstructured', records=true, maximum_object_size={file.stat().st_size + 1_000}"
    reader = f"read_json({quoted(str(file))}, {how}, columns={columns})"
    megabytes = file.stat().st_size // 1_000_000  # the reader holds the one object in memory, more than once
    desk.connection.execute(f"SET memory_limit = '{600 + 8 * megabytes}MB'")
    desk.run(f"CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM {reader}")
    if not desk.connection.execute("SELECT 1 FROM whole WHERE products IS NOT NULL AND terms IS NOT NULL").fetchone():
        raise UsageError("the source holds no products and terms: its format has changed.")
    offers = " UNION ALL ".join(
        f"""SELECT '{kind}' AS kind, e.key AS sku, unnest(map_values(e.value)) AS offered
            FROM (SELECT unnest(map_entries(terms."{kind}")) AS e FROM whole)"""
        for kind in ("OnDemand", "Reserved")
    )
    desk.connection.execute(f"""CREATE OR REPLACE TEMP TABLE terms AS
        WITH products AS (SELECT e.key AS sku, e.value.attributes AS a
            FROM (SELECT unnest(map_entries(products)) AS e FROM whole)),
        offers AS ({offers}),
        priced AS (SELECT *, unnest(map_values(offered."priceDimensions")) AS p FROM offers)
        SELECT sku, offered."offerTermCode" AS code, kind, p.unit AS unit,
            try_cast(p."pricePerUnit"."USD" AS DOUBLE) AS usd, offered."termAttributes"."LeaseContractLength" AS lease,
            offered."termAttributes"."PurchaseOption" AS purchase, a."instanceType" AS instance_type,
            a."regionCode" AS region, try_cast(a.vcpu AS DOUBLE) AS vcpus,
            try_cast(replace(split_part(a.memory, ' ', 1), ',', '') AS DOUBLE) AS memory_gib,
            try_cast(left(offered."effectiveDate", 10) AS DATE) AS valid_from
        FROM priced JOIN products USING (sku)
        WHERE regexp_full_match(a."instanceType", {quoted(INSTANCES)}) AND a.tenancy = 'Shared'
            AND a."operatingSystem" = 'Linux' AND a."preInstalledSw" = 'NA' AND a.capacitystatus = 'Used'
            AND coalesce(offered."termAttributes"."OfferingClass", 'standard') = 'standard'""")
    _take_terms(desk)


def fetch_plans(desk: Desk) -> None:
    """Fetch the list of regions, then the savings plans of each region asked for."""
    index = desk.client.json(ADDRESS + PLANS, most_bytes=8_000_000)
    regions = content_of(index, "regions", fault="the source lists no regions")
    urls = {str(item.get("regionCode")): str(item.get("versionUrl", "")) for item in regions if isinstance(item, dict)}
    for region in _regions(desk):
        if url := urls.get(region):
            file = desk.client.file(ADDRESS + url.replace(".json", ".csv"), desk.path(f"plans-{region}.csv"))
            source = csv_text(file, skip=_LINES_ABOVE)
            require(columns_of(desk, source), _PLAN_COLUMNS)
            # One file holds two kinds: compute plans, good for any instance, and the cheaper plans for one family of
            # instances. The rate is what an hour costs in all, whenever it is paid: half of it upfront in part.
            desk.select(f"""WITH plans AS (
                    SELECT regexp_extract("DiscountedUsageType", 'BoxUsage:(.+)$', 1) AS instance_type,
                        CASE "Product Family" WHEN 'ComputeSavingsPlans' THEN 'compute'
                            WHEN 'EC2InstanceSavingsPlans' THEN 'ec2_instance' ELSE 'plan not known' END AS tier,
                        {_MONTHS.format('"LeaseContractLength"')} AS term_months,
                        {_PAYMENT.format('"PurchaseOption"')} AS payment, try_cast("DiscountedRate" AS DOUBLE) AS rate
                    FROM {source} WHERE "DiscountedOperation" = 'RunInstances' AND "Currency" = 'USD'
                        AND contains("DiscountedUsageType", 'BoxUsage:')
                ), shares AS (
                    SELECT *, CASE payment WHEN 'all_upfront' THEN 1 WHEN 'partial_upfront' THEN 0.5 ELSE 0 END
                        AS upfront
                    FROM plans
                )
                SELECT 'aws' AS provider, instance_type, {quoted(region)} AS region, 'savings_plan' AS option, tier,
                    term_months, payment, rate * (1 - upfront) AS usd_per_hour,
                    rate * upfront * term_months * {HOURS_PER_MONTH} AS upfront_usd
                FROM shares
                WHERE regexp_full_match(instance_type, {quoted(INSTANCES)}) AND tier <> 'plan not known'""")
            file.unlink()


fetch_csv = partial(_fetch, ending="csv", read=read_csv)
fetch_json = partial(_fetch, ending="json", read=read_json)
_aws = partial(Source, publisher="Amazon Web Services", heavy=True, heeds=("mirror", "regions"))
SOURCES = (
    _aws("aws", title="EC2 price list, CSV", locator=ADDRESS + OFFER, fetch=fetch_csv, own_list=True),
    _aws("aws-json", title="EC2 price list, JSON", locator=ADDRESS + OFFER, fetch=fetch_json),
    _aws("aws-savings-plans", title="savings plans", locator=ADDRESS + PLANS, fetch=fetch_plans),
)
