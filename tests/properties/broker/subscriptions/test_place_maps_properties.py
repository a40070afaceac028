"""Random changes of numbers by place: a plain mapping has the same."""

from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.messages.subscriptions.place_map import NOTHING, PIECE_BITS, PlaceMap
from tests.support.examples import many

PIECE = 1 << PIECE_BITS
# Few ledgers, and entries at both ends of few pieces, so that changes meet.
PLACES = st.tuples(
    st.integers(1, 2), st.sampled_from([*range(3), PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
)
NUMBERS = st.integers(0, 9)


class PlaceMachine(RuleBasedStateMachine):
    """A map beside a plain mapping, with at most one iteration in progress."""

    def __init__(self) -> None:
        super().__init__()
        self.places = PlaceMap()
        self.model: dict[tuple[int, int], int] = {}
        self.look: Iterator[tuple[int, int]] = iter(())
        self.unseen: set[tuple[int, int]] = set()

    @rule(place=PLACES, number=NUMBERS)
    def put(self, place: tuple[int, int], number: int) -> None:
        self.places.put(place, number)
        self.model[place] = number

    @rule(place=PLACES)
    def pop(self, place: tuple[int, int]) -> None:
        assert self.places.pop(place) == self.model.pop(place, NOTHING)
        self.unseen.discard(place)

    @rule(place=PLACES)
    def get(self, place: tuple[int, int]) -> None:
        assert (place in self.places) == (place in self.model)
        assert self.places.get(place) == self.model.get(place, NOTHING)

    @rule(last=PLACES)
    def cut(self, last: tuple[int, int]) -> None:
        pieces = self.places.cut(last)
        gone = {one for one in self.model if one <= last}
        assert sum(map(len, pieces)) <= len(gone)
        self.model = {one: of for one, of in self.model.items() if one > last}
        self.unseen -= gone

    @rule(last=PLACES)
    def begin_to_look(self, last: tuple[int, int]) -> None:
        self.look = self.places.through(last)
        self.unseen = {one for one in self.model if one <= last}

    @rule(most=st.integers(1, 3))
    def look_on(self, most: int) -> None:
        for _ in range(most):
            place = next(self.look, None)
            if place is None:
                assert not self.unseen
            else:
                self.unseen.discard(place)

    @rule(most=st.integers(1, 4))
    def copy(self, most: int) -> None:
        assert dict(self.places.copy(most).items()) == dict(sorted(self.model.items())[:most])

    @rule()
    def empty(self) -> None:
        for _ in self.places.emptied():
            pass
        self.model.clear()
        self.unseen.clear()

    @invariant()
    def holds_the_same(self) -> None:
        assert dict(self.places.items()) == self.model
        assert set(self.places) == set(self.model)
        assert (len(self.places), bool(self.places)) == (len(self.model), bool(self.model))
        place = self.places.any_place()
        assert place in self.model if self.model else place is None


PlaceMachine.TestCase.settings = settings(max_examples=many(100), deadline=None)
TestPlaces = PlaceMachine.TestCase
