"""Code that broker and proxy share: configuration, listeners, HTTP endpoint, logs, shutdown."""
