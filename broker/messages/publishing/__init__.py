"""Checks and limits of published messages, which all topics share."""
