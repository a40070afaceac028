"""Stored objects are whole or absent, and never in a local folder of the store's name."""

import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from loadgen import stored
from loadgen.commands.explained import explained
from loadgen.documents.model import Topics
from loadgen.documents.reading import read_document
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.directory import RUN_NAME, run_directory, write_json
from loadgen.places.launcher import known_namespaces, running_servers
from loadgen.results.asking import run_sql
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.stored import StoredPath, folder_here, placed, written_whole
from loadgen.topics.corpus import Corpus, open_corpus, write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.listed import write_listed_corpus
from loadgen.topics.load_state import LoadState
from loadgen.topics.loading import load_by_import
from loadgen.topics.manifest import MANIFEST_NAME
from loadgen.topics.plan import TopicPlan
from loadgen.topics.reading import read_topics
from tests.support.runs.recorded_run import record_run, request

PLAN = TopicPlan(1000, 7, seed=7)
HERE = in_this_process(lambda done: None)


class Bucket(fs.LocalFileSystem):  # type: ignore[misc]
    """A folder as a store, without making folders."""

    def open_output_stream(self, path: str, **options: Any) -> Any:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return super().open_output_stream(path, **options)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of bucket ``b``."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "store"
    monkeypatch.setattr(stored, "_file_system", lambda scheme, place: (Bucket(), f"{root}/{place}"))
    (root / "b").mkdir(parents=True)
    yield root / "b"
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


TOPICS = placed(Path("s3a://b/topics"))


def rows(corpus: Corpus) -> list[dict[str, Any]]:
    tables = [pq.read_table(stored.readable(file)) for file in corpus.files]
    return [row for table in tables for row in table.to_pylist()]


def left_in(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


# -- addresses and access -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3a://b/c/d", "s3a://b/c/d"),
        ("gs://b", "gs://b"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("hdfs://name:8020/x", "hdfs://name:8020/x"),
        ("file:///tmp/x", "/tmp/x"),
        ("out/topics", "out/topics"),
        ("s3a:", "s3a:"),
    ],
)
def test_an_address_is_a_place_in_a_store_and_other_text_is_a_local_path(
    text: str, found: str
) -> None:
    assert str(placed(Path(text))) == found


def test_an_address_of_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(UsageError, match="ftp://host/x is no place that loadgen knows: name a"):
        placed(Path("ftp://host/x"))


def test_path_options_of_every_command_may_be_addresses_of_stores() -> None:
    seen: list[object] = []

    def command(out: Path, runs: list[Path], name: str) -> None:
        seen.extend([out, *runs, name])

    places = [Path("s3a://b/x"), Path("gs://b/x"), Path("out")]
    explained(command)(out=places[0], runs=places[1:], name="s3a://b/x")
    assert list(map(str, seen)) == ["s3a://b/x", "gs://b/x", "out", "s3a://b/x"]


def test_only_variables_of_store_access_and_endpoints_are_passed_on(monkeypatch) -> None:
    for name in stored.store_variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_PAGER", "less")
    assert stored.store_variables() == {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}


def test_a_stored_path_can_be_pickled_for_tasks() -> None:
    sent = pickle.loads(pickle.dumps(TOPICS / "part-0"))
    assert (type(sent), str(sent)) == (StoredPath, "s3a://b/topics/part-0")


@pytest.mark.parametrize("use", [os.mkdir, os.listdir, open, Path.touch])
def test_a_stored_path_is_refused_as_a_local_file(use: Any) -> None:
    with pytest.raises(UsageError, match="s3a://b/topics is not on this machine, as it has to be"):
        use(TOPICS)


def test_an_unreachable_store_is_reported_in_a_single_line(monkeypatch) -> None:
    def refuse(scheme: str, place: str) -> None:
        raise OSError("no route to it\nin many lines")

    monkeypatch.setattr(stored, "_file_system", refuse)
    with pytest.raises(LoadgenError, match=r"^s3a://b/topics cannot be used: no route to it$"):
        TOPICS.exists()


