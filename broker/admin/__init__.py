"""The admin REST, ``/admin/v2`` and ``/lookup/v2``, as Pulsar's tools and scripts use it."""
