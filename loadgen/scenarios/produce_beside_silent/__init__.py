"""Producers that read their receipts, beside clients that publish or subscribe and read nothing."""
