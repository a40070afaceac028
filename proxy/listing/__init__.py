"""GET_TOPICS through the proxy: one request to the broker for many clients, within the limits."""
