"""The number of examples that a property is tried with."""

from hypothesis import settings

_SHARE_WHEN_REPEATED = 3


def many(examples: int) -> int:
    """Return ``examples`` in a search for new ones, and a third where a run repeats the same."""
    return examples // _SHARE_WHEN_REPEATED if settings.default.derandomize else examples
