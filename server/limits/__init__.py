"""Limits on connections and requests; a refusal is answered with an error and counted."""
