"""Plays cases to a server: sends steps, and collects the answers of each step."""

import threading
from dataclasses import dataclass, field
from typing import Self

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import NAMESPACE_TOKEN, NO_HASH, Case, Step, World, wire_bytes
from tests.differential.generator import preparation
from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import RECORDED_BROKER, Answer, Rest, Send, Silence, with_address
from tests.support.golden.rest import ask
from tests.support.golden.watches import WatchedTopics

ANSWER_SECONDS = 15.0
"""Longest wait for a required answer; a real broker loads a bundle first."""
QUIET_SECONDS = 0.4
"""Silence that ends a step without an answer of its own."""
PATIENT_SECONDS = 3.0
"""The same in a replay after a possibly slow server."""
CHANGE_SECONDS = 1.0
"""The same after a change of the namespace, which watchers receive."""
SURPLUS_SECONDS = 0.05
PREPARATIONS = 3
"""Attempts to prepare a namespace on a busy server."""
USER_SECONDS = 0.2
"""Interval at which topic users check for the end."""
RIGHT_HASH = "<right>"


@dataclass(frozen=True)
class Side:
    """Server under play; addresses are ``host:port``.

    Attributes:
        address: Of the binary protocol.
        broker: The server's name for the broker.
        web: The broker's web port.
        label: Six characters in the namespaces' names, which separate runs.
    """

    address: str
    broker: str
    web: str
    label: str


@dataclass
class Played:
    """All answers to a case.

    Attributes:
        answers: Per executed step; no further steps after a close.
    """

    answers: list[tuple[Answer, ...]] = field(default_factory=list)

    @property
    def last(self) -> Answer:
        """Return the last answer of the conversation."""
        return self.answers[-1][-1] if self.answers and self.answers[-1] else Silence.NOTHING


class PreparationError(Exception):
    """A server rejects a namespace's preparation; a sentence."""


def shared_namespace(side: Side, number: int) -> str:
    """Return the local name of a shared namespace."""
    return f"{side.label}-w{number:04}"


def own_namespace(side: Side, number: int, play: str) -> str:
    """Return the local name of a case's private namespace, new for each play."""
    return f"{side.label}{play}{number:05}"


def prepare(side: Side, namespace: str, world: World) -> None:
    """Create a namespace and its contents.

    Raises:
        PreparationError: The server refused.
    """
    for call in preparation(world):
        request = at_namespace(call, namespace)
        for _ in range(PREPARATIONS):
            # A busy real broker may report failure after success; the retry then returns 409.
            status = ask(side.web, request).status
            if status in (request.status, 409):
                break
        else:
            text = f"{side.web} answers {status} to {request.method} {request.path}"
            raise PreparationError(text)


