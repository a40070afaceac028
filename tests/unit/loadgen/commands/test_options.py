"""Shared options of commands: shell completion, and refusals."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.commands.options import (
    complete_setting,
    complete_target,
    parse_admin_urls,
    wanted,
)
from loadgen.errors import UsageError

PAGE = Path(__file__).parents[4] / "docs/scenarios.md"


def completed(text: str, target: str | None = "storm") -> list[str]:
    context: Any = SimpleNamespace(params={"target": target} if target else {})
    return complete_setting(context, text)


def test_the_shell_completes_shipped_scenarios() -> None:
    assert complete_target("restart") == ["restart-storm", "restart-storm-full"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s", ["seed", "servers.", "shocks"]),
        ("ser", ["servers.profile", "servers.broker.", "servers.proxy.", "servers.service_times."]),
        ("servers.pro", ["servers.profile", "servers.proxy."]),
        ("cl", ["clients.all.count", "clients.all.read.", "clients.all.arrive."]),
        ("clients.all.co", ["clients.all.count"]),
        ("clients.all.read.n", ["clients.all.read.never"]),
        ("servers.broker.maxTopicListInFlightH", None),
        ("nothing.here", []),
        ("clients.all.read.never.x", []),
    ],
)
def test_the_shell_completes_a_setting_path_up_to_the_next_choice(text, found) -> None:
    expected = ["servers.broker.maxTopicListInFlightHeapMemSizeMB"]
    completions = completed(text)
    assert set(expected if found is None else found) <= set(completions)
    assert found != [] or completions == []


@pytest.mark.parametrize("target", [None, "no-such-scenario"])
def test_without_a_known_scenario_the_shell_completes_settings_common_to_all(
    target: str | None,
) -> None:
    assert completed("rep", target) == ["repeats"]


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("clients.al.count=5", "did you mean all?"),
        ("clients.all.cuont=5", "did you mean count?"),
        ("servers.profile=pulsr", "did you mean pulsar?"),
        ("expect+=list.responce.p99 < 2s", "did you mean response"),
    ],
)
def test_a_misspelled_setting_is_refused_with_the_nearest_name(setting, meant) -> None:
    with pytest.raises(UsageError) as refused:
        wanted("storm", [setting])
    assert setting.partition("=")[0].removesuffix("+") in str(refused.value)
    assert meant in str(refused.value)


def test_an_admin_url_names_its_role_and_optionally_the_process() -> None:
    texts = ["broker=http://127.0.0.1:8080,4711", "proxy=http://127.0.0.1:8081"]
    urls, pids = parse_admin_urls(texts)
    assert urls == {"broker": "http://127.0.0.1:8080", "proxy": "http://127.0.0.1:8081"}
    assert pids == {"broker": 4711}


@pytest.mark.parametrize(
    "texts",
    [
        ["http://127.0.0.1:8080"],
        ["store=http://127.0.0.1:8080"],
        ["broker=127.0.0.1:8080"],
        ["broker=http://127.0.0.1:8080,pid"],
        ["broker=http://a:1", "broker=http://b:1"],
    ],
)
def test_a_malformed_or_repeated_admin_url_is_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--admin-url"):
        parse_admin_urls(texts)


def documented() -> list[tuple[str, list[str]]]:
    """Return the settings of each line of the page's list, with the line's scenario."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").partition("\n## Settings\n")[2].splitlines():
        words = [
            word for code in re.findall(r"`(--set [^`]+)`", line) for word in shlex.split(code)
        ]
        where = re.search(r"` in `([a-z-]+)`$", line)
        if settings := [word for word in words if word != "--set"]:
            found.append((where[1] if where else "storm", settings))
    return found


@pytest.mark.parametrize(("scenario", "settings"), documented(), ids=str)
def test_every_documented_setting_is_accepted_by_its_scenario(
    scenario: str, settings: list[str]
) -> None:
    assert wanted(scenario, settings).name == scenario
