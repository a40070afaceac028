"""The wheel, installed outside this repository."""
