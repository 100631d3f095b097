"""The canonical id of an offer, as SQL: prices of one product from several sources are known by it."""


def slug_sql(text: str, signs: str = ".") -> str:
    """Return the SQL of a text as ids carry it: small letters and digits of any script, dashes else."""
    return f"trim(regexp_replace(lower({text}), '[^\\p{{L}}\\p{{M}}\\p{{N}}{signs}]+', '-', 'g'), '-')"


def offer_id_sql(**columns: str) -> str:
    """Return the SQL of an offer's id: provider, product, GPUs, region or its scope, option and tier, term and payment.

    Columns of these names are read, those given as SQL apart. `tests/catalog/test_offer_id.py` has examples.
    """
    names = "provider instance_type gpus gpu region region_scope tier term_months payment"
    row = {**{name: name for name in names.split()}, "option": '"option"', **columns}
    scope = f"CASE {row['region_scope']} WHEN 'any' THEN 'global' ELSE {row['region_scope']} END"
    region = slug_sql(f"coalesce({row['region']}, {scope})")
    option = f"concat_ws('.', {row['option']}, nullif({row['tier']}, {row['option']}))"
    months = row["term_months"]
    term = f"CASE WHEN TRY_CAST({months} AS DOUBLE) > 0 THEN {months} || 'mo/' || {row['payment']} END"
    gpus = f"{row['gpus']} || 'x' || replace({row['gpu']}, '|', '~')"
    return f"concat_ws('/', {row['provider']}, {slug_sql(row['instance_type'])}, {gpus}, {region}, {option}, {term})"
