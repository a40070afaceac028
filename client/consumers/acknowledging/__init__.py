"""Acknowledgement and redelivery of the messages handed to the program."""
