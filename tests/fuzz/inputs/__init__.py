"""Inputs: meaningful seeds and values, and mutations that keep an input valid."""
