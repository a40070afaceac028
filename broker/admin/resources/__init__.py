"""Endpoints of the admin REST API, a module for each subject."""
