"""The wheel's plug-in for pytest, in a checkout, where modules are called otherwise."""

import floodgate_pytest

pytest_plugins = ["floodgate_pytest"]
floodgate_pytest.MODULES = ""
