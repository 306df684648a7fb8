r"""The spectrum of the feature covariance of a model: bulk, atoms, outliers and transform."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....deprecations import by_name
from ....errors import ParameterError
from ....numeric.arguments import is_one_of, whole_number
from ....numeric.networks.readout import RidgeReadout
from ....numeric.networks.run import simulate
from ....numeric.networks.sizes import sample_count
from ....numeric.spectra.bulk import Bulk
from ....pages import Block
from ...figures import plain_text
from ...spectra.spectrum import GRID, Caption, Numbers, SimulatedSpectrum, Spectrum
from ..arguments import checked_point
from ..model import SpikedRandomFeatures
from ..simulated import network_of
from .law import FeatureLaw

Real = NDArray[np.float64]

_MATRICES = {
    "sample": r"$p^{-1}\sum_\mu\varphi_\mu\varphi_\mu^\top$",
    "empirical": r"$n^{-1}\sum_\mu\varphi_\mu\varphi_\mu^\top$",
    "kernel": r"$\varphi_\mu\cdot\varphi_\nu/p$",
    "population": r"$\mathbb{E}\,\varphi\varphi^\top$",
}


class _Density(np.lib.mixins.NDArrayOperatorsMixin):
    """A density as a function, which was an array on the grid in the last release."""

    def __init__(self, spectrum: FeatureSpectrum) -> None:
        self._spectrum = spectrum

    def __call__(self, x: object) -> Any:
        """Return the density at points of the real axis; see ``Spectrum.density``."""
        return self._spectrum.density_at(x)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Real:
        warnings.warn(
            "the density on the grid of a spectrum is written spectrum.densities from now on, and "
            "spectrum.density(x) is the density at x",
            DeprecationWarning,
            stacklevel=3,
        )
        return np.array(self._spectrum.densities, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, _Density) else x for x in given]
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __getitem__(self, places: Any) -> Any:
        return np.asarray(self)[places]

    def __len__(self) -> int:
        return len(self._spectrum.densities)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSpectrum(Spectrum):
    r"""Asymptotic spectrum of the features on a training set of n = α d samples.

    Attributes
    ----------
    covariance : str
        "sample": :math:`K = \frac1p\sum_\mu\varphi_\mu\varphi_\mu^\top`, p × p; "empirical":
        the same divided by n; "kernel": the n × n matrix :math:`\varphi_\mu\cdot\varphi_\nu/p`;
        "population": :math:`\mathbb{E}\,\varphi\varphi^\top`.
    points, densities, cumulative : array (n,)
        The bulk on a grid that crowds at the edges, ends included, and the share of all
        eigenvalues up to each point, atoms included.
    mass_errors : array (k,)
        Estimated numerical errors of the masses.
    edges, masses, soft, atoms
        As of every :class:`.spectra.spectrum.Spectrum`.

    Notes
    -----
    The eigenvalue of the mean direction, which grows with the width, is no outlier of the limit;
    see :meth:`top_eigenvalue`.
    """

    _document = "spectrum of spiked random features"
    _where = ("alpha", "covariance")
    _asked = ("model", "alpha", "covariance")
    _arrays: ClassVar[dict[str, tuple[int, ...]]] = Spectrum._arrays | dict.fromkeys(
        ("points", "densities", "cumulative", "mass_errors"), (-1,)
    )

    model: SpikedRandomFeatures
    alpha: float
    covariance: str
    points: Numbers = field(repr=False)
    densities: Numbers = field(repr=False)
    cumulative: Numbers = field(repr=False)
    mass_errors: Numbers = field(repr=False)

    # ------------------------------------------------------------------ numbers

    @cached_property
    def _law(self) -> FeatureLaw:
        return FeatureLaw.of(self.model, self.alpha, self.covariance)

    @property
    def density(self) -> _Density:  # type: ignore[override]
        """The density of the bulk, a function of x as of every spectrum."""
        return _Density(self)

    @classmethod
    def _read(cls, values: Any) -> dict[str, Any]:
        # Documents of the last release have the grid under the name of the function.
        if isinstance(values, Mapping) and "density" in values:
            values = {"densities" if k == "density" else k: x for k, x in values.items()}
        return super()._read(values)

    @property
    def _lowest(self) -> float:
        return self._law.lowest

    @property
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""
        return "replica or leave-one-out heuristics (Cui et al., arXiv 2402.04980)"

    def bulk(self, points: int | None = None) -> Bulk:
        """Return the bulk on a grid of so many points in all; default: the grid of the spectrum.

        Raises
        ------
        ParameterError
            If `points` is no whole number from 50 to 100000.
        """
        if points is not None:
            return super().bulk(points)
        starts: Real = self.edges[:, 0]
        interval = np.asarray(np.searchsorted(starts, self.points, side="right") - 1)
        return Bulk(
            self.edges, self.soft, self.points, self.densities, interval,
            self.masses, self.mass_errors, self.cumulative,
        )  # fmt: skip

    @property
    def _shares(self) -> Real:
        if not len(self.edges):
            return super()._shares
        # Masses of intervals and the shares of the grid are different quadratures.
        return self._share_below(self.edges.ravel()).reshape(-1, 2)

    def _share_below(self, x: Real) -> Real:
        points, shares = self.points, self.cumulative
        if points[0] > 0 and points[-1] > 10 * points[0]:
            x, points = np.log(np.maximum(x, points[0])), np.log(points)
        return np.interp(x, points, shares)

    @cached_property
    def outliers(self) -> tuple[float, ...]:
        """Eigenvalues outside the bulk that stay where they are for d → ∞, ascending."""
        return self._law.outliers(self.edges, self.soft, 0.0)

    def outliers_at(self, width: int) -> tuple[float, ...]:
        """Return all eigenvalues outside the bulk at a width p, the largest one included."""
        return self._law.outliers(self.edges, self.soft, 1 / whole_number("width", width))

    def top_eigenvalue(self, width: int | None = None) -> float:
        r"""Return the eigenvalue of the mean direction at a width p, up to terms of order 1/p.

        Parameters
        ----------
        width : int, optional
            p; default: that of the model.

        Raises
        ------
        ParameterError
            If no width is known, or the features have no mean (an odd student without a spike).

        Notes
        -----
        For a given training set the sum of :math:`\mu_0(\kappa_\mu)^2` over the samples takes
        the place of its expectation, :math:`n\,\mathbb{E}\mu_0^2`: fluctuations of order
        :math:`\sqrt n`.
        """
        slope, shift = self.top_expansion
        if width is None:
            width = self.model.width
        if width is None:
            raise ParameterError("width must be given: the model has none")
        width = whole_number("width", width)
        return slope * width + shift

    @property
    def top_expansion(self) -> tuple[float, float]:
        """a and b of the eigenvalue a p + b of the mean direction.

        Raises
        ------
        ParameterError
            If the features have no mean.
        """
        if self._law.top is None:
            raise ParameterError(
                "no eigenvalue grows with the width: the features have no mean, as for an odd "
                "student without a spike"
            )
        return self._law.top

    def _precise(self, z: complex, start: complex, digits: int) -> Any:
        if self.covariance != "sample" or z.imag or z.real >= 0:
            raise ParameterError(
                "digits are for the covariance 'sample' and z < 0, where the transform is V2 of a "
                "ridge readout of penalty -z; averages over the spike's direction elsewhere are "
                f"floats; got covariance={self.covariance!r} and z = {z:g}"
            )
        return self.model.solve(alpha=self.alpha, ridge=-z.real, digits=digits, progress=False).V2

    # ------------------------------------------------------------------ presentation

    def _caption(self, width: int | None) -> Caption:
        model, notes = self.model, []
        width = model.width if width is None else width
        if width is not None and self._law.top:
            notes = [rf"top eigenvalue, $p={width}$: {self.top_eigenvalue(width):.4g}"]
        title = (
            rf"{plain_text(model.derivation.student)}, $\alpha={self.alpha:.4g}$, "
            rf"$\beta={model.beta:.4g}$"
        )
        axis = f"eigenvalue of {_MATRICES[self.covariance]}"
        return Caption(axis, title + self._atoms_text(), notes)

    def _scalars(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha, "beta": self.model.beta, "covariance": self.covariance,
        }  # fmt: skip

    def simulate(
        self,
        dimension: int = 400,
        *,
        seeds: int = 3,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
        trained: bool = False,
    ) -> SimulatedSpectrum:
        """Return the eigenvalues of K of simulated features.

        Parameters
        ----------
        dimension : int
            Input dimension d; α d and β d have to be (close to) whole numbers.
        seeds, seed : int
            Number of matrices, and entropy.
        workers : int, optional
        progress : bool
        trained : bool
            Features of networks after their gradient step instead of spiked random features.

        Returns
        -------
        SimulatedSpectrum
            In the normalisation of this spectrum.
        """
        model = self.model
        if self.covariance == "population":
            raise ParameterError(
                "the population covariance belongs to no training set; simulate the spectrum of "
                'the "empirical" covariance at a large alpha'
            )
        if trained and (model.direct_parameters is not None or not model.step_size):
            raise ParameterError(
                "trained features need a gradient step, and this model has none; "
                "leave out trained=True"
            )
        network = network_of(model, dimension, equivalent=not trained)
        samples = sample_count("alpha", self.alpha, network.dimension)
        found = simulate(
            network, "feature_eigenvalues",
            # Its samples are those of K; nothing is fitted.
            readout=RidgeReadout(samples, 1.0, test_samples=1),
            seeds=seeds, seed=seed, workers=workers, progress=progress,
        )  # fmt: skip
        width, values = network.width, found["feature_eigenvalues"][:, 0]
        if self.covariance == "empirical":
            values = values * (width / samples)
        if self.covariance == "kernel":
            # The n × n matrix has the same positive eigenvalues and more or fewer zeros.
            more = max(samples - width, 0)
            values = np.pad(values, ((0, 0), (more, 0)))[:, -samples:]
        return SimulatedSpectrum(values, found["projections"], width, network.dimension, trained)

    def page(self) -> Iterable[Block]:
        """Return bulk, atoms, outliers and the top eigenvalue, line by line."""
        yield (
            f"spectrum of the {self.covariance} covariance, alpha = {self.alpha:g}, "
            f"beta = {self.model.beta:g}"
        )
        yield self._bulk_text()
        for place, mass in self.atoms:
            yield f"atom at {place:.6g} of mass {mass:.6g}"
        yield f"total mass differs from 1 by {self.mass_error:.1e}"
        if self.outliers:
            yield "outliers: " + ", ".join(f"{x:.6g}" for x in self.outliers)
        if self._law.top:
            slope, shift = self._law.top
            yield f"top eigenvalue: {slope:.6g} p + {shift:.6g}"


@by_name("alpha", "points")
def spectrum(
    model: SpikedRandomFeatures, *, alpha: float, points: int = 500, covariance: str = "sample"
) -> FeatureSpectrum:
    r"""Return the spectrum of the features on a training set of n = α d samples.

    Parameters
    ----------
    alpha : float
        Sample complexity n/d.
    points : int
        Grid points of the density.
    covariance : {"sample", "empirical", "kernel", "population"}
        :math:`K = \frac1p\sum_\mu\varphi_\mu\varphi_\mu^\top`; the same divided by n
        instead of p; the n × n matrix :math:`\varphi_\mu\cdot\varphi_\nu/p`;
        :math:`\mathbb{E}\,\varphi\varphi^\top`, which does not depend on α.

    Returns
    -------
    FeatureSpectrum
        Bulk, atoms, outliers, Stieltjes transform; ``plot``, ``simulate``, ``save``.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    ConvergenceError
        If a density cannot be resolved: activations that vary fast along a long spike.

    References
    ----------
    Cui et al., arXiv 2402.04980, appendix on the spectrum of the features. The outliers are
    derived here.
    """
    (alpha,) = checked_point(model, alpha=alpha)
    count = whole_number("points", points, *GRID)
    if not is_one_of(covariance, _MATRICES):
        known = ", ".join(map(repr, _MATRICES))
        raise ParameterError(f"covariance must be one of {known}, got {covariance!r}")
    law = FeatureLaw.of(model, alpha, str(covariance))
    bulk = law.bulk(count)
    return FeatureSpectrum(
        model=model,
        edges=bulk.edges,
        masses=bulk.masses,
        soft=bulk.soft,
        atoms=law.atoms,
        alpha=alpha,
        covariance=str(covariance),
        points=bulk.points,
        densities=bulk.density,
        cumulative=bulk.cumulative,
        mass_errors=bulk.mass_errors,
    )
