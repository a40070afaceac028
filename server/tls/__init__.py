"""TLS on the ports of broker and proxy, and on the proxy's connections to brokers."""
