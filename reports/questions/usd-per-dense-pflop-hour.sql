-- What an hour of a dense bf16 PFLOP/s costs on demand, the cheapest offer of each GPU.
SELECT p.gpu, min(p.usd_per_gpu_hour) AS usd_per_gpu_hour, any_value(a.bf16_tflops) AS bf16_tflops,
       min(p.usd_per_gpu_hour) / any_value(a.bf16_tflops) * 1000 AS usd_per_pflop_hour
FROM prices p
JOIN accelerators a ON a.id = p.gpu
WHERE p.option = 'on_demand' AND a.bf16_tflops IS NOT NULL
GROUP BY p.gpu
ORDER BY usd_per_pflop_hour
