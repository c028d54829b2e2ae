"""Questions that are sums over all sites' rows, under masks."""
