"""Outcomes of finished targets on disk: one JSON file each, written at once or not at all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ...atomic_files import write_atomically
from .conjecture_outcomes import TargetOutcome

logger = logging.getLogger(__name__)


class OutcomeStore:
    """Folder of ``<hash of everything that fixes the numbers>.json`` files.

    Parameters
    ----------
    folder : path
        Created with the first file.
    key : mapping
        Everything but the target that fixes the numbers.
    """

    def __init__(self, folder: str | os.PathLike[str], key: Mapping[str, object]) -> None:
        self.folder = Path(folder).expanduser()
        self.key = dict(key)

    def path(self, target: str) -> Path:
        """File of a target."""
        text = json.dumps({**self.key, "target": target}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def load(self, target: str) -> TargetOutcome | None:
        """Stored outcome of a target; None if there is none or its file is damaged."""
        path = self.path(target)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            content = json.loads(text)
            if content.pop("key") != self.key:
                raise ValueError("written by another run")
            found = TargetOutcome.from_dict(content)
            if found.target != target:
                raise ValueError("written for another target")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("running target %s again, %s is damaged: %s", target, path, error)
            return None
        return found

    def save(self, outcome: TargetOutcome) -> None:
        """Write an outcome; a reader sees the whole file or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"key": self.key, **outcome.to_dict()}
        write_atomically(self.path(outcome.target), json.dumps(content, ensure_ascii=False))
