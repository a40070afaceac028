"""The way of messages from the connection to the program."""
