"""Rare fields of messages, producers and consumers; and admin calls."""

import base64
import random
from typing import Any

AFTER_ALL_MS = 4_102_444_800_000
"""The year 2100; messages are from the first millisecond of 1970."""
HASHES = 65_536
KEYS = ("a", "b", "c", "d")
_FIELDS = ('{"name": "x", "type": "int"}', '{"name": "y", "type": "string", "default": ""}')
_OTHER = '{"name": "x", "type": "string"}'


def schema(dice: random.Random) -> dict[str, Any]:
    """Return a schema in protobuf's JSON, from a few compatible and incompatible schemas."""
    match dice.randrange(6):
        case 0:
            return _schema("String", "")
        case 1:
            return _schema("Int32", "")
        case kind:
            fields = {2: _FIELDS[0], 3: ", ".join(_FIELDS), 4: _OTHER, 5: _FIELDS[0]}[kind]
            record = f'{{"type": "record", "name": "R", "fields": [{fields}]}}'
            return _schema("Avro" if kind == 5 else "Json", record)


def _schema(kind: str, data: str) -> dict[str, Any]:
    coded = base64.b64encode(data.encode()).decode()
    return {"name": "s", "type": kind, "schema_data": coded}


def metadata(dice: random.Random) -> dict[str, Any]:
    """Return rare message metadata."""
    key = base64.b64encode(dice.choice(KEYS).encode()).decode()
    return dice.choice(
        (
            {"deliver_at_time": AFTER_ALL_MS},
            {"deliver_at_time": 2},
            {"ordering_key": key},
            {"partition_key": key, "partition_key_b64_encoded": True},
            {"null_value": True},
            {"properties": [{"key": "p", "value": "v"}]},
            {"event_time": 5},
            {"compression": "LZ4", "uncompressed_size": 9},
            {"replicate_to": ["elsewhere"]},
        )
    )


def of_send(dice: random.Random, first: int) -> dict[str, Any]:
    """Return rare fields of a SEND."""
    return dice.choice(
        (
            {"highest_sequence_id": first + 9},
            {"is_chunk": True},
            {"num_messages": 2},
            {"marker": True},
            {"txnid_least_bits": 1, "txnid_most_bits": 1},
        )
    )


def of_producer(dice: random.Random) -> dict[str, Any]:
    """Return rare fields of a PRODUCER."""
    return dice.choice(
        (
            {"schema": schema(dice)},
            {"schema": schema(dice)},
            {"encrypted": True},
            {"initial_subscription_name": dice.choice(("s1", "s2", ""))},
            {"producer_name": ""},
        )
    )


def of_subscribe(dice: random.Random) -> dict[str, Any]:
    """Return rare fields of a SUBSCRIBE."""
    return dice.choice(
        (
            {"read_compacted": True},
            {"read_compacted": True},
            {"schema": schema(dice)},
            {"schema": _schema("AutoConsume", "")},
            {"start_message_rollback_duration_sec": 60},
            {"force_topic_creation": False},
            {"subscription": ""},
            {"replicate_subscription_state": True},
        )
    )


def key_shared(dice: random.Random) -> dict[str, Any]:
    """Return a key-sharing policy, in protobuf's JSON."""
    if dice.random() < 0.4:
        return {"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": dice.random() < 0.5}
    ends = ((0, HASHES // 2 - 1), (HASHES // 2, HASHES - 1), (0, HASHES - 1), (9, 5), None)
    chosen = dice.choices(ends, (8, 8, 3, 1, 1))[0]
    ranges = [{"start": chosen[0], "end": chosen[1]}] if chosen is not None else []
    return {"keySharedMode": "STICKY", "hashRanges": ranges}


def admin_call(dice: random.Random, *, persistent: bool) -> dict[str, Any]:
    """Return an admin call about the topic."""
    if not persistent:
        method, path = dice.choice((("PUT", "/unload"), ("DELETE", ""), ("DELETE", "?force=true")))
        return {"rest": method, "path": path}
    subscription = f"/subscription/{dice.choice(('s1', 's1', 's2'))}"
    calls = (
        ("PUT", "/unload", 3),
        ("POST", "/terminate", 3),
        ("DELETE", "/truncate", 2),
        ("DELETE", "", 1),
        ("DELETE", "?force=true", 2),
        ("PUT", subscription, 2),
        ("DELETE", subscription, 2),
        ("DELETE", f"{subscription}?force=true", 2),
        ("POST", f"{subscription}/skip/{dice.choice((0, 1, 2))}", 4),
        ("POST", f"{subscription}/skip_all", 2),
        ("POST", f"{subscription}/expireMessages/3600", 2),
        ("POST", f"{subscription}/resetcursor/{dice.choice((0, AFTER_ALL_MS))}", 4),
    )
    method, path, _ = dice.choices(calls, [weight for *_, weight in calls])[0]
    return {"rest": method, "path": path}
