"""Exports of clouds in their own columns, and a small CSV, read as charges of FOCUS.

AWS's Cost and Usage Report 2.0, Google Cloud's billing export, Azure's cost export, and date, gpu, hours, amount. Each
FOCUS column is SQL over the file's own columns in brackets: [a|b] is the first of them that the file has, [a.b] a
field of a nested one; where it has none the cell is empty. Reading the file is invoices/reading.py. The names are
those of the vendors' data dictionaries: docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2.html,
cloud.google.com/billing/docs/how-to/export-data-bigquery-tables,
learn.microsoft.com/azure/cost-management-billing/automate/understand-usage-details-fields.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from gpucost.catalog.loader import named, quoted

Types = Mapping[str, tuple[str, str]]  # the file's columns by their names in small letters: the name, its type

_COLUMN = re.compile(r"\[([a-z0-9_ ./|]+)\]")


class Export(NamedTuple):
    """A vendor's form: columns that only it has, and what each FOCUS column is in it."""

    vendor: str
    signs: tuple[frozenset[str], ...]  # a file whose columns hold one of these sets is of this form
    columns: Mapping[str, str]


def _number(text: str) -> str:
    return f"coalesce(TRY_CAST({text} AS DOUBLE), 0)"


# exports state UTC in words or not at all; days in any of three forms
_UTC = "regexp_replace(replace({0}, ' UTC', 'Z'), '^([0-9-]+[ T][0-9:.]+)$', '\\1Z')"
_DAY = (
    "coalesce(TRY_CAST({0} AS DATE), TRY_CAST(TRY_STRPTIME({0}, '%m/%d/%Y') AS DATE),"
    " TRY_CAST(TRY_STRPTIME(left({0}, 8), '%Y%m%d') AS DATE))"
)
_START = "strftime({0}, '%Y-%m-%dT00:00:00Z')"
_END = "strftime({0} + INTERVAL 1 DAY, '%Y-%m-%dT00:00:00Z')"

# AWS: what a plan or reservation covers costs nothing on the bill; its share of the commitment is the effective cost.
# What a recurring fee leaves over nobody used.
_AWS_TYPE = "[line_item_line_item_type]"
_AWS_BILLED = f"""CASE WHEN {_AWS_TYPE} IN ('SavingsPlanCoveredUsage', 'SavingsPlanNegation') THEN 0
    ELSE TRY_CAST([line_item_unblended_cost] AS DOUBLE) END"""
_AWS_EFFECTIVE = f"""CASE {_AWS_TYPE}
    WHEN 'SavingsPlanNegation' THEN 0
    WHEN 'SavingsPlanUpfrontFee' THEN 0
    WHEN 'SavingsPlanCoveredUsage' THEN TRY_CAST([savings_plan_savings_plan_effective_cost] AS DOUBLE)
    WHEN 'SavingsPlanRecurringFee' THEN greatest(
        {_number("[savings_plan_total_commitment_to_date]")} - {_number("[savings_plan_used_commitment]")}, 0)
    WHEN 'DiscountedUsage' THEN TRY_CAST([reservation_effective_cost] AS DOUBLE)
    WHEN 'RIFee' THEN {_number("[reservation_unused_amortized_upfront_fee_for_billing_period]")}
        + {_number("[reservation_unused_recurring_fee]")}
    WHEN 'Fee' THEN CASE WHEN [reservation_reservation_a_r_n] IS NULL
        THEN TRY_CAST([line_item_unblended_cost] AS DOUBLE) ELSE 0 END
    ELSE TRY_CAST([line_item_unblended_cost] AS DOUBLE) END"""
_AWS = Export(
    "AWS",
    (frozenset({"line_item_line_item_type", "line_item_unblended_cost", "line_item_usage_start_date"}),),
    {
        "BilledCost": _AWS_BILLED,
        "EffectiveCost": _AWS_EFFECTIVE,
        "ListCost": "[pricing_public_on_demand_cost]",
        "BillingCurrency": "[line_item_currency_code]",
        "ChargeCategory": f"""CASE WHEN {_AWS_TYPE} IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage')
            THEN 'Usage' WHEN {_AWS_TYPE} = 'Tax' THEN 'Tax' WHEN {_AWS_TYPE} IN ('Credit', 'Refund') THEN 'Credit'
            WHEN {_AWS_TYPE} IN ('RIFee', 'Fee', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee') THEN 'Purchase'
            ELSE 'Adjustment' END""",
        "ChargePeriodStart": _UTC.format("[line_item_usage_start_date]"),
        "ChargePeriodEnd": _UTC.format("[line_item_usage_end_date]"),
        "CommitmentDiscountId": "coalesce([savings_plan_savings_plan_a_r_n], [reservation_reservation_a_r_n])",
        "CommitmentDiscountStatus": f"""CASE WHEN {_AWS_TYPE} IN ('DiscountedUsage', 'SavingsPlanCoveredUsage')
            THEN 'Used' END""",
        "PricingQuantity": "[line_item_usage_amount]",
        "PricingUnit": "[pricing_unit]",
        "ProviderName": "'AWS'",
        "ServiceName": "coalesce([product_servicename], [line_item_product_code])",
        "SkuId": "coalesce([product_instance_type], [product.instance_type], [line_item_usage_type])",
        "SkuMeter": "[line_item_usage_type]",
        "SkuPriceId": "[product_sku]",
        "ResourceType": "[product_product_family]",
        "ResourceId": "[line_item_resource_id]",
        "RegionId": "[product_region_code]",
        "ChargeDescription": "[line_item_line_item_description]",
        "Tags": "[resource_tags]",
    },
)

