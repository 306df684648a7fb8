"""giantstep: symbolic-numeric theory of feature learning in the first giant gradient steps.

Public names are imported on first use, so that ``import giantstep`` costs next to nothing; the
stub beside this file lists them with their modules.
"""

from __future__ import annotations

import time
from typing import Any

import lazy_loader

from .one_thread import ONE_THREAD, prepare_thread

__version__ = "0.1.0"
_LOADED = time.perf_counter()

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    prepare_thread()
    with ONE_THREAD:
        return _imported(name)
