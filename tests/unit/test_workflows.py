"""Workflows of the forge run make targets, on the Pythons of ``make pythons``."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.pythons import PYTHONS

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
WRITES = {
    "release.yml": {"id-token", "attestations", "contents"},
    "site.yml": {"pages", "id-token"},
}


def document(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_step_runs_a_make_target_or_creates_a_release(path: Path) -> None:
    commands = [
        step["run"]
        for job in document(path)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    unknown = [
        command
        for command in commands
        if not command.startswith("gh release create ")
        and not (command.startswith("make ") and command.split()[1] in TARGETS)
    ]
    assert not unknown


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_only_publishing_jobs_have_write_permissions(path: Path) -> None:
    read = document(path)
    writes = {
        right
        for job in read["jobs"].values()
        for right, level in job.get("permissions", {}).items()
        if level == "write"
    }
    assert read["permissions"] == {"contents": "read"}
    assert writes == WRITES.get(path.name, set())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_has_a_timeout_and_keeps_no_credentials_in_its_checkout(path: Path) -> None:
    jobs = document(path)["jobs"].values()
    assert all("timeout-minutes" in job for job in jobs)
    checkouts = [
        step.get("with")
        for job in jobs
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert all(given == {"persist-credentials": False} for given in checkouts)


def test_the_publish_job_uploads_only_wheels() -> None:
    jobs = document(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    fetched = [step["with"].get("name") for step in jobs["publish"]["steps"][:-1]]
    kept = {
        step["with"]["name"]: step["with"]["path"]
        for step in jobs["build"]["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact@")
    }
    assert [kept[name] for name in fetched] == ["dist/*.whl"]


def test_the_test_workflow_runs_every_supported_python() -> None:
    matrix = document(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]["strategy"]
    assert [f"python{one}" for one in matrix["matrix"]["python"]] == list(PYTHONS)
