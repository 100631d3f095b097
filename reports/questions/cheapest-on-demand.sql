-- The cheapest on-demand price of each GPU, and who sells it.
SELECT gpu, min(usd_per_gpu_hour) AS usd_per_gpu_hour, arg_min(provider, usd_per_gpu_hour) AS provider,
       arg_min(observed_on, usd_per_gpu_hour) AS observed_on
FROM prices
WHERE option = 'on_demand'
GROUP BY gpu
ORDER BY gpu
