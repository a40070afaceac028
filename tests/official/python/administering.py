"""Scenarios in which the admin REST API changes clients' results, and lookups by HTTP."""

import re
import time

import pulsar
from consuming import EARLIEST, fill
from place import PATIENCE_MILLIS, digest, nothing_comes, payloads, receive, receive_data, refusal
from reading import read_all


def http_lookup(place):
    """Look topics up by a service URL with the web port."""
    log = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(place.files / "client.log"))
    client = pulsar.Client(place.admin_url, operation_timeout_seconds=20, logger=log)
    place.clients.append(client)
    fill(client, place.topic("-a"), payloads("http_lookup", 10))
    consumer = client.subscribe(re.compile(place.topic("-.*")), "s", initial_position=EARLIEST)
    return {
        "digest": digest(receive_data(consumer, 10)),
        "partitions": len(client.get_topic_partitions(place.topic("-a"))),
    }


def deduplicated(place):
    """A repeated sequence id is not stored again."""
    namespace = f"{place.namespace}-dedup"
    place.rest("PUT", f"namespaces/{namespace}", {})
    status, _ = place.rest("POST", f"namespaces/{namespace}/deduplication", True)
    topic = f"persistent://{namespace}/deduplicated"
    client = place.client()
    producer = client.create_producer(topic, producer_name="one")
    before = producer.last_sequence_id()
    consumer = client.subscribe(topic, "s")
    for number in (0, 1, 2, 1, 2):
        producer.send(f"deduplicated-{number}".encode(), sequence_id=number)
    producer.close()
    again = client.create_producer(topic, producer_name="one")
    known = again.last_sequence_id()
    again.send(b"deduplicated-2", sequence_id=2)
    return {
        "status": status,
        "before": before,
        "known": known,
        "digest": digest(receive_data(consumer, 3)),
        "empty": nothing_comes(consumer),
    }


def compacted(place):
    """After compaction, compacted reads return the newest value of each key."""
    client = place.client()
    client.subscribe(place.topic(), "s", is_read_compacted=True).close()
    producer = client.create_producer(place.topic())
    for number, payload in enumerate(payloads("compacted", 20)):
        producer.send(payload, partition_key=f"key-{number % 5}")
    path = f"{place.path()}/compaction"
    started, _ = place.rest("PUT", path)
    give_up = time.monotonic() + PATIENCE_MILLIS / 1000
    status = "RUNNING"
    while status == "RUNNING" and time.monotonic() < give_up:
        time.sleep(0.1)
        status = place.rest("GET", path)[1]["status"]
    time.sleep(0.5)
    consumer = client.subscribe(place.topic(), "s", is_read_compacted=True)
    earliest = pulsar.MessageId.earliest
    read = read_all(client.create_reader(place.topic(), earliest, is_read_compacted=True))
    whole = read_all(client.create_reader(place.topic(), earliest))
    return {
        "started": started,
        "status": status,
        "consumed": digest(receive_data(consumer, 5)),
        "read": digest(message.data() for message in read),
        "whole": digest(message.data() for message in whole),
    }


def terminated(place):
    """A terminated topic refuses new messages, and delivers stored messages."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    fill(client, place.topic(), payloads("terminated", 3))
    status, _ = place.rest("POST", f"{place.path()}/terminate")
    refused = refusal(client.create_producer, place.topic())
    return {
        "status": status,
        "refused": refused,
        "digest": digest(receive_data(consumer, 3)),
    }


def stats(place):
    """A topic's statistics name its subscriptions, consumers and backlog."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(place.topic(), producer_name="sender")
    for payload in payloads("stats", 10):
        producer.send(payload)
    receive(consumer, 4)
    consumer.receive(PATIENCE_MILLIS)
    time.sleep(0.5)
    status, found = place.rest("GET", f"{place.path()}/stats")
    subscription = found["subscriptions"]["s"]
    return {
        "status": status,
        "publishers": [publisher["producerName"] for publisher in found["publishers"]],
        "sent": found["msgInCounter"],
        "type": subscription["type"],
        "backlog": subscription["msgBacklog"],
        "consumers": len(subscription["consumers"]),
        "unacked": subscription["unackedMessages"],
    }


def skipped(place):
    """Messages skipped by REST are not delivered until a reset."""
    client = place.client()
    client.subscribe(place.topic(), "s").close()
    fill(client, place.topic(), payloads("skipped", 10))
    path = f"{place.path()}/subscription/s"
    skip, _ = place.rest("POST", f"{path}/skip/4")
    consumer = client.subscribe(place.topic(), "s")
    rest = receive_data(consumer, 6)
    consumer.close()
    reset, _ = place.rest("POST", f"{path}/resetcursor/0")
    again = client.subscribe(place.topic(), "s")
    return {
        "skip": skip,
        "rest": digest(rest),
        "reset": reset,
        "again": digest(receive_data(again, 10)),
    }


def unloaded(place):
    """Clients reconnect to an unloaded topic."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    producer = client.create_producer(place.topic())
    messages = payloads("unloaded", 20)
    for payload in messages[:10]:
        producer.send(payload)
    first = receive_data(consumer, 10)
    time.sleep(0.3)  # the client groups acknowledgements for a tenth of a second
    status, _ = place.rest("PUT", f"{place.path()}/unload")
    for payload in messages[10:]:
        producer.send(payload)
    later = receive_data(consumer, 10)
    return {"status": status, "first": digest(first), "later": digest(later)}


SCENARIOS = [
    http_lookup,
    deduplicated,
    compacted,
    terminated,
    stats,
    skipped,
    unloaded,
]
