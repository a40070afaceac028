"""The path of messages from the connection to the application."""
