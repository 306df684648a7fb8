"""Folders of finished pieces of work, one JSON file each, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ...atomic_files import write_atomically
from ...numeric.seed_store import store_folder

logger = logging.getLogger(__name__)
_Read = TypeVar("_Read")


class PieceStore:
    """Folder of ``<hash of everything that fixes the numbers>.json`` files.

    Parameters
    ----------
    folder : path
        Created with the first file.
    key : mapping
        Everything but the piece that fixes the numbers.
    what : str
        What a piece is, which is its name in the files: "target".
    """

    def __init__(
        self, folder: str | os.PathLike[str], key: Mapping[str, object], what: str
    ) -> None:
        chosen = store_folder(folder)
        assert chosen is not None
        self.folder = chosen
        # As it is read back: tuples are lists there.
        self.key, self.what = json.loads(json.dumps(dict(key))), what

    def path(self, piece: str) -> Path:
        """File of a piece."""
        text = json.dumps({**self.key, self.what: piece}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def load(self, piece: str, read: Callable[[dict[str, Any]], _Read]) -> _Read | None:
        """Return what was stored of a piece; None if there is none or its file is damaged."""
        path = self.path(piece)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            content = json.loads(text)
            if content.pop("key") != self.key:
                raise ValueError("written by another run")
            if content[self.what] != piece:
                raise ValueError(f"written for another {self.what}")
            return read(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("running %s %s again, %s is damaged: %s", self.what, piece, path, error)
            return None

    def save(self, piece: str, content: Mapping[str, Any]) -> None:
        """Write what was found; a reader sees the whole file or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = {"key": self.key, **content, self.what: piece}
        write_atomically(self.path(piece), json.dumps(whole, ensure_ascii=False))