class TopicUsers:
    """Producers of a namespace's non-persistent topics, for the duration of the block.

    A real broker lists only topics in use. Floodgate lists all topics, and refuses the producers.
    """

    def __init__(self, side: Side, namespace: str, world: World) -> None:
        host, _, port = side.broker.rpartition(":")
        self._connection = GoldenConnection(host, int(port))
        self._names = [f"non-persistent://public/{namespace}/{n}" for n in world.non_persistent]
        self._left = threading.Event()
        self._answering = threading.Thread(target=self._answer_pings, daemon=True)

    def __enter__(self) -> Self:
        connect = pb.CommandConnect(client_version="differential", protocol_version=21)
        self._ask(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
        for number, name in enumerate(self._names):
            producer = pb.CommandProducer(topic=name, producer_id=number, request_id=number)
            self._ask(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))
        self._answering.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._answering.join()
        self._connection.__exit__(None, None, None)

    def _ask(self, command: pb.BaseCommand) -> None:
        self._connection.send(Send(command))
        self._connection.receive(ANSWER_SECONDS)

    def _answer_pings(self) -> None:
        pong = Send(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
        while not self._left.is_set():
            answer = self._connection.receive(USER_SECONDS)
            if answer is Silence.CLOSED:
                return
            if isinstance(answer, pb.BaseCommand) and answer.type == pb.BaseCommand.PING:
                self._connection.send(pong)


def at_namespace(call: Rest, namespace: str) -> Rest:
    """Return a call with the namespace's real name."""
    path = call.path.replace(NAMESPACE_TOKEN, namespace)
    return Rest(call.method, path, call.body, call.status)


def play(case: Case, side: Side, namespace: str, quiet_seconds: float = QUIET_SECONDS) -> Played:
    """Play a case in an existing namespace."""
    host, _, port = side.address.rpartition(":")
    with GoldenConnection(host, int(port)) as connection:
        return _Player(case, side, namespace, connection, quiet_seconds).run()


class _Player:
    def __init__(
        self,
        case: Case,
        side: Side,
        namespace: str,
        connection: GoldenConnection,
        quiet_seconds: float,
    ) -> None:
        self._case = case
        self._side = side
        self._namespace = namespace
        self._connection = connection
        self._last_hash = NO_HASH
        self._watched = WatchedTopics()
        self._closed = False
        self._quiet_seconds = quiet_seconds
        self._patience_seconds = ANSWER_SECONDS

    def run(self) -> Played:
        played = Played()
        if self._case.connects:
            self._connect()
        for step in self._case.steps:
            if self._closed:
                break
            played.answers.append(tuple(self._take(step)))
        if played.answers and not self._closed:
            played.answers[-1] += tuple(self._until_quiet(SURPLUS_SECONDS))
        return played

    def _connect(self) -> None:
        command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
        command.connect.client_version = "differential"
        command.connect.protocol_version = 21
        self._connection.send(Send(command))
        self._receive(ANSWER_SECONDS)

    def _take(self, step: Step) -> list[Answer]:
        if isinstance(step.does, Rest):
            ask(self._side.web, at_namespace(step.does, self._namespace))
            return self._in_any_order(self._until_quiet(max(CHANGE_SECONDS, self._quiet_seconds)))
        data = wire_bytes(step.does, self._namespace, self._last_hash, self._side.broker)
        self._connection.send(Send(None, data))
        if step.ends_quietly:
            return self._in_any_order(self._until_quiet(self._quiet_seconds))
        return self._until_answered(step)

    def _until_answered(self, step: Step) -> list[Answer]:
        found: list[Answer] = []
        while not found or not _ends(step, found[-1]):
            found.append(self._receive(self._patience_seconds))
        if found[-1] is Silence.NOTHING:
            # Bytes after half a frame complete the frame: no answer will come.
            self._patience_seconds = self._quiet_seconds
        return found

    def _until_quiet(self, seconds: float) -> list[Answer]:
        found: list[Answer] = []
        while not self._closed:
            answer = self._receive(seconds)
            if answer is Silence.NOTHING:
                break
            found.append(answer)
        return found

    def _receive(self, seconds: float) -> Answer:
        answer = self._connection.receive(seconds)
        if answer is Silence.CLOSED:
            self._closed = True
        if isinstance(answer, Silence):
            return answer
        self._remember(answer)
        return self._tokens_back(answer)

    def _remember(self, answer: pb.BaseCommand) -> None:
        """Keep the newest hash; compare an update's hash with earlier answers."""
        if answer.HasField("getTopicsOfNamespaceResponse"):
            self._last_hash = answer.getTopicsOfNamespaceResponse.topics_hash or NO_HASH
        elif answer.HasField("watchTopicListSuccess"):
            self._last_hash = answer.watchTopicListSuccess.topics_hash or NO_HASH
        wrong = self._watched.differences(0, 0, answer)
        if answer.HasField("watchTopicUpdate") and not wrong:
            answer.watchTopicUpdate.topics_hash = RIGHT_HASH

    def _tokens_back(self, answer: pb.BaseCommand) -> pb.BaseCommand:
        data = answer.SerializePartialToString()
        data = data.replace(self._namespace.encode(), NAMESPACE_TOKEN.encode())
        back = pb.BaseCommand.FromString(data)
        with_address(back, self._side.broker, RECORDED_BROKER)
        return back

    def _in_any_order(self, answers: list[Answer]) -> list[Answer]:
        """Sort answers without a guaranteed order: a real broker's order depends on its threads."""
        return sorted(answers, key=lambda answer: (isinstance(answer, Silence), str(answer)))


def _ends(step: Step, answer: Answer) -> bool:
    if isinstance(answer, Silence):
        return True
    if step.answer_type is not None:
        return answer.type in (step.answer_type, pb.BaseCommand.ERROR)
    return request_id_of(answer) == step.request_id


def request_id_of(answer: pb.BaseCommand) -> int | None:
    """Return the request id of an answer."""
    for _, body in answer.ListFields():
        if hasattr(body, "request_id"):
            return int(body.request_id)
    return None
