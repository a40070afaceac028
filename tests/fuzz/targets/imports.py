"""Topic imports: arbitrary and broken Parquet files, and texts.

An input: a byte of flags; then a table (columns and rows), or a file's bytes.
"""

import io
import random
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from broker.imports.files import ImportFailedError
from broker.imports.importer import import_topics
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from tests.fuzz.driving.scratch import scratch
from tests.fuzz.driving.stepped_loop import SteppedLoop

ALLOWED = (ImportFailedError, StoreError)
FIGURES = {"imported": 0, "tables": 0}
SKIPS, AS_FILE, AS_TEXT = 1, 2, 4
_NAME_TYPES: tuple[Any, ...] = (
    pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()),
    pa.int64(), pa.list_(pa.string()), pa.string_view(), pa.null(),
)  # fmt: skip
_PROPERTY_TYPES: tuple[Any, ...] = (
    None, pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.binary()), pa.string(),
    pa.map_(pa.string(), pa.int32()), pa.map_(pa.large_string(), pa.string()),
)  # fmt: skip
NAMES = (
    b"persistent://a/b/c", b"persistent://a/b/c-partition-0", b"persistent://a/b/c-partition-7",
    b"non-persistent://a/b/d", b"persistent://public/default/x", b"persistent://a/b/",
    b"persistent://a/b/c-partition-99999999999", b"a/b", b"", b"\xff", b"persistent://a/b/\xc3\xa4",
    b"persistent://a/b/__change_events", b"persistent://a/c/b/d", b"persistent://a/b/x/y",
)  # fmt: skip
_loop = SteppedLoop()


_path = scratch("imports") / "topics.parquet"


def one_input(data: bytes) -> None:
    """Import a file made from an input into an empty store."""
    flags = data[0] if data else 0
    content = data[1:] if flags & AS_FILE else _parquet(data[1:])
    if flags & AS_TEXT:
        content = data[1:]
    _path.write_bytes(content)
    try:
        _loop.run(_import(skip_invalid=bool(flags & SKIPS)))
        FIGURES["imported"] += 1
    finally:
        _path.unlink(missing_ok=True)


async def _import(*, skip_invalid: bool) -> None:
    store = MemoryStore()
    await store.open()
    try:
        await import_topics(store, _path, skip_invalid=skip_invalid)
        for namespace in await store.namespaces():
            assert await store.snapshot(namespace) is not None
    finally:
        await store.close()


# -- tables -----------------------------------------------------------------------------------


def _parquet(data: bytes) -> bytes:
    """Return a Parquet file: column types, then rows of a namespace, a name, and pairs."""
    FIGURES["tables"] += 1
    types, rest = (data[:3] + bytes(3))[:3], data[3:]
    rows = list(_rows(rest))
    columns = {
        "namespace": _column([row[0] for row in rows], _NAME_TYPES[types[0] % 8]),
        "topic": _column([row[1] for row in rows], _NAME_TYPES[types[1] % 8]),
    }
    kind = _PROPERTY_TYPES[types[2] % 6]
    if kind is not None:
        pairs = [row[2] for row in rows]
        columns["properties"] = _column(
            pairs if pa.types.is_map(kind) else [None] * len(rows), kind
        )
    if types[2] & 64:
        del columns["namespace"]
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns), buffer, row_group_size=3 if types[2] & 128 else 100, compression="none"
    )
    return buffer.getvalue()


def _column(values: list[Any], kind: Any) -> pa.Array:
    """Return values as a typed column, or as texts if the type does not fit."""
    try:
        if kind in (pa.binary(), pa.null(), pa.int64()) or pa.types.is_list(kind):
            return pa.array([None if kind != pa.binary() else one for one in values], kind)
        return pa.array([_text(one) for one in values], kind)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.array([None] * len(values), kind)


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [(key.decode("latin-1"), text.decode("latin-1")) for key, text in value]
    return value if value is None else value.decode("utf-8", "surrogateescape")


def _rows(data: bytes) -> Any:
    at = 0
    while at < len(data) and at >= 0:
        head, at = data[at], at + 1
        namespace, at = _taken(data, at)
        name, at = _taken(data, at)
        pairs = []
        for _ in range(head & 3):
            key, at = _taken(data, at)
            value, at = _taken(data, at)
            pairs.append((key, value))
        yield (
            None if head & 4 else namespace,
            None if head & 8 else name,
            None if head & 16 else pairs,
        )


def _taken(data: bytes, at: int) -> tuple[bytes, int]:
    size = data[at] if at < len(data) else 0
    return data[at + 1 : at + 1 + size], at + 1 + size


def _row(choices: random.Random) -> bytes:
    name = choices.choice(NAMES)
    whole = name.split(b"://")[-1].split(b"/")
    namespace = b"/".join(whole[:2]) if choices.random() < 0.8 else choices.choice(NAMES)
    head = choices.choice((0, 0, 1, 2, 3, 4, 8, 16))
    out = bytes((head,)) + _sized(namespace) + _sized(name)
    for _ in range(head & 3):
        out += _sized(choices.choice((b"k", b"l", b"", b"\xff"))) + _sized(
            b"v" * choices.choice((0, 1, 200))
        )
    return out


def _sized(data: bytes) -> bytes:
    return struct.pack("B", min(len(data), 255)) + data[:255]


def seeds() -> list[bytes]:
    """Return tables, an exported file, and texts."""
    choices = random.Random(1)
    tables = [bytes((0, 0, 0, kind)) + _row(choices) * 3 for kind in range(6)]
    rows = b"".join(b"\x00" + _sized(b"a/b") + _sized(one) for one in NAMES[:3])
    whole = [bytes((flag, 0, 0, 1)) + rows for flag in (0, SKIPS)]
    plain = bytes((AS_FILE,)) + _parquet(b"\0\0\0" + rows)
    texts = [bytes((AS_TEXT | flag,)) + b"\n".join(NAMES) for flag in (0, SKIPS)]
    return [*tables, *whole, plain, *texts, bytes((AS_TEXT,)) + NAMES[0]]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Add rows to a table, or change bytes."""
    import atheris

    choices = random.Random(seed)
    if not data or data[0] & (AS_FILE | AS_TEXT) or choices.random() < 0.4:
        return bytes(atheris.Mutate(data, most_bytes))
    if choices.random() < 0.3:
        kinds = bytes(choices.randrange(256) for _ in range(3))
        return (bytes((choices.randrange(2),)) + kinds + data[4:])[:most_bytes]
    return (data[:4] + _row(choices) + data[4:])[:most_bytes]
