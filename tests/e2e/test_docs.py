"""Every command in README.md and docs/*.md exists; marked commands run, in small."""

import ast
import asyncio
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import pytest

from client.admin.commands.command_line import main as admin_main
from loadgen.__main__ import main as loadgen_main
from loadgen.behaviours.registry import AnyGroup
from loadgen.documents.reading import shipped
from loadgen.studies.advise.limits import KEYS as ADVISED
from tests.e2e.test_golden_dialogues import DIALOGUES
from tests.e2e.test_golden_messages import ROWS
from tests.e2e.test_golden_replay import CASES as EXCHANGES
from tests.e2e.test_golden_replay import GOLDEN
from tests.support.documentation import (
    AS_IT_IS,
    PYTHON,
    Block,
    blocks,
    flags,
    make_targets,
    prints,
    programs,
)
from tests.support.golden.rest import load_calls
from tests.support.peers.tls_forwarder import Certificates, tls_forwarder
from tests.support.processes.free_port import free_port
from tests.support.processes.server_process import REPOSITORY, running_server

pytestmark = pytest.mark.processes

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks(page)]
MARKED = [page for page in PAGES if any(block.set_up for block in blocks(page))]
SET_UPS = {AS_IT_IS, "corpus", "broker", "load", "storm", "metrics", "report", "transcript"}
SET_UPS |= {PYTHON, "tls"}
# Programs outside this project that pages may call.
FOREIGN = {
    "cd",
    "curl",
    "docker",
    "git",
    "grep",
    "promtool",
    "pulsar-admin",
    "make",
    "export",
    "sed",
}
# Programs that readers have.
FOREIGN |= {"go", "kill", "mkfifo", "mvn", "pip", "pytest", "python3", "read", "rm", "venv"}
SCRIPTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]

BEHAVIOURS = get_args(get_args(AnyGroup)[0])

# Number of subcommand words after a program.
VERBS = {"loadgen": 1, "client.admin": 2}
GROUPS = ("scenarios", "spark")  # loadgen verbs with subcommands

SMALL = {"--topics": "600", "--namespaces": "3", "--clients": "12"}
SMALL_VALUES = {
    r"clients\.(?:all|cpp)\.count": "12", r"clients\.stuck\.pipelined": "64",
    r"phases\.measure": "3s", r"clients\.stuck\.drop\.at": "2s",
}  # fmt: skip
PORTS = {
    "broker": ("brokerServicePort", "webServicePort"),
    "proxy": ("servicePort", "webServicePort"),
}
PORTS_OF_PAGES = ("6650", "8080", "6651", "8081", "6652", "6653", "6659")
# A busy machine delays a storm, which is no fault of the page.
ALLOWED_EXITS = (0, 98)
# An operator's files: topics, and files that no local server can use unchanged.
EXAMPLES = REPOSITORY / "examples" / "policies"
OWN_FILES = {
    "my_policy.py": (EXAMPLES / "expected_wait.py").read_text(encoding="utf-8"),
    "my-storm.yaml": (EXAMPLES / "expected-wait.yaml").read_text(encoding="utf-8"),
    "topics.txt": "".join(
        f"persistent://my-tenant/my-namespace/t-{number}\n" for number in range(20)
    ),
    "broker.conf": "brokerServicePort=6650\nmetadataStoreUrl=zk:zk1:2181\n"
    "authenticationEnabled=true\nmaxTopicListInFlightDirectMemSizeMB=20\n",
    "proxy.conf": "servicePort=6650\nbrokerServiceURL=pulsar://broker.example:6650\n"
    "tlsEnabledWithBroker=true\nmaxTopicListInFlightDirectMemSizeMB=20\n",
}


@lru_cache
def help_of(*words: str) -> str:
    """Return a program's --help, run in this process for speed."""
    found = find_spec(words[0])
    assert found is not None, f"there is no module {words[0]}"
    is_package = found.submodule_search_locations is not None
    module = import_module(f"{words[0]}.__main__" if is_package else words[0])
    code, out, err = called(module.main, [*words, "--help"], {})
    assert not code, f"{words} --help: {err}"
    return out


def called(
    main: Callable[[], None], words: list[str], variables: dict[str, str]
) -> tuple[object, str, str]:
    """Run a program in this process; return its exit code and output."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", words),
        patch.dict(os.environ, {"COLUMNS": "200", "NO_COLOR": "1"} | variables),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return ended.value.code, out.getvalue(), err.getvalue()


def environment(directory: Path) -> dict[str, str]:
    """Set a wide terminal, so flags are not split, and this project's programs."""
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return {
        "PATH": path,
        "HOME": str(directory),
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "PYTHONPATH": str(REPOSITORY),
    }


