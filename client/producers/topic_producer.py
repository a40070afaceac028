"""A producer of one topic, which is not partitioned, or of one partition."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.connection_handler import ConnectionHandler
from client.exceptions import (
    AlreadyClosed,
    ProducerBlockedQuotaExceededException,
    ProducerFenced,
    ProducerQueueIsFullError,
    PulsarException,
    Timeout,
    TopicTerminated,
    server_response_error,
)
from client.messages.message_id import MessageId
from client.messages.outgoing import SendingProducer
from client.producers.attachment import attach_producer, close_command, producer_command
from client.producers.batching import OpenBatches
from client.producers.entry_writer import EntryWriter
from client.producers.flushing import Flushers
from client.producers.pending_entries import PendingEntries
from client.producers.send_line import SendLine
from client.producers.statistics import ProducerStatistics
from limiter.errors import raised_anew

if TYPE_CHECKING:
    from collections.abc import Iterable

    from client.connection.cnx import ClientCnx
    from client.context import ClientContext
    from client.producers.options import ProducerOptions
    from client.producers.pending_entries import PendingEntry
    from client.producers.pending_message import PendingMessage
    from limiter.clock import TimerHandle

logger = logging.getLogger(__name__)
