"""The cases in which virtual time is compared with real runs."""

from typing import Any

from loadgen.documents.model import Document

SOCKET_BUFFER_BYTES = 65_536
TOPICS_PER_NAMESPACE = 10_000
_LIMIT_MB = 50
_FULL_CLIENTS, _QUICK_CLIENTS = 1_000, 150


def cases(*, quick: bool) -> list[Document]:
    """Return the cases, each in both profiles; small ones if ``quick``."""
    clients = _QUICK_CLIENTS if quick else _FULL_CLIENTS
    made = [_storm(clients), _stuck(), _slow_readers(), _hold_and_wait()]
    return [
        Document.model_validate(
            {
                **case,
                "name": f"{case['name']}-{profile}",
                "servers": {**case["servers"], "profile": profile},
                "phases": {"measure": "180s"},
            }
            | ({"phases": case["phases"]} if "phases" in case else {})
        )
        for case in made
        for profile in ("pulsar", "floodgate")
    ]


def _limits(heap: int, direct: int) -> dict[str, str]:
    return {
        "maxTopicListInFlightHeapMemSizeMB": str(heap),
        "maxTopicListInFlightDirectMemSizeMB": str(direct),
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
    }


def _topics(namespaces: int) -> dict[str, int]:
    return {"namespaces": namespaces, "per_namespace": TOPICS_PER_NAMESPACE, "seed": 7}


def _spread(clients: int, seconds: float) -> dict[str, Any]:
    return {"kind": "constant", "rate": clients / seconds}


def _readers(clients: int, rate: str = "100kB/s") -> dict[str, Any]:
    reader = {"rate": rate, "buffer": SOCKET_BUFFER_BYTES}
    return {"name": "all", "do": "list", "count": clients, "timeout": "120s", "read": reader}


def _storm(clients: int) -> dict[str, Any]:
    """The demo's storm; a small storm has proportionally small limits."""
    limit = max(1, _LIMIT_MB * clients // _FULL_CLIENTS)
    keys = _limits(limit, limit)
    return {
        "name": "storm",
        "topics": _topics(100 * clients // _FULL_CLIENTS),
        "servers": {"broker": keys, "proxy": keys},
        "clients": [_readers(clients)],
    }


def _stuck() -> dict[str, Any]:
    """Ten lists a second, and a non-reading client that connects and leaves between two lists."""
    timeouts = {
        f"maxTopicListInFlight{kind}MemSizePermitsAcquireTimeoutMillis": "3000"
        for kind in ("Heap", "Direct")
    }
    deaf = {
        "name": "deaf",
        "do": "list",
        "count": 1,
        "pipelined": 64,
        "after": 1.05,
        "read": {"never": True},
        "drop": {"at": 7.05},
    }
    steady = {"name": "steady", "do": "list", "count": 10, "every": "1s"}
    return {
        "name": "stuck",
        "topics": {"namespaces": 1, "per_namespace": 4000, "mean_name_bytes": 93, "seed": 7},
        "servers": {"broker": {**_limits(1, 1), **timeouts}},
        "clients": [{**steady, "arrive": _spread(10, 1.0)}, deaf],
        "phases": {"measure": "8s"},
    }


def _slow_readers() -> dict[str, Any]:
    """Readers of 27 kB/s whose answers outlast the permits' timeout, without a proxy.

    They begin within two seconds. Simultaneous requests would all time out in the same
    milliseconds, holders of heap that wait for direct memory and waiters for heap alike: of six
    such runs three had 15 answers, one 23 and two 26. At 30 kB/s the first release their memory at
    27.5 s, and one in twenty, of whom the kernel took more to begin with, at 25.5 s: amid the
    timeouts. At 27 kB/s all do so after the last timeout.
    """
    return {
        "name": "slow-readers",
        "topics": _topics(1),
        "servers": {"broker": _limits(15, 15)},
        "clients": [{**_readers(50, "27kB/s"), "arrive": _spread(50, 2.0)}],
    }


def _hold_and_wait() -> dict[str, Any]:
    """More heap than direct memory: holders of heap wait for direct memory.

    Five answers of 15 are sent simultaneously, each for some eight seconds: so the last of profile
    floodgate are granted before the timeout of 25 s. Of 20 answers the last would not be, and wait
    on as long as each check, ten a second, finds a peer that has read nothing for half a second,
    which is a matter of milliseconds: in runs over sockets 76, 68 and 76 of 80 were answered.
    """
    return {
        "name": "hold-and-wait",
        "topics": _topics(15),
        "servers": {"broker": _limits(20, 5)},
        "clients": [{**_readers(80), "arrive": _spread(80, 5.0)}],
    }
