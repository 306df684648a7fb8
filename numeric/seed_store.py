"""Finished seeds of a simulation on disk: one file each, written at once or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import tempfile
from pathlib import Path

import numpy as np

from .networks import NetworkResult, NetworkSetup

__all__ = ["SeedStore"]

logger = logging.getLogger(__name__)

STREAMS_VERSION = 1
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""


class SeedStore:
    """Folder of ``<hash of everything that fixes the numbers>-<seed number>.npz`` files.

    Parameters
    ----------
    folder : Path
        Created with the first file.
    setup, alpha, ridge, n_test, seed
        What was simulated; enters the hash.
    description : str
        Stands for the functions in `setup`, whose values cannot be hashed.
    """

    def __init__(
        self,
        folder: Path,
        setup: NetworkSetup,
        alpha: tuple[float, ...],
        ridge: float,
        n_test: int,
        seed: int,
        description: str,
    ) -> None:
        self.folder = folder
        self.points = len(alpha)
        self.key = json.dumps(
            {
                "streams_version": STREAMS_VERSION,
                "description": description,
                "step_size": setup.step_size,
                "alpha0": setup.alpha0,
                "beta": setup.beta,
                "noise_variance": setup.noise_variance,
                "dimension": setup.dimension,
                "alpha": alpha,
                "ridge": ridge,
                "n_test": n_test,
                "seed": seed,
            },
            sort_keys=True,
        )
        self.name = hashlib.sha256(self.key.encode()).hexdigest()[:24]

    def path(self, index: int) -> Path:
        """File of seed `index`."""
        return self.folder / f"{self.name}-{index:05d}.npz"

    def load(self, index: int) -> NetworkResult | None:
        """Stored result of seed `index`; None if there is none or its file is damaged."""
        path = self.path(index)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                if str(archive["key"]) != self.key:
                    raise ValueError("written by another run")
                errors = archive["errors"]
                strength, variance, alignment = archive["realised"].tolist()
            if errors.shape != (2, self.points) or errors.dtype != np.float64:
                raise ValueError("wrong shape or type")
        except Exception as error:  # A damaged archive raises almost anything.
            logger.warning("computing seed %d again, %s is damaged: %s", index, path, error)
            return None
        return NetworkResult(errors[0], errors[1], strength, variance, alignment)

    def save(self, index: int, result: NetworkResult) -> None:
        """Write the result of seed `index`; a reader sees the whole file or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez(
                    file,
                    key=np.array(self.key),
                    errors=np.stack([result.test_error, result.training_error]),
                    realised=np.array(
                        [result.spike_strength, result.bulk_variance, result.alignment]
                    ),
                )
            os.replace(temporary, self.path(index))
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
