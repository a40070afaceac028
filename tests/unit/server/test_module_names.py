"""Names of modules as strings, in a checkout and in the wheel."""

from pathlib import Path

import pytest

from server import module_names
from server.module_names import class_module, module_name, python_path


def test_in_a_checkout_our_modules_are_imported_by_their_short_names() -> None:
    assert module_name("broker.service") == "broker.service"


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("broker.service", "pulsar_floodgate.broker.service"),
        ("client.client", "pulsar_floodgate_client.client"),
        ("loadgen", "pulsar_floodgate_loadgen"),
    ],
)
def test_wheels_have_them_in_their_packages(
    monkeypatch: pytest.MonkeyPatch, name: str, home: str
) -> None:
    monkeypatch.setattr(module_names, "IS_CHECKOUT", False)
    assert module_name(name) == home


@pytest.mark.parametrize(
    "name", ["broker.property_index", "pulsar_floodgate.broker.property_index"]
)
def test_a_class_path_may_have_either_spelling(name: str) -> None:
    assert class_module(name) == "broker.property_index"


@pytest.mark.parametrize(
    "name", ["mine.plugin", "client.of_mine", "pulsar_floodgate.nothing", "broker.a.b"]
)
def test_a_class_path_to_no_module_of_ours_stays(name: str) -> None:
    assert class_module(name) == name


def test_in_the_wheel_a_users_own_package_of_our_name_is_found(monkeypatch) -> None:
    # A checkout has no package of wheels, like a wheel without the module
    monkeypatch.setattr(module_names, "IS_CHECKOUT", False)
    assert class_module("client.plugin") == "client.plugin"


def test_a_process_finds_this_very_code_before_what_it_inherits(monkeypatch) -> None:
    root = str(Path(module_names.__file__).parents[1])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert python_path() == {"PYTHONPATH": root}
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert python_path() == {"PYTHONPATH": f"{root}:/elsewhere"}
