import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached
from client.discovery.topic_discovery import TopicListWatch
from client.exceptions import NotAllowedError, ServerResponseError, server_response_error


class Connection:
    """A connection whose broker answers on command."""

    def __init__(self, *, watches=True):
        self.peer = "broker:6650"
        self.closed = False
        self.attached = Attached()
        self.server = pb.CommandConnected(server_version="test")
        self.server.feature_flags.supports_topic_watchers = watches
        self.sent = []
        self.outcome = asyncio.get_running_loop().create_future()

    async def request(self, build):
        self.sent.append(build(1))
        return await self.outcome

    def send(self, command):
        self.sent.append(command)

    def answer(self, *names):
        answer = pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
        answer.watchTopicListSuccess.topic.extend(names)
        self.outcome.set_result(answer)


class Told:
    """A watch's reports."""

    def __init__(self):
        self.updates = []
        self.lost = 0
        self.watch = TopicListWatch(5, "public/default", self.updates.append, self.count)

    def count(self):
        self.lost += 1


def update(name):
    return pb.CommandWatchTopicUpdate(watcher_id=5, new_topics=[name])


async def test_updates_received_with_the_answer_are_reported_after_opened():
    told, cnx = Told(), Connection()
    opening = asyncio.create_task(told.watch.open(cnx, "p", "hash"))
    await asyncio.sleep(0)
    cnx.answer("a")
    cnx.attached.watches[5].update_received(update("b"))
    found = await opening
    assert (list(found.topic), told.updates) == (["a"], [])
    told.watch.opened()
    assert told.updates == [update("b")]
    assert cnx.sent[0].watchTopicList.topics_hash == "hash"


async def test_a_broker_without_watches_receives_no_watch_request():
    told, cnx = Told(), Connection(watches=False)
    with pytest.raises(NotAllowedError):
        await told.watch.open(cnx, "p", None)
    assert cnx.sent == []


async def test_a_refused_watch_is_not_attached():
    told, cnx = Told(), Connection()
    cnx.outcome.set_exception(server_response_error(pb.TooManyRequests, "full"))
    with pytest.raises(ServerResponseError):
        await told.watch.open(cnx, "p", None)
    assert cnx.attached.watches == {}
    assert told.watch.cnx is None


async def test_a_lost_connection_is_reported_once():
    told, cnx = Told(), Connection()
    cnx.answer()
    await told.watch.open(cnx, "p", None)
    cnx.attached.lost()
    told.watch.close()
    assert told.lost == 1
    assert len(cnx.sent) == 1


async def test_closing_sends_a_single_close_command_to_the_broker():
    told, cnx = Told(), Connection()
    cnx.answer()
    await told.watch.open(cnx, "p", None)
    told.watch.close()
    told.watch.close()
    assert [one.type for one in cnx.sent[1:]] == [pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE]
    assert cnx.attached.watches == {}
