"""The wheels, installed outside this repository."""
