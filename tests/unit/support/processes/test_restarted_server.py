"""A server process that is killed and started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.processes import restarted_server
from tests.support.processes.restarted_server import restarted_broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes


async def test_one_that_is_not_ready_in_time_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    monkeypatch.setattr(restarted_server, "READY_SECONDS", 0.0)
    server = restarted_broker(tmp_path)
    # When
    with pytest.raises(TimeoutError):
        await server.start()
    # Then
    assert server._process is None