def test_a_store_error_without_text_is_reported_by_its_type(bucket: Path) -> None:
    def fail() -> None:
        with TOPICS.asked():
            raise TimeoutError

    with pytest.raises(LoadgenError, match=r"^s3a://b/topics cannot be used: TimeoutError$"):
        fail()


# -- failed writes --------------------------------------------------------------------------------


@pytest.mark.parametrize("stored_there", [True, False])
@pytest.mark.parametrize("error", [OSError("the source is gone"), KeyboardInterrupt()])
def test_a_failed_write_leaves_no_file_and_raises_its_error_unchanged(
    bucket: Path, error: BaseException, stored_there: bool
) -> None:
    (bucket / "x").mkdir()
    path = placed(Path("s3a://b/x/file")) if stored_there else bucket / "x" / "file"

    def fail() -> None:
        with written_whole(path) as file:
            file.write(b"half of it")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert (caught.value, left_in(bucket)) == (error, [])


def test_a_file_that_the_store_rejects_is_reported_and_absent(bucket: Path, monkeypatch) -> None:
    class Full(pa.PythonFile):  # type: ignore[misc]
        def close(self) -> None:
            super().close()
            raise OSError("quota exceeded")

    monkeypatch.setattr(
        Bucket,
        "open_output_stream",
        lambda self, path, **_: Full((bucket / "file").open("wb"), mode="w"),
    )
    with pytest.raises(LoadgenError, match=r"^s3a://b/file cannot be used: quota exceeded$"):
        placed(Path("s3a://b/file")).write_text("all of it")
    assert left_in(bucket) == []


class FullDisk(fs.LocalFileSystem):  # type: ignore[misc]
    """The file system of a full disk."""

    def open_output_stream(self, path: str, **_: Any) -> Any:
        Path(path).touch()
        return pa.OSFile("/dev/full", "wb")


@pytest.mark.parametrize("write", [lambda run: write_json(run / "run.json", {}), record_run])
def test_a_full_disk_is_reported_and_leaves_no_partial_files(write, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fs, "LocalFileSystem", FullDisk)
    with pytest.raises(LoadgenError, match=r"cannot be written.*No space left on device$"):
        write(tmp_path)
    assert left_in(tmp_path) == []


# -- topic lists and corpora ----------------------------------------------------------------------


def test_a_corpus_can_be_written_to_and_read_from_a_store(bucket: Path) -> None:
    written = write_corpus(PLAN, TOPICS, 3, HERE)
    assert left_in(bucket) == [
        "topics/_manifest.json", *(f"topics/part-0000{part}.parquet" for part in range(3)),
    ]  # fmt: skip
    found = open_corpus(TOPICS)
    assert (found, len(rows(found)), found.file_bytes > 0) == (written, 1000, True)
    bases = {row["topic"].rpartition("-partition-")[0] or row["topic"] for row in rows(found)}
    assert len(list(read_topics(TOPICS))) == len(bases)
    assert len(known_namespaces(Topics(corpus=str(TOPICS)))) == 7


def test_a_topic_list_in_a_store_becomes_a_corpus_in_the_store(bucket: Path) -> None:
    source = write_corpus(PLAN, TOPICS, 3, HERE)
    made = write_listed_corpus(TOPICS, placed(Path("s3a://b/mine")), [HERE, HERE]).corpus
    assert rows(made) == rows(source)
    assert not any("scratch" in name for name in left_in(bucket))


def test_a_text_file_of_topics_in_a_store_is_read(bucket: Path) -> None:
    (bucket / "names.txt").write_text("persistent://t/n/b\n# none\npersistent://t/n/a\n")
    made = write_listed_corpus(placed(Path("s3a://b/names.txt")), TOPICS, [HERE, HERE]).corpus
    assert [row["topic"] for row in rows(made)] == ["persistent://t/n/a", "persistent://t/n/b"]


