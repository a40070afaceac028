"""TLS of the ports of broker and proxy, and of the proxy's connections to brokers."""
