"""Scenarios about positions in a topic: readers, seeks, table views."""

import time

import pulsar
from consuming import EARLIEST, fill
from place import PATIENCE_MILLIS, digest, nothing_comes, payloads, receive, receive_data


def read_all(reader):
    """Return the remaining messages."""
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(PATIENCE_MILLIS))
    return found


def reader(place):
    """Readers from the beginning, from a message and from the end."""
    client = place.client()
    fill(client, place.topic(), payloads("reader", 20))
    whole = read_all(client.create_reader(place.topic(), pulsar.MessageId.earliest))
    middle = whole[9].message_id()
    behind = client.create_reader(place.topic(), middle)
    latest = client.create_reader(place.topic(), pulsar.MessageId.latest)
    idle = latest.has_message_available()
    fill(client, place.topic(), [b"news"])
    news = latest.read_next(PATIENCE_MILLIS)
    return {
        "digest": digest(message.data() for message in whole),
        "behind": behind.read_next(PATIENCE_MILLIS).data().decode(),
        "idle": idle,
        "news": news.data().decode(),
    }


def reader_at(place):
    """A reader that starts with its start message included."""
    client = place.client()
    fill(client, place.topic(), payloads("reader_at", 3))
    whole = read_all(client.create_reader(place.topic(), pulsar.MessageId.earliest))
    at = client.create_reader(place.topic(), whole[1].message_id(), start_message_id_inclusive=True)
    return {"at": at.read_next(PATIENCE_MILLIS).data().decode()}


def batched_reader(place):
    """Readers stop at a batch's end, and start within a batch."""
    client = place.client()
    fill(
        client,
        place.topic(),
        payloads("batched_reader", 10),
        batching_enabled=True,
        batching_max_publish_delay_ms=5_000,
    )
    whole = read_all(client.create_reader(place.topic(), pulsar.MessageId.earliest))
    rest = read_all(client.create_reader(place.topic(), whole[3].message_id()))
    return {
        "digest": digest(message.data() for message in whole),
        "rest": digest(message.data() for message in rest),
    }


def seek_id(place):
    """A consumer seeks a message, the beginning and the end."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", start_message_id_inclusive=True)
    fill(client, place.topic(), payloads("seek_id", 20))
    got = receive(consumer, 20)
    consumer.seek(got[10].message_id())
    again = receive_data(consumer, 10)
    consumer.seek(pulsar.MessageId.earliest)
    whole = receive_data(consumer, 20)
    consumer.seek(pulsar.MessageId.latest)
    return {
        "again": digest(again),
        "whole": digest(whole),
        "empty": nothing_comes(consumer),
    }


def seek_behind(place):
    """A seek is exclusive by default."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", pulsar.ConsumerType.Shared)
    fill(client, place.topic(), payloads("seek_behind", 10))
    got = receive(consumer, 10)
    consumer.seek(got[4].message_id())
    reading = client.create_reader(place.topic(), pulsar.MessageId.latest)
    idle = reading.has_message_available()
    reading.seek(got[4].message_id())
    return {
        "consumer": consumer.receive(PATIENCE_MILLIS).data().decode(),
        "idle": idle,
        "reader": reading.read_next(PATIENCE_MILLIS).data().decode(),
    }


def seek_time(place):
    """A consumer and a reader seek a time."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    fill(client, place.topic(), payloads("seek_time", 10))
    time.sleep(0.1)
    moment = int(time.time() * 1000)
    time.sleep(0.1)
    fill(client, place.topic(), payloads("seek_time", 10, 10))
    receive(consumer, 20)
    consumer.seek(moment)
    again = receive_data(consumer, 10)
    reading = client.create_reader(place.topic(), pulsar.MessageId.earliest)
    reading.seek(moment)
    return {
        "again": digest(again),
        "reader": reading.read_next(PATIENCE_MILLIS).data().decode(),
    }


def last_id(place):
    """The last message's id equals its receipt's."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", initial_position=EARLIEST)
    producer = client.create_producer(place.topic())
    sent = [producer.send(payload) for payload in payloads("last_id", 3)]
    return {"same": consumer.get_last_message_id().entry_id() == sent[-1].entry_id()}


def table_view(place):
    """A table view has the newest value of each key, and follows updates."""
    client = place.client()
    producer = client.create_producer(place.topic())
    for number in range(20):
        producer.send(f"value-{number}".encode(), partition_key=f"key-{number % 5}")
    view = client.create_table_view(place.topic())
    first = [view.get(f"key-{number}") for number in range(5)]
    producer.send(b"changed", partition_key="key-0")
    give_up = time.monotonic() + PATIENCE_MILLIS / 1000
    while view.get("key-0") != b"changed" and time.monotonic() < give_up:
        time.sleep(0.05)
    changed = view.get("key-0").decode()
    view.close()
    return {"first": digest(value or b"" for value in first), "changed": changed}


SCENARIOS = [
    reader,
    reader_at,
    batched_reader,
    seek_id,
    seek_behind,
    seek_time,
    last_id,
    table_view,
]
