"""REST calls about tenants, namespaces and topics as rows of growth."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import requests

from tests.proof.growth.corpus import NAME_BYTES, TENANT
from tests.proof.growth.measuring import Stage
from tests.proof.result import ProofError

PATIENCE_SECONDS = 600.0
ADMIN = "/admin/v2"
TENANT_BODY = {"allowedClusters": ["standalone"], "adminRoles": []}
_READ_BYTES = 1 << 20


class Call(NamedTuple):
    """A call and its title in the table.

    Attributes:
        body: JSON; None for none.
        least: Minimum bytes of the answer.
        statuses: Allowed statuses.
    """

    what: str
    method: str
    path: str
    body: object = None
    least: int = 0
    statuses: tuple[int, ...] = (200, 204)


def called(url: str, call: Call) -> int:
    """Make a call; return the size of its answer.

    Raises:
        ProofError: The status is different, or the answer too short.
    """
    with requests.request(
        call.method,
        f"{url}{call.path}",
        data=None if call.body is None else json.dumps(call.body),
        headers={} if call.body is None else {"Content-Type": "application/json"},
        timeout=PATIENCE_SECONDS,
        stream=True,
    ) as answer:
        if answer.status_code not in call.statuses:
            raise ProofError(f"{call.method} {call.path}: {answer.status_code} {answer.text[:200]}")
        size = sum(map(len, answer.iter_content(_READ_BYTES)))
    if size < call.least:
        raise ProofError(f"{call.method} {call.path}: {size:,} bytes, wanted {call.least:,}")
    return size


def topic_path(topic: str) -> str:
    return f"{ADMIN}/{topic.replace('://', '/')}"


def created(url: str, topic: str) -> None:
    called(url, Call("", "PUT", topic_path(topic)))


def deleted(url: str, topic: str) -> None:
    called(url, Call("", "DELETE", topic_path(topic)))


class Rest:
    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._corpus = stage.corpus
        self._url = stage.urls[way]["web_url"]
        self._namespace = stage.corpus.namespace(0)
        self._at = f"{ADMIN}/namespaces/{self._namespace}"

    def measure_all(self) -> None:
        for call in (*self._lists(), *self._questions(), *self._policies()):
            self._stage.measure(f"REST {call.what}", self._way, partial(called, self._url, call))
        for what, work in self._lives():
            self._stage.measure(f"REST {what}", self._way, work)

    def _lists(self) -> list[Call]:
        corpus, topics = self._corpus, f"{ADMIN}/persistent/{self._namespace}"
        all_names = corpus.each * NAME_BYTES
        some = corpus.namespaces // 2 * len(corpus.namespace(0))
        quarter = "bundle=0x00000000_0x40000000"
        return [
            Call("tenants", "GET", f"{ADMIN}/tenants", least=corpus.namespaces // 2 * 8),
            Call("a tenant", "GET", f"{ADMIN}/tenants/{TENANT}"),
            Call("namespaces of a tenant", "GET", f"{ADMIN}/namespaces/{TENANT}", least=some),
            Call("topics", "GET", topics, least=all_names),
            Call("topics of all kinds", "GET", f"{self._at}/topics?mode=ALL", least=all_names),
            Call("topics with the system's", "GET", f"{topics}?includeSystemTopic=true"),
            Call("topics of a bundle", "GET", f"{topics}?{quarter}"),
            Call("topics by a property", "GET", f"{topics}?properties=team%3Dteam-7"),
            Call("partitioned topics", "GET", f"{topics}/partitioned", least=all_names // 12),
            Call("non-persistent topics", "GET", topics.replace("/pers", "/non-pers")),
        ]

    def _questions(self) -> list[Call]:
        topic, parted = topic_path(self._corpus.topic), topic_path(self._corpus.partitioned)
        return [
            Call("a namespace", "GET", self._at),
            Call("bundles", "GET", f"{self._at}/bundles"),
            Call("properties", "GET", f"{topic}/properties", least=2),
            Call("partitions", "GET", f"{parted}/partitions"),
            Call("stats", "GET", f"{topic}/stats"),
            Call("internal stats", "GET", f"{topic}/internalStats"),
            Call("partitioned stats", "GET", f"{parted}/partitioned-stats"),
            Call("subscriptions", "GET", f"{topic}/subscriptions"),
            Call("lookup", "GET", topic.replace("/admin/v2", "/lookup/v2/topic")),
            Call("metrics", "GET", "/metrics/"),
            Call("the page", "GET", "/"),
        ]

    def _policies(self) -> list[Call]:
        topic, role = topic_path(self._corpus.topic), f"{self._at}/permissions/growth"
        return [
            Call("set a namespace's TTL", "POST", f"{self._at}/messageTTL", 60),
            Call("a namespace's TTL", "GET", f"{self._at}/messageTTL"),
            Call("remove a namespace's TTL", "DELETE", f"{self._at}/messageTTL"),
            Call("set a topic's TTL", "POST", f"{topic}/messageTTL?messageTTL=60"),
            Call("remove a topic's TTL", "DELETE", f"{topic}/messageTTL"),
            Call("grant", "POST", role, ["produce"]),
            Call("revoke", "DELETE", role),
            Call("set properties", "PUT", f"{topic}/properties", {"growth": "yes"}),
            Call("remove a property", "DELETE", f"{topic}/properties?key=growth"),
            Call("unload a namespace", "PUT", f"{self._at}/unload"),
            Call("unload a bundle", "PUT", f"{self._at}/0x00000000_0x40000000/unload"),
            Call("clear a backlog", "POST", f"{self._at}/clearBacklog"),
        ]

    def _lives(self) -> list[tuple[str, Callable[[], object]]]:
        return [
            ("create, delete a topic", self._topic),
            ("create, grow, delete partitions", self._partitioned),
            ("create, delete a namespace", self._new_namespace),
            ("create, delete a tenant", self._new_tenant),
            ("delete a tenant in use", self._used_tenant),
        ]

    def _call(self, method: str, path: str, body: object = None, *statuses: int) -> None:
        called(self._url, Call("", method, path, body, 0, statuses or (200, 204)))

    def _topic(self) -> None:
        topic = f"persistent://{self._namespace}/rest-{self._stage.fresh()}"
        created(self._url, topic)
        deleted(self._url, topic)

    def _partitioned(self) -> None:
        path = topic_path(f"persistent://{self._namespace}/parted-{self._stage.fresh()}")
        self._call("PUT", f"{path}/partitions", 4)
        self._call("POST", f"{path}/partitions", 8)
        self._call("DELETE", f"{path}/partitions")

    def _new_namespace(self) -> None:
        path = f"{ADMIN}/namespaces/{TENANT}/new-{self._stage.fresh()}"
        self._call("PUT", path)
        self._call("DELETE", path)

    def _new_tenant(self) -> None:
        path = f"{ADMIN}/tenants/new-{self._stage.fresh()}"
        self._call("PUT", path, TENANT_BODY)
        self._call("POST", path, TENANT_BODY)
        self._call("DELETE", path)

    def _used_tenant(self) -> None:
        self._call("DELETE", f"{ADMIN}/tenants/{TENANT}", None, 409)


class Ends:
    """Calls that change the corpus, made last and directly.

    Args:
        stage: The servers.
        topics: The broker's imported file.
    """

    def __init__(self, stage: Stage, topics: Path) -> None:
        self._stage = stage
        self._topics = topics
        self._url = stage.urls["direct"]["web_url"]

    def measure_all(self) -> None:
        """Import more, delete a namespace with its topics, then everything; import again."""
        namespace = self._stage.corpus.namespace(0)
        more = self._topics.with_name("more.txt")
        names = [f"persistent://{namespace}/more-{number}\n" for number in range(1_000)]
        names += [f"persistent://{TENANT}/more-{number}/x\n" for number in range(1_000)]
        more.write_text("".join(names), encoding="utf-8")
        imports, space = f"{ADMIN}/floodgate/import", f"{ADMIN}/namespaces/{namespace}"
        for call in (
            Call("import of 2,000 more", "POST", imports, {"path": str(more)}),
            Call("delete a namespace with topics", "DELETE", f"{space}?force=true"),
            Call("reset", "POST", f"{ADMIN}/floodgate/reset"),
            Call("import of everything", "POST", imports, {"path": str(self._topics)}),
        ):
            work = partial(called, self._url, call)
            self._stage.measure(f"REST {call.what}", "direct", work, 1)
