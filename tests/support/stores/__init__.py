"""Stores that can be held, overtaken or killed."""
