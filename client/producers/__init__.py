"""Producers: messages on their way to a broker, until it has answered for them."""
