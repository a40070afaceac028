"""Write docs/metrics.md: every metric of broker and proxy, from a scrape of both.

Both run in this process, on free ports, with every metrics option on, and process a message. A test
compares the page with a new scrape: run this after a change of metrics.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, cast

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from broker.configuration.config import BrokerConfig  # noqa: E402 - the path comes first
from broker.metrics import OWNERSHIP  # noqa: E402
from broker.service import BrokerService  # noqa: E402
from client.client import Client  # noqa: E402
from limiter.clock import LoopClock  # noqa: E402
from limiter.metrics.prometheus import family  # noqa: E402
from proxy.config import ProxyConfig  # noqa: E402
from proxy.service import ProxyService  # noqa: E402
from server.authentication.counters import AuthenticationCounters  # noqa: E402
from server.authentication.refused import RefusedOperations  # noqa: E402
from server.faults.registry import FaultRegistry  # noqa: E402
from server.instruments import AUTHENTICATION, AUTHORIZATION, FAULTS  # noqa: E402
from tests.support.certificates import PemFiles  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric

    from broker.ownership.shared import SharedOwnership
    from limiter.metrics.instruments import SourceT, Table

PAGE = ROOT / "docs" / "metrics.md"
_PORTS = {"webServicePort": "0", "bindAddress": "127.0.0.1", "floodgateFaultsEnabled": "true"}
_BROKER = {
    **_PORTS,
    "brokerServicePort": "0",
    "exposeConsumerLevelMetricsInPrometheus": "true",
    "exposeProducerLevelMetricsInPrometheus": "true",
    "pulsarResourcesExtendedClassName": "broker.property_index:PropertyIndex",
}
_HEAD = """# Metrics

For operators: look up a metric of broker or proxy; metrics of one meaning share a line.

```sh
curl -sf http://127.0.0.1:8080/metrics/
```

- Names that begin with `floodgate` are Floodgate's own, others a real broker's or proxy's.
- Names that end in `_total` are counters, others gauges, unless the text says otherwise.
- Some counters and summaries also have a `_created` sample: since when they count, in seconds
  since 1970.