# Google: credits stand beside the cost that they lessen, those of commitments among them.
_CREDITS = """coalesce(list_sum(list_transform(TRY_CAST(from_json(TRY_CAST([credits] AS JSON),
    '[{"amount": "DOUBLE"}]') AS STRUCT(amount DOUBLE)[]), lambda c: c.amount)), 0)"""
_GCP_NET = f"TRY_CAST([cost] AS DOUBLE) + {_CREDITS}"
_GCP = Export(
    "Google Cloud",
    (frozenset({"cost", "usage_start_time", "currency", "sku"}), frozenset({"cost", "usage_start_time", "sku.id"})),
    {
        "BilledCost": _GCP_NET,
        "EffectiveCost": _GCP_NET,
        "ListCost": "[cost_at_list]",
        "BillingCurrency": "[currency]",
        "ChargeCategory": """CASE lower([cost_type]) WHEN 'tax' THEN 'Tax' WHEN 'adjustment' THEN 'Adjustment'
            WHEN 'rounding_error' THEN 'Adjustment' ELSE 'Usage' END""",
        "ChargePeriodStart": _UTC.format("[usage_start_time]"),
        "ChargePeriodEnd": _UTC.format("[usage_end_time]"),
        "CommitmentDiscountId": "CASE WHEN [credits] LIKE '%COMMITTED_USAGE%' THEN 'committed use' END",
        "CommitmentDiscountStatus": "CASE WHEN [credits] LIKE '%COMMITTED_USAGE%' THEN 'Used' END",
        "PricingQuantity": "coalesce([usage.amount_in_pricing_units], [usage.amount])",
        "PricingUnit": "coalesce([usage.pricing_unit], [usage.unit])",
        "ProviderName": "'Google Cloud'",
        "ServiceName": "[service.description]",
        "SkuId": "[sku.id]",
        "SkuMeter": "[sku.description]",
        "ResourceId": "[resource.name]",
        "RegionId": "[location.region]",
        "Tags": """(SELECT json_group_object(l.key, l.value) FROM (SELECT unnest(TRY_CAST(from_json(TRY_CAST([labels]
            AS JSON), '[{"key": "VARCHAR", "value": "VARCHAR"}]') AS STRUCT(key VARCHAR, value VARCHAR)[])) AS l))""",
    },
)

# Azure: an actual export has purchases and covered use at nothing, an amortised one covered use and what nobody used.
_AZURE_COST = "[costinbillingcurrency|cost|pretaxcost]"
_AZURE_TYPE = "lower([chargetype])"
_AZURE = Export(
    "Azure",
    (
        frozenset({"costinbillingcurrency", "metername"}),
        frozenset({"costinbillingcurrency", "meterid"}),
        frozenset({"cost", "meterid", "unitofmeasure"}),
        frozenset({"pretaxcost", "meterid"}),
    ),
    {
        "BilledCost": f"TRY_CAST({_AZURE_COST} AS DOUBLE)",
        "EffectiveCost": f"""CASE WHEN {_AZURE_TYPE} = 'purchase'
            AND coalesce([reservationid], [benefitid]) IS NOT NULL THEN 0 ELSE TRY_CAST({_AZURE_COST} AS DOUBLE) END""",
        "ListCost": "TRY_CAST([paygprice] AS DOUBLE) * TRY_CAST([quantity] AS DOUBLE)",
        "BillingCurrency": "coalesce([billingcurrency|billingcurrencycode|currency], 'USD')",
        "ChargeCategory": f"""CASE WHEN {_AZURE_TYPE} = 'purchase' THEN 'Purchase' WHEN {_AZURE_TYPE} = 'tax' THEN 'Tax'
            WHEN {_AZURE_TYPE} = 'refund' THEN 'Credit' WHEN {_AZURE_TYPE} LIKE '%adjustment' THEN 'Adjustment'
            ELSE 'Usage' END""",
        "ChargePeriodStart": _START.format(_DAY.format("[date|usagedatetime|usagedate]")),
        "ChargePeriodEnd": _END.format(_DAY.format("[date|usagedatetime|usagedate]")),
        "CommitmentDiscountId": "coalesce([reservationid], [benefitid])",
        "CommitmentDiscountStatus": f"""CASE WHEN {_AZURE_TYPE} LIKE 'unused%' THEN 'Unused'
            WHEN coalesce([reservationid], [benefitid]) IS NOT NULL AND {_AZURE_TYPE} = 'usage' THEN 'Used' END""",
        "PricingQuantity": "[quantity|usagequantity|consumedquantity]",
        "PricingUnit": "CASE lower([unitofmeasure]) WHEN '1 hour' THEN 'Hours' ELSE [unitofmeasure] END",
        "ProviderName": "'Azure'",
        "ServiceName": "coalesce([metercategory], [consumedservice])",
        "SkuId": "coalesce([metername], [productname])",
        "SkuMeter": "[metername]",
        "SkuPriceId": "[meterid]",
        "ResourceType": "[metersubcategory]",
        "ResourceId": "[resourceid|instanceid]",
        "RegionId": "[resourcelocation]",
        "ChargeDescription": "[productname|product]",
        "Tags": "CASE WHEN [tags] LIKE '{%' THEN [tags] WHEN [tags] IS NOT NULL THEN '{' || [tags] || '}' END",
    },
)

