"""A simulation ends on request: by the caller's clock, or by Ctrl-C."""

import asyncio
import gc
import signal
import weakref
from itertools import pairwise
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from limiter.clock import clock_sleep
from loadgen.behaviours.list import List
from loadgen.documents.model import Document
from loadgen.engine.client import LoadClient
from loadgen.errors import LoadgenError, UsageError
from loadgen.places import virtual
from loadgen.places.sampling import SAMPLE_SECONDS, kept_samples
from loadgen.places.virtual import require_virtual, run_in_virtual_time
from loadgen.virtual.loop import CutError, VirtualClock, VirtualLoop
from loadgen.virtual.servers import undisturbed
from tests.support.discovery.scripted_broker import on_virtual_loop


def document(clients: list[dict[str, Any]], **values: Any) -> Document:
    values.setdefault("topics", {"namespaces": 2, "per_namespace": 10})
    return Document.model_validate({"name": "x", "clients": clients, **values})


STORM = [{"name": "all", "do": "list", "count": 200}]
DOCUMENT = document(STORM)


def test_a_simulation_can_be_cut_and_the_next_simulation_runs() -> None:
    # Time for the first namespace, and for 1,000 events
    asked = iter([True, True, True, False])
    with pytest.raises(CutError):
        run_in_virtual_time(DOCUMENT, may_go_on=lambda: next(asked))
    assert not list(asked)
    run = run_in_virtual_time(DOCUMENT)
    assert len(run.rows.requests) == 200


@pytest.mark.timeout(20)
@pytest.mark.parametrize("looks", [4, 5, 6, 7])
def test_a_simulation_with_a_proxy_can_be_cut_at_any_point(looks: int) -> None:
    # Lists in flight from broker to proxy, after the end of the loop
    slow = {**STORM[0], "count": 300, "read": {"rate": "10kB/s", "buffer": 4096}}
    servers = {"profile": "pulsar", "proxy": {}}
    topics = {"namespaces": 2, "per_namespace": 100}
    asked = iter([True] * looks)
    with pytest.raises(CutError):
        run_in_virtual_time(
            document([slow], servers=servers, topics=topics),
            may_go_on=lambda: next(asked, False),
        )


def test_ctrl_c_ends_a_simulation_immediately() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = []

    def interrupted() -> bool:
        asked.append("may it go on?")
        signal.raise_signal(signal.SIGINT)
        return True

    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_virtual_time(DOCUMENT, may_go_on=interrupted)
    finally:
        after = signal.signal(signal.SIGINT, before)
    assert len(asked) == 1
    assert after is signal.default_int_handler


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_the_garbage_collector_is_off_while_a_simulation_runs() -> None:
    with undisturbed():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_reference_cycles_of_a_simulation_are_freed_after_its_end() -> None:
    with undisturbed():
        left = weakref.ref(Circle())
        assert left() is not None
    assert left() is None


def test_a_simulation_keeps_a_disabled_garbage_collector_off() -> None:
    gc.disable()
    try:
        with undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("clients", "values", "told"),
    [
        ([{"name": "p", "do": "publish", "count": 1}], {}, "group p: publish does not run in vir"),
        (
            STORM,
            {"shocks": [{"at": 1, "kill": "broker"}]},
            "servers are only restarted in virtual time, .* leave out kill broker",
        ),
        (STORM, {"topics": {"corpus": "a"}}, "virtual time makes the topics of its servers"),
        (
            STORM,
            {"topics": {"namespaces": 11, "per_namespace": 2_000_000}},
            "22,000,000 topics; .* at most 20,000,000 in memory",
        ),
        (
            [{"name": "all", "do": "list", "count": 200_000}],
            {},
            "200,000 clients; virtual time keeps at most 100,000",
        ),
        (STORM, {"expect": ["broker.resident.max < 1GB"]}, "needs a process, which virtual time"),
    ],
)
def test_features_that_virtual_time_lacks_are_refused_with_a_remedy(clients, values, told) -> None:
    with pytest.raises(UsageError, match=told):
        require_virtual(document(clients, **values))


def test_a_run_in_virtual_time_is_reproducible() -> None:
    # Given clients with random arrivals, all losing their connections simultaneously
    arrive = {"kind": "poisson", "rate": "20/s"}
    clients = [
        {"name": "all", "do": "list", "count": 20, "every": "500ms", "arrive": arrive},
        {"name": "go", "do": "discover", "library": "go", "count": 10, "attach": 2},
    ]
    several = document(
        clients,
        servers={"proxy": {}},
        phases={"measure": 3, "drain": 1},
        shocks=[{"at": 2, "anew": "all"}],
    )
    one, other = run_in_virtual_time(several), run_in_virtual_time(several)
    seen = [(row.client, row.due, row.done, row.outcome) for row in one.rows.requests]
    assert seen == [(row.client, row.due, row.done, row.outcome) for row in other.rows.requests]
    assert {str(outcome) for *_, outcome in seen} == {"answered"}
    lost = [row.at for row in one.rows.events if row.what == "connection-lost"]
    assert len(lost) == 20
    assert max(lost) - min(lost) < 0.001
    assert round(lost[0], 6) == 2.0


