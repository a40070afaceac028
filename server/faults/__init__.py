"""Faults on command, for people who test clients: what a server does wrong, and when.

A fault is a document (``fault``): which commands, of whom (``selection``), which of them in turn
(``schedule``), and what is done (``acting``). Those set are in the ``registry``; each connection
asks its ``ConnectionFaults`` (``connection``) about every frame, if floodgateFaultsEnabled is set.
"""
