"""Wheels' plug-in for pytest, in a checkout, where the servers' modules are called otherwise."""

from pulsar_floodgate import pytest_plugin

pytest_plugin.MODULES = ""