# a CSV written by hand, one GPU a row: its amount is both what was billed and what the use cost
_BY_HAND_DAY = _DAY.format("[date|day]")
_BY_HAND = Export(
    "date, gpu, hours, amount",
    tuple(frozenset({day, "gpu", "hours", "amount"}) for day in ("date", "day")),
    {
        "BilledCost": "[amount]",
        "EffectiveCost": "[amount]",
        "BillingCurrency": "coalesce([currency], 'USD')",
        "ChargeCategory": "'Usage'",
        "ChargePeriodStart": f"coalesce({_START.format(_BY_HAND_DAY)}, [date|day])",
        "ChargePeriodEnd": _END.format(_BY_HAND_DAY),
        "PricingQuantity": "[hours]",
        "PricingUnit": "'GPU-hour'",
        "ProviderName": "[provider]",
        "SkuId": "[gpu]",
        "Tags": "[tags]",
    },
)

EXPORTS = (_AWS, _GCP, _AZURE, _BY_HAND)
FIELDS = frozenset(  # of any export, nested ones by their outer name
    name.partition(".")[0]
    for export in EXPORTS
    for text in export.columns.values()
    for group in _COLUMN.findall(text)
    for name in group.split("|")
)


_LEGACY = re.compile(r"^(identity|bill|lineitem|product|pricing|reservation|savingsplan|discount|costcategory)/", re.I)


def current_name(column: str) -> str:
    """Return a column of AWS's older report under its name in Cost and Usage Report 2.0; any other stays.

    >>> current_name("lineItem/UnblendedCost"), current_name("savingsPlan/SavingsPlanARN"), current_name("cost")
    ('line_item_unblended_cost', 'savings_plan_savings_plan_a_r_n', 'cost')
    """
    if not _LEGACY.match(column):
        return column
    return re.sub(r"(?<!^)(?<!_)(?=[A-Z])", "_", column.replace("/", "_")).lower()


def export_of(columns: frozenset[str]) -> Export | None:
    """Return the form that a file's columns are of, by their names in small letters; None for FOCUS and all else."""
    if "chargecategory" in columns and "billedcost" in columns:
        return None
    # a nested column stands in a file by its outer name alone, or by both
    outer = columns | {name.partition(".")[0] for name in columns}
    return next((export for export in EXPORTS if any(signs <= outer for signs in export.signs)), None)


def as_focus(export: Export, types: Types, source: str) -> tuple[dict[str, tuple[str, str]], str]:
    """Return the columns that a file has as FOCUS, and the SQL that reads it so."""
    texts = dict(export.columns)
    if export is _AWS:
        # its older report has a column for each tag: `resourceTags/user:team`, in Parquet with underscores
        tags = {
            name[len(prefix) :]: f"nullif(CAST({named(name)} AS VARCHAR), '')"
            for prefix in ("resourcetags/", "resource_tags_")
            for low, (name, _) in types.items()
            if low.startswith(prefix)
        }
        if tags:
            texts["Tags"] = f"json_object({', '.join(f'{quoted(key)}, {cell}' for key, cell in tags.items())})"
    columns = ", ".join(
        f"CAST({_COLUMN.sub(lambda column: _cell(column[1], types), text)} AS VARCHAR) AS {named(name)}"
        for name, text in texts.items()
    )
    return {name.lower(): (name, "VARCHAR") for name in export.columns}, f"(SELECT {columns} FROM {source})"


def _cell(group: str, types: Types) -> str:
    """Return the SQL of the first of some columns that a file has, as text; a dot goes into a nested one."""
    for name in group.split("|"):
        if name in types:
            column, kind = types[name]
            text = named(column)
            if kind.startswith(("STRUCT", "MAP")) or kind.endswith("[]"):
                text = f"to_json({text})"
            if kind != "VARCHAR":
                text = f"CAST({text} AS VARCHAR)"
            return f"nullif({text}, '')"
        outer, _, inner = name.partition(".")
        if inner and outer in types:
            column, kind = types[outer]
            value = f"TRY_CAST({named(column)} AS JSON)" if kind == "VARCHAR" else f"to_json({named(column)})"
            return f"nullif(json_extract_string({value}, {quoted('$.' + inner)}), '')"
    return "CAST(NULL AS VARCHAR)"
