"""Folders of finished runs, as a load generator writes them."""
