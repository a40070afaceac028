"""The check that pyarrow and numpy are installed, which match thousands of names faster.

pyarrow and numpy take 240 MB of disk, 60 MB of memory and a third of a second of the start. So they
come with an extra, and without them names are matched one by one.
"""

from __future__ import annotations

from importlib.util import find_spec

HAS_COLUMNS = all(find_spec(name) is not None for name in ("numpy", "pyarrow"))
EXTRA = "parquet"
"""The optional extra of the package that installs pyarrow and numpy."""
