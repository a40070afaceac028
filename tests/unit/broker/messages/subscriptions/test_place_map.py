"""Numbers by place, in pieces; tests/properties compares with a plain mapping."""

import gc

from broker.messages.subscriptions.place_map import NOTHING, PIECE_BITS, PlaceMap

PIECE = 1 << PIECE_BITS


def of_entries(count: int) -> PlaceMap:
    """Return a map of ``count`` neighbouring entries in ledger 7."""
    places = PlaceMap()
    for entry in range(count):
        places.put((7, entry), entry)
    return places


def test_an_absent_place_has_no_number() -> None:
    places = of_entries(2)
    taken = [places.pop((7, 1)), places.pop((7, 1)), places.pop((8, 0), 5)]
    assert taken == [1, NOTHING, 5]
    assert [(7, one) in places for one in (0, 1)] == [True, False]


def test_pieces_stay_small_and_untracked_by_the_garbage_collector() -> None:
    places = of_entries(5 * PIECE)
    gc.collect()
    pieces = list(places._pieces.values())
    assert [len(one) for one in pieces] == [PIECE] * 5
    assert not any(map(gc.is_tracked, pieces))


def test_removed_places_leave_no_empty_pieces_behind() -> None:
    places = of_entries(0)
    # Alternating additions and removals, in many pieces
    for entry in range(0, 50 * PIECE, PIECE):
        places.put((7, entry), 1)
        places.pop((7, entry))
    assert not places
    assert len(places._pieces) == 1


def test_a_map_is_emptied_a_piece_per_step() -> None:
    places = of_entries(3 * PIECE)
    left = [len(places) for _ in places.emptied()]
    assert left == [2 * PIECE, PIECE, 0]


def test_cut_places_are_returned_in_pieces_to_be_freed_later() -> None:
    places = of_entries(3 * PIECE)
    taken = places.cut((7, 2 * PIECE + 9))
    assert [len(one) for one in taken] == [PIECE, PIECE]
    assert sorted(places) == [(7, entry) for entry in range(2 * PIECE + 10, 3 * PIECE)]


def test_an_iteration_follows_changes_of_the_map() -> None:
    places = of_entries(3 * PIECE)
    looked = places.through((7, 3 * PIECE - 2))
    first = [next(looked) for _ in range(PIECE)]
    places.cut((7, 2 * PIECE - 1))
    places.put((9, 0), 1)
    assert first == [(7, entry) for entry in range(PIECE)]
    assert sorted(looked) == [(7, entry) for entry in range(2 * PIECE, 3 * PIECE - 1)]


def test_a_copy_has_the_first_places_in_order() -> None:
    places = PlaceMap()
    for entry in (2 * PIECE, 5, 1, 3):
        places.put((7, entry), entry)
    places.put((3, 9), 9)
    copied = places.copy(3)
    places.put((7, 1), 99)
    assert dict(copied.items()) == {(3, 9): 9, (7, 1): 1, (7, 3): 3}
