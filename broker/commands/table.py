"""The table of the broker's commands."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from broker.commands import (
    consuming,
    discovery,
    producing,
    schemas,
    session,
    subscribing,
    transactions,
)
from server.authentication.session import auth_response
from server.connection.command_table import CommandTable, FrameRow, Row
from server.connection.served_connection import ping, pong

Type = pb.BaseCommand
START, CONNECTED = (ServerCnxState.START,), (ServerCnxState.CONNECTED,)
BOTH = START + CONNECTED

COMMANDS = CommandTable(
    (
        # A second CONNECT closes, as recorded.
        Row(Type.CONNECT, session.connect, START),
        Row(Type.AUTH_RESPONSE, auth_response, CONNECTED),
        Row(Type.PING, ping, BOTH),
        Row(Type.PONG, pong, BOTH),
        Row(Type.LOOKUP, discovery.lookup, CONNECTED),
        Row(Type.PARTITIONED_METADATA, discovery.partitioned_metadata, CONNECTED),
        Row(Type.GET_TOPICS_OF_NAMESPACE, discovery.get_topics, CONNECTED),
        Row(Type.WATCH_TOPIC_LIST, discovery.watch, CONNECTED),
        Row(Type.WATCH_TOPIC_LIST_CLOSE, discovery.close_watch, CONNECTED),
        Row(Type.PRODUCER, producing.producer, CONNECTED),
        Row(Type.CLOSE_PRODUCER, producing.close_producer, CONNECTED),
        Row(Type.SUBSCRIBE, subscribing.subscribe, CONNECTED),
        Row(Type.FLOW, consuming.flow, CONNECTED),
        Row(Type.ACK, consuming.ack, CONNECTED),
        Row(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consuming.redeliver, CONNECTED),
        Row(Type.CLOSE_CONSUMER, consuming.close_consumer, CONNECTED),
        Row(Type.UNSUBSCRIBE, consuming.unsubscribe, CONNECTED),
        Row(Type.SEEK, consuming.seek, CONNECTED),
        Row(Type.GET_LAST_MESSAGE_ID, consuming.last_message_id, CONNECTED),
        Row(Type.CONSUMER_STATS, consuming.consumer_stats, CONNECTED),
        Row(Type.GET_SCHEMA, schemas.get_schema, CONNECTED),
        Row(Type.GET_OR_CREATE_SCHEMA, schemas.get_or_create_schema, CONNECTED),
        Row(Type.NEW_TXN, transactions.refusal("newTxn"), CONNECTED),
        Row(Type.ADD_PARTITION_TO_TXN, transactions.refusal("addPartitionToTxn"), CONNECTED),
        Row(Type.ADD_SUBSCRIPTION_TO_TXN, transactions.refusal("addSubscriptionToTxn"), CONNECTED),
        Row(Type.END_TXN, transactions.refusal("endTxn"), CONNECTED),
        Row(Type.END_TXN_ON_PARTITION, transactions.end_on_partition, CONNECTED),
        Row(Type.END_TXN_ON_SUBSCRIPTION, transactions.end_on_subscription, CONNECTED),
        Row(
            Type.TC_CLIENT_CONNECT_REQUEST,
            transactions.refusal("tcClientConnectRequest"),
            CONNECTED,
        ),
    ),
    handshake=START,
    frame_rows=(FrameRow(Type.SEND, producing.send, CONNECTED),),
)
