"""Advice: the limits that meet a goal, searched by experiments in virtual time."""
