"""Deletion of a broker's topics."""

from broker.messages.loading.loaded_topics import LoadedTopics
from broker.messages.loading.topic_deletion import TopicDeletion


def deletion_of(loaded: LoadedTopics) -> TopicDeletion:
    """Return the deletion of topics that a broker makes for its loaded topics."""
    return TopicDeletion(loaded, loaded._parts.topics, loaded._store)
