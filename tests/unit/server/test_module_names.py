"""Names of modules as strings, in a checkout and in the wheel."""

from pathlib import Path

import pytest

from server import module_names
from server.module_names import class_module, module_name, python_path


def test_in_a_checkout_modules_are_imported_by_their_short_names() -> None:
    assert module_name("broker.service") == "broker.service"


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("broker.service", "pulsar_floodgate.broker.service"),
        ("client.client", "pulsar_floodgate_client.client"),
        ("loadgen", "pulsar_floodgate_loadgen"),
    ],
)
def test_in_a_wheel_modules_are_imported_from_their_packages(
    monkeypatch: pytest.MonkeyPatch, name: str, home: str
) -> None:
    monkeypatch.setattr(module_names, "IS_CHECKOUT", False)
    assert module_name(name) == home


@pytest.mark.parametrize(
    "name", ["broker.property_index", "pulsar_floodgate.broker.property_index"]
)
def test_a_class_path_may_use_either_spelling_of_a_module(name: str) -> None:
    assert class_module(name) == "broker.property_index"


@pytest.mark.parametrize(
    "name", ["mine.plugin", "client.of_mine", "pulsar_floodgate.nothing", "broker.a.b"]
)
def test_a_class_path_outside_floodgates_modules_is_unchanged(name: str) -> None:
    assert class_module(name) == name


def test_in_a_wheel_a_users_own_package_named_like_a_module_of_floodgate_is_found(
    monkeypatch,
) -> None:
    # A checkout has no package of wheels, like a wheel without the module
    monkeypatch.setattr(module_names, "IS_CHECKOUT", False)
    assert class_module("client.plugin") == "client.plugin"


def test_the_python_path_of_a_child_process_begins_with_the_running_code(monkeypatch) -> None:
    root = str(Path(module_names.__file__).parents[1])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert python_path() == {"PYTHONPATH": root}
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert python_path() == {"PYTHONPATH": f"{root}:/elsewhere"}
