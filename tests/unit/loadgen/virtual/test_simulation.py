from __future__ import annotations

import gc
import weakref

from loadgen.virtual.simulation import uncollected


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_no_garbage_is_looked_for_while_a_simulation_runs() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_a_simulation_left_in_circles_is_gone_behind_it() -> None:
    # Given
    with uncollected():
        left = weakref.ref(Circle())
        assert left() is not None
    # Then
    assert left() is None


def test_a_simulation_in_a_block_without_collector_leaves_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
