import pulsar
from place import digest, nothing_comes, payloads, receive, receive_data, refusal

CHUNKED_BYTES = 12 << 20
CODECS = {"lz4": "LZ4", "zlib": "ZLib", "zstd": "ZSTD", "snappy": "SNAPPY"}


def plain(place):
    """Single messages, with every field of a message."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    producer = client.create_producer(place.topic())
    for number, payload in enumerate(payloads("plain", 50)):
        producer.send(
            payload,
            properties={"number": str(number)},
            partition_key=f"key-{number}",
            event_timestamp=1_000 + number,
        )
    got = receive(consumer, 50)
    carried = all(
        (message.properties(), message.partition_key())
        == ({"number": str(number)}, f"key-{number}")
        and message.event_timestamp() == 1_000 + number
        for number, message in enumerate(got)
    )
    return {
        "digest": digest(message.data() for message in got),
        "carried": carried,
        "empty": nothing_comes(consumer),
    }


def ordering_key(place):
    """A key only for ordering."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    client.create_producer(place.topic()).send(b"ordered", ordering_key="first")
    return {"key": receive(consumer, 1)[0].ordering_key()}


def batched(place):
    """A thousand messages in batches."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    producer = client.create_producer(
        place.topic(), batching_enabled=True, batching_max_messages=100, block_if_queue_full=True
    )
    refused = []
    for payload in payloads("batched", 1000):
        producer.send_async(payload, lambda result, _id: refused.append(result))
    producer.flush()
    return {
        "digest": digest(receive_data(consumer, 1000)),
        "receipts": len(refused),
        "refused": len([result for result in refused if result != pulsar.Result.Ok]),
    }


def compressed(place):
    """Every compression, alone and in batches."""
    client = place.client()
    found = {}
    for name, codec in CODECS.items():
        topic = place.topic(f"-{name}")
        consumer = client.subscribe(topic, "s")
        for batched in (False, True):
            producer = client.create_producer(
                topic,
                compression_type=getattr(pulsar.CompressionType, codec),
                batching_enabled=batched,
            )
            for payload in payloads("compressed", 20):
                producer.send_async(payload * 100, None)
            producer.flush()
            producer.close()
        found[name] = digest(receive_data(consumer, 40))
    return found


def chunked(place):
    """A message above the frame limit."""
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    producer = client.create_producer(place.topic(), chunking_enabled=True)
    line = b"".join(payloads("chunked", 100))
    producer.send((line * (CHUNKED_BYTES // len(line) + 1))[:CHUNKED_BYTES])
    got = receive_data(consumer, 1)
    return {"bytes": len(got[0]), "digest": digest(got)}


def access_modes(place):
    """Exclusive producers block other producers until closed."""
    client, other = place.client(), place.client()
    mode = pulsar.ProducerAccessMode
    first = client.create_producer(place.topic(), access_mode=mode.Exclusive)
    refused = refusal(other.create_producer, place.topic(), access_mode=mode.Exclusive)
    shared = refusal(other.create_producer, place.topic())
    first.close()
    other.create_producer(place.topic(), access_mode=mode.Exclusive).send(b"access_modes-0")
    return {"exclusive": bool(refused), "shared": bool(shared)}


def producer_names(place):
    """A name belongs to a single producer at a time."""
    client, other = place.client(), place.client()
    first = client.create_producer(place.topic(), producer_name="one")
    refused = bool(refusal(other.create_producer, place.topic(), producer_name="one"))
    first.close()
    again = other.create_producer(place.topic(), producer_name="one")
    return {"refused": refused, "again": again.producer_name()}


def encrypted(place):
    """Encrypted payloads pass through, readable with the owner's key."""
    client = place.client()
    keys = pulsar.CryptoKeyReader(str(place.files / "public.pem"), str(place.files / "private.pem"))
    consumer = client.subscribe(place.topic(), "s", crypto_key_reader=keys)
    producer = client.create_producer(
        place.topic(), encryption_key="floodgate.key", crypto_key_reader=keys
    )
    for payload in payloads("encrypted", 20):
        producer.send(payload)
    return {"digest": digest(receive_data(consumer, 20))}


def partitioned(place):
    """Three partitions, filled round-robin and read as a single topic."""
    status, _ = place.rest("PUT", f"{place.path()}/partitions", 3)
    client = place.client()
    consumer = client.subscribe(place.topic(), "s")
    producer = client.create_producer(place.topic())
    for payload in payloads("partitioned", 30):
        producer.send(payload)
    got = receive(consumer, 30)
    names = client.get_topic_partitions(place.topic())
    return {
        "created": status,
        "digest": digest(sorted(message.data() for message in got)),
        "partitions": [name.rpartition("-")[2] for name in names],
        "used": len({message.topic_name() for message in got}),
    }


def non_persistent(place):
    """A non-persistent topic reaches connected consumers."""
    client = place.client()
    topic = place.topic(domain="non-persistent")
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    for payload in payloads("non_persistent", 20):
        producer.send(payload)
    return {"digest": digest(sorted(receive_data(consumer, 20)))}


SCENARIOS = [
    plain,
    ordering_key,
    batched,
    compressed,
    chunked,
    access_modes,
    producer_names,
    encrypted,
    partitioned,
    non_persistent,
]
