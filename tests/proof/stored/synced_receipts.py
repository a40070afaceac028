"""With fsync every receipt follows the sync of its transaction: a trace of system calls.

A broker is traced by strace while four producers publish, sequentially and with many messages in
flight. In the trace each message is searched for three times: its bytes are written to the
database's write-ahead log, a sync of that file begins behind that and ends, and its receipt is
written to the client's socket. The same search on a broker without fsync shows that it would find
the difference.
"""

import asyncio
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import proto.PulsarApi_pb2 as pb
from loadgen.places.server_process import ServerLaunch, running_server
from proto.frames import FrameDecoder, split_body
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import LOCAL
from tests.support.peers.message_peer import MessagePeer

PRODUCERS = 4
MESSAGES, QUICK_MESSAGES = 500, 50
"""Of each producer; its windows grow from one message to all."""
TRACED = "pwrite64,pwritev,write,writev,sendto,sendmsg,fsync,fdatasync"
ATTACH_SECONDS = 20.0
Type = pb.BaseCommand
_CALL = re.compile(r"^(\d+)\s+(?:(\w+)\((?:\d+)<([^>]*(?:>\d[^>]*)?)>|<\.\.\. (\w+) resumed>)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_MARK = re.compile(rb"receipt-of-(\d+)-(\d+)\.")


def prove(options: ProofOptions) -> ProofResult:
    """Trace a broker with fsync, and a broker without."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    count = QUICK_MESSAGES if options.quick else MESSAGES
    if shutil.which("strace") is None:
        result.check("skipped", True, "skipped: there is no strace here (apt-get install strace)")
        return result
    for fsync in (True, False):
        name = "with fsync" if fsync else "without fsync"
        options.note(f"{PRODUCERS * count} messages {name}")
        trace = _traced(options.out / name.replace(" ", "-"), fsync=fsync, count=count)
        found = Found()
        for line in trace:
            found.take(line)
        _judge(result, name, found, count, fsync=fsync)
    return result


def _traced(out: Path, *, fsync: bool, count: int) -> list[str]:
    """Return the trace of a broker during publishing."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    settings = {
        **LOCAL,
        "brokerServicePort": "0",
        "floodgateMessageStore": f"sqlite://{(out / 'messages.db').resolve()}",
        "floodgateMessageStoreFsync": str(fsync).lower(),
    }
    launch = ServerLaunch("broker", settings, out / "broker.log")
    with running_server(launch) as broker, _strace(broker.pid, out / "trace"):
        asyncio.run(_publish(broker.service_url, count))
    return (out / "trace").read_text().splitlines()


@contextmanager
def _strace(pid: int, trace: Path) -> Iterator[None]:
    """Trace a process and its threads for a block.

    Raises:
        ProofError: Tracing is not possible.
    """
    command = ["strace", "-f", "-yy", "-xx", "-s", "1000000", "-e", f"trace={TRACED}"]
    said = trace.with_suffix(".said")
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "-o", str(trace), "-p", str(pid)], stderr=errors, stdin=subprocess.DEVNULL
        )
    try:
        # strace reports each attached thread, the process's main thread first.
        for _ in range(int(ATTACH_SECONDS / 0.1)):
            if "attached" in said.read_text() or process.poll() is not None:
                break
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        if process.poll() is not None or "attached" not in said.read_text():
            raise ProofError(f"a process cannot be traced here: {said.read_text().strip()}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


async def _publish(url: str, count: int) -> None:
    await asyncio.gather(*(_produce(url, number, count) for number in range(PRODUCERS)))


async def _produce(url: str, producer: int, count: int) -> None:
    peer = await MessagePeer.connect(url)
    topic = f"persistent://public/default/t{producer}"
    await peer.lookup(topic)
    made = await peer.producer(topic)
    if made.type == Type.ERROR:
        raise ProofError(made.error.message)
    sent, window = 0, 1
    while sent < count:
        some = range(sent, min(count, sent + window))
        for number in some:
            # A receipt has the sequence id, but no topic: hence the id includes the producer.
            text = b"receipt-of-%d-%d." % (producer, number)
            await peer.publish(producer * 1_000_000 + number, text)
        for _ in some:
            answer = await peer.receipt()
            if answer.type != Type.SEND_RECEIPT:
                raise ProofError(f"a message is not stored: {answer}")
        sent += len(some)
        window = 1 + sent // 10
    peer.close()


@dataclass
class Found:
    """The state of each message in a trace, by the order of its lines.

    Attributes:
        synced: Messages with a sync between the write of their bytes and their receipt.
        unsynced: Messages with a receipt before the sync.
        syncs: Syncs of the write-ahead log.
    """

    synced: set[int] = field(default_factory=set)
    unsynced: set[int] = field(default_factory=set)
    syncs: int = 0
    _waiting: set[int] = field(default_factory=set)
    _syncing: dict[str, set[int]] = field(default_factory=dict)
    _done: set[int] = field(default_factory=set)
    _clients: dict[str, FrameDecoder] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Process the next line."""
        call = _CALL.match(line)
        if call is None:
            return
        thread, name, file, resumed = call.groups()
        texts = [_bytes(one) for one in _TEXT.findall(line)]
        if file and file.startswith("\\x"):
            file = _bytes(file).decode()
        if name in ("fsync", "fdatasync") and file.endswith("-wal"):
            self._syncing[thread] = set(self._waiting)
        if (name or resumed) in ("fsync", "fdatasync") and line.endswith("= 0"):
            self._synced(thread)
        elif name and file.endswith("-wal"):
            marks = _MARK.findall(b"".join(texts))
            self._waiting |= {int(one) * 1_000_000 + int(number) for one, number in marks}
        elif name and file.startswith("TCP"):
            self._answered(file, texts)

    def _synced(self, thread: str) -> None:
        done = self._syncing.pop(thread, None)
        if done is not None:
            self.syncs += 1
            self._done |= done
            self._waiting -= done

    def _answered(self, client: str, texts: Iterable[bytes]) -> None:
        decoder = self._clients.setdefault(client, FrameDecoder())
        for text in texts:
            decoder.feed(text)
        while (whole := decoder.next_frame()) is not None:
            head, _ = split_body(whole.body(), whole.total_size)
            command = pb.BaseCommand.FromString(head)
            if command.type == Type.SEND_RECEIPT:
                number = command.send_receipt.sequence_id
                (self.synced if number in self._done else self.unsynced).add(number)


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def _judge(result: ProofResult, name: str, found: Found, count: int, *, fsync: bool) -> None:
    receipts = PRODUCERS * count
    synced, unsynced = len(found.synced), len(found.unsynced)
    result.figures[name] = {"syncs": found.syncs, "synced": synced, "unsynced": unsynced}
    result.check(
        name,
        (synced, unsynced) == ((receipts, 0) if fsync else (0, receipts)),
        f"{name}: of {receipts:,} receipts {synced:,} left behind the sync of what they are for, "
        f"{unsynced:,} before; {found.syncs:,} syncs",
    )
