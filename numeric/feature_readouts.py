r"""One first layer of finite size: fit its readout at several sample sizes, measure everything.

Readouts minimise :math:`\sum_\mu \ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + \frac\lambda2|w|^2`;
for the square loss this is ridge regression with penalty :math:`\lambda|w|^2` against the sum of
squares. The samples are nested: a smaller size uses the first samples of a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .conditional_prediction import ConditionalPrediction
from .convex_readout import fit_convex
from .feature_losses import SQUARE, Loss
from .feature_samples import BLOCK_ROWS, READOUT, TEST, SampleBlock, layer_samples
from .ridge_readout import fit_nested

if TYPE_CHECKING:
    from .feature_network import SteppedNetwork
    from .feature_rows import FirstLayer
    from .feature_setup import FeatureSetup

__all__ = ["ERRORS", "OVERLAPS", "REALISED", "TrainedFeatures", "train_readouts"]

Array = NDArray[np.float64]

ERRORS = (
    "test_error", "training_error", "test_loss", "training_loss", "objective", "certificate",
)  # fmt: skip
OVERLAPS = ("m", "theta", "psi", "q1", "q2")
REALISED = ("spike_strength", "bulk_variance", "alignment")


@dataclass(frozen=True, slots=True, eq=False)
class TrainedFeatures:
    """Arrays of one first layer: :data:`ERRORS` and :data:`OVERLAPS` over alpha, `REALISED`."""

    values: dict[str, Array]


def train_readouts(
    setup: FeatureSetup | SteppedNetwork,
    sizes: Sequence[int],
    *,
    ridge: float,
    loss: Loss,
    n_test: int,
    seed: np.random.SeedSequence,
    predictions: Sequence[ConditionalPrediction] | None = None,
    checkpoint: Callable[[], None] | None = None,
) -> TrainedFeatures:
    """Draw a first layer, fit a readout at each of the increasing sizes, and measure.

    Parameters
    ----------
    setup : FeatureSetup or SteppedNetwork
    sizes : sequence of int
        Sample sizes, strictly increasing.
    ridge : float
        λ > 0.
    loss : Loss
    n_test : int
        Fresh samples.
    seed : SeedSequence
    predictions : sequence of ConditionalPrediction, optional
        One for each size.
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.
    """
    layer = setup.first_layer(seed, checkpoint)
    run = _Run(setup, layer, loss, seed, checkpoint)
    fit = run.ridge if loss == SQUARE else run.convex
    readouts, training = fit(list(sizes), ridge)
    errors = {**training, **run.test(readouts, n_test)}
    if predictions is not None:
        for column, (prediction, size) in enumerate(zip(predictions, sizes, strict=True)):
            means = prediction.means
            seen = prediction.at(run.projections(TEST, n_test))[0].mean()
            errors["test_error"][column] += means[0] - seen
            seen = prediction.at(run.projections(READOUT, size))[1].mean()
            errors["training_error"][column] += means[1] - seen
    overlaps = [layer.overlaps(w * math.sqrt(layer.width)) for w in readouts.T]
    return TrainedFeatures(
        {
            **errors,
            **{name: np.stack([found[name] for found in overlaps]) for name in OVERLAPS},
            "spike_strength": layer.strengths,
            "bulk_variance": layer.bulk_variances,
            "alignment": layer.alignment,
        }
    )


class _Run:
    """One layer with its samples. Readouts here are u = w/√p, for features without 1/√p."""

    def __init__(
        self,
        setup: FeatureSetup | SteppedNetwork,
        layer: FirstLayer,
        loss: Loss,
        seed: np.random.SeedSequence,
        checkpoint: Callable[[], None] | None,
    ) -> None:
        self.setup, self.layer, self.loss = setup, layer, loss
        self.seed, self.checkpoint = seed, checkpoint
        channel = setup.channel
        self.classifies = channel.classifies or loss.binary
        self._projections: dict[int, list[Array]] = {}

    def samples(self, purpose: int, count: int, start: int = 0) -> list[SampleBlock]:
        """Return at most one block of samples."""
        return list(
            layer_samples(
                self.setup.teacher, self.layer.teachers, self.setup.channel, self.seed, purpose,
                min(count, start + BLOCK_ROWS), self.checkpoint, start=start,
            )
        )  # fmt: skip

    def block(self, purpose: int, start: int, out: Array) -> SampleBlock:
        """Write the features of a block into `out`; keep its projections on the first spike."""
        (block,) = self.samples(purpose, start + len(out), start)
        self.layer.features(self.setup.student, block.inputs, out)
        kept = self._projections.setdefault(purpose, [])
        if start // BLOCK_ROWS == len(kept):
            kept.append(block.inputs @ self.layer.spikes[0])
        return block

    def projections(self, purpose: int, count: int) -> Array:
        """Projections of the samples that were drawn on the first spike."""
        return np.concatenate(self._projections[purpose])[:count]

    def ridge(self, sizes: list[int], ridge: float) -> tuple[Array, dict[str, Array]]:
        """Square loss, by Cholesky factors that grow with the samples."""
        width = self.layer.width
        labels = np.empty(sizes[-1])

        def draw(start: int, out: Array) -> Array:
            block = self.block(READOUT, start, out)
            labels[start : start + len(out)] = block.labels
            return block.labels

        readouts, squares = fit_nested(
            draw, sizes, width=width, ridge=ridge * width, block_rows=BLOCK_ROWS
        )
        # In this order: ridge * width overflows where readouts vanish.
        penalty = np.einsum("jk,jk->k", readouts, readouts) * ridge * width
        found = {
            "training_error": squares.copy(),
            "training_loss": squares / 2,
            "objective": squares / 2 + penalty / 2 / np.asarray(sizes),
            "certificate": np.zeros(len(sizes)),
        }
        if self.classifies:
            predictions = self.on_samples(READOUT, sizes[-1], readouts)
            for column, size in enumerate(sizes):
                wrong = predictions[:size, column] * labels[:size] <= 0
                found["training_error"][column] = wrong.mean()
        return readouts, found

    def on_samples(self, purpose: int, count: int, readouts: Array) -> Array:
        """Return predictions of all readouts, (count, sizes)."""
        found = np.empty((count, readouts.shape[1]))
        hidden = np.empty((min(BLOCK_ROWS, count), self.layer.width))
        for start in range(0, count, BLOCK_ROWS):
            part = hidden[: min(BLOCK_ROWS, count - start)]
            self.block(purpose, start, part)
            found[start : start + len(part)] = part @ readouts
        return found

    def convex(self, sizes: list[int], ridge: float) -> tuple[Array, dict[str, Array]]:
        """Any other loss: all features at once, each size starting from the one before."""
        width, last = self.layer.width, sizes[-1]
        features, labels = np.empty((last, width)), np.empty(last)
        for start in range(0, last, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, last)
            labels[start:stop] = self.block(READOUT, start, features[start:stop]).labels
        features /= math.sqrt(width)
        found = {name: np.empty(len(sizes)) for name in ERRORS if not name.startswith("test")}
        readouts, w = np.empty((width, len(sizes))), None
        for column, size in enumerate(sizes):
            if self.checkpoint is not None:
                self.checkpoint()
            fit = fit_convex(features[:size], labels[:size], self.loss, ridge, w)
            w = fit.coefficients
            seen, known = features[:size] @ w, labels[:size]
            found["training_error"][column] = self._errors(seen, known).mean()
            found["training_loss"][column] = np.mean(self.loss.value(known, seen))
            found["objective"][column] = fit.objective / size
            found["certificate"][column] = fit.certificate
            readouts[:, column] = w / math.sqrt(width)
        return readouts, found

    def test(self, readouts: Array, count: int) -> dict[str, Array]:
        """Errors and losses on fresh samples."""
        sums = np.zeros((2, readouts.shape[1]))
        hidden = np.empty((min(BLOCK_ROWS, count), self.layer.width))
        for start in range(0, count, BLOCK_ROWS):
            part = hidden[: min(BLOCK_ROWS, count - start)]
            block = self.block(TEST, start, part)
            seen = part @ readouts
            known = np.broadcast_to(block.labels[:, None], seen.shape)
            truth = known if self.classifies else block.target[:, None]
            sums[0] += self._errors(seen, truth).sum(axis=0)
            sums[1] += np.asarray(self.loss.value(known, seen)).sum(axis=0)
        return {"test_error": sums[0] / count, "test_loss": sums[1] / count}

    def _errors(self, predicted: Array, truth: Array) -> Array:
        if self.classifies:
            return (predicted * truth <= 0).astype(float)
        return (predicted - truth) ** 2
