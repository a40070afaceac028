"""GET_TOPICS: from the request to the response, within the memory limits."""
