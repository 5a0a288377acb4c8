"""The ``guardrail`` command: ``demo``, ``check``, ``bench``, ``evaluate``, ``calibrate``, ``history`` and ``train``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from guardrail.errors import GuardrailError

EXIT_OK = 0
EXIT_REJECTED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments without the program's name; ``None`` takes those of the process.

    Returns:
        The exit status: 0 accepted or done, 1 rejected, 2 wrong usage or input, 130 interrupted, 141 if the reader of
        the output went away, as in ``guardrail demo | head``.

    Example:
        >>> main(["--version"])
        guardrail 0.1.0
        0
    """
    from guardrail.cli.arguments import build_parser

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Δ shows ?, and nothing breaks
    try:
        arguments = build_parser().parse_args(argv)
        status = int(arguments.command(arguments))
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # argparse has printed what there is to say
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except GuardrailError as error:
        print(f"guardrail: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit has somewhere to go
        return EXIT_BROKEN_PIPE


__all__ = ["EXIT_BROKEN_PIPE", "EXIT_INTERRUPTED", "EXIT_OK", "EXIT_REJECTED", "EXIT_USAGE", "main"]
