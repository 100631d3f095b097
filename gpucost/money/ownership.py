"""What owning costs, month by month, as formulas: purchase, facility, energy, people, contracts, resale.

Months: m = 0 is the start. Capital is paid at the start of a month (m = 0, or when the cluster arrives, but for a
deposit and what is retained), everything else in arrears at m = 1 … months. Costs are positive, proceeds negative.
A cluster that arrives during a month works for the rest of it; until then the demand is bridged by rent. A faster
replacement is bought in fewer servers, and hours go on being those of the first ones. Inputs are described in
pricing/plan_inputs.csv.
"""

from gpucost.formula.language import read_lines

SCALARS = read_lines("""
monthly_rate_fraction: cost of capital, a month
    where(wacc_convention == 'effective', (1 + wacc_fraction) ** (1 / months_per_year) - 1, wacc_fraction /
        months_per_year)
arrival_month: month at whose start the cluster is paid for
    min(floor(lead_time_months), months)
owned_gpu_hours_per_month: hours that exist
    gpus * hours_per_month
allocated_gpu_hours_per_month: hours that jobs hold
    owned_gpu_hours_per_month * utilisation_fraction
productive_gpu_hours_per_month: hours that are not lost to failures and restarts
    allocated_gpu_hours_per_month * goodput_fraction
server_usd_per_gpu: servers, per GPU
    where(server_price_basis == 'quote', server_usd / gpus_per_node, where(server_price_basis == 'gpu_share',
        gpu_usd * server_overhead_ratio, all_in_usd_per_gpu))
itemised_ratio: 0 where one figure already holds every one-time item
    where(server_price_basis == 'all_in', 0, 1)
servers_usd: servers
    gpus * server_usd_per_gpu
network_usd_per_gpu: network by the tiers that this many GPUs need; a single server needs none
    where(gpus <= gpus_per_node, 0, where(gpus <= network_1tier_limit_gpus, network_1tier_usd_per_gpu,
        where(gpus <= network_2tier_limit_gpus, network_2tier_usd_per_gpu, network_3tier_usd_per_gpu)))
network_usd: network
    itemised_ratio * where(network_basis == 'per_gpu', gpus * network_usd_per_gpu, where(network_basis ==
        'fraction', servers_usd * network_fraction / (1 - network_fraction), 0))
storage_usd: storage, bought
    itemised_ratio * where(storage_basis == 'capex', gpus * storage_usd_per_gpu, 0)
spares_usd: hot spares
    itemised_ratio * where(spares_basis == 'hot_spares', hot_spares_fraction * servers_usd, 0)
control_plane_usd: head and management nodes
    itemised_ratio * control_plane_fraction * servers_usd
hardware_usd: hardware
    servers_usd + network_usd + storage_usd + spares_usd + control_plane_usd
installation_usd: shipping, installation and integration
    itemised_ratio * (installation_fraction + shipping_fraction) * hardware_usd
purchase_tax_usd: sales tax and tariff
    itemised_ratio * (sales_tax_fraction + import_tariff_fraction) * hardware_usd
capex_usd: everything paid once
    hardware_usd + installation_usd + purchase_tax_usd
rated_kw: rated IT power, which a colocation contract is sized for
    gpus / gpus_per_node * server_max_kw * (1 + auxiliary_power_ratio)
facility_usd: own data centre
    where(facility_basis == 'own', rated_kw / 1000 * facility_usd_per_mw, 0)
facility_fee_usd_per_month: colocation fee in the first year
    rated_kw * where(facility_basis == 'colocation', colocation_usd_per_kw_month, where(facility_basis ==
        'retail', retail_usd_per_kw_month, 0))
metered_ratio: 0 where the fee already holds the power
    where(facility_basis == 'retail', 0, 1)
staff_fte: people who run the cluster
    where(staff_step_fte > 0, ceil(max(staff_minimum_fte, staff_fte_per_1000_gpus * gpus / 1000) /
        max(staff_step_fte, 0.001) - 0.000001) * staff_step_fte, max(staff_minimum_fte, staff_fte_per_1000_gpus *
        gpus / 1000))
residual_scale: resale values ÷ the shipped curve
    where(residual_basis == 'given', residual_fraction / interpolate(residual_by_year, residual_at_years),
        residual_scale_ratio)
refreshes: 1 where the servers are replaced within the comparison
    where(refresh_month > arrival_month and refresh_month < months, 1, 0)
last_purchase_month: month from which the final resale counts its age
    where(refreshes > 0, refresh_month, arrival_month)
service_years: years in service
    max(months - arrival_month, 0) / months_per_year
refresh_size_ratio: servers bought in place ÷ servers replaced: whole ones that do the same work
    where(refresh_speed_ratio == 1, 1, ceil(gpus / gpus_per_node / refresh_speed_ratio - 0.000001) * gpus_per_node /
        gpus)
refresh_cost_ratio: their price ÷ that of the first ones, altogether
    refresh_price_ratio * refresh_size_ratio
replacement_usd: price of a failed GPU's replacement
    where(gpu_replacement_usd > 0, gpu_replacement_usd, server_usd_per_gpu)
refresh_usd: replacement of the servers, installed and taxed
    refreshes * (servers_usd + spares_usd) * refresh_cost_ratio * (1 + itemised_ratio * (installation_fraction
        + shipping_fraction + sales_tax_fraction + import_tariff_fraction))
""")

