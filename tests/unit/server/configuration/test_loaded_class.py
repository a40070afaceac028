"""A configured class is found, or refused with the reason."""

import sys

import pytest

from limiter.admission.policy import Admission
from server.configuration.loaded_class import UnusableClassError, is_class_path, loaded_class


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:B", True),
        ("a.b:C", True),
        ("a.b.C", False),
        ("fair", False),
        ("a:", False),
        (":B", False),
    ],
)
def test_a_class_path_consists_of_a_module_and_a_class(text: str, expected: bool) -> None:
    assert is_class_path(text) is expected


def test_a_class_is_found_in_the_working_directory(tmp_path, monkeypatch) -> None:
    # A program started without python -m
    (tmp_path / "a_policy_of_mine.py").write_text(
        "from limiter import Admission\nclass Mine(Admission):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    found = loaded_class("a_policy_of_mine:Mine", Admission)
    assert issubclass(found, Admission)


def test_a_class_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(UnusableClassError, match="OrderedDict is no subclass of Admission"):
        loaded_class("collections:OrderedDict", Admission)
