"""Inputs: seeds and values that mean something, and changes that keep an input valid."""
