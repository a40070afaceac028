"""The behaviours that a group of clients can have.

A new behaviour needs a module and an entry here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from loadgen.behaviours.consume import Consume
from loadgen.behaviours.create_and_delete import CreateAndDelete
from loadgen.behaviours.discover import Discover
from loadgen.behaviours.list import List
from loadgen.behaviours.lookup import Lookup
from loadgen.behaviours.publish import Publish
from loadgen.behaviours.watch import Watch

AnyGroup = Annotated[
    List | Discover | Watch | Lookup | Publish | Consume | CreateAndDelete,
    Field(discriminator="do"),
]
