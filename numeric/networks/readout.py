r"""Second layers fitted to trained first layers, at several sample sizes and penalties.

Readouts minimise :math:`\sum_\mu \ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + \frac\lambda2|w|^2`;
ridge regression, :math:`\sum_\mu (y_\mu - \varphi_\mu\cdot w/\sqrt p)^2 + \lambda|w|^2`, is that
of the square loss. The samples are nested: a smaller size uses the first samples of a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import checked_switch, nonnegative_number, positive_number, whole_number
from .convex import Loss, fit_convex, require_loss
from .network import Network, Training
from .ridge import RidgeFit, fit_ridge
from .samples import NONLINEAR, READOUT, RESIDUAL, STEP, TEST, SampleBlock

__all__ = ["ConvexReadout", "GaussianFeatures", "Readout", "RidgeReadout", "TrainedNetwork"]

Array = NDArray[np.float64]
Found = TypeVar("Found")

HELD_OUT_SHARE = 0.2
"""Share of the samples that choose the penalty and do nothing else, if no penalty is given."""

FEWEST_HELD_OUT = 10
"""Samples that a fifth can be held out of."""

RIDGE_EXPONENTS = np.arange(-8, 7) / 2
"""Decimal logarithms of the penalties to choose from, in units of the mean diagonal entry of the
Gram matrix: features of any size, since trained weights are longer, and sizes depend on the
student."""


@dataclass(frozen=True, slots=True)
class GaussianFeatures:
    r"""Gaussian counterparts of the features, :math:`\mu_1\,w_j\cdot x + \mu_* z_j`.

    A prediction from them is linear in Gaussian variables, to which the nonlinear part of the
    teacher is orthogonal: the population risk is exact.

    Parameters
    ----------
    linear, residual : float
        :math:`\mu_1` of the student and variance :math:`\mu_*^2` of the rest.
    teacher_linear, teacher_residual : float
        The same of the teacher.
    labels : bool
        Whether the nonlinear part of the teacher is replaced, too, by independent Gaussian numbers.
    """

    linear: float
    residual: float
    teacher_linear: float
    teacher_residual: float
    labels: bool = False


class _Fit:
    """What readouts have in common: on which samples they are fitted and tested."""

    __slots__ = ()
    samples: int | Sequence[int]
    test_samples: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sample sizes as they were given."""
        return tuple(np.atleast_1d(np.asarray(self.samples)).tolist())

    def fresh_samples(self, dimension: int) -> int:
        """Return the number of samples that it is tested on, with inputs of so many coordinates."""
        return max(10_000, 10 * dimension) if self.test_samples is None else self.test_samples

    def _check_samples(self) -> None:
        listed = np.atleast_1d(np.asarray(self.samples, dtype=object)).tolist()
        if not listed:
            raise ParameterError("samples must hold at least one number")
        sizes = tuple(whole_number("samples", size) for size in listed)
        object.__setattr__(self, "samples", sizes)
        if self.test_samples is not None:
            count = whole_number("test_samples", self.test_samples)
            object.__setattr__(self, "test_samples", count)


