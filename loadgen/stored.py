"""Paths in object stores and Hadoop file systems that behave like :class:`pathlib.Path`.

Code that reads and writes through these methods also works in an object store. For code that needs
a local file, such as a server's import, the error has a sentence for the user. Nothing in an object
store can be renamed. An object appears when all its bytes are written. The manifest of a corpus and
the ``run.json`` of a run are written last, and mark their folder as complete.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tempfile
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path, PosixPath, PurePath
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa
from pyarrow import fs

from loadgen.errors import LoadgenError, UsageError, reason_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager

    from _typeshed import ReadableBuffer

_S3 = ("s3a", "s3", "s3n")
_OTHERS = ("gs", "hdfs", "viewfs", "abfss", "abfs")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):")
_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 5, 60, 3
_VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
)


def placed(path: Path) -> Path:
    """Convert a path that is an address, such as ``s3a://bucket/x``, to a :class:`StoredPath`.

    Paths without a scheme are returned unchanged, and those with ``file:`` become local paths.

    Raises:
        UsageError: The address has an unknown scheme.
    """
    found = _SCHEME.fullmatch(path.parts[0]) if len(path.parts) > 1 else None
    if found is None:
        return path
    if found[1] in (*_S3, *_OTHERS):
        return StoredPath(path)
    if found[1] == "file":
        return Path("/", *path.parts[1:])
    known = ", ".join(f"{each}://" for each in (*_S3[:2], *_OTHERS))
    raise UsageError(
        f"{found[1]}://{Path(*path.parts[1:])} is no place that loadgen knows: name a folder of "
        f"this machine, or one that begins with {known}"
    )


def store_variables() -> dict[str, str]:
    """Return the environment variables with the address and credentials of an object store."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