@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_clients_watch_again_after_a_server_restart(role: str) -> None:
    clients = [{"name": "java", "do": "discover", "library": "java-watch", "count": 5}]
    shock = {"at": 5, "restart": role, "for": 10}
    values: dict[str, Any] = {"servers": {"proxy": {}}, "phases": {"measure": 5, "hold": 30}}
    run = run_in_virtual_time(document(clients, shocks=[shock], **values))
    watches = [row for row in run.rows.requests if row.operation == "watch" and row.due > 5]
    assert {str(row.outcome) for row in watches} == {"answered"}
    assert len(watches) == 5
    assert min(row.due for row in watches) > 15
    seen, _ = run.samples.series(role, f"pulsar_{role}_topic_list_heap_memory_used_bytes")
    away = [(a - run.t0, b - run.t0) for a, b in pairwise(seen) if b - a > 9]
    assert [(round(a), round(b)) for a, b in away] == [(5, 15)]
    with pytest.raises(LoadgenError, match=r"over before its shock, restart \w+ \(at 90 s\)"):
        run_in_virtual_time(document(clients, shocks=[{**shock, "at": 90}], **values))


def test_a_periodic_request_due_at_the_end_of_the_run_is_not_sent() -> None:
    steady = [{"name": "all", "do": "list", "count": 3, "every": "100ms"}]
    run = run_in_virtual_time(document(steady, phases={"measure": "1s", "drain": "1s"}))
    assert len(run.rows.requests) == 30
    assert max(row.due for row in run.rows.requests) < 0.95


def test_simulated_servers_are_sampled_until_the_end() -> None:
    run = run_in_virtual_time(DOCUMENT)
    assert run.samples.figures("broker")["heap.used"] == 0
    assert run.samples.figures("broker")["heap.high"] > 0
    assert run.samples.seen_at_the_end == {"broker"}
    assert run.servers["broker"]["settings"]


def test_the_sampling_interval_grows_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "_SAMPLES_AT_ONE_PACE", 2)
    looks: list[float] = []
    monkeypatch.setattr(virtual, "_look", lambda _, clock, __: looks.append(clock.now()))
    nothing: Any = None

    async def sample() -> None:
        clock = VirtualClock(cast("VirtualLoop", asyncio.get_running_loop()))
        sampling = asyncio.create_task(virtual._sample(nothing, clock, nothing))
        await clock_sleep(clock, 100 * virtual.LONGEST_INTERVAL_SECONDS)
        sampling.cancel()

    on_virtual_loop(sample)
    pauses = [round(after - before, 3) for before, after in pairwise(looks)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (SAMPLE_SECONDS, virtual.LONGEST_INTERVAL_SECONDS)


def test_an_error_of_a_behaviour_ends_the_run_and_is_raised(monkeypatch) -> None:
    async def broken(self: List, me: LoadClient) -> None:
        del self, me
        raise ZeroDivisionError

    monkeypatch.setattr(List, "client", broken)
    with pytest.raises(ZeroDivisionError):
        run_in_virtual_time(DOCUMENT)


def test_an_error_in_a_periodic_request_is_raised_at_the_end(monkeypatch) -> None:
    async def broken(self: LoadClient, **_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LoadClient, "list_topics", broken)
    steady = [{"name": "all", "do": "list", "count": 2, "every": "1s"}]
    with pytest.raises(ZeroDivisionError):
        run_in_virtual_time(document(steady, phases={"measure": 2, "drain": 1}))


def test_a_client_that_lists_once_is_back_when_answered() -> None:
    events = run_in_virtual_time(DOCUMENT).rows.events
    assert [row.client for row in events if row.what == "back"] == list(range(200))


def test_answers_in_virtual_time_are_verified() -> None:
    rows = run_in_virtual_time(DOCUMENT).rows.requests
    assert {row.topics for row in rows} == {10}
    assert all(row.topics_hash and row.answer is None for row in rows)


@pytest.mark.parametrize("reason", ['too "slow"', "a\\n", "two\nlines"])
def test_series_of_simulated_servers_are_named_as_on_a_metrics_page(reason: str) -> None:
    registry = CollectorRegistry()
    Counter("floodgate_refusals", "x", ["reason"], registry=registry).labels(reason).inc(2)
    scraped = dict(kept_samples(generate_latest(registry).decode()))
    scraped = {name: value for name, value in scraped.items() if "_created" not in name}
    assert dict(virtual._told(registry)) == scraped
    assert [*scraped.values()] == [2.0]