@dataclass(frozen=True, slots=True)
class RidgeReadout(_Fit):
    """Ridge regression.

    Parameters
    ----------
    samples : int or sequence of int
        Sample sizes, in any order.
    penalties : float or sequence of float, optional
        λ ≥ 0; zero is the interpolator, or the least-squares fit, of least norm. By default a fifth
        of the samples is held out, and λ is the one of 15 values with the smallest error there,
        from 10⁻⁴ to 10³ times the mean diagonal entry of the Gram matrix of the features.
    intercept : bool
        Fit a constant that is not penalised.
    gaussian : GaussianFeatures, optional
        Replace the features by their Gaussian counterparts.
    covariances : callable, optional
        Takes the rows (p, d) of a first layer, returns the covariances of its features with each
        other, (p, p), and with the target, (p,), and the mean square of the target: the population
        risk is then exact, without test samples.
    step_samples : bool
        Fit on the samples of the first step, without their mean and linear part; predictions
        contain these.
    test_samples : int, optional
        Fresh samples; max(10000, 10 d) by default.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """

    samples: int | Sequence[int]
    penalties: float | Sequence[float] | None = None
    intercept: bool = False
    gaussian: GaussianFeatures | None = None
    covariances: Callable[[Array], tuple[Array, Array, float]] | None = None
    step_samples: bool = False
    test_samples: int | None = None

    def __post_init__(self) -> None:
        self._check_samples()
        given = self.penalties
        if given is None:
            if min(self.sizes) < FEWEST_HELD_OUT:
                raise ParameterError(
                    f"samples={min(self.sizes)} are too few to hold out a fifth\n"
                    f"  give a ridge, or samples >= {FEWEST_HELD_OUT}"
                )
        else:
            listed = (given,) if np.ndim(given) == 0 else tuple(given)  # type: ignore[arg-type]
            if not listed:
                raise ParameterError("ridge must hold at least one number, such as [0.01, 0.1]")
            found = tuple(nonnegative_number("ridge", ridge) for ridge in listed)
            object.__setattr__(self, "penalties", found)
        for name in ("intercept", "step_samples"):
            object.__setattr__(self, name, checked_switch(name, getattr(self, name)))

    def fitted(self, size: int) -> int:
        """How many of the samples of a size are fitted; the others choose the penalty."""
        return size - round(HELD_OUT_SHARE * size) if self.penalties is None else size

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers, as plain values."""
        found: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.gaussian is not None:
            found["gaussian"] = [getattr(self.gaussian, f.name) for f in fields(self.gaussian)]
        return {**found, "kind": "ridge", "covariances": self.covariances is not None}


@dataclass(frozen=True, slots=True)
class ConvexReadout(_Fit):
    """A convex loss with a ridge penalty, each fit with a certificate.

    Parameters
    ----------
    samples : int or sequence of int
        Sample sizes, in any order.
    penalty : float
        λ > 0.
    loss : Loss
        See :mod:`.convex`.
    test_samples : int, optional
        Fresh samples; max(10000, 10 d) by default.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """

    samples: int | Sequence[int]
    penalty: float
    loss: Loss
    test_samples: int | None = None

    def __post_init__(self) -> None:
        self._check_samples()
        object.__setattr__(self, "penalty", positive_number("ridge", self.penalty))
        require_loss(self.loss)

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers, as plain values."""
        return {
            "kind": "convex", "samples": list(self.sizes), "penalty": self.penalty,
            "loss": self.loss.name, "test_samples": self.test_samples,
        }  # fmt: skip


Readout = RidgeReadout | ConvexReadout


def bytes_needed(network: Network, readout: Readout | None) -> int:
    """Return the memory of a readout beside that of its network."""
    if readout is None:
        return 0
    size = 4 if network.precision == "single" else 8
    width, last = network.width, max(readout.sizes)
    if isinstance(readout, ConvexReadout):
        return 8 * (2 * last * width + 2 * width**2)
    exact = readout.penalties is not None and 0 in readout.penalties  # type: ignore[operator]
    kept = last if exact else min(last, 4 * width + 1024)
    small = min(last, width)
    factors = 3 * small * (last + width) // 2 if exact else 2 * min(width, max(small, 1)) ** 2
    return size * kept * width + 8 * (factors + 6 * width**2 * (readout.covariances is not None))


@dataclass(slots=True, eq=False)
class Fitted:
    """Readouts of S sizes and L penalties, in the order asked.

    Attributes
    ----------
    coefficients : ndarray, shape (p, S, L)
        :math:`w/\\sqrt p`.
    intercepts : ndarray, shape (S, L)
    values : dict of str to ndarray, shape (S, L)
        ``training_error``, ``training_loss``, ``objective``, ``certificate`` and ``ridge``, λ.
    """

    coefficients: Array
    intercepts: Array
    values: dict[str, Array]


