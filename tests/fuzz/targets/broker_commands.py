"""The broker's commands, in every state of a connection.

An input is a script (tests.fuzz.inputs.script).
"""

from broker.commands.table import COMMANDS
from tests.fuzz.driving.broker_preludes import PRELUDES, prelude
from tests.fuzz.driving.broker_world import BrokerWorld
from tests.fuzz.driving.counted import count_frames
from tests.fuzz.driving.play import play
from tests.fuzz.inputs.script import COMMAND, ScriptMutator, Step, written
from tests.support.processes.commands import TYPES, complete_command

PULSAR, ASKS = 8, 16
"""Bits of the first byte: profile pulsar; authentication and authorization are on."""
FIGURES = {"frames": 0, "valid": 0}
_LIKELY = tuple(COMMANDS.legal_in(PRELUDES[1].state))
_worlds: dict[int, BrokerWorld] = {}


def one_input(data: bytes) -> None:
    """Bring a connection into a state, then run the script."""
    chosen = data[0] if data else 0
    world = _world(chosen & (PULSAR | ASKS))
    with world.loop.running():
        play(world, prelude(world, chosen & 7), data)


def renewed() -> None:
    """Forget both brokers: the next input starts new brokers."""
    for world in _worlds.values():
        world.loop.abandon()
    _worlds.clear()


def seeds() -> list[bytes]:
    """Return each command in each state."""
    commands = [complete_command(kind).SerializeToString() for kind in TYPES]
    steps = [Step(COMMAND, 0, one) for one in commands]
    return [written(state, [step]) for state in range(32) for step in steps]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    import atheris

    return ScriptMutator(_LIKELY).mutated(data, most_bytes, seed, atheris.Mutate)


def _world(chosen: int) -> BrokerWorld:
    if chosen not in _worlds:
        profile = "pulsar" if chosen & PULSAR else "floodgate"
        world = BrokerWorld(asks_for_tokens=bool(chosen & ASKS), floodgateProfile=profile)
        count_frames(world.doors, "brokerServicePort", FIGURES)
        _worlds[chosen] = world
    return _worlds[chosen]
