"""What renting costs, month by month, as formulas: compute by price path and terms, and services of equal scope.

The rented hours do the same productive work as the owned cluster. Per use pays the hours used; take-or-pay pays every
hour of the committed GPUs, and what is still due when the comparison ends inside a term. A price holds for its term.
"""

from gpucost.formula.language import read_lines

# A missing input is not above zero, so that the alternative stands in for it.
SCALARS = read_lines("""
rent_goodput_used_fraction: goodput of rented hours
    where(rent_goodput_fraction > 0, rent_goodput_fraction, goodput_fraction)
bridge_price_usd_per_gpu_hour: price of bridging at the start
    where(bridge_usd_per_gpu_hour > 0, bridge_usd_per_gpu_hour, rent_usd_per_gpu_hour)
committed_gpus: GPUs under take-or-pay
    where(rent_committed_gpus > 0, rent_committed_gpus, gpus)
rent_gpu_hours_needed: rented hours a month that do the same work
    allocated_gpu_hours_per_month * goodput_fraction / rent_goodput_used_fraction * rent_stretch_ratio
rent_gpu_hours: rented hours paid a month, at the stated utilisation
    where(rent_billing == 'take_or_pay', committed_gpus * hours_per_month, rent_gpu_hours_needed)
unexpired_months: months of the last term after the end
    where(rent_term_months > 0, ceil(months / max(rent_term_months, 1)) * rent_term_months - months, 0)
""")

PRICES = read_lines("""
rent_lock_month: month whose price holds
    where(rent_term_months > 0, floor((max(m, 1) - 1) / max(rent_term_months, 1)) * rent_term_months + 1, max(m,
        1))
rent_price_ratio: price ÷ price at the start
    where(rent_path_basis == 'flat', 1, where(rent_path_basis == 'curve', lookup(rent_path_by_month,
        rent_lock_month - 1), lookup(observed_v_by_month, rent_lock_month - 1))) * (1 - rent_decline_fraction) **
        ((rent_lock_month - 1) / months_per_year)
rent_hours: rented hours that are paid
    in_horizon * rent_gpu_hours * where(rent_billing == 'take_or_pay', 1, use_ratio)
""")

COMPUTE = read_lines("""
rent_compute_usd: GPU-hours
    rent_hours * rent_usd_per_gpu_hour * rent_price_ratio * (1 - rent_upfront_fraction)
rent_upfront_usd: paid at the start of a term
    where(rent_term_months > 0 and m < months and floor(m / max(rent_term_months, 1)) * rent_term_months == m,
        rent_upfront_fraction * rent_gpu_hours * rent_usd_per_gpu_hour * where(rent_path_basis == 'flat', 1,
        where(rent_path_basis == 'curve', lookup(rent_path_by_month, m), lookup(observed_v_by_month, m))) * (1 -
        rent_decline_fraction) ** (m / months_per_year) * rent_term_months, 0)
rent_cancellation_usd: still due for an unexpired term
    where(m == months, where(rent_billing == 'take_or_pay', unexpired_months * rent_gpu_hours *
        rent_usd_per_gpu_hour * rent_price_ratio * (1 - rent_upfront_fraction) * rent_cancellation_fraction, 0),
        0)
""")

SERVICES = read_lines("""
rent_storage_usd: storage
    in_horizon * where(storage_basis == 'none', 0, gpus * storage_gib_per_gpu * storage_usd_per_gib_month)
rent_support_usd: support plan
    rent_support_fraction * rent_hours * rent_usd_per_gpu_hour * rent_price_ratio
rent_control_plane_usd: managed control plane
    in_horizon * rent_control_plane_usd_per_month
rent_egress_usd: data leaving
    in_horizon * gpus * egress_gb_per_gpu_month * rent_egress_usd_per_gb
rent_staff_usd: people
    in_horizon * rent_staff_ratio * staff_fte * staff_usd_per_fte_year / months_per_year * (1 +
        staff_escalation_fraction) ** plan_year
rent_licence_usd: software licences
    in_horizon * gpus * licence_usd_per_gpu_year / months_per_year
""")
