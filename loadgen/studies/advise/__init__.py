"""Advice on topic-list limits, found by simulating restart storms in virtual time."""
