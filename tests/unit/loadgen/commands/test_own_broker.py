"""A broker is started for a scenario that names none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadgen.commands.own_broker import broker_for
from loadgen.run.options import RunOptions
from loadgen.scenarios.client_memory.scenario import ClientMemoryScenario
from loadgen.servers.processes import ServerLaunch, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


def test_its_messages_are_in_a_log_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    launches: list[ServerLaunch] = []

    @contextmanager
    def running(launch: ServerLaunch) -> Iterator[ServerProcess]:
        launches.append(launch)
        launch.log.write_text("")
        yield ServerProcess("broker", 42, "pulsar://127.0.0.1:1", "http://127.0.0.1:2")

    monkeypatch.setattr("loadgen.commands.own_broker.running_server", running)
    options = RunOptions("mine", out=tmp_path / "out")
    # When
    with broker_for(ClientMemoryScenario(), options) as (scenario, watched):
        store = launches[0].settings["floodgateMessageStore"]
        assert store.startswith(f"log://{tmp_path}/out/.broker-")
        assert scenario.service_url == "pulsar://127.0.0.1:1"
        assert (watched.broker_admin_url, watched.broker_pid) == ("http://127.0.0.1:2", 42)
    # Then
    assert list(options.out.iterdir()) == []


def test_none_is_started_beside_one_that_is_named(tmp_path: Path) -> None:
    named = ClientMemoryScenario(service_url="pulsar://127.0.0.1:9")
    options = RunOptions("mine", out=tmp_path)
    with broker_for(named, options) as found:
        assert found == (named, options)