# `m` is the month itself.
TIMING = read_lines("""
in_horizon: 1 in the months of the comparison
    where(m >= 1, where(m <= months, 1, 0), 0)
in_service: share of the month in which the owned cluster works
    in_horizon * min(max(m - lead_time_months, 0), 1)
arrives: 1 where the cluster arrives
    where(m == arrival_month, where(m < months, 1, 0), 0)
paid_fraction: share of the purchase that is paid: a deposit with the order, what is retained after the arrival
    where(arrival_month < months, where(m == 0, deposit_fraction, 0) + arrives * (1 - deposit_fraction -
        retention_fraction) + where(m == min(arrival_month + retention_months, months), retention_fraction, 0), 0)
use_ratio: hours that jobs hold in this month ÷ those of the stated utilisation, at most all there are
    min(lookup(use_by_month, m - 1), max(1 / max(utilisation_fraction, 0.000001), 1))
in_use: the same in the months of the comparison
    in_horizon * use_ratio
ends: 1 where what is left is sold
    where(m == months, where(arrival_month < months, 1, 0), 0)
refreshing: 1 where the servers are replaced
    where(m == refresh_month, refreshes, 0)
plan_year: whole years since the start, for yearly rises
    floor((max(m, 1) - 1) / months_per_year)
age_months: months since the purchase
    max(m - arrival_month, 0)
server_age_months: months since the purchase of the servers that stand there
    where(refreshes > 0 and m > refresh_month, m - refresh_month, age_months)
server_price_ratio: their price ÷ that of the first ones
    where(refreshes > 0 and m > refresh_month, refresh_cost_ratio, 1)
server_power_ratio: their rated power ÷ that of the first ones
    where(refreshes > 0 and m > refresh_month, refresh_size_ratio * refresh_power_ratio, 1)
power_fraction: mean draw ÷ rated maximum in the month
    utilisation_fraction * use_ratio * min(power_fraction_active, power_cap_fraction) + (1 - utilisation_fraction *
        use_ratio) * power_fraction_idle
energy_kwh: energy at the meter
    in_service * rated_kw * server_power_ratio * power_fraction * pue_ratio * hours_per_month
value_fraction: what the broker pays for servers of this age, as a share of their price
    min(residual_scale * interpolate(residual_by_year, server_age_months / months_per_year), 1) * (1 -
        resale_fee_fraction)
insured_usd: price of the hardware that stands there
    hardware_usd + (server_price_ratio - 1) * (servers_usd + spares_usd)
assessed_usd: its value for property tax
    (hardware_usd - servers_usd - spares_usd) * lookup(assessed_by_year, (max(age_months, 1) - 1) /
        months_per_year) + server_price_ratio * (servers_usd + spares_usd) * lookup(assessed_by_year,
        (max(server_age_months, 1) - 1) / months_per_year)
""")

CAPITAL = read_lines("""
own_servers_usd: servers
    paid_fraction * servers_usd
own_network_usd: network
    paid_fraction * network_usd
own_storage_usd: storage, bought
    paid_fraction * storage_usd
own_spares_usd: hot spares
    paid_fraction * spares_usd
own_control_plane_usd: head and management nodes
    paid_fraction * control_plane_usd
own_installation_usd: shipping, installation and integration
    paid_fraction * installation_usd
own_purchase_tax_usd: sales tax and tariff
    paid_fraction * purchase_tax_usd
own_facility_usd: own data centre, less its unused life at the end
    arrives * facility_usd - ends * facility_usd * max(1 - service_years / facility_life_years, 0)
own_refresh_usd: replacement of the servers
    refreshing * refresh_usd
own_trade_in_usd: proceeds of the replaced servers
    -refreshing * (servers_usd + spares_usd) * value_fraction
own_resale_usd: resale at the end
    -ends * ((servers_usd + spares_usd) * where(refreshes > 0, refresh_cost_ratio, 1) * value_fraction +
        other_residual_fraction * (network_usd + storage_usd + control_plane_usd))
own_disposal_usd: decommissioning
    ends * disposal_usd_per_gpu * gpus
""")

RUNNING = read_lines("""
own_colocation_usd: colocation
    in_service * facility_fee_usd_per_month * server_power_ratio * (1 + colocation_escalation_fraction) ** plan_year
own_energy_usd: energy
    metered_ratio * energy_kwh * electricity_usd_per_kwh * (1 +
        electricity_escalation_fraction) ** plan_year
own_demand_charge_usd: demand charge
    in_service * metered_ratio * rated_kw * server_power_ratio * demand_usd_per_kw_month
own_staff_usd: people
    in_service * staff_fte * staff_usd_per_fte_year / months_per_year * (1 + staff_escalation_fraction) **
        plan_year
own_support_usd: vendor support
    in_service * where(server_age_months > support_free_months, support_fraction / months_per_year * servers_usd *
        server_price_ratio, 0)
own_repairs_usd: repairs and replaced GPUs
    in_service * server_price_ratio * where(spares_basis == 'maintenance', maintenance_fraction / months_per_year
        * servers_usd, where(spares_basis == 'failures', gpus * gpu_failures_per_gpu_year / months_per_year *
        replacement_usd, 0))
own_licence_usd: software licences
    in_service * gpus * licence_usd_per_gpu_year / months_per_year
own_insurance_usd: insurance
    in_service * insurance_fraction / months_per_year * insured_usd
own_property_tax_usd: property tax on the assessed value
    in_service * property_tax_fraction / months_per_year * assessed_usd
own_storage_rental_usd: storage, rented
    in_service * where(storage_basis == 'rental', gpus * storage_gib_per_gpu * storage_usd_per_gib_month, 0)
own_egress_usd: data leaving
    in_service * gpus * egress_gb_per_gpu_month * own_egress_usd_per_gb
own_bridge_rent_usd: GPU-hours rented until the cluster works
    (in_horizon - in_service) * rent_gpu_hours_needed * use_ratio * bridge_price_usd_per_gpu_hour * rent_price_ratio
own_bridge_services_usd: what renting needs beside them
    (in_horizon - in_service) * rent_services_usd
""")
