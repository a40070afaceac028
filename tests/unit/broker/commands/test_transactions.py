"""Transactions are off: the refusal of each transaction command."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands import transactions
from tests.support.processes.commands import complete_command, type_name
from tests.unit.broker.commands.test_table import CONNECTED, wire

Type = pb.BaseCommand
TO_COORDINATOR = (
    Type.NEW_TXN,
    Type.ADD_PARTITION_TO_TXN,
    Type.ADD_SUBSCRIPTION_TO_TXN,
    Type.END_TXN,
    Type.TC_CLIENT_CONNECT_REQUEST,
)


@pytest.mark.parametrize("kind", TO_COORDINATOR, ids=type_name)
async def test_a_command_for_the_transaction_coordinator_is_refused(kind: int) -> None:
    client = wire(CONNECTED)
    client.say(complete_command(kind))
    (answer,) = client.answers()
    assert answer.error.request_id == 1
    assert answer.error.error == pb.NotAllowedError
    assert answer.error.message == "Transactions are not enabled."


async def test_ending_a_transaction_on_an_unloaded_topic_succeeds() -> None:
    client = wire(CONNECTED)
    partition = pb.CommandEndTxnOnPartition(request_id=5, topic="t", txnid_least_bits=3)
    subscription = pb.CommandEndTxnOnSubscription(
        request_id=6, subscription=pb.Subscription(topic="t", subscription="s"), txnid_most_bits=4
    )
    client.say(Type(type=Type.END_TXN_ON_PARTITION, endTxnOnPartition=partition))
    client.say(Type(type=Type.END_TXN_ON_SUBSCRIPTION, endTxnOnSubscription=subscription))
    first, second = client.answers()
    ended, left = first.endTxnOnPartitionResponse, second.endTxnOnSubscriptionResponse
    assert (ended.request_id, ended.txnid_least_bits, ended.HasField("error")) == (5, 3, False)
    assert (left.request_id, left.txnid_most_bits, left.HasField("error")) == (6, 4, False)


@pytest.mark.parametrize("ack_type", [pb.CommandAck.Individual, pb.CommandAck.Cumulative])
@pytest.mark.parametrize("refused", [True, False])
async def test_acks_with_both_fields_of_a_transaction_are_refused(ack_type, refused) -> None:
    client = wire(CONNECTED)
    ack = pb.CommandAck(consumer_id=1, ack_type=ack_type, request_id=9, txnid_most_bits=0)
    if refused:
        ack.txnid_least_bits = 0
    found = transactions.refused_ack(client.cnx, ack)
    assert found is refused
    messages = [answer.ackResponse.message for answer in client.answers()]
    assert [text.endswith("Server don't support transaction ack!") for text in messages] == (
        [True] if refused else []
    )


async def test_an_ack_without_a_transaction_is_not_refused() -> None:
    client = wire(CONNECTED)
    ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual)
    assert not transactions.refused_ack(client.cnx, ack)
