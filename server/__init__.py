"""Code shared by broker and proxy: configuration, listeners, HTTP endpoint, logs, shutdown."""
