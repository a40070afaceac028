"""A namespace is prepared also on a server that is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from tests.differential.cases import World
from tests.differential.player import PREPARATIONS, PreparationError, Side, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDE = Side("a:1", "a:1", "a:2", "label0")


def server(monkeypatch: pytest.MonkeyPatch, statuses: Sequence[int]) -> Mock:
    answers = [Mock(status=status) for status in statuses]
    ask = Mock(side_effect=answers)
    monkeypatch.setattr("tests.differential.player.ask", ask)
    return ask


@pytest.mark.parametrize("statuses", [(204, 204), (204, 500, 204), (204, 500, 409)])
def test_what_a_busy_server_fails_at_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, statuses: Sequence[int]
) -> None:
    ask = server(monkeypatch, statuses)
    prepare(SIDE, "label0-w0001", World(topics=("alpha",)))
    assert ask.call_count == len(statuses)


def test_a_server_that_goes_on_failing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    server(monkeypatch, (204, *[500] * PREPARATIONS))
    with pytest.raises(PreparationError, match=r"a:2 answers 500 to PUT .*/alpha"):
        prepare(SIDE, "label0-w0001", World(topics=("alpha",)))
