import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.json_steps import json_pieces
from server.http import json_bytes
from server.tasks.cooperative import ITEMS_A_STEP

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def written(value: object, levels: int) -> tuple[bytes, int]:
    """Return the written text and the number of steps."""
    work, steps = json_pieces(value, levels), 0
    while True:
        try:
            next(work)
        except StopIteration as done:
            return b"".join(done.value), steps
        steps += 1


@given(VALUES, st.integers(0, 5))
def test_json_written_in_steps_equals_json_written_in_full(value: object, levels: int) -> None:
    assert written(value, levels)[0] == json_bytes(value)


@pytest.mark.parametrize(("levels", "steps"), [(0, 1), (2, 101)])
def test_elements_down_to_the_chosen_level_take_a_step_each(levels: int, steps: int) -> None:
    consumers = [{"name": str(number), "ranges": [[1, 2]]} for number in range(100)]
    assert written({"consumers": consumers, "n": 1}, levels)[1] == steps


def test_a_long_list_takes_several_steps_at_any_level() -> None:
    value = list(range(2 * ITEMS_A_STEP + 1))
    text, steps = written(value, 0)
    assert (text, steps) == (json_bytes(value), 3)