def test_an_older_corpus_is_deleted_first_and_the_new_manifest_is_written_last(
    bucket: Path,
) -> None:
    write_corpus(TopicPlan(5000, 50, seed=1), TOPICS, 9, HERE)
    seen: list[list[str]] = []

    def execute(work: Any, parts: int) -> Iterator[Any]:
        for part in range(parts):
            seen.append(left_in(bucket))
            yield from work(part)

    write_corpus(PLAN, TOPICS, 2, execute)
    assert seen == [[], ["topics/part-00000.parquet"]]
    assert len(open_corpus(TOPICS).files) == 2


def test_files_of_a_killed_job_are_no_corpus_and_are_replaced(bucket: Path) -> None:
    write_corpus(TopicPlan(5000, 50, seed=1), TOPICS, 9, HERE)
    (bucket / "topics" / MANIFEST_NAME).unlink()
    (bucket / "topics" / ".scratch").mkdir()
    with pytest.raises(UsageError, match=r"not a topic corpus: it has no _manifest\.json"):
        open_corpus(TOPICS)
    write_corpus(PLAN, TOPICS, 2, HERE)
    assert len(left_in(bucket)) == 3


@pytest.mark.parametrize("out", ["s3a://b/topics", "s3n://b/topics", "s3a://b"])
def test_a_corpus_is_not_written_over_its_own_topic_list(bucket: Path, out: str) -> None:
    write_corpus(PLAN, TOPICS, 3, HERE)
    before = left_in(bucket)
    with pytest.raises(UsageError, match=f"--out {out} would replace the list s3a://b/topics"):
        write_listed_corpus(TOPICS, placed(Path(out)), [HERE, HERE])
    assert left_in(bucket) == before


async def test_a_load_from_a_whole_bucket_saves_no_state(bucket, monkeypatch) -> None:
    known = stored._file_system

    def only_b(scheme: str, place: str) -> Any:
        if place != "b":
            raise OSError(f"bucket {place} does not exist")
        return known(scheme, place)

    monkeypatch.setattr(stored, "_file_system", only_b)
    (bucket / "0.parquet").touch()
    with suppress(KeyboardInterrupt), LoadState(placed(Path("s3a://b")), "http://x", "rest") as it:
        it.item_done(0)
        raise KeyboardInterrupt
    assert it.done == 1
    assert left_in(bucket) == ["0.parquet"]


def test_a_failed_job_leaves_no_files(bucket: Path) -> None:
    def execute(work: Any, parts: int) -> Iterator[Any]:
        yield from work(0)
        raise LoadgenError("It was not to be.")

    with pytest.raises(LoadgenError, match="not to be"):
        write_corpus(PLAN, TOPICS, 2, execute)
    assert left_in(bucket) == []


def test_foreign_files_in_a_store_are_not_replaced(bucket: Path) -> None:
    (bucket / "topics").mkdir()
    (bucket / "topics" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="s3a://b/topics exists and is not a topic corpus"):
        write_corpus(PLAN, TOPICS, 2, HERE)


async def test_a_broker_cannot_import_from_a_store(bucket: Path) -> None:
    write_corpus(PLAN, TOPICS, 2, HERE)
    with pytest.raises(UsageError, match="s3a://b/topics: a broker imports files that its own"):
        await load_by_import(TOPICS, "http://127.0.0.1:1", lambda topics: None)


def test_servers_of_a_run_cannot_import_from_a_store(tmp_path: Path) -> None:
    document = read_document("storm", ["topics.corpus=s3a://b/topics"])
    with (
        pytest.raises(UsageError, match=r"topics.corpus s3a://b/topics: servers that are started"),
        running_servers(document, tmp_path / "logs"),
    ):
        pytest.fail("they were started")


# -- runs -----------------------------------------------------------------------------------------


