"""The admin REST, ``/admin/v2`` and ``/lookup/v2``, for Pulsar's tools and scripts."""
