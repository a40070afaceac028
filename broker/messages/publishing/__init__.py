"""Parts of publishing shared by all topics: receipts, limits, statistics."""
