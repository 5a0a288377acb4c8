"""How many judgements may be asked for."""

from __future__ import annotations

import threading

from guardrail.errors import ConfigurationError


class JudgeBudget:
    """A number of judgements that those who share it use up, whatever thread, event loop or run they are in.

    Args:
        total: How many there are, at least 0.

    Raises:
        ConfigurationError: If ``total`` is no integer of at least 0.

    Example:
        >>> budget = JudgeBudget(1)
        >>> budget.take(), budget.take(), budget.left
        (True, False, 0)
    """

    def __init__(self, total: int) -> None:
        if isinstance(total, bool) or not isinstance(total, int) or total < 0:
            raise ConfigurationError(f"a budget of judgements must be an integer of at least 0, got {total!r}")
        self._lock = threading.Lock()
        self._left = total

    @property
    def left(self) -> int:
        """How many are left."""
        return self._left

    def take(self) -> bool:
        """Use one up.

        Returns:
            Whether there was one.
        """
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            return True

    def give_back(self) -> None:
        """Return one that :meth:`take` gave and that was not needed."""
        with self._lock:
            self._left += 1
