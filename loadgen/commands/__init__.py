"""The sub-commands of ``loadgen``, one module each or a few together."""
