"""Numbers by the place of an entry, in pieces: however many there are, no step of it takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Piece = dict[int, int]

PIECE_BITS = 10
"""1,024 neighbouring entries of a ledger stand in one piece."""
NOTHING = -1
"""Stands for the number of a place that is not in."""
_NO_PIECE: tuple[int, int, Piece] = (-1, 1 << 63, {})
"""A piece that no place is in: one for all maps, of which most are empty."""


class PlaceMap:
    """A mapping of places, ledger and entry, to numbers, none of which is NOTHING.

    One dict of a million would hold up everybody: when it grows (30 ms), when it is freed, when
    the garbage collector looks at it. Pieces are small, and a piece that holds numbers alone is
    nothing to the collector. Truth, and each change of one place, cost the same however many there
    are; the length is counted piece by piece.
    """

    __slots__ = ("_at", "_ledger_id", "_piece", "_pieces")

    def __init__(self) -> None:
        # None is empty but the one that was used last: mostly the next place is in it too.
        self._pieces: dict[tuple[int, int], Piece] = {}
        self._ledger_id, self._at, self._piece = _NO_PIECE

    def __bool__(self) -> bool:
        return bool(self._pieces) and any(self._pieces.values())

    def __len__(self) -> int:
        return sum(map(len, self._pieces.values()))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Go through the places, unsorted; none may come or go meanwhile."""
        return (place for place, _ in self.items())

    def items(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Go through the places and their numbers, as above."""
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
        """Return the number of a place."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            return default
        return self._piece.get(entry_id, default)

    def put(self, place: tuple[int, int], number: int) -> None:
        """Set the number of a place."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            self._use(ledger_id, at, {})
            self._pieces[ledger_id, at] = self._piece
        self._piece[entry_id] = number

    def pop(self, place: tuple[int, int], default: int = NOTHING) -> int:
        """Take a place out, and return its number."""
        ledger_id, entry_id = place
        at = entry_id >> PIECE_BITS
        if (at != self._at or ledger_id != self._ledger_id) and not self._find(ledger_id, at):
            return default
        return self._piece.pop(entry_id, default)

    def _find(self, ledger_id: int, at: int) -> bool:
        """Make a piece the one that was used last; False if it is not there."""
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
        """Return one of the places; None if there is none."""
        for key in reversed(self._pieces):
            for entry_id in reversed(self._pieces[key]):
                return key[0], entry_id
        return None

    def through(self, last: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the places up to and including one, unsorted; others may come and go meanwhile."""
        for key in self._keys_through(last):
            for entry_id in list(self._pieces.get(key, ())):
                if (key[0], entry_id) <= last:
                    yield key[0], entry_id

    def copy(self, most: int) -> PlaceMap:
        """Return a copy, of the first places in order if there are more; at least one."""
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
        """Take out all places up to and including one, and return them in pieces.

        Who frees the pieces frees what is in them, which may take long.
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
        """Take out all that there is, a piece a step: nobody needs it any more."""
        self._ledger_id, self._at, self._piece = _NO_PIECE
        while self._pieces:
            self._pieces.popitem()
            yield
