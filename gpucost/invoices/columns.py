"""The columns of a FOCUS 1.x file (FinOps Open Cost and Usage Specification) that gpucost writes and reads."""

# written, in this order; names beginning with x_ are ours, as the specification has it
TEXTS = (
    "BillingAccountId", "BillingAccountName", "BillingCurrency", "ChargeCategory", "ChargeClass", "ChargeDescription",
    "ChargeFrequency", "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountStatus",
    "CommitmentDiscountType", "ConsumedUnit", "InvoiceIssuerName", "PricingCategory", "PricingCurrency", "PricingUnit",
    "ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceType", "ServiceCategory", "ServiceName",
    "SkuId", "SkuMeter", "SkuPriceId", "SubAccountId", "Tags", "x_Line",
)  # fmt: skip
NUMBERS = (
    "BilledCost", "ConsumedQuantity", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "ListCost",
    "ListUnitPrice", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice", "PricingQuantity", "x_GpusPerUnit",
)  # fmt: skip
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
WRITTEN = (*(name for name in sorted((*TEXTS, *NUMBERS, *TIMES)) if name[:2] != "x_"), "x_GpusPerUnit", "x_Line")

NEEDED = ("BilledCost", "EffectiveCost", "BillingCurrency", "ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd")
# what may name a product, in the order in which it is looked for
NAMES = ("SkuPriceId", "SkuId", "x_Line", "SkuMeter", "ResourceType", "ServiceName")
# units that mean the same; a unit that is not here stands for itself
UNITS = {
    "gpu-hour": "GPU-hour", "gpu-hours": "GPU-hour", "gpu hours": "GPU-hour", "hour": "hour", "hours": "hour",
    "hrs": "hour", "hr": "hour", "h": "hour", "instance-hours": "hour", "vm hours": "hour", "gb-month": "GB-month",
    "gb-months": "GB-month", "gb-mo": "GB-month", "gb month": "GB-month", "gb": "GB", "gigabytes": "GB",
    "month": "month", "months": "month",
}  # fmt: skip
