"""Handlers of commands about transactions, which are disabled as by default in Pulsar.

Source: recorded with transactionCoordinatorEnabled=false, the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import error_command, with_body
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, TopicName

if TYPE_CHECKING:
    from broker.cnx import ServerCnx

Type = pb.BaseCommand
NOT_ENABLED = "Transactions are not enabled."
NO_BUFFER = "Transaction buffer disable!"
_NO_ACKS = (
    "org.apache.pulsar.broker.service.BrokerServiceException$NotAllowedException: "
    "Server don't support transaction ack!"
)
_NO_SUBSCRIPTIONS = "Handle end txn on subscription failed: The transaction is disabled"


def refuse(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Refuse a request to the transaction coordinator."""
    field = Type.DESCRIPTOR.fields_by_number[command.type].name
    request_id = getattr(with_body(command, field), field).request_id
    cnx.send(error_command(request_id, pb.NotAllowedError, NOT_ENABLED))


def end_on_partition(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Refuse to end a transaction on a loaded topic; report success for an unloaded topic.

    Raises:
        RemoteProtocolError: The topic's name is invalid: the connection closes (recorded).
    """
    asked = with_body(command, "endTxnOnPartition").endTxnOnPartition
    response = pb.CommandEndTxnOnPartitionResponse(
        request_id=asked.request_id,
        txnid_least_bits=asked.txnid_least_bits,
        txnid_most_bits=asked.txnid_most_bits,
    )
    loaded = cnx.parts.loaded_topics.loaded(_topic(asked.topic)) is not None
    if loaded or not _may_end(cnx):
        response.error = pb.NotAllowedError
        response.message = NO_BUFFER
    kind = Type.END_TXN_ON_PARTITION_RESPONSE
    cnx.send(Type(type=kind, endTxnOnPartitionResponse=response))


def end_on_subscription(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Refuse to end a transaction on a subscription; report success if it is unknown.

    Raises:
        RemoteProtocolError: The topic's name is invalid: the connection closes (recorded).
    """
    asked = with_body(command, "endTxnOnSubscription").endTxnOnSubscription
    response = pb.CommandEndTxnOnSubscriptionResponse(
        request_id=asked.request_id,
        txnid_least_bits=asked.txnid_least_bits,
        txnid_most_bits=asked.txnid_most_bits,
    )
    topic = cnx.parts.loaded_topics.loaded(_topic(asked.subscription.topic))
    names = () if topic is None else (one.name for one in topic.subscriptions)
    if asked.subscription.subscription in names or not _may_end(cnx):
        response.error = pb.NotAllowedError
        response.message = _NO_SUBSCRIPTIONS
    kind = Type.END_TXN_ON_SUBSCRIPTION_RESPONSE
    cnx.send(Type(type=kind, endTxnOnSubscriptionResponse=response))


def _may_end(cnx: ServerCnx) -> bool:
    """Return True if a client may learn whether a topic is loaded.

    With authorization only superusers may, as upstream.
    """
    authorization, session = cnx.parts.authorization, cnx.session
    return authorization is None or (
        session is not None and authorization.service.is_superuser(session)
    )


def _topic(text: str) -> TopicName:
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise RemoteProtocolError(str(error)) from None


def refused_ack(cnx: ServerCnx, asked: pb.CommandAck) -> bool:
    """Refuse an ACK within a transaction, which has both fields of one; return False otherwise."""
    if not (asked.HasField("txnid_most_bits") and asked.HasField("txnid_least_bits")):
        return False
    if asked.HasField("request_id"):
        response = pb.CommandAckResponse(
            consumer_id=asked.consumer_id,
            request_id=asked.request_id,
            error=pb.NotAllowedError,
            message=_NO_ACKS,
        )
        cnx.send(Type(type=Type.ACK_RESPONSE, ackResponse=response))
    return True
