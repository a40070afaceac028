"""Scenario of a broker killed and restarted under open clients."""

import sys

import pulsar
from consuming import EARLIEST
from place import PATIENCE_MILLIS, QUIET_MILLIS, digest, nothing_comes, payloads, receive

COUNT = 200


def _tell(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def restart(place):
    """No receipted message is lost, no long acknowledged message is redelivered."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s", pulsar.ConsumerType.Shared)
    quick = client.subscribe(place.topic(), "quick")
    producer = client.create_producer(place.topic(), send_timeout_millis=60_000)
    batching = client.create_producer(place.topic(), batching_enabled=True)
    sent = payloads("restart", COUNT)
    for place_in_line, payload in enumerate(sent):
        (batching if place_in_line % 10 else producer).send_async(payload, None)
    batching.flush()
    producer.flush()
    receive(consumer, COUNT // 2)
    _tell('{"scenario": "restart", "at": "kill"}')
    sys.stdin.readline()
    more = payloads("restart", COUNT, COUNT)
    for payload in more:
        producer.send(payload)
    reader = client.create_reader(place.topic(), pulsar.MessageId.earliest)
    stored = []
    while reader.has_message_available():
        stored.append(reader.read_next(PATIENCE_MILLIS).data())
    got = _received(quick, 2 * COUNT)
    left = _received(consumer, COUNT + COUNT // 2)
    late = client.subscribe(place.topic(), "late", initial_position=EARLIEST)
    return {
        "quick": digest(sorted(got)),
        "left": set(more) <= left and len(left) >= COUNT + COUNT // 2,
        "stored": digest(sorted(set(stored))),
        "late": not nothing_comes(late),
    }


def _received(consumer, wanted):
    """Return all messages, waiting for ``wanted`` messages, as clients reconnect slowly."""
    found = set()
    while True:
        try:
            message = consumer.receive(PATIENCE_MILLIS if len(found) < wanted else QUIET_MILLIS)
        except pulsar.Timeout:
            return found
        consumer.acknowledge(message)
        found.add(message.data())


SCENARIOS = [restart]
