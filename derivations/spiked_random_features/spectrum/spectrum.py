r"""The spectrum of the feature covariance of a model: bulk, atoms, outliers and transform."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....atomic_files import write_atomically
from ....errors import ParameterError
from ....numeric.arguments import complex_array, is_one_of, whole_number
from ....numeric.outliers import real_roots
from ....numeric.spectra import ResolventTransform
from ....numeric.spectral_bulk import find_bulk
from ..arguments import checked_point
from .derivation import spectrum_derivation
from .transform import SpectrumFunctions

if TYPE_CHECKING:
    import xarray as xr

    from ..model import SpikedRandomFeatures

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

COVARIANCES = ("sample", "empirical", "kernel", "population")
_FEWEST, _MOST = 50, 100_000


@dataclass(frozen=True)
class Spectrum:
    r"""Asymptotic spectrum of the features on a training set of n = α d samples.

    Attributes
    ----------
    model : SpikedRandomFeatures
    alpha : float
    covariance : str
        "sample": :math:`K = \frac1p\sum_\mu\varphi_\mu\varphi_\mu^\top`, p × p; "empirical":
        the same divided by n; "kernel": the n × n matrix :math:`\varphi_\mu\cdot\varphi_\nu/p`;
        "population": :math:`\mathbb{E}\,\varphi\varphi^\top`.
    points, density, cumulative : array (n,)
        The bulk on a grid that crowds at the edges, ends included, and the share of all
        eigenvalues up to each point, atoms included.
    edges : array (k, 2)
        Intervals of the bulk, ascending.
    soft : array (k, 2) of bool
        Where an interval ends softly: there the density has fallen below 1e-7 of the mass per
        unit of log x, but goes on.
    masses, mass_errors : array (k,)
        Masses of the intervals; estimated numerical errors.
    atoms : tuple of (float, float)
        Places and masses of degenerate eigenvalues.

    Notes
    -----
    Densities are those of the limit d → ∞ and count one large matrix's eigenvalues as a mass of
    one. Finitely many eigenvalues leave the bulk: see :attr:`outliers` and
    :meth:`top_eigenvalue`.
    """

    model: SpikedRandomFeatures
    alpha: float
    covariance: str
    points: Real = field(repr=False)
    density: Real = field(repr=False)
    cumulative: Real = field(repr=False)
    edges: Real
    soft: NDArray[np.bool_]
    masses: Real
    mass_errors: Real = field(repr=False)
    atoms: tuple[tuple[float, float], ...]

    # ------------------------------------------------------------------ numbers

    @property
    def mass_error(self) -> float:
        """By how much atoms and bulk together differ from a mass of one."""
        return abs(float(self.masses.sum()) + sum(mass for _, mass in self.atoms) - 1)

    @property
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""
        return "replica or leave-one-out heuristics (Cui et al., arXiv 2402.04980)"

    @cached_property
    def _functions(self) -> SpectrumFunctions:
        return _functions(self.model, self.alpha, self.covariance)

    @cached_property
    def _transform(self) -> ResolventTransform:
        return self._functions.transform()

    @property
    def _scale(self) -> float:
        return _scale(self.covariance, self.alpha, self.model.beta)

    @property
    def mean(self) -> float:
        """Mean of bulk and atoms: the normalised trace without the outliers' share."""
        _, share = _share(self.covariance, self.alpha, self.model.beta)
        return self._functions.expected[0] * self._scale * share

    def cumulative_at(self, x: object) -> Real:
        """Return the share of the eigenvalues up to points x, atoms included."""
        values = np.asarray(x, dtype=float)
        found = np.zeros(values.shape)
        for place, mass in self.atoms:
            found += mass * (values >= place)
        if len(self.points):
            atoms = sum(mass for place, mass in self.atoms)
            below = self.cumulative - atoms
            if self.points[0] > 0 and self.points[-1] > 10 * self.points[0]:
                positive = np.log(np.maximum(values, self.points[0]))
                found += np.interp(positive, np.log(self.points), below)
            else:
                found += np.interp(values, self.points, below)
        return found

    @cached_property
    def outliers(self) -> tuple[float, ...]:
        """Eigenvalues outside the bulk that stay where they are for d → ∞, ascending.

        The eigenvalue of the mean direction, which grows with the width, is not among them; see
        :meth:`top_eigenvalue`.
        """
        return self._outliers(0.0)

    def outliers_at(self, width: int) -> tuple[float, ...]:
        """Return all eigenvalues outside the bulk at a width p, the largest one included.

        Parameters
        ----------
        width : int
            p.
        """
        return self._outliers(1 / whole_number("width", width))

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
        if len(self._functions.expected) < 4 or self._functions.expected[2] == 0:
            raise ParameterError(
                "no eigenvalue grows with the width: the features have no mean, as for an odd "
                "student without a spike"
            )
        _, _, slope, shift = self._functions.expected
        return slope * self._scale, shift * self._scale

    def stieltjes(self, z: object) -> Any:
        r"""Return the Stieltjes transform :math:`g(z) = \int \rho(dx)/(x - z)`, atoms included.

        Parameters
        ----------
        z : complex or array-like of complex
            Any points off the spectrum; real ones outside the bulk.

        Returns
        -------
        complex or array of complex

        Raises
        ------
        ParameterError
            If a point lies on the spectrum.
        ConvergenceError
            If a point is so close to the spectrum that nothing can be resolved.
        """
        points = complex_array("z", z)
        flat = points.ravel()
        self._refuse_spectrum(flat)
        scaled = flat / self._scale
        found = self._transform.trace_at(scaled - self._functions.origin) / self._scale
        offset, share = _share(self.covariance, self.alpha, self.model.beta)
        found = share * found - (offset / flat if offset else 0.0)
        result = found.reshape(points.shape)
        return complex(result) if points.ndim == 0 else result

    def _refuse_spectrum(self, z: Complex) -> None:
        for x in z[z.imag == 0].real:
            for place, mass in self.atoms:
                if x == place:
                    raise ParameterError(
                        f"z = {x:g} is an eigenvalue of mass {mass:g}, where the transform is "
                        "infinite; give a complex z"
                    )
            for k, (low, high) in enumerate(self._support):
                if low <= x <= high:
                    raise ParameterError(
                        f"z = {x:g} lies on the real axis inside the bulk, between "
                        f"{self.edges[k, 0]:g} and {self.edges[k, 1]:g}, where the transform "
                        "depends on the side from which it is reached; give a complex z, such as "
                        f"{x:g}+1e-6j, or take the density of spectrum()"
                    )

    @property
    def _support(self) -> Real:
        """Intervals with soft ends extended to where something may still be."""
        support = self.edges.copy()
        if len(support):
            origin = self._functions.origin * self._scale
            support[0, 0] = origin if self.soft[0, 0] else support[0, 0]
            support[-1, 1] = np.inf if self.soft[-1, 1] else support[-1, 1]
        return support

    def _outliers(self, inverse_width: float) -> tuple[float, ...]:
        functions, scale = self._functions, self._scale
        origin = functions.origin
        edges = self.edges / scale - origin
        if not len(edges):
            edges = np.zeros((1, 2))
        far = 4 * functions.expected[0] + 10 * edges[-1, 1]
        if len(functions.expected) > 2:
            slope, shift = functions.expected[2:]
            far += 10 * (slope / inverse_width if inverse_width else 0.0) + 10 * shift
        gaps = [(edges[k, 1], edges[k + 1, 0]) for k in range(len(edges) - 1)]
        if not self.soft[:1, 0].any() and edges[0, 0] > 0:
            gaps.insert(0, (0.0, edges[0, 0]))
        if not self.soft[-1:, 1].any():
            gaps.append((edges[-1, 1], far))

        # Without a mean its row holds 1/p alone, a factor of the determinant.
        scaled_width = inverse_width if len(functions.expected) > 2 else 1.0

        def condition(x: Real) -> Real:
            v, _ = self._transform.solve(x, finest=3)
            return functions.outlier_condition(x + origin, v.real, scaled_width)

        found = [x for low, high in gaps for x in real_roots(condition, low, high)]
        return tuple(float((x + origin) * scale) for x in found)

    # ------------------------------------------------------------------ presentation

    def to_dataset(self) -> xr.Dataset:
        """Return density and cumulative share over ``eigenvalue``, with everything else beside."""
        from .files import spectrum_dataset

        return spectrum_dataset(self)

    def plot(self, simulation: Any = None, *, width: int | None = None, ax: Any = None) -> Any:
        """Draw the density, marks at the outliers, and a histogram of simulated eigenvalues.

        Parameters
        ----------
        simulation : array of eigenvalues or FeatureSpectra, optional
            As :meth:`simulate` returns it.
        width : int, optional
            Mark the eigenvalue of the mean direction at this width; default: that of the
            simulation, or of the model.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        from .figure import plot_spectrum

        return plot_spectrum(self, simulation, width=width, axis=ax)

    def simulate(
        self,
        dimension: int = 400,
        *,
        seeds: int = 3,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
        trained: bool = False,
    ) -> Any:
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
        from .simulation import simulated_spectrum

        return simulated_spectrum(
            self,
            dimension,
            seeds=seeds,
            seed=seed,
            workers=workers,
            progress=progress,
            trained=trained,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the spectrum to a file as JSON; :meth:`load` reads it."""
        from .files import to_text

        write_atomically(path, to_text(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spectrum:
        """Return the spectrum that :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file holds something else.
        """
        from .files import from_text

        return from_text(path)

    def __str__(self) -> str:
        pieces = [
            f"[{low:.6g}, {high:.6g}]{' (soft end)' if soft.any() else ''} of mass {mass:.6g}"
            for (low, high), soft, mass in zip(self.edges, self.soft, self.masses, strict=True)
        ]
        lines = [
            f"spectrum of the {self.covariance} covariance, alpha = {self.alpha:g}, "
            f"beta = {self.model.beta:g}",
            "bulk: " + (", ".join(pieces) or "none"),
            *(f"atom at {place:.6g} of mass {mass:.6g}" for place, mass in self.atoms),
            f"total mass differs from 1 by {self.mass_error:.1e}",
        ]
        if self.outliers:
            lines.append("outliers: " + ", ".join(f"{x:.6g}" for x in self.outliers))
        if len(self._functions.expected) > 2 and self._functions.expected[2]:
            slope, shift = self.top_expansion
            lines.append(f"top eigenvalue: {slope:.6g} p + {shift:.6g}")
        return "\n".join(lines)


def model_spectrum(
    model: SpikedRandomFeatures, alpha: object, points: object, covariance: object
) -> Spectrum:
    """Return the spectrum of a model; see ``SpikedRandomFeatures.spectrum``."""
    (alpha,) = checked_point(model, alpha=alpha)
    count = whole_number("points", points, minimum=_FEWEST)
    if count > _MOST:
        raise ParameterError(f"points must be at most {_MOST}, got {count}")
    if not is_one_of(covariance, COVARIANCES):
        known = ", ".join(map(repr, COVARIANCES))
        raise ParameterError(f"covariance must be one of {known}, got {covariance!r}")
    covariance = str(covariance)
    functions = _functions(model, alpha, covariance)
    beta, mass = model.beta, functions.mass
    bulk = find_bulk(functions.transform(), count, mass, 1 - mass)
    scale = _scale(covariance, alpha, beta)
    offset, share = _share(covariance, alpha, beta)
    origin = functions.origin
    edges = (bulk.edges + origin) * scale
    points_ = (bulk.points + origin) * scale
    # Rounding of 1 - min(…) is no atom.
    at_origin = share * (1 - mass) + offset
    atoms = ((origin * scale, at_origin),) if at_origin > 1e-14 else ()
    return Spectrum(
        model=model,
        alpha=alpha,
        covariance=covariance,
        points=points_,
        density=bulk.density * share / scale,
        cumulative=sum(m for _, m in atoms) + share * bulk.cumulative,
        edges=edges,
        soft=bulk.soft,
        masses=share * bulk.masses,
        mass_errors=share * bulk.mass_errors,
        atoms=atoms,
    )


def _functions(model: SpikedRandomFeatures, alpha: float, covariance: str) -> SpectrumFunctions:
    spike = model.spike
    model._refuse_other_rows("the spectrum")
    found = spectrum_derivation(
        model.derivation.student,
        unspiked=spike.spike_strength == 0,
        correlated_norms=model._case["correlated_norms"],
        cache=model._cache,
    )
    values: Mapping[str, float] = {
        "alpha": alpha,
        "beta": model.beta,
        "bulk_variance": spike.bulk_variance,
        "spike_strength": spike.spike_strength,
        "norm_overlap": spike.norm_overlap,
        "inverse_width": 0.0,
    }
    return SpectrumFunctions.load(
        found, model._cache, values, population=covariance == "population"
    )


def _scale(covariance: str, alpha: float, beta: float) -> float:
    """Return what eigenvalues of the derived matrix are multiplied by."""
    return beta / alpha if covariance == "empirical" else 1.0


def _share(covariance: str, alpha: float, beta: float) -> tuple[float, float]:
    """Return (mass added at zero, factor of all other masses)."""
    if covariance != "kernel":
        return 0.0, 1.0
    # The n × n matrix has the nonzero eigenvalues of the p × p one.
    return 1 - beta / alpha, beta / alpha
