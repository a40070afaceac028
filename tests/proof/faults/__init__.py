"""Faults on command beneath official clients."""
