from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import Expect, Send, Silence, parse_command
from tests.support.golden.watches import (
    WatchedTopics,
    topics_hash,
    updates_of_one_change,
    without_hash,
)

ALPHA = ["persistent://public/gold/alpha-1", "persistent://public/gold/alpha-2"]
NEW = "persistent://public/gold/alpha-w1"


def success(*topics: str, watcher: int = 1) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
    command.watchTopicListSuccess.request_id = 1
    command.watchTopicListSuccess.watcher_id = watcher
    command.watchTopicListSuccess.topic.extend(topics)
    command.watchTopicListSuccess.topics_hash = ""
    return command


def update(digest: str, new: str = "", gone: str = "", watcher: int = 1) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_UPDATE)
    command.watchTopicUpdate.watcher_id = watcher
    command.watchTopicUpdate.new_topics.extend([new] if new else [])
    command.watchTopicUpdate.deleted_topics.extend([gone] if gone else [])
    command.watchTopicUpdate.topics_hash = digest
    return command


def test_the_hash_is_the_recorded_one() -> None:
    assert topics_hash(ALPHA) == "07c7fbe2"
    assert topics_hash([NEW, *ALPHA]) == "af257f09"
    assert topics_hash([]) == "00000000"


def test_names_are_hashed_in_javas_order() -> None:
    # Java's strings put U+1F600, which is two surrogates, before U+FF5E.
    assert topics_hash(["\uff5e", "\U0001f600"]) == topics_hash(["\U0001f600,\uff5e"])


def test_an_update_has_the_hash_of_the_set_after_it() -> None:
    watched = WatchedTopics()
    watched.take(0, success(*ALPHA))
    assert watched.differences(1, 0, update("af257f09", new=NEW)) == []
    assert watched.differences(2, 0, update("07c7fbe2", gone=NEW)) == []
    (found,) = watched.differences(3, 0, update("07c7fbe2", new=NEW))
    assert (found.recorded, found.answered) == ("af257f09", "07c7fbe2")


def test_each_watcher_of_each_connection_has_a_set_of_its_own() -> None:
    watched = WatchedTopics()
    for connection, watcher in ((0, 1), (0, 2), (1, 1)):
        watched.take(connection, success(*ALPHA, watcher=watcher))
    watched.take(0, update("", new=NEW))
    assert watched.differences(1, 0, update("07c7fbe2", watcher=2)) == []
    assert watched.differences(1, 1, update("07c7fbe2")) == []
    assert watched.differences(1, 0, update("af257f09")) == []


def test_silence_is_no_update() -> None:
    assert WatchedTopics().differences(1, 0, Silence.NOTHING) == []
    assert without_hash(Silence.CLOSED) is Silence.CLOSED


def test_several_updates_in_a_row_are_those_of_one_change() -> None:
    ping = parse_command("type: PING ping { }")
    one, two = Expect(update("1")), Expect(update("2"))
    steps = (Send(ping), one, two, Expect(Silence.NOTHING), one)
    assert updates_of_one_change(steps, 1) == [one, two]
    assert updates_of_one_change(steps, 0) == []
    assert updates_of_one_change(steps, 4) == []
