"""A bar while equations are derived and printed as code, which happens once and takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deriving(what: str, steps: int) -> Iterator[Callable[[], object]]:
    """Show on terminals and in notebooks what is derived, on stderr.

    Parameters
    ----------
    what : str
        The object of "deriving the equations of".
    steps : int
        How many there are; the function that is yielded is called after each but the last.

    Yields
    ------
    callable
        Says that one more step is done.
    """
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    text = f"deriving the equations of {what}"
    with tqdm(total=steps, desc=text, unit="step", leave=False, disable=None) as bar:
        yield bar.update
