"""Limits on connections and requests: each refusal is an error with words, and is counted."""
