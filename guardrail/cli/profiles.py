"""Policies that a command takes by name or from a calibrated profile."""

from __future__ import annotations

import argparse
from typing import Any

from guardrail.policy import POLICIES, Policy, as_policy


def add_policy_options(
    parser: argparse.ArgumentParser | argparse._MutuallyExclusiveGroup, *, default: str | None = "balanced"
) -> None:
    """Add ``--policy`` and ``--profile``, of which a command takes one.

    Args:
        parser: The parser, or a group of options that exclude each other.
        default: The policy without either; ``None`` if the command decides, which does not change what help says.
    """
    group: Any = parser.add_mutually_exclusive_group() if isinstance(parser, argparse.ArgumentParser) else parser
    group.add_argument(
        "--policy", choices=sorted(POLICIES), default=default, help="thresholds and choices (default: balanced)"
    )
    group.add_argument("--profile", metavar="FILE", help="a policy that guardrail calibrate has made")


def chosen_policy(arguments: argparse.Namespace) -> Policy:
    """The policy of a command line with :func:`add_policy_options`.

    Args:
        arguments: With ``policy`` and ``profile``.

    Raises:
        InputError: If the profile cannot be read.
        ConfigurationError: If it is no profile, or is for another model than the embedded one.
    """
    if arguments.profile is None:
        return as_policy(arguments.policy)
    from guardrail.evaluation.calibration.profile import Profile

    return Profile.load(arguments.profile).policy()
