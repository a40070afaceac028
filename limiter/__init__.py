"""Policy: who may hold how many bytes, who must wait, when reading pauses.

Knows bytes, waiters and clocks; nothing of Pulsar's wire.
"""
