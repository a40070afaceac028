"""Strangers, with the wheel and a page."""
