"""Names of modules as strings, in a checkout and in the wheel."""

from pathlib import Path

import pytest

from server import module_names
from server.module_names import class_module, module_name, python_path


def test_in_a_checkout_our_modules_are_imported_by_their_short_names() -> None:
    assert module_name("broker.service") == "broker.service"


def test_in_the_wheel_they_stand_in_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_names, "ABOVE", "floodgate.")
    assert module_name("broker.service") == "floodgate.broker.service"


@pytest.mark.parametrize("name", ["broker.property_index", "floodgate.broker.property_index"])
def test_a_class_path_may_have_either_spelling(name: str) -> None:
    assert class_module(name) == "broker.property_index"


@pytest.mark.parametrize(
    "name", ["mine.plugin", "client.of_mine", "floodgate.nothing", "broker.a.b"]
)
def test_a_class_path_to_no_module_of_ours_stays(name: str) -> None:
    assert class_module(name) == name


def test_in_the_wheel_a_users_own_package_of_our_name_is_found(monkeypatch) -> None:
    # This checkout has no package floodgate, like a wheel without the module
    monkeypatch.setattr(module_names, "ABOVE", "floodgate.")
    assert class_module("client.plugin") == "client.plugin"


def test_a_process_finds_this_very_code_before_what_it_inherits(monkeypatch) -> None:
    root = str(Path(module_names.__file__).parents[1])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert python_path() == {"PYTHONPATH": root}
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert python_path() == {"PYTHONPATH": f"{root}:/elsewhere"}
