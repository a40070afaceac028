"""The directory of results is settled before a storm, and foreign files are untouched."""

from pathlib import Path

import pytest

from loadgen.errors import LoadgenError, UsageError
from loadgen.places.directory import require_directory_name, run_directory


def end_with(error: BaseException, directory: Path, files: list[str]) -> None:
    """Leave files in a run's directory, and then the block by an error."""
    with run_directory(directory):
        for name in files:
            (directory / name).touch()
        raise error


def test_a_run_replaces_all_files_of_an_older_run_except_logs(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    for name in ("run.json", "index.html", "requests/part-00007.parquet", "broker.log"):
        (tmp_path / name).write_text("old")
    with run_directory(tmp_path) as folder:
        (folder / "requests").mkdir()
        for name in ("run.json", "requests/part-00000.parquet"):
            (folder / name).write_text("new")
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"run.json", "requests/part-00000.parquet", "broker.log"}
    assert (tmp_path / "run.json").read_text() == "new"


def test_temporary_files_of_a_killed_command_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".summary.json.4711").touch()
    with run_directory(tmp_path) as folder:
        (folder / "run.json").touch()
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_a_failed_run_keeps_the_files_of_the_older_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    with pytest.raises(LoadgenError):
        end_with(LoadgenError("It was not to be."), tmp_path, [".unfinished/run.json"])
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("run.json", "")]


def test_a_directory_with_files_of_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with (
        pytest.raises(UsageError, match=r"holds thesis\.tex, which no run has written"),
        run_directory(tmp_path),
    ):
        pytest.fail("the storm began")


def test_a_directory_that_cannot_be_created_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UsageError, match="choose another --out"),
        run_directory(tmp_path / "file" / "run"),
    ):
        pytest.fail("the storm began")


def test_a_failed_run_leaves_no_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(LoadgenError), run_directory(tmp_path / "run"):
        raise LoadgenError("It was not to be.")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (["broker.log", "proxy.log"], []),
        (["broker.log", "run.json"], ["run/broker.log", "run/run.json"]),
    ],
)
def test_ctrl_c_before_any_results_removes_logs_unless_an_older_run_exists(
    tmp_path: Path, files: list[str], left: list[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        end_with(KeyboardInterrupt(), tmp_path / "run", files)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == left
    assert (tmp_path / "run").exists() == bool(left)


def test_the_log_of_a_server_that_failed_to_start_is_kept(tmp_path: Path) -> None:
    with pytest.raises(LoadgenError):
        end_with(LoadgenError("It said why in its log."), tmp_path, ["broker.log"])
    assert (tmp_path / "broker.log").exists()


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../up", "a\nb", "a\x00b", "\udcff", "x" * 201]
)
def test_an_invalid_run_name_is_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(UsageError, match=r"--name .* take up to 200 bytes, no slash") as caught:
        require_directory_name(name)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["x" * 200, "mine 1.2", "größer", "-a"])
def test_a_valid_run_name_is_accepted(name: str) -> None:
    require_directory_name(name)
