-- How old the prices of each provider are.
SELECT provider, count(*) AS offers, max(observed_on) AS newest, min(observed_on) AS oldest
FROM prices
GROUP BY provider
ORDER BY newest DESC, provider
