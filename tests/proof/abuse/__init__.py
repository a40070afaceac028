"""Peers that mean harm, in processes of their own, and those beside them who must not notice."""
