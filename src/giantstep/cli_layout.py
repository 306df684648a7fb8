"""How commands are added: the form of their help, and their import when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written and leaves room for the names of flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)


def add_command(
    group: argparse._SubParsersAction[Any],
    name: str,
    summary: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command whose help begins with its summary and ends with `epilog`."""
    found: argparse.ArgumentParser = group.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    return found


def later(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """Import a command when it runs."""

    def run(arguments: argparse.Namespace) -> int:
        from importlib import import_module

        command = getattr(import_module(f".{module}", __package__), function)
        return int(command(arguments))

    return run
