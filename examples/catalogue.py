r"""A broker plug-in (PIP-452) that lists only a team's topics, which a file assigns to teams.

    FLOODGATE_CATALOGUE=teams.csv python -m broker \
        --set pulsarResourcesExtendedClassName=examples.catalogue:Catalogue \
        --set enableBrokerTopicListWatcher=false

Each line of the file is a team and a full topic name: ``payments,persistent://shop/orders/paid``. A
consumer with the property ``catalogue.team=payments`` then sees only these topics. Other properties
are ignored: Java's consumers send *all* their properties, build numbers included.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.resources import DefaultPulsarResourcesExtended
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.resources import BrokerContext, TopicListing
    from broker.stores.store import Mode
    from proto.names import NamespaceName

PATH_VARIABLE = "FLOODGATE_CATALOGUE"
TEAM_PROPERTY = "catalogue.team"


class Catalogue(DefaultPulsarResourcesExtended):
    """Lists the topics that a file assigns to the client's team, or all topics without a team."""

    def __init__(self) -> None:
        super().__init__()
        self._topics: Mapping[tuple[NamespaceName, str], Sequence[TopicName]] = {}

    def initialize(self, context: BrokerContext) -> None:
        """Read the file of teams; if that fails, the broker reports it and does not start."""
        super().initialize(context)
        path = os.environ.get(PATH_VARIABLE)
        if not path:
            raise ValueError(f"set {PATH_VARIABLE} to a file of lines team,topic")
        self._topics = topics_by_team(Path(path))

    async def list_topics_of_namespace(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing | Sequence[str]:
        """Return the names of the team's topics, unsorted, because the broker sorts them."""
        team = properties.get(TEAM_PROPERTY)
        if team is None:
            return await super().list_topics_of_namespace(namespace, mode, properties)
        topics = self._topics.get((namespace, team), ())
        return [str(topic) for topic in topics if _in_mode(topic, mode)]


def topics_by_team(path: Path) -> Mapping[tuple[NamespaceName, str], Sequence[TopicName]]:
    """Read the file of teams, and return its topics by namespace and team.

    Raises:
        ValueError: A line does not have a team and a topic; the message names the line.
    """
    found: dict[tuple[NamespaceName, str], list[TopicName]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for number, line in enumerate(csv.reader(file), 1):
            if len(line) != 2:
                raise ValueError(f"{path}, line {number}: expected team,topic, not {line}")
            topic = TopicName.parse(line[1])
            found[topic.namespace, line[0]].append(topic)
    return found


def _in_mode(topic: TopicName, mode: Mode) -> bool:
    modes = pb.CommandGetTopicsOfNamespace
    return mode == modes.ALL or topic.persistent == (mode == modes.PERSISTENT)