def module_of(words: list[str]) -> tuple[list[str], list[str]] | None:
    """Return the module (and subcommand) of a command, and the remaining words; None for foreign
    ones.
    """
    program, rest = Path(words[0]).name, words[1:]
    if program.startswith("python") and rest[:1] == ["-m"] and rest[1] not in FOREIGN:
        name, rest = rest[1], rest[2:]
    elif program in SCRIPTS:
        name = SCRIPTS[program].partition(":")[0].removesuffix(".__main__")
    else:
        return None
    verbs, most = 0, VERBS.get(name, 0) + (rest[:1] != [] and rest[0] in GROUPS)
    while verbs < most and len(rest) > verbs and not rest[verbs].startswith("-"):
        verbs += 1
    return [name, *rest[:verbs]], rest[verbs:]


def check(words: list[str]) -> None:
    """Check a program and its flags."""
    found = module_of(words)
    if found is None:
        assert Path(words[0]).name in FOREIGN, f"{words[0]} is no program of this project"
        if words[0] == "make":
            missing = set(words[1:]) - make_targets(REPOSITORY / "Makefile")
            assert not missing, f"make {' '.join(missing)} does not exist"
        return
    module, rest = found
    known = help_of(*module)
    missing = [flag for flag in flags(rest) if not re.search(rf"{flag}(?![\w-])", known)]
    assert not missing, f"{' '.join(module)} has no {' '.join(missing)}"


def test_numbers_in_the_readme_equal_recordings_and_code() -> None:
    text = " ".join(PAGES[0].read_text(encoding="utf-8").split())
    calls = len(load_calls(GOLDEN)) + len(ROWS["rest"])
    for claim in (
        f"{len(EXCHANGES)} exchanges of the binary protocol",
        f"{len(DIALOGUES)} dialogues of producers",
        f"{calls} calls of admin REST",
        f"{len(shipped())} ready-made scenarios of {len(BEHAVIOURS)} behaviours",
    ):
        assert claim in text


def test_pages_agree_with_the_recorded_dynamic_keys_of_a_real_broker() -> None:
    recorded = json.loads((GOLDEN / "broker-keys.json").read_text(encoding="utf-8"))
    dynamic = {each["key"] for each in recorded if each.get("dynamic")}
    page = (REPOSITORY / "docs" / "admin.md").read_text(encoding="utf-8")
    assert f"lets {len(dynamic)} of its {len(recorded)} keys change at run time" in page
    assert not dynamic & {*ADVISED.values(), "maxMessageSize", "keepAliveIntervalSeconds"}
    assert "maxConcurrentLookupRequest" in dynamic
    assert "answers 412 to changes at run time" in PAGES[0].read_text(encoding="utf-8")


def test_every_documented_command_exists_with_its_flags() -> None:
    for block in BLOCKS:
        assert block.set_up in ("", *SET_UPS), f"{block}: unknown set-up {block.set_up}"
        assert block.commands
        for command in block.commands:
            if block.language == PYTHON:
                ast.parse(command)
                continue
            for words in programs(command):
                check(words)


