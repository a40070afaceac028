"""The wheel, installed where this repository is not."""
