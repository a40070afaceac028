"""``loadgen cluster`` starts the servers of a scenario, says how to use them, and keeps them."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.__main__ import main
from loadgen.own_servers.cluster import ClusterWanted, RunningCluster
from loadgen.places.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKER = ServerProcess("broker", 7, "pulsar://127.0.0.1:1", "http://127.0.0.1:2")
PROXY = ServerProcess("proxy", 8, "pulsar://127.0.0.1:3", "http://127.0.0.1:4")


def test_it_says_where_they_are_and_stops_them_on_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    seen: list[object] = []

    @contextmanager
    def running(wanted: ClusterWanted, say: object) -> Iterator[RunningCluster]:
        seen.append(wanted)
        yield RunningCluster(BROKER, PROXY, Path("topics"))

    def ctrl_c() -> None:
        seen.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr("loadgen.commands.cluster.running_cluster", running)
    monkeypatch.setattr("signal.pause", ctrl_c)
    monkeypatch.setattr("sys.argv", ["loadgen", "cluster", "storm", "--out", str(tmp_path)])
    # When
    with pytest.raises(SystemExit) as ended:
        main()
    # Then
    wanted, told = seen
    assert isinstance(wanted, ClusterWanted)
    assert (wanted.makes_topics, wanted.logs) == (True, tmp_path)
    assert told == (
        "broker pulsar://127.0.0.1:1 http://127.0.0.1:2 process 7\n"
        "proxy pulsar://127.0.0.1:3 http://127.0.0.1:4 process 8\n"
        "loadgen run storm --service-url pulsar://127.0.0.1:3 --broker-admin-url "
        "http://127.0.0.1:2 --proxy-admin-url http://127.0.0.1:4 --corpus topics\n"
    )
    assert not ended.value.code
