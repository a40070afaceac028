"""A mapping of entry positions to numbers, none of whose operations blocks for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Piece = dict[int, int]

PIECE_BITS = 10
"""The bits of an entry id within a piece: a piece has 1,024 neighbouring entries of a ledger."""
NOTHING = -1
"""The number that stands for a position that is not in the map."""
_NO_PIECE: tuple[int, int, Piece] = (-1, 1 << 63, {})
"""An empty piece, shared by all maps, because most maps are empty."""


class PlaceMap:
    """A mapping of entry positions (ledger id, entry id) to numbers other than ``NOTHING``.

    A single dict with a million items would block the event loop: when growing (30 ms), when freed,
    and during garbage collection. The map therefore consists of small dicts; the garbage collector
    ignores dicts of plain numbers. ``bool()`` and changes of one position take constant time;
    ``len()`` sums over the dicts.
    """

    __slots__ = ("_at", "_ledger_id", "_piece", "_pieces")

    def __init__(self) -> None:
        # All pieces are non-empty except the last used, which mostly holds the next place too.
        self._pieces: dict[tuple[int, int], Piece] = {}
        self._ledger_id, self._at, self._piece = _NO_PIECE

    def __bool__(self) -> bool:
        return bool(self._pieces) and any(self._pieces.values())

    def __len__(self) -> int:
        return sum(map(len, self._pieces.values()))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the positions, unsorted; the map must not change meanwhile."""
        return (place for place, _ in self.items())

    def items(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield each position with its number, unsorted; the map must not change meanwhile."""
        for (ledger_id, _), piece in self._pieces.items():
            for entry_id, number in piece.items():
                yield (ledger_id, entry_id), number

    # -- one place ----------------------------------------------------------------------------

    def __contains__(self, place: tuple[int, int]) -> bool:
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            return False
        return entry_id in self._piece

    def get(self, place: tuple[int, int], default: int = NOTHING) -> int:
        """Return the number of a position, or ``default`` if the position is missing."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            return default
        return self._piece.get(entry_id, default)

    def put(self, place: tuple[int, int], number: int) -> None:
        """Set the number of a position."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            self._use(ledger_id, at, {})
            self._pieces[ledger_id, at] = self._piece
        self._piece[entry_id] = number

    def pop(self, place: tuple[int, int], default: int = NOTHING) -> int:
        """Remove a position, and return its number, or ``default`` if it is missing."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            return default
        return self._piece.pop(entry_id, default)

    def _find(self, ledger_id: int, at: int) -> bool:
        """Look up the dict that may have a position, and remember it; return False if none may."""
        piece = self._pieces.get((ledger_id, at))
        if piece is None:
            return False
        self._use(ledger_id, at, piece)
        return True

    def _use(self, ledger_id: int, at: int, piece: Piece) -> None:
        if not self._piece:
            self._pieces.pop((self._ledger_id, self._at), None)
        self._ledger_id, self._at, self._piece = ledger_id, at, piece

    # -- many places --------------------------------------------------------------------------

    def any_place(self) -> tuple[int, int] | None:
        """Return any position of the map; None if the map is empty."""
        for key in reversed(self._pieces):
            for entry_id in reversed(self._pieces[key]):
                return key[0], entry_id
        return None

    def through(self, last: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the positions up to and including ``last``, unsorted.

        The map may change meanwhile.
        """
        for key in self._keys_through(last):
            for entry_id in list(self._pieces.get(key, ())):
                if (key[0], entry_id) <= last:
                    yield key[0], entry_id

    def copy(self, most: int) -> PlaceMap:
        """Return a copy with the lowest ``most`` positions, but at least one."""
        copied = PlaceMap()
        for key in sorted(self._pieces):
            piece = self._pieces[key]
            if len(piece) >= most:
                copied._pieces[key] = dict(sorted(piece.items())[:most])
                break
            copied._pieces[key] = piece.copy()
            most -= len(piece)
        return copied

    def cut(self, last: tuple[int, int]) -> list[Piece]:
        """Remove all positions up to and including ``last``, and return the removed dicts.

        The caller frees the dicts, which may take long.
        """
        ledger_id, entry_id = last
        *whole, parted = *self._keys_through(last), (ledger_id, entry_id >> PIECE_BITS)
        taken = [self._pieces.pop(key) for key in whole if key != parted]
        piece = self._pieces.get(parted, {})
        for one in [one for one in piece if one <= entry_id]:
            del piece[one]
        if not piece:
            self._pieces.pop(parted, None)
        if (self._ledger_id, self._at) not in self._pieces:
            self._ledger_id, self._at, self._piece = _NO_PIECE
        return taken

    def _keys_through(self, last: tuple[int, int]) -> list[tuple[int, int]]:
        bound = (last[0], last[1] >> PIECE_BITS)
        return [key for key in self._pieces if key <= bound]

    def emptied(self) -> Iterator[None]:
        """Remove all positions of a map that is no longer needed; each step removes one dict."""
        self._ledger_id, self._at, self._piece = _NO_PIECE
        while self._pieces:
            self._pieces.popitem()
            yield
