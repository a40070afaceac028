"""A server process that is killed and restarted."""

from pathlib import Path

import pytest

from tests.support.processes import restarted_server
from tests.support.processes.restarted_server import restarted_broker

pytestmark = pytest.mark.processes


async def test_one_that_is_not_ready_in_time_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarted_server, "READY_SECONDS", 0.0)
    server = restarted_broker(tmp_path)
    with pytest.raises(TimeoutError):
        await server.start()
    assert server._process is None
