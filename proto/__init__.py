"""Pulsar's wire protocol: encoding and decoding of frames, commands, names and topic lists.

Only proto.transport does I/O.
"""
