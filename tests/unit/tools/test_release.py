import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from proto.version import VERSION
from tests.support.processes.server_process import REPOSITORY
from tools.release import checksums, disagreements, needed


def wheel(folder: Path, name: str, *requires: str) -> Path:
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        rows = "".join(f"Requires-Dist: {one}\n" for one in requires)
        packed.writestr(f"{name}-1.dist-info/METADATA", f"Name: {name}\n{rows}\nText: no header\n")
    return path


def test_every_file_has_the_version_that_is_sent_to_peers() -> None:
    assert list(disagreements(REPOSITORY, f"v{VERSION}")) == []


def test_wheels_named_in_pages_have_the_current_version() -> None:
    pages = (REPOSITORY / "docs" / name for name in ("install.md", "testing-your-application.md"))
    named = [re.findall(r"floodgate-([\d.]+)-py3", page.read_text("utf-8")) for page in pages]
    assert all(named)
    assert {version for each in named for version in each} == {VERSION}


def test_a_file_with_another_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.8"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"## {VERSION}\n")
    (tmp_path / "CITATION.cff").write_text(f"version: {VERSION}\n")
    assert list(disagreements(tmp_path, "v9.9")) == [
        "the tag is v9.9",
        "pyproject.toml has 9.8",
        "CHANGELOG.md does not have it",
    ]


def test_a_wheel_needs_its_sibling_wheels_and_their_dependencies(tmp_path: Path) -> None:
    client = wheel(tmp_path, "a_client", "proto.buf>=7,<8", 'rich; extra == "admin"')
    server = wheel(tmp_path, "a_server", "a-client[admin]==1", "uvloop; sys_platform != 'win32'")
    other = wheel(tmp_path, "other")
    assert needed(server, [client, other, server]) == ([server, client], {"proto-buf", "uvloop"})
    assert needed(client, [client, other, server]) == ([client], {"proto-buf"})


def test_checksums_are_accepted_by_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"b")
    (tmp_path / "SHA256SUMS").write_text(checksums([tmp_path / "b.whl"]))
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_release_refuses_a_tag_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    from tools import release

    monkeypatch.setattr("sys.argv", ["release", "--tag", "v9.9.9"])
    with pytest.raises(SystemExit, match=rf"^No release of version {VERSION}: the tag is v9\.9\.9"):
        release.main()
