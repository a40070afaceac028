import datetime
import re
import time

import _pulsar
import pulsar
from place import (
    PATIENCE_MILLIS,
    digest,
    drain,
    nothing_comes,
    payloads,
    receive,
    receive_data,
    refusal,
)

EARLIEST = pulsar.InitialPosition.Earliest
Type = pulsar.ConsumerType
KEYS = 40


_Configuration = _pulsar.ConsumerConfiguration


def _discovering():
    """Return a configuration that refreshes patterns every second.

    The Python client validates ``subscribe(pattern_auto_discovery_period=...)`` and then ignores
    the value, so every pattern would be refreshed after the default of 60 s.
    """
    configuration = _Configuration()
    configuration.pattern_auto_discovery_period(1)
    return configuration


_pulsar.ConsumerConfiguration = _discovering


def fill(client, topic, messages, **options):
    producer = client.create_producer(topic, **options)
    for message in messages:
        producer.send_async(message, None)
    producer.flush()
    producer.close()


def exclusive(place):
    """A single consumer, acknowledging cumulatively."""
    client, other = place.client(), place.client()
    consumer = client.subscribe(place.topic(), "s")
    refused = refusal(other.subscribe, place.topic(), "s")
    fill(client, place.topic(), payloads("exclusive", 20))
    first = receive(consumer, 20, ack=False)
    consumer.acknowledge_cumulative(first[9])
    consumer.close()
    again = other.subscribe(place.topic(), "s")
    return {
        "refused": refused,
        "digest": digest(message.data() for message in first),
        "again": digest(receive_data(again, 10)),
        "empty": nothing_comes(again),
    }


def failover(place):
    """The next consumer takes over when the active consumer leaves."""
    client, other = place.client(), place.client()
    consumers = [
        client.subscribe(place.topic(), "s", Type.Failover, consumer_name="a"),
        other.subscribe(place.topic(), "s", Type.Failover, consumer_name="b"),
    ]
    time.sleep(1.5)  # the broker chooses the active consumer a second after the last change
    fill(client, place.topic(), payloads("failover", 20))
    found = drain(consumers, 20)
    active = 0 if found[0] else 1
    consumers[active].close()
    producer = other.create_producer(place.topic())
    for payload in payloads("failover", 20, 20):
        producer.send(payload)
    later = receive_data(consumers[1 - active], 20)
    return {
        "together": sorted(map(len, found)),
        "first": digest(message.data() for message in found[active]),
        "later": digest(later),
    }


def shared(place):
    """Two consumers share messages; a closed consumer's messages go to the other consumer."""
    client, other = place.client(), place.client()
    consumers = [
        client.subscribe(place.topic(), "s", Type.Shared, receiver_queue_size=10),
        other.subscribe(place.topic(), "s", Type.Shared, receiver_queue_size=10),
    ]
    fill(client, place.topic(), payloads("shared", 100))
    held = receive(consumers[0], 5, ack=False)
    consumers[0].close()
    got = receive_data(consumers[1], 100)
    return {
        "held": len(held),
        "digest": digest(sorted(set(got))),
        "empty": nothing_comes(consumers[1]),
    }


def key_shared(place):
    """Each key has a single consumer, and keeps its order."""
    client, other = place.client(), place.client()
    consumers = [
        client.subscribe(place.topic(), "s", Type.KeyShared),
        other.subscribe(place.topic(), "s", Type.KeyShared),
    ]
    producer = client.create_producer(place.topic())
    for number, payload in enumerate(payloads("key_shared", KEYS * 5)):
        producer.send_async(payload, None, partition_key=f"key-{number % KEYS}")
    producer.flush()
    found = drain(consumers, KEYS * 5)
    numbers = [
        (message.partition_key(), int(message.data().rpartition(b"-")[2]))
        for got in found
        for message in got
    ]
    in_order = sorted(numbers, key=lambda pair: pair[1])
    by_key = {key: [n for k, n in numbers if k == key] for key, _ in numbers}
    keys = [{message.partition_key() for message in got} for got in found]
    return {
        "digest": digest(f"key_shared-{number}".encode() for _, number in in_order),
        "ordered": all(got == sorted(got) for got in by_key.values()),
        "both": all(keys),
        "apart": not keys[0] & keys[1],
    }


