"""The commands of watches; tests/unit/broker/watches covers watches."""

import proto.PulsarApi_pb2 as pb
from tests.support.clocks.settle import settle
from tests.support.peers.frames import frame
from tests.support.processes.commands import complete_command
from tests.unit.broker.commands.test_table import CONNECTED, wire

Type = pb.BaseCommand


async def test_one_watch_has_a_turn_because_its_pattern_is_compiled_in_it() -> None:
    client = wire(CONNECTED)
    watch = complete_command(Type.WATCH_TOPIC_LIST)
    watch.watchTopicList.namespace, watch.watchTopicList.topics_pattern = "a/b", "("
    client.transport.peer_sends(frame(watch) * 3)
    assert len(client.answers()) == 1
    await settle()
    assert len(client.answers()) == 2