- Message rates, latencies and sizes are of the last period of `statsUpdateFrequencyInSecs`.
- Every sample has the label `cluster`. TOPIC stands for the labels `namespace` and `topic`,
  SUBSCRIPTION for TOPIC and `subscription`, CONSUMER for SUBSCRIPTION, `consumer_id` and
  `consumer_name`, PRODUCER for TOPIC, `producer_id` and `producer_name`, KEYS for the version and
  keys of the configuration. [messages.md](messages.md#metrics) has the keys that enable such
  samples.

`tools/metrics_page.py` writes this page from a scrape.
"""

_TOPIC = {"namespace", "topic"}
_SUBSCRIPTION = _TOPIC | {"subscription"}
_LABELS = {
    "CONSUMER": _SUBSCRIPTION | {"consumer_id", "consumer_name"},
    "PRODUCER": _TOPIC | {"producer_id", "producer_name"},
    "SUBSCRIPTION": _SUBSCRIPTION,
    "TOPIC": _TOPIC,
    "KEYS": {"version", "floodgate_profile"},
}
"""Label sets with a short name on the page, largest first."""

_TITLE = "\n## {title}\n\n"

_NOT_HERE = ROOT / "tools" / "metrics_not_here.md"
"""A real broker's families without meaning here."""


class Row(NamedTuple):
    """A metric family as the page shows it: its kind, labels and meaning."""

    kind: str
    labels: frozenset[str]
    what: str


async def made() -> str:
    """Return the page on all metrics as it should be now."""
    with TemporaryDirectory() as folder:
        tls = PemFiles(Path(folder)).keys(webServicePortTls="0")
        store = {"floodgateMessageStore": f"sqlite://{folder}/messages.db"}
        return await _made_with(tls, {**_BROKER, **store})


async def _made_with(tls: dict[str, str], keys_of_broker: dict[str, str]) -> str:
    broker = BrokerService(BrokerConfig.from_properties({**keys_of_broker, **tls}))
    async with broker:
        keys = {**_PORTS, **tls, "servicePort": "0", "brokerServiceURL": broker.service_url}
        async with ProxyService(ProxyConfig.from_properties(keys)) as proxy:
            shown = {
                "broker": await _of_broker(broker),
                "proxy": _rows(await _scrape(proxy.web_service_url)),
            }
    # No fault has acted during the scrape.
    acted = _of_table(FAULTS, _some_fault())
    shown["broker"] |= acted
    shown["proxy"] |= acted
    no_ownership = cast(
        "SharedOwnership", SimpleNamespace(owned=0, moved_total=0, sessions_ended=0)
    )
    # Only brokers that share a database have ownership metrics.
    shown["broker"] |= _of_table(OWNERSHIP, no_ownership)
    # Only with authentication, or authorization.
    families = _of_table(AUTHENTICATION, _some_outcomes())
    families |= _of_table(AUTHORIZATION, RefusedOperations(LoopClock()))
    shown["broker"] |= families
    shown["proxy"] |= families
    return _HEAD + "".join(_lines(shown)) + _NOT_HERE.read_text(encoding="utf-8")


def _some_fault() -> FaultRegistry:
    registry = FaultRegistry()
    registry.count("drop")
    return registry


def _some_outcomes() -> AuthenticationCounters:
    counters = AuthenticationCounters()
    counters.successes["AuthenticationProviderToken", "token"] += 1
    counters.failures["AuthenticationProviderToken", "token", "INVALID_TOKEN"] += 1
    return counters


async def _of_broker(broker: BrokerService) -> dict[str, Row]:
    async with Client(broker.service_url) as client:
        consumer = await client.subscribe("metrics", "page")
        producer = await client.create_producer("metrics")
        await producer.send(b"seen")
        await consumer.acknowledge(await consumer.receive())
        return _rows(await _scrape(broker.web_service_url))


async def _scrape(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics/") as answer:
        return await answer.text()


def _rows(text: str) -> dict[str, Row]:
    return _of_families(text_string_to_metric_families(text))


def _of_table(table: Table[SourceT], source: SourceT) -> dict[str, Row]:
    return _of_families(family(row, source, {"cluster": "standalone"}) for row in table)


def _of_families(families: Iterable[Metric]) -> dict[str, Row]:
    rows = {}
    for one in families:
        labels = frozenset(label for sample in one.samples for label in sample.labels)
        name = f"{one.name}_total" if one.type == "counter" else one.name
        rows[name] = Row(one.type, labels - {"cluster"}, one.documentation)
    return rows


def _lines(shown: dict[str, dict[str, Row]]) -> Iterable[str]:
    broker, proxy = shown["broker"], shown["proxy"]
    twins = {_of_proxy(name) for name in broker} & set(proxy)
    both = {name: broker[name] for name in broker if _of_proxy(name) in twins}
    own = {name: row for name, row in proxy.items() if name in twins and name not in both}
    yield from _list("Broker and proxy", both | own)
    yield from _list("Broker", {name: broker[name] for name in broker if name not in both})
    yield from _list("Proxy", {name: proxy[name] for name in proxy if name not in twins})


def _of_proxy(name: str) -> str:
    """Return the name that a proxy uses for a broker's metric family about topic lists."""
    return name.replace("pulsar_broker_topic_list_", "pulsar_proxy_topic_list_")


def _list(title: str, rows: dict[str, Row]) -> Iterable[str]:
    """Yield a list with one line for each meaning, in the order of the first family with it."""
    yield _TITLE.format(title=title)
    meanings: dict[str, list[str]] = {}
    for name, row in rows.items():
        if not name.endswith("_created"):
            expected = "counter" if name.endswith("_total") else "gauge"
            kind = "" if row.kind == expected else f" ({row.kind})"
            what = _without_bound(row.what.removesuffix("."))
            names = meanings.setdefault(f"{what}{kind}", [])
            names.append(f"`{name}{_words(row.labels)}`")
    for meaning, names in meanings.items():
        yield f"- {', '.join(names)}: {meaning}\n"


def _without_bound(what: str) -> str:
    """Return the meaning of a metric without the bucket's bound, which is part of the name."""
    return re.sub(r"^(Milliseconds to store|Bytes of entries): .*", r"\1, by bound", what)


def _words(labels: frozenset[str]) -> str:
    """Return label names in braces, with short words for frequent sets of labels."""
    for word, meant in _LABELS.items():
        if meant <= labels:
            rest = labels - meant if word != "KEYS" else frozenset()
            return f"{{{', '.join([word, *sorted(rest)])}}}"
    return f"{{{', '.join(sorted(labels))}}}" if labels else ""


if __name__ == "__main__":
    PAGE.write_text(asyncio.run(made()), encoding="utf-8")
