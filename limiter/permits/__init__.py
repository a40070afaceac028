"""Bytes that are held: permits, the accounts that hold them, and the ledger of their lives."""
