"""Admission order of waiting requests: first come first served, or fair by owner."""
