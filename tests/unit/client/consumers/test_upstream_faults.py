"""Open faults of upstream's client memory limit, each with a test that we are free of the fault."""

import ast
from pathlib import Path

import pytest

from client.consumers.consumer import open_consumer
from client.consumers.options import ConsumerOptions
from tests.support.clocks.settle import settle
from tests.support.peers.model_broker import TOPIC, ModelBroker
from tests.support.peers.model_consumers import after, topic_of

UNIT, PROPERTIES = "tests/unit", "tests/properties/client"
LIMIT = f"{UNIT}/limiter/client_memory"
BYTES = f"{UNIT}/client/memory/test_bytes_receiver_queue.py"
FAULTS = {
    "a caller fails or parks a thread": (
        f"{LIMIT}/test_memory_limit_controller.py",
        "test_a_cancelled_waiter_leaves_the_queue",
    ),
    "memory is freed after the caller goes on": (
        f"{UNIT}/client/producers/test_upstream_cases.py",
        "test_a_message_resent_from_a_failure_callback_is_the_only_pending_message",
    ),
    "a double release turns the limit off": (
        f"{LIMIT}/test_reservation.py",
        "test_releasing_a_reservation_twice_frees_its_bytes_once",
    ),
    "a leak makes the limit smaller for ever": (
        f"{PROPERTIES}/test_cancelled_anywhere.py",
        "test_a_cancelled_open_of_a_consumer_or_reader_leaves_nothing_behind",
    ),
    "a release wakes everybody, and small requests overtake": (
        f"{LIMIT}/test_memory_limit_controller.py",
        "test_waiters_are_served_in_request_order_regardless_of_size",
    ),
    "prefetch starves producers": (
        f"{UNIT}/client/memory/test_receiver_queue_fixed.py",
        "test_a_producer_share_prevents_prefetch_from_starving_producers",
    ),
    "who consumes and then produces waits for himself": (
        f"{PROPERTIES}/test_consume_then_produce.py",
        "test_with_a_producer_share_the_task_does_not_wait_for_itself",
    ),
    "permits do not go by bytes": (BYTES, "test_permits_are_limited_by_the_free_bytes"),
    "queues grow though messages are large": (
        f"{PROPERTIES}/test_uneven_entries.py",
        "test_usage_exceeds_the_limit_only_by_unpredictable_entry_sizes",
    ),
    "queues shrink once": (
        BYTES,
        "test_every_queue_shrinks_repeatedly_while_memory_is_nearly_exhausted",
    ),
    "a queue that a listener empties does not grow": (
        __file__,
        "test_the_queue_of_a_listener_grows_while_messages_arrive",
    ),
    "an idle consumer keeps its room": (
        f"{LIMIT}/test_prefetch.py",
        "test_a_turn_without_arriving_entries_passes_on_to_a_waiting_consumer",
    ),
    "memory is freed when a message is taken, whatever becomes of it": (
        f"{UNIT}/client/consumers/acknowledging/test_handed_out.py",
        "test_memory_may_count_until_a_message_is_acknowledged",
    ),
    "a limit below a batch's buffer blocks": (
        f"{UNIT}/client/producers/test_upstream_cases.py",
        "test_a_memory_limit_below_the_batch_size_does_not_block_forever",
    ),
    "producers of dead letters find the buffer full": (
        "tests/integration/client/test_memory_limit.py",
        "test_dead_letters_are_sent_with_a_limit_of_one_byte",
    ),
}


@pytest.mark.parametrize(("path", "name"), FAULTS.values(), ids=FAULTS)
def test_every_fault_has_its_test(path: str, name: str) -> None:
    tree = ast.parse(Path(path).read_text())
    assert name in {getattr(one, "name", None) for one in tree.body}


async def test_the_queue_of_a_listener_grows_while_messages_arrive() -> None:
    # Given a backlog, and a broker that sends on command
    broker = ModelBroker(delivers=False).publish(entries=20)
    consumer = await open_consumer(
        broker.context, TOPIC, "s", ConsumerOptions(message_listener=lambda *_: None)
    )
    sizes = []
    for number in range(3):
        await after(broker, 1.1)
        broker.send_entry(number)
        await settle()
        sizes.append(topic_of(consumer).incoming.queue.current_size)
    assert sizes == [4, 8, 16]
    await consumer.close()
