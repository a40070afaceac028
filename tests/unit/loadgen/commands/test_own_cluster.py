"""The servers of a scenario's cluster are started for a run that names none."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from loadgen.commands.own_cluster import cluster_for, own_cluster_wanted
from loadgen.documents.reading import parse_document, read_document
from loadgen.errors import UsageError
from loadgen.run.documents import config_hash
from loadgen.run.options import RunOptions
from loadgen.places.server_process import ServerLaunch, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.documents.document import Document

NOTHING = dict.fromkeys(
    (
        *("service_url", "corpus", "broker_admin_url", "proxy_admin_url"),
        *("broker_pid", "proxy_pid"),
    )
)
NO_FILES = (None, None)
PROXIED = """
kind: storm
cluster:
  profile: pulsar
  broker: {maxTopicListInFlightHeapMemSizeMB: 5, maxTopicListInFlightDirectMemSizeMB: 6}
  proxy: {}
  topics: {namespaces: 2, per_namespace: 3}
"""


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[ServerLaunch]:
    """The servers that are started; none really is."""
    found: list[ServerLaunch] = []

    @contextmanager
    def running(launch: ServerLaunch) -> Iterator[SimpleNamespace]:
        found.append(launch)
        launch.log.write_text("it was here")
        place = len(found)
        url = f"pulsar://127.0.0.1:{place}"
        yield SimpleNamespace(server=ServerProcess(launch.module, place, url, f"http://{place}"))

    monkeypatch.setattr("loadgen.own_servers.cluster.restartable_server", running)
    return found


@contextmanager
def started(document: Document, options: RunOptions, files=NO_FILES, **given) -> Iterator:
    wanted = own_cluster_wanted(document, options, {**NOTHING, **given}, files)
    with cluster_for(document, options, wanted, as_json=True) as found:
        yield found


def test_messages_are_in_a_database_that_goes_with_the_broker(
    tmp_path: Path, launches: list[ServerLaunch]
) -> None:
    # Given
    options = RunOptions("mine", out=tmp_path / "out")
    # When
    with started(read_document("client-memory"), options) as (scenario, watched):
        store = launches[0].settings["floodgateMessageStore"]
        assert store.startswith(f"sqlite://{tmp_path}/out/.cluster-")
        assert launches[0].arguments == ()
        assert scenario.service_url == "pulsar://127.0.0.1:1"
        assert (watched.broker_admin_url, watched.broker_pid) == ("http://1", 1)
    # Then
    assert [path.name for path in options.out.iterdir()] == ["mine"]
    assert [path.name for path in (options.out / "mine").iterdir()] == ["broker.log"]


def test_clients_reach_the_proxy_and_know_what_right_answers_hold(
    tmp_path: Path, launches: list[ServerLaunch]
) -> None:
    # When
    with started(parse_document(PROXIED), RunOptions("mine", out=tmp_path)) as (scenario, watched):
        imported = Path(launches[0].arguments[1])
        assert (imported / "_manifest.json").is_file()
    # Then
    assert [launch.module for launch in launches] == ["broker", "proxy"]
    assert launches[0].settings["maxTopicListInFlightDirectMemSizeMB"] == "6"
    assert launches[1].settings["brokerServiceURL"] == "pulsar://127.0.0.1:1"
    assert {launch.settings["floodgateProfile"] for launch in launches} == {"pulsar"}
    assert scenario.service_url == "pulsar://127.0.0.1:2"
    assert [(each.topics, bool(each.hash)) for each in scenario.namespaces] == [(3, True)] * 2
    assert (watched.proxy_admin_url, watched.proxy_pid) == ("http://2", 2)
    assert not imported.exists()


def test_runs_in_virtual_time_and_over_sockets_are_known_by_the_same_hash(
    tmp_path: Path, launches: list[ServerLaunch]
) -> None:
    # Given
    document, options = parse_document(PROXIED), RunOptions("mine", out=tmp_path)
    # When
    with started(document, options) as (real, _):
        assert launches
    with started(document, replace(options, executor="virtual")) as (virtual, _):
        pass
    # Then
    assert virtual.namespaces == real.namespaces
    assert config_hash(virtual) == config_hash(real)


def test_keys_of_a_file_stand_over_those_of_the_document(
    tmp_path: Path, launches: list[ServerLaunch]
) -> None:
    # Given
    conf = tmp_path / "broker.conf"
    conf.write_text("maxTopicListInFlightHeapMemSizeMB=9\nmetadataStoreUrl=zk:there\n")
    # When
    with started(parse_document(PROXIED), RunOptions("mine", out=tmp_path), (conf, None)):
        pass
    # Then
    settings = launches[0].settings
    assert launches[0].arguments[0] == str(conf)
    assert "maxTopicListInFlightHeapMemSizeMB" not in settings
    assert settings["maxTopicListInFlightDirectMemSizeMB"] == "6"
    assert settings["metadataStoreUrl"] == "memory:local"


def test_none_is_started_beside_one_that_is_named(tmp_path: Path) -> None:
    document, options = read_document("storm"), RunOptions("mine", out=tmp_path)
    with started(document, options, service_url="pulsar://127.0.0.1:9") as found:
        assert found == (document.scenario, options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "given", "sentence"),
    [
        ((Path("b.conf"), None), {"service_url": "pulsar://a:1"}, "--broker-conf is for a sc"),
        ((None, Path("no")), {}, "--proxy-conf no"),
        (NO_FILES, {"broker_pid": 3}, "--broker-pid is of a running server: name its --service"),
    ],
)
def test_options_of_the_other_kind_of_server_are_refused(
    tmp_path: Path, files: tuple[Path | None, Path | None], given, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        own_cluster_wanted(
            read_document("storm"), RunOptions("n", out=tmp_path), {**NOTHING, **given}, files
        )


def test_events_are_for_own_servers() -> None:
    cascade = read_document("proxy-cascade")
    named = {**NOTHING, "service_url": "pulsar://127.0.0.1:6650"}
    with pytest.raises(UsageError, match="proxy-cascade restarts its own servers"):
        own_cluster_wanted(cascade, RunOptions("n"), named, NO_FILES)
