"""``python -m guardrail``: the same as the ``guardrail`` command."""

from __future__ import annotations

import sys

from guardrail.cli import main

if __name__ == "__main__":
    sys.exit(main())
