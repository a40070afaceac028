"""Limits on connections and requests: each refusal is an error with a text, and is counted."""
