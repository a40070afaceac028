"""The admin REST API, ``/admin/v2`` and ``/lookup/v2``, for Pulsar's tools and scripts."""
