"""The commands that attach a producer to its broker, and that close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import NotConnected
from client.messages.enums import ProducerAccessMode
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    import asyncio

    from client.connection.cnx import ClientCnx
    from client.producers.options import ProducerOptions


def producer_command(
    topic: str, producer_id: int, options: ProducerOptions, name: str, epoch: int
) -> pb.CommandProducer:
    """Return the command PRODUCER, still without its request id.

    Args:
        topic: Full name of the topic.
        producer_id: The producer's number within the client.
        options: Producer options.
        name: The producer's name; "" lets the broker choose.
        epoch: Number of times that the producer was attached before.
    """
    command = pb.CommandProducer(
        topic=topic,
        producer_id=producer_id,
        request_id=0,
        encrypted=False,
        epoch=epoch,
        user_provided_producer_name=options.producer_name is not None,
        producer_access_mode=_ACCESS[options.access_mode],
    )
    if name:
        command.producer_name = name
    for key, value in (options.properties or {}).items():
        command.metadata.add(key=key, value=value)
    if options.initial_subscription_name is not None:
        command.initial_subscription_name = options.initial_subscription_name
    schema = None if options.schema is None else options.schema.schema_info()
    if schema is not None:
        command.schema.CopyFrom(schema)
    return command


async def attach_producer(cnx: ClientCnx, command: pb.CommandProducer) -> pb.CommandProducerSuccess:
    """Attach a producer to its broker; return the broker's response once access is granted.

    Raises:
        ServerResponseError: The broker refused.
        NotConnected: The connection was lost before the wait for exclusive access.
        The errors of :meth:`client.connection.cnx.ClientCnx.request`.
    """
    request_id = -1

    def build(number: int) -> pb.BaseCommand:
        nonlocal request_id
        command.request_id = request_id = number
        return pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=command)

    try:
        success = (await cnx.request(build)).producer_success
        if not success.producer_ready:
            success = await _turn(cnx, success.request_id)
    except BaseException:
        cnx.exclusive_turns.pop(request_id, None)
        if request_id >= 0:
            # The broker may have attached the producer nevertheless.
            cnx.send(close_command(command.producer_id, request_id))
        raise
    return success


def _turn(cnx: ClientCnx, request_id: int) -> asyncio.Future[pb.CommandProducerSuccess]:
    turn = cnx.exclusive_turns.get(request_id)
    if turn is None:
        raise NotConnected(f"{cnx.peer} was lost before the producer could wait")
    return turn


def close_command(producer_id: int, request_id: int = NO_REQUEST) -> pb.BaseCommand:
    """Return the command CLOSE_PRODUCER for a producer."""
    close = pb.CommandCloseProducer(producer_id=producer_id, request_id=request_id)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_PRODUCER, close_producer=close)


_ACCESS = {
    ProducerAccessMode.Shared: pb.Shared,
    ProducerAccessMode.Exclusive: pb.Exclusive,
    ProducerAccessMode.WaitForExclusive: pb.WaitForExclusive,
    ProducerAccessMode.ExclusiveWithFencing: pb.ExclusiveWithFencing,
}
