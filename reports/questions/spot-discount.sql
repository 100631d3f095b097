-- How much cheaper spot is than on demand, by provider and GPU: medians over regions and products.
SELECT provider, gpu,
       median(usd_per_gpu_hour) FILTER (option = 'on_demand') AS on_demand_usd_per_gpu_hour,
       median(usd_per_gpu_hour) FILTER (option = 'spot') AS spot_usd_per_gpu_hour,
       1 - spot_usd_per_gpu_hour / on_demand_usd_per_gpu_hour AS discount_fraction
FROM prices
GROUP BY provider, gpu
HAVING spot_usd_per_gpu_hour IS NOT NULL AND on_demand_usd_per_gpu_hour IS NOT NULL
ORDER BY discount_fraction DESC
