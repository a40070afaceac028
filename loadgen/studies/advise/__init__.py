"""Advice on topic-list limits, searched by simulating restart storms in virtual time."""
