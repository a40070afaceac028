"""Held bytes: permits, the accounts that hold them, and the ledger of acquires and releases."""