class StoredPath(PosixPath):
    """A path in an object store or Hadoop file system, such as ``s3a://bucket/folder/file``."""

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def __fspath__(self) -> NoReturn:
        raise UsageError(f"{self} is not on this machine, as it has to be: name a folder here")

    @property
    def at(self) -> tuple[fs.FileSystem, str]:
        """The Arrow file system of the object store, and the path within it."""
        scheme, place, *names = self.parts
        system, root = _file_system(scheme.rstrip(":"), place)
        return system, "/".join([root.rstrip("/"), *names])

    @contextmanager
    def asked(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """Yield ``at``, the file system and path, for calls whose errors become LoadgenError.

        Raises:
            FileNotFoundError: The path does not exist.
            LoadgenError: The store refused a call, or did not answer.
        """
        try:
            yield self.at
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise LoadgenError(f"{self} cannot be used: {reason_of(error)}") from None

    # -- listings -------------------------------------------------------------------------------

    def _info(self) -> fs.FileInfo:
        # A path from a listing already has size and kind: no further call.
        if (known := vars(self).get("listed")) is not None:
            return known
        with self.asked() as (system, path):
            return system.get_file_info(path)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the type, size and modification time of the file or folder.

        Raises:
            FileNotFoundError: The path does not exist.
        """
        del follow_symlinks
        info = self._info()
        if info.type is fs.FileType.NotFound:
            raise FileNotFoundError(f"{self} does not exist")
        mode = stat.S_IFDIR if info.type is fs.FileType.Directory else stat.S_IFREG
        changed = (info.mtime_ns or 0) // 10**9
        return os.stat_result((mode, 0, 0, 0, 0, 0, info.size or 0, 0, changed, 0))

    def exists(self, **_: object) -> bool:
        """Return True if the path is a file, or a folder that contains files."""
        return self._info().type is not fs.FileType.NotFound

    def is_dir(self, **_: object) -> bool:
        """Return True if the path is a folder."""
        return self._info().type is fs.FileType.Directory

    def is_file(self, **_: object) -> bool:
        """Return True if the path is a file."""
        return self._info().type is fs.FileType.File

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield the files and folders of this folder."""
        return self._listing(recursive=False)

    def _listing(self, *, recursive: bool) -> Generator[Self, None, None]:
        with self.asked() as (system, path):
            found = system.get_file_info(fs.FileSelector(path, True, recursive))
        for each in found:
            child = self / each.path.removeprefix(path).strip("/")
            vars(child)["listed"] = each
            yield child

    def glob(self, pattern: str, **_: object) -> Generator[Self, None, None]:
        """Yield the files and folders in this folder whose name matches, such as ``*.parquet``."""
        return (each for each in self.iterdir() if fnmatch(each.name, pattern))

    def rglob(self, pattern: str, **_: object) -> Generator[Self, None, None]:
        """Yield the files and folders at any depth below this folder whose name matches."""
        return (each for each in self._listing(recursive=True) if fnmatch(each.name, pattern))

    def resolve(self, strict: bool = False) -> Self:
        """Return this path unchanged, because paths in a store are always absolute."""
        del strict
        return self

    # -- reading and writing --------------------------------------------------------------------

    def open(self, mode: str = "r", *_: object, **text: Any) -> IO[Any]:  # type: ignore[override] # noqa: ANN401
        """Open the file at this path for reading bytes or text."""
        if set(mode) - set("rbt"):
            return super().open(mode)  # raises: writing goes through the methods below
        opened = io.BufferedReader(self.input())
        return opened if "b" in mode else io.TextIOWrapper(opened, **text)

    def input(self) -> pa.NativeFile:
        """Open the file at this path as an Arrow input file."""
        with self.asked() as (system, path):
            return system.open_input_file(path)

    def write_bytes(self, data: ReadableBuffer) -> int:
        """Write the whole file at this path, replacing an older one."""
        with self.asked(), written_whole(self) as stream:
            return int(stream.write(data))

    def write_text(self, data: str, encoding: str | None = None, *_: object, **__: object) -> int:
        """Write the whole file at this path as text, replacing an older one."""
        return self.write_bytes(data.encode(encoding or "utf-8"))

    def mkdir(self, *_: object, **__: object) -> None:
        """Do nothing, because a store creates folders when the first file in them is written."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the file at this path."""
        if not missing_ok or self.is_file():
            with self.asked() as (system, path):
                system.delete_file(path)

    def remove(self) -> None:
        """Delete the folder at this path with all its files."""
        with self.asked() as (system, path):
            system.delete_dir(path)

    def clear(self, first: str, spared: str = "") -> None:
        """Delete all files in the folder except those that match ``spared``, such as ``*.log``.

        The file ``first``, which marks the folder as complete, is deleted first.
        """
        (self / first).unlink(missing_ok=True)
        if not any(self.glob(spared)):
            with self.asked() as (system, path):
                system.delete_dir_contents(path, missing_dir_ok=True)
            return
        for each in self.iterdir():
            if each.is_dir():
                each.remove()
            elif not fnmatch(each.name, spared):
                each.unlink()


@lru_cache
def _file_system(scheme: str, place: str) -> tuple[fs.FileSystem, str]:
    if scheme not in _S3:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"{scheme}://{place}/")
        return found
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    system = fs.S3FileSystem(
        region=region or ("us-east-1" if endpoint else fs.resolve_s3_region(place)),
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
    return system, place


def readable(path: Path) -> Path | pa.NativeFile:
    """Return what Arrow can read: a local path as it is, or an opened file of an object store."""
    return path.input() if isinstance(path, StoredPath) else path


def lies_in(path: Path, folder: Path) -> bool:
    """Return True if ``path`` is ``folder`` or lies within it.

    ``s3`` and ``s3a`` addresses count as the same store.
    """
    one, other = (_plain(each.resolve()) for each in (path, folder))
    return one.is_relative_to(other)


def _plain(path: Path) -> PurePath:
    scheme, *names = path.parts
    return PurePath("s3:" if scheme.rstrip(":") in _S3 else scheme, *names)


@contextmanager
def written_whole(path: Path) -> Iterator[pa.NativeFile]:
    """Open a file for writing, which appears at ``path`` only when the ``with`` block has ended.

    If the block fails, the written bytes are deleted.

    Raises:
        LoadgenError: The store did not accept the file. Errors of the block pass unchanged.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished = path if isinstance(path, StoredPath) else hidden
    with _asked(unfinished) as (system, target):
        file = system.open_output_stream(target, compression=None)
    try:
        yield file
        with _asked(unfinished):
            file.close()
        if unfinished is not path:
            unfinished.replace(path)
    except BaseException:
        # A stream to a store cannot be cancelled: releasing the last reference makes the object.
        with suppress(OSError, pa.ArrowException):
            file.close()
        with suppress(OSError, LoadgenError):
            unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that it appears only when it is complete.

    Raises:
        LoadgenError: The file cannot be written.
    """
    try:
        with written_whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise LoadgenError(f"{path} cannot be written: {reason_of(error)}") from error


def _asked(path: Path) -> AbstractContextManager[tuple[fs.FileSystem, str]]:
    if isinstance(path, StoredPath):
        return path.asked()
    return nullcontext((fs.LocalFileSystem(), str(path)))


@contextmanager
def emptied(folder: StoredPath, mark: str, spared: str = "") -> Iterator[StoredPath]:
    """Empty a folder before the ``with`` block that writes to it, and again if the block fails.

    The block writes the file ``mark`` last.

    Files that match ``spared`` stay, except after a Ctrl-C.
    """
    folder.clear(mark, spared)
    try:
        yield folder
    except BaseException as error:
        with suppress(OSError, LoadgenError):
            folder.clear(mark, "" if isinstance(error, KeyboardInterrupt) else spared)
        raise


@contextmanager
def folder_here(path: Path) -> Iterator[Path]:
    """Yield a local folder to write to, given a path that may be in an object store.

    If the path is in a store, the files are copied there at the end of the ``with`` block.
    """
    if not isinstance(path, StoredPath):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="loadgen-") as folder:
        here = Path(folder, path.name)
        here.mkdir()
        try:
            yield here
        except BaseException as error:
            if isinstance(error, LoadgenError):  # The named folder is deleted now.
                error.sentence = error.sentence.replace(str(here), str(path))
            with suppress(OSError, LoadgenError):
                _copy(here, path)
            raise
        _copy(here, path)


def _copy(folder: Path, path: StoredPath) -> None:
    for each in folder.iterdir():
        (path / each.name).write_bytes(each.read_bytes())


def copied_here(path: Path, folder: Path) -> Path:
    """Return a local folder that contains the files of ``path``.

    Files in an object store are copied to ``folder``; a local path is returned unchanged.
    """
    if not isinstance(path, StoredPath):
        return path
    try:
        folder.mkdir()
        system, source = path.at
        fs.copy_files(source, str(folder), source_filesystem=system)
    except (OSError, pa.ArrowException) as error:
        said = f"{path} cannot be copied to {folder}: {reason_of(error)}"
        raise LoadgenError(said) from None
    return folder