class Desk:
    """Working directory like the repository's, and the servers that a page has started."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self._stack = stack
        self._servers: dict[str, ExitStack] = {}
        # Free ports keep a page's servers apart from other servers on this machine.
        self.ports = {port: str(free_port()) for port in PORTS_OF_PAGES}
        self._asked = {"FLOODGATE_ADMIN_URL": f"http://127.0.0.1:{self.ports['8080']}"}
        self._has_asked = False
        for path in REPOSITORY.iterdir():
            if path.name not in ("out", ".git", ".venv"):
                (directory / path.name).symlink_to(path)
        (directory / ".venv").symlink_to(sys.prefix)
        for name, content in OWN_FILES.items():
            (directory / name).write_text(content)

    def run(self, block: Block) -> None:
        if block.set_up == "tls":
            self._stack.enter_context(self._tls())
        for command in block.commands:
            if block.language == PYTHON:
                self._python(self._moved(command))
            elif block.set_up == "broker":
                self._serve(self._moved(command))
            elif block.set_up == AS_IT_IS:
                self._shell(command)
            elif block.set_up != "transcript":
                self._shell(self._moved(small(command)))
        for command, expected in zip(block.commands, block.outputs, strict=False):
            self._compare(command, expected)

    def _moved(self, command: str) -> str:
        """Return the command with the ports of this desk."""
        ports = "|".join(PORTS_OF_PAGES)
        return re.sub(rf"\b({ports})\b", lambda port: self.ports[port[0]], command)

    @contextmanager
    def _tls(self) -> Iterator[None]:
        """Open two TLS ports before port 6651, and write their clients' files."""
        certificates = Certificates(self.directory)
        (self.directory / "token").write_text("a-token")
        url = f"pulsar://127.0.0.1:{self.ports['6651']}"

        async def forward() -> None:
            async with (
                tls_forwarder(url, certificates, port=int(self.ports["6652"])),
                tls_forwarder(
                    url, certificates, asks_for_certificate=True, port=int(self.ports["6653"])
                ),
            ):
                started.set_result(asyncio.get_running_loop())
                await ended.wait()

        ended, started = asyncio.Event(), Future[asyncio.AbstractEventLoop]()
        with ThreadPoolExecutor(1) as threads:
            forwarding = threads.submit(asyncio.run, forward())
            loop = started.result(60)
            yield
            loop.call_soon_threadsafe(ended.set)
            forwarding.result(60)

    def _python(self, program: str) -> None:
        """Run a pasted program, which must print something, in this process to save a start."""
        printed = io.StringIO()
        with chdir(self.directory), redirect_stdout(printed):
            exec(compile(program, "pasted.py", "exec"), {"__name__": "__main__"})
        assert printed.getvalue(), program

    def _shell(self, command: str) -> None:
        """Run a command; a load generator's alone runs in this process, which saves its start."""
        words = shlex.split(command)
        if Path(words[0]).name == "loadgen" and [words] == list(programs(command)):
            with chdir(self.directory):
                code, out, err = called(loadgen_main, ["loadgen", *words[1:]], self._asked)
        else:
            done = self._run(command)
            code, out, err = done.returncode, done.stdout, done.stderr
        assert (code or 0) in ALLOWED_EXITS, f"{command}\n{out}{err}"

    def _compare(self, command: str, expected: str) -> None:
        """Run a transcript's command, which must print the page's text, with the page's ports."""
        printed = self._printed(self._moved(command))
        for page, moved in self.ports.items():
            printed = printed.replace(moved, page)
        assert prints(expected, printed), f"{command}\n{printed}"

    def _printed(self, command: str) -> str:
        """Return a command's output on both streams.

        A page's first admin command runs as a process. Later admin commands without a pipe run in
        this process, which saves their start.
        """
        words = shlex.split(command)
        alone = Path(words[0]).name == "floodgate-admin" and [words] == list(programs(command))
        if not (alone and self._has_asked):
            self._has_asked |= alone
            return self._run(f"{{ {command}; }} 2>&1").stdout
        with chdir(self.directory):
            _, out, err = called(admin_main, ["floodgate-admin", *words[1:]], self._asked)
        assert not (out and err)  # the order would be unknown
        return out or err

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.directory,
            env=environment(self.directory) | self._asked,
            capture_output=True,
            text=True,
        )

    def _serve(self, command: str) -> None:
        found = module_of(shlex.split(command.partition(" 2>")[0]))
        assert found is not None, f"{command} starts no server"
        (role,), rest = found
        keys = dict(zip(PORTS[role], (self.ports["6650"], self.ports["8080"]), strict=True))
        keys["bindAddress"] = "127.0.0.1"
        missing = [
            f"--set={key}={value}" for key, value in keys.items() if f"{key}=" not in command
        ]
        log = self.directory / f"{role}.log"
        if role in self._servers:
            self._servers.pop(role).close()  # a page that restarts a role replaces the server
        server = self._servers[role] = self._stack.enter_context(ExitStack())
        server.enter_context(running_server(["-m", role, *rest, *missing], log, cwd=self.directory))


def needs_curl(block: Block) -> bool:
    if block.language == PYTHON:
        return False
    return any(words[0] == "curl" for command in block.commands for words in programs(command))


def small(command: str) -> str:
    """Return the command in small: fewer topics and clients, and less time."""
    for flag, value in SMALL.items():
        command = re.sub(rf"{flag} \d\S*", f"{flag} {value}", command)
    for path, value in SMALL_VALUES.items():
        command = re.sub(rf"({path}=)\w+", rf"\g<1>{value}", command)
    return command


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ExitStack() as stack:
        yield Desk(tmp_path, stack)


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.name)
def test_marked_commands_of_a_page_run_in_order(page: Path, desk: Desk) -> None:
    for block in blocks(page):
        if needs_curl(block) and shutil.which("curl") is None:
            continue
        if block.set_up:
            desk.run(block)
