"""Fault injection, for tests of clients: a server drops, delays or refuses commands on request.

A fault is a document (``fault``): command types, the clients and topics (``selection``), the
occurrences (``schedule``), and the action (``acting``). Active faults are in the ``registry``; each
connection consults its ``ConnectionFaults`` (``connection``) for every frame, if
floodgateFaultsEnabled is set.
"""
