"""Endpoints of the admin REST API, one module for each subject."""
