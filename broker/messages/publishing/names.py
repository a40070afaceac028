"""Generated producer names."""

from __future__ import annotations

from itertools import count


class ProducerNames:
    """Generates producer names unique in the cluster.

    Clients keep a name across broker restarts, so each start has a new instance number. Each stored
    message contains the producer's name, so names are short.

    Args:
        cluster: The cluster's name.
        instance: The number of this broker's start.
    """

    def __init__(self, cluster: str, instance: int) -> None:
        self._prefix = f"{cluster}-{instance}-"
        self._next = count().__next__

    def generate(self) -> str:
        """Return the next name; unused names are not reused."""
        return f"{self._prefix}{self._next()}"