RUN = placed(Path("s3a://b/runs/r"))


def test_a_run_in_a_store_can_be_queried_and_its_files_are_written_there(bucket: Path) -> None:
    record_run(RUN, [request(), request(due=1.0)])
    with Results.open(RUN) as results:
        assert results.value("SELECT count(*) FROM requests") == 2
        write_files(results)
    assert run_sql([RUN], "SELECT run, count(*) FROM requests GROUP BY run").rows == [("r", 2)]
    names = left_in(bucket / "runs" / "r")
    assert {"summary.json", "summary.csv", "junit.xml", "README.md", "run.json"} <= {*names}


def test_an_older_run_in_a_store_is_deleted_when_a_new_run_begins(bucket: Path) -> None:
    record_run(RUN, [request()])
    with run_directory(RUN) as folder:
        assert left_in(bucket) == []
        record_run(folder, [request()])
    assert (RUN / RUN_NAME).is_file()


def test_a_failed_run_leaves_no_rows_in_the_store(bucket: Path) -> None:
    def fail() -> None:
        with run_directory(RUN) as folder:
            record_run(folder, [request()])
            raise LoadgenError("It was not to be.")

    with pytest.raises(LoadgenError, match="not to be"):
        fail()
    assert left_in(bucket) == []


def logged(error: BaseException | None) -> None:
    """Run with servers' logs in a local folder, and end."""
    with run_directory(RUN), folder_here(RUN) as here:
        (here / "broker.log").write_text("It began.")
        if isinstance(error, LoadgenError):
            error.sentence = f"See {here / 'broker.log'}"
        if error is not None:
            raise error


def test_server_logs_are_copied_to_the_store_at_the_end(bucket: Path) -> None:
    logged(None)
    assert (bucket / "runs" / "r" / "broker.log").read_text() == "It began."


def test_server_logs_of_a_failed_run_are_copied_and_named_by_their_address(bucket: Path) -> None:
    with pytest.raises(LoadgenError, match=r"^See s3a://b/runs/r/broker\.log$"):
        logged(LoadgenError(""))
    assert left_in(bucket) == ["runs/r/broker.log"]


def test_ctrl_c_before_any_results_leaves_no_logs_in_the_store(bucket: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        logged(KeyboardInterrupt())
    assert left_in(bucket) == []


def test_the_error_of_a_run_is_raised_even_if_logs_cannot_be_copied(
    bucket: Path, monkeypatch
) -> None:
    def fail() -> None:
        with folder_here(RUN) as here:
            (here / "broker.log").touch()
            monkeypatch.setattr(Bucket, "open_output_stream", _refuse)
            raise LoadgenError("It was not to be.")

    with pytest.raises(LoadgenError, match="not to be"):
        fail()


def test_a_store_that_rejects_files_is_reported_before_the_run(bucket: Path, monkeypatch) -> None:
    monkeypatch.setattr(Bucket, "open_output_stream", _refuse)
    refused = pytest.raises(LoadgenError, match=r"^s3a://b/runs/r/\S+ cannot be used: it is full$")
    with refused, run_directory(RUN):
        pytest.fail("the storm began")


def _refuse(*_: object, **__: object) -> None:
    raise OSError("it is full")


def test_a_run_that_cannot_be_copied_is_reported_with_both_places(
    bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_run(RUN, [request()])
    monkeypatch.setattr(fs, "copy_files", _refuse)
    with pytest.raises(LoadgenError, match=r"^s3a://b/runs/r cannot be copied to /\S+: it is full"):
        Results.open(RUN)


def test_logs_stay_in_the_store_when_a_new_run_replaces_an_older_run(bucket: Path) -> None:
    record_run(RUN, [request()])
    (RUN / "broker.log").write_text("It began.")
    (RUN / "README.md").write_text("It is made.")
    with run_directory(RUN):
        assert left_in(bucket) == ["runs/r/broker.log"]
