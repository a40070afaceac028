"""Result of every scenario, the same for each language.

A driver prints a JSON line per scenario; messages are named after their scenario and hashed in the
required order (or sorted, where no order is guaranteed).
"""

import hashlib
from collections.abc import Iterable
from typing import Any

CHUNKED_BYTES = 12 << 20
RESTART_COUNT = 200


def _payloads(name: str, count: int, start: int = 0) -> list[bytes]:
    return [f"{name}-{number}".encode() for number in range(start, start + count)]


def _digest(messages: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for message in messages:
        found.update(message)
        found.update(b"\n")
    return found.hexdigest()


def _of(name: str, count: int, start: int = 0) -> str:
    return _digest(_payloads(name, count, start))


def _sorted_of(name: str, count: int) -> str:
    return _digest(sorted(_payloads(name, count)))


def _chunked() -> str:
    line = b"".join(_payloads("chunked", 100))
    return _digest([(line * (CHUNKED_BYTES // len(line) + 1))[:CHUNKED_BYTES]])


_COMPRESSED = _digest([payload * 100 for payload in _payloads("compressed", 20)] * 2)
_TYPED = {"same": True, "status": 200, "registered": True, "version": 0}
_RECORDS = {**_TYPED, "refused": "IncompatibleSchema"}

EXPECTED: dict[str, dict[str, Any]] = {
    "plain": {"digest": _of("plain", 50), "carried": True, "empty": True},
    "ordering_key": {"key": "first"},
    "batched": {"digest": _of("batched", 1000), "receipts": 1000, "refused": 0},
    "compressed": dict.fromkeys(("lz4", "zlib", "zstd", "snappy"), _COMPRESSED),
    "chunked": {"bytes": CHUNKED_BYTES, "digest": _chunked()},
    "access_modes": {"exclusive": True, "shared": True},
    "producer_names": {"refused": True, "again": "one"},
    "encrypted": {"digest": _of("encrypted", 20)},
    "partitioned": {
        "created": 204,
        "digest": _sorted_of("partitioned", 30),
        "partitions": ["0", "1", "2"],
        "used": 3,
    },
    "non_persistent": {"digest": _sorted_of("non_persistent", 20)},
    "exclusive": {
        "refused": "ConsumerBusy",
        "digest": _of("exclusive", 20),
        "again": _of("exclusive", 10, 10),
        "empty": True,
    },
    "failover": {
        "together": [0, 20],
        "first": _of("failover", 20),
        "later": _of("failover", 20, 20),
    },
    "shared": {"held": 5, "digest": _sorted_of("shared", 100), "empty": True},
    "key_shared": {
        "digest": _of("key_shared", 200),
        "ordered": True,
        "both": True,
        "apart": True,
    },
    "regex": {"got": ["before", "comes", "stays", "comes too"], "deleted": 204},
    "many_topics": {"got": ["many_topics-a", "many_topics-b", "many_topics-c"]},
    "nack": {"again": "nack-2", "redelivered": 1, "empty": True},
    "dead_letter": {"counts": [0, 1, 2], "dead": _of("dead_letter", 1), "empty": True},
    "batch_index": {"entries": 1, "again": _of("batch_index", 6, 4), "empty": True},
    "delayed": {"got": ["now", "later"], "in_time": True},
    "unsubscribe": {"digest": _of("unsubscribe", 3), "status": 200, "names": ["s"]},
    "reader": {
        "digest": _of("reader", 20),
        "behind": "reader-10",
        "idle": False,
        "news": "news",
    },
    "reader_at": {"at": "reader_at-1"},
    "batched_reader": {"digest": _of("batched_reader", 10), "rest": _of("batched_reader", 6, 4)},
    "seek_id": {"again": _of("seek_id", 10, 10), "whole": _of("seek_id", 20), "empty": True},
    "seek_time": {"again": _of("seek_time", 10, 10), "reader": "seek_time-10"},
    "last_id": {"same": True},
    "table_view": {
        "first": _digest(f"value-{number}".encode() for number in range(15, 20)),
        "changed": "changed",
    },
    "schema_string": _TYPED,
    "schema_json": _RECORDS,
    "schema_avro": _RECORDS,
    "schema_deleted": {"status": 200, "refused": ""},
    "missing_topic": {"refused": True},
    "transactions": {"refused": True},
    "seek_behind": {"consumer": "seek_behind-5", "idle": False, "reader": "seek_behind-5"},
    "http_lookup": {"digest": _of("http_lookup", 10), "partitions": 1},
    "deduplicated": {
        "status": 204,
        "before": -1,
        "known": 2,
        "digest": _of("deduplicated", 3),
        "empty": True,
    },
    "compacted": {
        "started": 204,
        "status": "SUCCESS",
        "consumed": _of("compacted", 5, 15),
        "read": _of("compacted", 5, 15),
        "whole": _of("compacted", 20),
    },
    "terminated": {"status": 200, "refused": "TopicTerminated", "digest": _of("terminated", 3)},
    "stats": {
        "status": 200,
        "publishers": ["sender"],
        "sent": 10,
        "type": "Shared",
        "backlog": 6,
        "consumers": 1,
        "unacked": 6,
    },
    "skipped": {
        "skip": 204,
        "rest": _of("skipped", 6, 4),
        "reset": 204,
        "again": _of("skipped", 10),
    },
    "unloaded": {
        "status": 204,
        "first": _of("unloaded", 10),
        "later": _of("unloaded", 10, 10),
    },
}

RESTART = {
    "quick": _sorted_of("restart", 2 * RESTART_COUNT),
    "left": True,
    "stored": _sorted_of("restart", 2 * RESTART_COUNT),
    "late": True,
}
"""Required results after the broker was killed and restarted under a client."""
