"""Shocks happen at their moments after the agreed start, and never after the run."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadgen.documents.model import Document, Shock
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.launcher import RunningServers
from loadgen.places.relay import Relay
from loadgen.places.sampling import ServerWatch
from loadgen.places.shocks import NO_CLIENT, Shocks, require_own, shock_events


def shock(**values: Any) -> Shock:
    return Shock.model_validate(values)


class Subject:
    """Servers and their link: records shocks, and calls back at a chosen shock."""

    def __init__(self, last: str) -> None:
        self.by_role = {"broker": self, "proxy": self}
        self.server = SimpleNamespace(pid=1)
        self.done: list[str] = []
        self.over = threading.Event()
        self._last = last

    def __getattr__(self, name: str) -> Any:
        def deed(*said: object) -> None:
            self.done.append(" ".join(map(str, (name, *said))))
            if self.done[-1] == self._last:
                self.over.set()

        return deed


def performed(*shocks: Shock, last: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Perform overdue shocks; return the calls made, and the recorded events."""
    subject = Subject(last)
    servers, relay = cast("RunningServers", subject), cast("Relay", subject)
    with Shocks(shocks, servers, relay, "", ServerWatch({}, {})) as performing:
        for _ in range(3):  # every task reports, and repeatedly
            performing.agreed(time.time() - 10.0)
        assert subject.over.wait(10)
    return subject.done, performing.happened(interrupted=False)


def test_a_shock_happens_once_at_its_scheduled_time() -> None:
    done, happened = performed(shock(at="1s", restart="proxy"), last="restart")
    assert done == ["restart"]
    assert [each["what"] for each in happened] == ["restart proxy"]
    assert 10.0 <= happened[0]["at"] <= happened[0]["ready_seconds"]


def test_a_restarted_server_stays_down_for_its_time_or_until_the_run_ends() -> None:
    class Restarted(Subject):
        def restart(self, away: Callable[[], object] = lambda: None) -> None:
            self.over.set()
            away()
            self.done.append("started again")

    subject = Restarted("")
    servers, wanted = (
        cast("RunningServers", subject),
        shock(at=0, restart="broker", **{"for": "1h"}),
    )
    with Shocks([wanted], servers, None, "", ServerWatch({}, {})) as performing:
        performing.agreed(time.time())
        assert subject.over.wait(10)
        assert not subject.done
    assert subject.done == ["started again"]


@pytest.mark.parametrize(
    ("values", "deeds"),
    [
        ({"pause": "broker"}, ["pause", "go_on"]),
        ({"cut": "link"}, ["slow 0.0", "cut", "mend"]),
        ({"slow": "100kB/s"}, ["slow 100000.0", "mend"]),
    ],
)
def test_a_lasting_shock_ends_with_the_run_at_the_latest(values, deeds) -> None:
    done, happened = performed(shock(at=0, **values, **{"for": "1h"}), last=deeds[-2])
    assert done == deeds
    assert len(happened) == 1


def test_a_run_that_ends_before_its_shock_fails_unless_interrupted() -> None:
    with Shocks([shock(at="1h", kill="broker")], None, None, "", ServerWatch({}, {})) as performing:
        performing.agreed(time.time())
    with pytest.raises(LoadgenError, match=r"over before its shock, kill broker \(at 3600 s\)"):
        performing.happened(interrupted=False)
    assert performing.happened(interrupted=True) == []


def test_a_server_that_fails_to_restart_fails_the_run() -> None:
    class Broken(Subject):
        def restart(self) -> None:
            self.over.set()
            raise LoadgenError("The broker did not start.")

    broken = Broken("")
    servers = cast("RunningServers", broken)
    with Shocks(
        [shock(at=0, restart="broker")], servers, None, "", ServerWatch({}, {})
    ) as performing:
        performing.agreed(time.time() - 10.0)
        assert broken.over.wait(10)
    with pytest.raises(LoadgenError, match="broker did not start"):
        performing.happened(interrupted=False)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"kill": "proxy"}, "shock kill proxy: the proxy is not this run's own"),
        ({"cut": "link"}, "shock cut link: the link is not this run's own"),
        ({"set": {"a": 1}}, "shock set a=1: name --admin-url broker="),
    ],
)
def test_shocks_to_servers_outside_the_run_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        require_own([shock(at=0, **values)], "")


def test_a_shock_may_change_a_key_of_a_broker_with_a_known_admin_url() -> None:
    require_own([shock(at=0, set={"a": 1}), shock(at=0, anew="all")], "http://127.0.0.1:1")


def test_shocks_are_recorded_as_events_without_a_client() -> None:
    rows = shock_events([{"at": 2.0, "what": "restart proxy", "ready_seconds": 3.5}]).events
    assert {row.client for row in rows} == {NO_CLIENT}
    assert [(row.at, row.what, row.value, row.text) for row in rows] == [
        (2.0, "shock", 1.5, "restart proxy"),
        (3.5, "shock-over", None, "restart proxy"),
    ]


@pytest.mark.parametrize(
    ("shocks", "told"),
    [
        ([{"at": 1, "restart": "proxy"}], "it concerns a proxy, and there is none"),
        ([{"at": 1, "anew": "others"}], "it concerns group others: no group has that name"),
        ([{"at": 1}], "must say one of kill, .* and says none"),
        ([{"at": 1, "kill": "broker", "cut": "link"}], "and says kill and cut"),
    ],
)
def test_a_shock_without_a_single_existing_target_is_refused(shocks: list[Any], told: str) -> None:
    clients = [{"name": "all", "do": "list", "count": 1}]
    with pytest.raises(ValueError, match=told):
        Document.model_validate({"name": "x", "clients": clients, "shocks": shocks})
