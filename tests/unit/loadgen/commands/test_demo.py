"""The demo's options are checked before any file is made, in one sentence each."""

import pytest

from loadgen.commands.demo import demo
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": "0.5"}, "--topics 0.5 is not a whole number"),
        ({"topics": "5", "namespaces": 6}, "one a namespace at least"),
        ({"topics": "mine.txt"}, "your own topics are for: loadgen rehearse --topics FILE"),
        ({"topics": "50", "read_rate": "quick"}, "--read-rate 'quick' must be"),
    ],
)
def test_invalid_topics_or_read_rates_are_refused_before_any_file_is_made(
    options, said, tmp_path
) -> None:
    with pytest.raises(UsageError, match=said):
        demo(**options, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