class TrainedNetwork:
    """What measurements see: a network as it is now, its samples and its readouts.

    Parameters
    ----------
    training : Training
    readout : RidgeReadout or ConvexReadout, optional
    """

    def __init__(self, training: Training, readout: Readout | None = None) -> None:
        self.training, self.network, self.layer = training, training.network, training.layer
        self.samples = training.samples
        self._readout = readout
        self._projections: dict[int, dict[int, Array]] = {}
        self._found: dict[str, Any] = {}

    @property
    def readout(self) -> Readout:
        """The readout that was asked for.

        Raises
        ------
        ParameterError
            If none was.
        """
        if self._readout is None:
            raise ParameterError(
                "errors and overlaps are those of a readout; give readout=, or alpha= or samples= "
                "to giantstep.simulate"
            )
        return self._readout

    @property
    def test_samples(self) -> int:
        """Number of fresh samples."""
        return self.readout.fresh_samples(self.network.dimension)

    @property
    def classifies(self) -> bool:
        """Whether errors are shares of wrong signs."""
        loss = getattr(self.readout, "loss", None)
        return self.network.channel.classifies or (loss is not None and loss.binary)

    @property
    def _gaussian(self) -> GaussianFeatures | None:
        return getattr(self._readout, "gaussian", None)

    @property
    def _fits_step(self) -> bool:
        return bool(getattr(self._readout, "step_samples", False))

    @property
    def _linear_part(self) -> tuple[float, Array]:
        return self._once("linear part", self.training.linear_part)

    def _once(self, name: str, computed: Callable[[], Found]) -> Found:
        """Compute something once; before Python 3.12 a cached_property locks all networks out."""
        if name not in self._found:
            self._found[name] = computed()
        found: Found = self._found[name]
        return found

    # ------------------------------------------------------------------ samples and features

    def blocks(self, purpose: int, count: int, start: int = 0) -> Any:
        """Yield blocks; labels and targets are those that the readout is fitted to."""
        for block in self.samples.blocks(purpose, count, start=start):
            kept = self._projections.setdefault(purpose, {})
            kept.setdefault(block.start, block.inputs @ self.layer.spikes[0])
            if self._gaussian is not None and self._gaussian.labels and purpose == READOUT:
                yield self._gaussian_labels(block)
            elif self._fits_step:
                offset, linear = self._linear_part
                rest = offset + block.inputs @ linear
                yield SampleBlock(
                    block.start, block.inputs, block.target - rest, block.labels - rest
                )
            else:
                yield block

    def _gaussian_labels(self, block: SampleBlock) -> SampleBlock:
        law = self._gaussian
        assert law is not None
        noise = self._block_noise(RESIDUAL, block, 1)[:, 0]
        along = block.inputs @ self.layer.teachers[0]
        target = law.teacher_linear * along + math.sqrt(law.teacher_residual) * noise
        return SampleBlock(block.start, block.inputs, target, block.labels - block.target + target)

    def projections(self, purpose: int, count: int | None = None) -> Array:
        """Projections on the first spike of so many samples, or of all that have been drawn."""
        kept = self._projections[purpose]
        return np.concatenate([kept[start] for start in sorted(kept)])[:count]

    def features(self, block: SampleBlock, out: Array) -> None:
        """Write the features of a block into `out`, (n, p)."""
        law = self._gaussian
        if law is None:
            self.layer.features(self.network.student, block.inputs, out)
            return
        np.matmul(block.inputs, self.layer.rows.T, out=out)
        out *= law.linear
        out += math.sqrt(law.residual) * self._block_noise(NONLINEAR, block, out.shape[1])

    def _block_noise(self, purpose: int, block: SampleBlock, width: int) -> Array:
        """Standard normal numbers of a block's samples, from its own stream."""
        number, before = divmod(block.start, self.samples.block_rows)
        shape = before + len(block.labels), width
        return self.samples.generator(purpose, number).standard_normal(shape)[before:]

    def feature_blocks(self, purpose: int, count: int, start: int = 0) -> Any:
        """Yield blocks with their features, whose memory is used again."""
        size = min(self.samples.block_rows, count)
        memory = np.empty((size, self.layer.width), self.layer.rows.dtype)
        for block in self.blocks(purpose, count, start):
            hidden = memory[: len(block.labels)]
            self.features(block, hidden)
            yield block, hidden

    def feature_matrix(self, count: int) -> tuple[Array, Array]:
        """Return features, (n, p), and labels, (n,), of the first samples of the readout."""
        features = np.empty((count, self.layer.width), self.layer.rows.dtype)
        labels = np.empty(count)
        for block in self.blocks(READOUT, count):
            self.features(block, features[block.rows])
            labels[block.rows] = block.labels
        return features, labels

    # ------------------------------------------------------------------ fits

    @property
    def fit(self) -> Fitted:
        """The readouts."""
        return self._once("fit", self._fitted)

    def _fitted(self) -> Fitted:
        readout = self.readout
        sizes, order = np.unique(readout.sizes, return_inverse=True)
        if isinstance(readout, ConvexReadout):
            found = self._convex(readout, sizes.tolist())
        else:
            found = self._ridge(readout, sizes.tolist())
        return Fitted(
            found.coefficients[:, order], found.intercepts[order],
            {name: values[order] for name, values in found.values.items()},
        )  # fmt: skip

    def _draw(self, start: int, out: Array) -> Array:
        purpose = STEP if self._fits_step else READOUT
        (block,) = self.blocks(purpose, start + len(out), start)
        self.features(block, out)
        return np.asarray(block.labels)

    def _ridge(self, readout: RidgeReadout, sizes: list[int]) -> Fitted:
        """Square loss."""
        width, chosen = self.layer.width, readout.penalties is None
        fitted = [readout.fitted(n) for n in sizes]
        penalties = (
            10.0**RIDGE_EXPONENTS if chosen else width * np.asarray(readout.penalties, dtype=float)
        )
        fit = fit_ridge(
            self._draw, fitted, penalties.tolist(), width=width, relative=chosen,
            block_rows=self.samples.block_rows, intercept=readout.intercept,
            dtype=self.layer.rows.dtype.type,
        )  # fmt: skip
        if chosen:
            fit = self._best(fit, sizes, fitted)
        counts = np.asarray(fitted)[:, None]
        ridge = fit.penalties / width
        if not chosen:
            # Huge penalties overflow with the width.
            ridge = np.broadcast_to(np.asarray(readout.penalties, dtype=float), ridge.shape)
        # In this order, for the same reason: the readouts vanish there.
        cost = np.einsum("psl,psl->sl", fit.coefficients, fit.coefficients) * ridge * width
        values = {
            "training_error": fit.training_error.copy(),
            "training_loss": fit.training_error / 2,
            "objective": fit.training_error / 2 + cost / 2 / counts,
            "certificate": np.zeros(fit.penalties.shape),
            "ridge": ridge,
        }
        if self.classifies:
            values["training_error"] = self._wrong_signs(fit, fitted)
        return Fitted(fit.coefficients, fit.intercepts, values)

    def _best(self, fit: RidgeFit, sizes: Sequence[int], fitted: Sequence[int]) -> RidgeFit:
        """The penalties with the smallest errors on the samples held out."""
        purpose = STEP if self._fits_step else READOUT
        best = []
        for column, (stop, start) in enumerate(zip(sizes, fitted, strict=True)):
            sums = np.zeros(fit.penalties.shape[1])
            for block, features in self.feature_blocks(purpose, stop, start):
                seen = features @ fit.coefficients[:, column] + fit.intercepts[column]
                sums += ((block.labels[:, None] - seen) ** 2).sum(axis=0)
            best.append(int(np.argmin(sums)))
        rows = np.arange(len(sizes))
        return RidgeFit(
            fit.coefficients[:, rows, best][..., None],
            *(values[rows, best][:, None] for values in (
                fit.intercepts, fit.penalties, fit.training_error,
            )),
        )  # fmt: skip

    def _wrong_signs(self, fit: RidgeFit, sizes: Sequence[int]) -> Array:
        sums = np.zeros(fit.penalties.shape)
        columns = fit.coefficients.reshape(self.layer.width, -1)
        purpose = STEP if self._fits_step else READOUT
        for block, features in self.feature_blocks(purpose, sizes[-1]):
            seen = (features @ columns).reshape(len(features), *sums.shape) + fit.intercepts
            wrong = seen * block.labels[:, None, None] <= 0
            for row, n in enumerate(sizes):
                sums[row] += wrong[: max(n - block.start, 0), row].sum(axis=0)
        return sums / np.asarray(sizes)[:, None]

    def _convex(self, readout: ConvexReadout, sizes: list[int]) -> Fitted:
        """Any other loss: all features at once, each size starting from the one before."""
        width = self.layer.width
        drawn, labels = self.feature_matrix(sizes[-1])
        features = drawn.astype(float, copy=False) / math.sqrt(width)
        names = ("training_error", "training_loss", "objective", "certificate", "ridge")
        values = {name: np.full((len(sizes), 1), readout.penalty) for name in names}
        readouts, w = np.empty((width, len(sizes), 1)), None
        for row, size in enumerate(sizes):
            if self.samples.checkpoint is not None:
                self.samples.checkpoint()
            fit = fit_convex(features[:size], labels[:size], readout.loss, readout.penalty, w)
            w = fit.coefficients
            seen, known = features[:size] @ w, labels[:size]
            values["training_error"][row] = self.squared_errors(seen, known).mean()
            values["training_loss"][row] = np.mean(readout.loss.value(known, seen))
            values["objective"][row] = fit.objective / size
            values["certificate"][row] = fit.certificate
            readouts[:, row, 0] = w / math.sqrt(width)
        return Fitted(readouts, np.zeros((len(sizes), 1)), values)

    def squared_errors(self, predicted: Array, truth: Array) -> Array:
        """Squared distances, or for classification one where the sign is wrong."""
        if self.classifies:
            return (predicted * truth <= 0).astype(float)
        return (predicted - truth) ** 2

    # ------------------------------------------------------------------ fresh samples

    @property
    def test(self) -> dict[str, Array]:
        """``test_error`` and ``test_loss``, (S, L); in single precision ``rounding``, too."""
        return self._once("test", self._tested)

    def _tested(self) -> dict[str, Array]:
        readout, fit = self.readout, self.fit
        if isinstance(readout, RidgeReadout) and (readout.gaussian or readout.covariances):
            risk = self._population_risk(readout)
            return {"test_error": risk, "test_loss": risk / 2}
        count = self.test_samples
        columns = fit.coefficients.reshape(self.layer.width, -1)
        intercepts = fit.intercepts.reshape(-1)
        sums = np.zeros((2, len(intercepts)))
        rounding: dict[str, Array] = {}
        for block, features in self.feature_blocks(TEST, count):
            seen = features @ columns + intercepts
            known = np.broadcast_to(block.labels[:, None], seen.shape)
            truth = known if self.classifies else block.target[:, None]
            sums[0] += self.squared_errors(seen, truth).sum(axis=0)
            sums[1] += self._losses(known, seen).sum(axis=0)
            if self.network.precision == "single" and not rounding:
                rounding = {"rounding": self._rounding(block, seen).reshape(fit.intercepts.shape)}
        error, loss = (row.reshape(fit.intercepts.shape) / count for row in sums)
        return {"test_error": error, "test_loss": loss, **rounding}

    def _losses(self, known: Array, seen: Array) -> Array:
        if isinstance(self.readout, ConvexReadout):
            return np.asarray(self.readout.loss.value(known, seen))
        return (known - seen) ** 2 / 2

    def _rounding(self, block: SampleBlock, seen: Array) -> Array:
        """Relative distance of predictions from those of the same weights in double precision."""
        rows, self.layer.rows = self.layer.rows, self.layer.rows.astype(np.float64)
        try:
            exact = np.empty((len(block.labels), self.layer.width))
            wide = SampleBlock(
                block.start, block.inputs.astype(np.float64), block.target, block.labels
            )
            self.features(wide, exact)
        finally:
            self.layer.rows = rows
        columns = self.fit.coefficients.reshape(self.layer.width, -1)
        right = exact @ columns + self.fit.intercepts.reshape(-1)
        return np.asarray(np.linalg.norm(seen - right, axis=0) / np.linalg.norm(right, axis=0))

    def _population_risk(self, readout: RidgeReadout) -> Array:
        """Mean squared distance from the target, exact."""
        fit = self.fit
        if readout.covariances is not None:
            gram, cross, square = readout.covariances(self.layer.rows)
            quadratic = np.einsum("isl,ij,jsl->sl", fit.coefficients, gram, fit.coefficients,
                                  optimize=True)  # fmt: skip
            # Below the rounding errors of its terms a risk is zero.
            linear = np.einsum("i,isl->sl", cross, fit.coefficients)
            return np.maximum(square - 2 * linear + quadratic, 0.0)
        law = readout.gaussian
        assert law is not None
        # Predictions are linear in Gaussian variables.
        error = -law.linear * np.einsum("pd,psl->dsl", self.layer.rows, fit.coefficients,
                                        optimize=True)  # fmt: skip
        error += law.teacher_linear * self.layer.teachers[0][:, None, None]
        noise = law.residual * (fit.coefficients**2).sum(axis=0)
        return np.asarray((error**2).sum(axis=0) + noise + law.teacher_residual)