def regex(place):
    """A pattern's consumer follows created and deleted topics."""
    client = place.client()
    fill(client, place.topic("-a"), [b"before"])
    pattern = re.compile(place.topic("-.*"))
    consumer = client.subscribe(pattern, "s", initial_position=EARLIEST)
    got = receive_data(consumer, 1)
    fill(client, place.topic("-b"), [b"comes"])
    got += receive_data(consumer, 1)
    fill(client, place.topic("-a"), [b"stays"])
    got += receive_data(consumer, 1)
    deleted, _ = place.rest("DELETE", f"{place.path('-b')}?force=true")
    fill(client, place.topic("-c"), [b"comes too"])
    got += receive_data(consumer, 1)
    return {"got": [message.decode() for message in got], "deleted": deleted}


def many_topics(place):
    """A consumer on a list of topics."""
    client = place.client()
    topics = [place.topic(f"-{part}") for part in "abc"]
    consumer = client.subscribe(topics, "s")
    for topic in topics:
        fill(client, topic, [topic.rpartition("/")[2].encode()])
    return {"got": sorted(message.decode() for message in receive_data(consumer, 3))}


def nack(place):
    """A negatively acknowledged message is redelivered."""
    client = place.client()
    consumer = client.subscribe(
        place.topic(), "s", Type.Shared, negative_ack_redelivery_delay_ms=200
    )
    fill(client, place.topic(), payloads("nack", 5))
    for message in receive(consumer, 5, ack=False):
        if message.data() == b"nack-2":
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    again = consumer.receive(PATIENCE_MILLIS)
    consumer.acknowledge(again)
    return {
        "again": again.data().decode(),
        "redelivered": again.redelivery_count(),
        "empty": nothing_comes(consumer),
    }


def dead_letter(place):
    """A message refused too often goes to the dead letter topic."""
    client = place.client()
    policy = pulsar.ConsumerDeadLetterPolicy(2, place.topic("-dead"), "kept")
    consumer = client.subscribe(
        place.topic(),
        "s",
        Type.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=policy,
    )
    dead = client.subscribe(place.topic("-dead"), "kept", initial_position=EARLIEST)
    fill(client, place.topic(), payloads("dead_letter", 1))
    counts = []
    for _ in range(3):
        message = consumer.receive(PATIENCE_MILLIS)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    letter = receive_data(dead, 1)
    return {"counts": counts, "dead": digest(letter), "empty": nothing_comes(consumer)}


def batch_index(place):
    """Only the unacknowledged messages of a batch are redelivered."""
    client, other = place.client(), place.client()
    options = {"batch_index_ack_enabled": True, "consumer_type": Type.Shared}
    consumer = client.subscribe(place.topic(), "s", **options)
    fill(
        client,
        place.topic(),
        payloads("batch_index", 10),
        batching_enabled=True,
        batching_max_publish_delay_ms=5_000,
    )
    got = receive(consumer, 10, ack=False)
    for message in got[:4]:
        consumer.acknowledge(message)
    consumer.close()
    again = other.subscribe(place.topic(), "s", **options)
    return {
        "entries": len({message.message_id().entry_id() for message in got}),
        "again": digest(receive_data(again, 6)),
        "empty": nothing_comes(again),
    }


def delayed(place):
    """A delayed message lets later messages pass."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", Type.Shared)
    producer = client.create_producer(place.topic())
    started = time.monotonic()
    producer.send(b"later", deliver_after=datetime.timedelta(milliseconds=2_500))
    producer.send(b"now")
    got = receive_data(consumer, 2)
    waited = time.monotonic() - started
    return {"got": [message.decode() for message in got], "in_time": waited > 1.4}


def unsubscribe(place):
    """A removed subscription leaves no state."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    fill(client, place.topic(), payloads("unsubscribe", 3))
    receive(consumer, 1)
    consumer.unsubscribe()
    again = client.subscribe(place.topic(), "s", initial_position=EARLIEST)
    got = receive_data(again, 3)
    status, names = place.rest("GET", f"{place.path()}/subscriptions")
    return {"digest": digest(got), "status": status, "names": names}


SCENARIOS = [
    exclusive,
    failover,
    shared,
    key_shared,
    regex,
    many_topics,
    nack,
    dead_letter,
    batch_index,
    delayed,
    unsubscribe,
]
