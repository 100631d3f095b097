-- Which publishers the prices rest on.
SELECT s.publisher, count(*) AS offers
FROM prices p
JOIN price_sources s USING (source_id)
GROUP BY s.publisher
ORDER BY offers DESC, s.publisher
