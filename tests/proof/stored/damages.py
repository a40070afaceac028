"""Ways to damage the files of a database while unopened."""

from collections.abc import Callable
from pathlib import Path
from random import Random

PAGE_BYTES = 16 * 1024
FIRST_PAGES = 10
"""They include the header, the tables of topics, ledgers and cursors, and their roots."""
MOST_BYTES = 5_000


def damage(database: Path, random: Random) -> str:
    """Damage a database in a way, or its write-ahead log if present; return the damage."""
    wal = database.with_name(f"{database.name}-wal")
    file = wal if wal.exists() and random.random() < 0.4 else database
    name, change = random.choice(WAYS)
    content = bytearray(file.read_bytes())
    first = file is database and random.random() < 0.4
    within = min(len(content), FIRST_PAGES * PAGE_BYTES) if first else len(content)
    where = change(content, within, random)
    file.write_bytes(content)
    return f"{'log' if file is wal else 'file'}: {name} at {where:,} of {len(content):,}"


def _bytes(content: bytearray, within: int, random: Random) -> int:
    size = random.choice((1, 1, 4, 100, random.randint(1, MOST_BYTES)))
    at = random.randrange(within)
    size = min(size, len(content) - at)
    content[at : at + size] = random.randbytes(size)
    return at


def _bit(content: bytearray, within: int, random: Random) -> int:
    at = random.randrange(within)
    content[at] ^= 1 << random.randrange(8)
    return at


def _zeroed(content: bytearray, within: int, random: Random) -> int:
    return _set_page(content, _page(within, random), bytes(PAGE_BYTES))


def _random_page(content: bytearray, within: int, random: Random) -> int:
    return _set_page(content, _page(within, random), random.randbytes(PAGE_BYTES))


def _other_page(content: bytearray, within: int, random: Random) -> int:
    other = _page(len(content), random)
    return _set_page(content, _page(within, random), bytes(content[other : other + PAGE_BYTES]))


def _cut(content: bytearray, within: int, random: Random) -> int:
    at = random.randrange(within)
    del content[at:]
    return at


def _page(within: int, random: Random) -> int:
    return random.randrange(max(1, within // PAGE_BYTES)) * PAGE_BYTES


def _set_page(content: bytearray, at: int, page: bytes) -> int:
    size = min(len(page), len(content) - at)
    content[at : at + size] = page[:size]
    return at


WAYS: tuple[tuple[str, Callable[[bytearray, int, Random], int]], ...] = (
    ("random bytes", _bytes),
    ("random bytes", _bytes),
    ("a bit turned", _bit),
    ("a page of zeros", _zeroed),
    ("a page of random bytes", _random_page),
    ("a page that belongs elsewhere", _other_page),
    ("cut short", _cut),
)
