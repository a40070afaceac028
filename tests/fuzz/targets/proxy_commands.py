"""The proxy's commands and pipes, in every state of a connection, before a broker.

An input is a script (tests.fuzz.inputs.script). The upper half of its first byte gives the chunk
sizes between proxy and broker. Commands and bytes with the flag WRONG come from the broker.
"""

from collections.abc import Sequence

import proto.PulsarApi_pb2 as pb
from tests.fuzz.driving.counted import count_frames
from tests.fuzz.driving.play import play
from tests.fuzz.driving.proxy_preludes import prelude
from tests.fuzz.driving.proxy_world import ProxyWorld
from tests.fuzz.inputs.script import COMMAND, WRONG, ScriptMutator, Step, written
from tests.support.processes.commands import TYPES, complete_command

Type = pb.BaseCommand
PULSAR = 8
"""Bit of the first byte for profile pulsar."""
FIGURES = {"frames": 0, "valid": 0}
_PIECES = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 7, 64, 1_000)
_LIKELY = (
    Type.LOOKUP, Type.PARTITIONED_METADATA, Type.GET_TOPICS_OF_NAMESPACE, Type.GET_SCHEMA,
    Type.CONNECT, Type.PING, Type.PONG, Type.LOOKUP_RESPONSE, Type.CONNECTED, Type.ERROR,
    Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, Type.PARTITIONED_METADATA_RESPONSE,
    Type.GET_SCHEMA_RESPONSE, Type.PRODUCER, Type.SUBSCRIBE, Type.FLOW, Type.ACK,
)  # fmt: skip
_worlds: dict[bool, ProxyWorld] = {}


def one_input(data: bytes) -> None:
    """Bring a connection into a state, then run the script."""
    chosen = data[0] if data else 0
    world = _world(bool(chosen & PULSAR))
    world.piece_bytes = _PIECES[chosen >> 4]
    with world.loop.running():
        play(world, prelude(world, chosen & 7), data)


def renewed() -> None:
    """Forget all servers: the next input starts new servers."""
    for world in _worlds.values():
        world.loop.abandon()
    _worlds.clear()


def seeds() -> Sequence[bytes]:
    """Return each command in each state, from the client and from the broker."""
    commands = [complete_command(kind).SerializeToString() for kind in TYPES]
    steps = [Step(COMMAND, flags, one) for one in commands for flags in (0, WRONG)]
    return [written(state, [step]) for state in range(16) for step in steps]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    import atheris

    return ScriptMutator(_LIKELY, has_broker=True).mutated(data, most_bytes, seed, atheris.Mutate)


def _world(pulsar: bool) -> ProxyWorld:
    if pulsar not in _worlds:
        _worlds[pulsar] = ProxyWorld("pulsar" if pulsar else "floodgate")
        count_frames(_worlds[pulsar].doors, "servicePort", FIGURES)
    return _worlds[pulsar]
