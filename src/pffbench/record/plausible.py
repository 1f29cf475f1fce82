"""Types of numbers of a file, of any origin, that readers accept."""

from __future__ import annotations

from typing import Annotated

import msgspec

#: Largest count: programs that read the tables store counts in 64 bits.
LARGEST = 2**63 - 1
Natural = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
#: A count that is -1 where it is unknown.
Count = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]
