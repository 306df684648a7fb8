"""The command line: ``giantstep`` and ``python -m giantstep``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; see :func:`giantstep.cli.main`.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; default: those of this process.

    Returns
    -------
    int
        Exit code: 0 done, 1 a claim failed, 2 bad input, 130 interrupted.
    """
    try:
        from . import cli

        return cli.main(argv)
    except KeyboardInterrupt:
        # While modules were loading: nothing had begun that could be kept.
        print("giantstep: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
