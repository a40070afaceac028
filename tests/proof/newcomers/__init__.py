"""Newcomers with the wheel and a page."""
