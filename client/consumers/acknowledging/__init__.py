"""Acknowledgement and redelivery of the messages that the application has received."""
