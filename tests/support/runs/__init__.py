"""Folders of finished runs, as a load generator would have written them."""
