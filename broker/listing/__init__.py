"""Handling of GET_TOPICS_OF_NAMESPACE, from the request to the response, within memory limits."""
