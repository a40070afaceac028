"""Stub."""


def require_room(document, options, *, dry, as_json):
    if dry:
        print("dry")
