"""Which mapped parts of files stay open: the few that were used last.

A training set may lie in hundreds of files, and each mapped part of one takes a descriptor of the process,
of which a shell allows 256 or 1,024.

Source:
    Landmarks card, pitfall 16.
"""

import threading
import weakref
from collections import OrderedDict
from typing import Any, Protocol

MOST = 16


class Owner(Protocol):
    """Something that keeps mapped arrays by name."""

    maps: dict[str, Any]


class OpenMaps:
    """Forgets the arrays that were not used for the longest time; one that is still in use stays open.

    Args:
        most: so many are kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, threading.Lock()
        self._used: OrderedDict[tuple[int, str], weakref.ref[Owner]] = OrderedDict()

    def use(self, owner: Owner, key: str) -> None:
        """Note that an array was used, and forget what is one too many."""
        with self._lock:
            self._used[id(owner), key] = weakref.ref(owner)
            self._used.move_to_end((id(owner), key))
            while len(self._used) > self._most:
                (_, other_key), other = self._used.popitem(last=False)
                if (found := other()) is not None:
                    found.maps.pop(other_key, None)
