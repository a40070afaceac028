"""Entries on their way to the dead-letter topic count as long as their connection does."""

from __future__ import annotations

import pytest

from client.consumers.dead_letters import _Letter


class Topic:
    """Counts what is freed."""

    def __init__(self) -> None:
        self.incoming = self
        self.losses = 0
        self.freed: list[tuple[int, int]] = []

    def count_freed(self, messages: int, size_bytes: int) -> None:
        self.freed.append((messages, size_bytes))


@pytest.mark.parametrize(("losses", "freed"), [(0, [(2, 300)]), (1, [])])
def test_what_a_lost_connection_took_along_is_not_freed_again(
    losses: int, freed: list[tuple[int, int]]
) -> None:
    # Given
    topic = Topic()
    letter = _Letter(topic, None, 2, 300, topic.losses)  # type: ignore[arg-type]
    # When
    topic.losses += losses
    letter.freed()
    # Then
    assert topic.freed == freed
