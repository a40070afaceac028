"""The names of producers that bring none."""

from __future__ import annotations

from itertools import count


class ProducerNames:
    """Makes names that no producer of the cluster has.

    Clients keep a name over a restart of the broker: so the instance is another after each. Each
    message that is stored has its producer's name: so it is short.

    Args:
        cluster: The cluster's name.
        instance: Of this broker and this start.
    """

    def __init__(self, cluster: str, instance: int) -> None:
        self._prefix = f"{cluster}-{instance}-"
        self._next = count().__next__

    def generate(self) -> str:
        """Return the next name; one that is not used after all is gone."""
        return f"{self._prefix}{self._next()}"
