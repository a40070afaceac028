"""Runs a target's inputs, and keeps rule-breaking inputs."""

import base64
import hashlib
import json
import traceback
from pathlib import Path

from tests.fuzz.rules import BOUND_MILLIS, ERRORS, TURNS, BrokenRuleError
from tests.fuzz.target import Loaded

ROOT = Path(__file__).resolve().parents[2]
RENEWED_AFTER = 4_000
"""Inputs between renewals of a stateful target: a find replays with the inputs since."""
SHORT_MILLIS = 2.0
"""Shorter turns are not measured more exactly."""
MOST_FINDS = 50
MOST_SLOW = 20


class Judge:
    """Runs and counts inputs.

    Args:
        target: Runs an input.
        out: Folder of finds; without a folder the first find is raised.

    Attributes:
        inputs: Inputs run.
        refused: Inputs that ended in an allowed error.
        finds: Count of each find's signature.
    """

    def __init__(self, target: Loaded, out: Path | None = None) -> None:
        self.target = target
        self.inputs = 0
        self.refused = 0
        self.finds: dict[str, int] = {}
        self._out = out
        self._slow = 0
        self._since: list[bytes] = []

    def take(self, data: bytes) -> None:
        """Run an input."""
        self.inputs += 1
        if self.target.renewed is not None:
            if len(self._since) >= RENEWED_AFTER:
                self.renew()
            self._since.append(data)
        TURNS.of_this_input = 0.0
        error = self._run(data)
        if error is None and TURNS.of_this_input > max(TURNS.longest_millis, SHORT_MILLIS):
            with TURNS.exactly():
                error = self._run(data)
        if error is not None:
            self._found(error, data)
            return
        TURNS.longest_millis = max(TURNS.longest_millis, TURNS.of_this_input)
        if TURNS.of_this_input > BOUND_MILLIS and self._out is not None:
            self._was_slow(data)

    def renew(self) -> None:
        """Renew the target's state."""
        if self.target.renewed is not None:
            self.target.renewed()
        self._since.clear()
        ERRORS.found.clear()

    def _run(self, data: bytes) -> BaseException | None:
        ERRORS.found.clear()
        try:
            self.target.one_input(data)
        except self.target.allowed:
            self.refused += 1
        except (Exception, SystemExit) as error:  # noqa: BLE001 - looked for
            return error
        if ERRORS.found:
            message, cause = ERRORS.found[0]
            ERRORS.found.clear()
            broken = BrokenRuleError(f"logged as an error of ours: {message}")
            broken.__cause__ = cause
            return broken
        return None

    # -- finds ----------------------------------------------------------------------------------

    def _found(self, error: BaseException, data: bytes) -> None:
        since = list(self._since)
        if self._out is None:
            self.renew()
            raise error
        name = signature(error)
        self.finds[name] = self.finds.get(name, 0) + 1
        if self.finds[name] == 1 and len(self.finds) <= MOST_FINDS:
            self._keep(name, error, data, since)
        self.renew()

    def _keep(self, name: str, error: BaseException, data: bytes, since: list[bytes]) -> None:
        assert self._out is not None
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / f"{name}.bin").write_bytes(data)
        stack = "".join(traceback.format_exception(error))
        alone = True
        if self.target.renewed is not None:
            self.renew()
            alone = self._run(data) is not None
            history = [base64.b64encode(one).decode() for one in since]
            (self._out / f"{name}.history.json").write_text(json.dumps(history))
        word = "alone" if alone else "only after the inputs before it"
        (self._out / f"{name}.txt").write_text(f"{stack}\nIt comes {word}: {data!r}\n")

    def _was_slow(self, data: bytes) -> None:
        """Keep a candidate, to be rerun without instrumentation, which slows code."""
        self._slow += 1
        if self._slow <= MOST_SLOW and self._out is not None:
            folder = self._out / "slow"
            folder.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]
            (folder / f"{name}.bin").write_bytes(data)


def signature(error: BaseException) -> str:
    """Return an error's signature: its type and its place in the project's code."""
    cause = error.__cause__ or error
    where = "unknown"
    for frame in traceback.extract_tb(cause.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(ROOT) and ".venv" not in path.parts:
            where = f"{path.relative_to(ROOT).with_suffix('')}-{frame.lineno}".replace("/", ".")
    kind = type(cause).__name__
    if isinstance(cause, BrokenRuleError):
        words = "".join(one if one.isalpha() else "-" for one in str(cause))
        kind = f"{kind}-{words[:40]}"
    return f"{kind}-{where}"[:120]
