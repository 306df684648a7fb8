r"""The limiting spectrum of a random matrix: bulk, atoms, outliers and transform.

A theory brings its equations as a :class:`Law`, and says which eigenvalues leave the bulk. What
is done with them is done here, for all theories: densities, distribution functions and transforms
at any points, refusals, files, figures.
"""

from __future__ import annotations

import importlib
import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...digits import checked_digits
from ...errors import ParameterError
from ...labelled import described, labelled
from ...numeric.arguments import complex_array, whole_number
from ...numeric.spectra.bulk import Bulk
from ...pages import Block
from ...result import Number, Result
from ...runtime.precision import local_context
from ..figures import BLUE, GREEN, GREY, VERMILLION, Pen, drawing

if TYPE_CHECKING:
    import xarray as xr

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Numbers = Any
"""Annotation of arrays of booleans or floats, or of mpmath numbers where digits were asked for."""

GRID = 50, 100_000
"""The fewest and the most points of a grid."""
_POINTS = 400
# Squares of larger numbers overflow.
_FARTHEST = 1e100
# Whose documents :meth:`Spectrum.load` reads: classes in modules beside this package.
_THEORIES = {
    "spectrum of spiked random features":
        ("spiked_random_features.spectrum.spectrum", "FeatureSpectrum"),
    "conjugate kernel of one gradient step":
        ("one_gradient_step.kernel_spectrum", "ConjugateKernel"),
}  # fmt: skip
_MEANINGS = {
    "density": "density of the bulk, one being the mass of all eigenvalues",
    "cumulative": "share of the eigenvalues up to here, atoms included",
    "edge": "ends of the intervals of the bulk",
    "soft": "an end beyond which there is more than nothing",
    "mass": "share of the eigenvalues in each interval",
    "mass_error": "estimated error of the integrated density",
    "atom": "place and mass of each degenerate eigenvalue",
    "outlier": "eigenvalues outside the bulk that stay where they are for d to infinity",
}


def with_derivatives(
    fixed_point: Sequence[sp.Expr], unknowns: Sequence[sp.Symbol], z: sp.Symbol
) -> tuple[sp.Expr, ...]:
    """Return the equations of a resolvent with their derivatives.

    Parameters
    ----------
    fixed_point : sequence of Expr
        The right-hand sides, one for each unknown.

    Returns
    -------
    tuple of Expr
        The right-hand sides, row by row their derivatives by the unknowns, and those by z, as
        :func:`.bulk.arranged` takes them.
    """
    rows = [side.diff(x) for side in fixed_point for x in unknowns]
    return (*fixed_point, *rows, *(side.diff(z) for side in fixed_point))


class Law(Protocol):
    """What a theory says of the spectrum, in floats."""

    @property
    def mean(self) -> float:
        """Mean of bulk and atoms."""
        ...

    def transform(self, z: Complex) -> Complex:
        """Return g(z) at points with Im z ≥ 0, atoms included; real ones are off the spectrum."""
        ...

    def density(self, x: Real) -> Real:
        """Return the density at ascending points inside the bulk."""
        ...

    def bulk(self, points: int) -> Bulk:
        """Return the bulk on a grid."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Result):
    r"""The spectrum of a random matrix in the limit d → ∞.

    Densities count one large matrix's eigenvalues as a mass of one. Finitely many eigenvalues
    leave the bulk: see :attr:`outliers`.

    Attributes
    ----------
    model : OneGradientStep or SpikedRandomFeatures
    edges : array (k, 2)
        Intervals of the bulk, ascending.
    masses : array (k,)
        Share of the eigenvalues in each interval.
    soft : array (k, 2) of bool
        Where an interval ends softly: there the density has fallen below 1e-7 of the mass per
        unit of log x, but goes on.
    atoms : tuple of (float, float)
        Places and masses of degenerate eigenvalues.
    """

    _document = "spectrum"
    _asked: ClassVar[tuple[str, ...]] = ("model",)
    """Fields from which all others follow."""
    _arrays: ClassVar[dict[str, tuple[int, ...]]] = {
        "edges": (-1, 2), "masses": (-1,), "soft": (-1, 2),
    }  # fmt: skip
    """Fields that are arrays, and their shapes."""
    _kind: ClassVar[str] = "spectrum"

    model: Any
    edges: Numbers
    masses: Numbers
    soft: Numbers
    atoms: tuple[tuple[Number, Number], ...]

    # ------------------------------------------------------------------ what a theory brings

    @property
    @abstractmethod
    def _law(self) -> Law:
        """The law of the spectrum."""

    @property
    @abstractmethod
    def outliers(self) -> tuple[Any, ...]:
        """Eigenvalues outside the bulk that stay where they are for d → ∞, ascending."""

    @property
    @abstractmethod
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""

    @abstractmethod
    def _share_below(self, x: Real) -> Real:
        """Return the share of eigenvalues up to points inside the bulk, atoms included."""

    @property
    def _shares(self) -> Real:
        """Shares of eigenvalues below and up to each interval, shape (k, 2)."""
        below = sum(float(mass) for _, mass in self.atoms)
        up_to: Real = below + np.cumsum(self.masses.astype(float))
        return np.stack([np.concatenate([[below], up_to])[:-1], up_to], axis=1)

    @abstractmethod
    def _precise(self, z: complex, start: complex, digits: int) -> Any:
        """Return the transform at a point to so many digits; `start` is that in floats."""

    @abstractmethod
    def _caption(self, width: int | None) -> Caption:
        """Return what a figure says of the matrix."""

    def _atoms_text(self) -> str:
        """Return what the title of a figure says of atoms."""
        return "".join(
            f", {float(mass):.3g} at {'zero' if place == 0 else f'{float(place):.3g}'}"
            for place, mass in self.atoms
        )

    def _simulated(self, simulation: Any) -> list[tuple[str, Any]]:
        """Return (label, eigenvalues) of what was simulated."""
        return [("simulation", getattr(simulation, "eigenvalues", simulation))]

    def _scalars(self) -> dict[str, Any]:
        """Return further numbers and words for datasets."""
        return {}

    # ------------------------------------------------------------------ numbers

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._asked)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self._asked))

    @property
    def atom(self) -> Any:
        """Share of zeros."""
        return next((mass for place, mass in self.atoms if place == 0), 0 * self.bulk_edge)

    @property
    def bulk_edge(self) -> Any:
        """Right edge of the bulk; zero if there is none."""
        return self.edges[-1].tolist()[1] if len(self.edges) else 0.0

    @property
    def eigenvalue(self) -> Any:
        """The largest eigenvalue of those that stay where they are: an outlier, or the edge."""
        return max(self.outliers, default=self.bulk_edge)

    @property
    def supercritical(self) -> bool:
        """Whether there is an outlier."""
        return bool(self.outliers)

    @property
    def mean(self) -> float:
        """Mean of bulk and atoms: the normalised trace without the outliers' share."""
        return self._law.mean

    @cached_property
    def mass_error(self) -> float:
        """By how much atoms and integrated density together differ from a mass of one."""
        atoms = sum(float(mass) for _, mass in self.atoms)
        return abs(atoms + float(self.bulk().masses.sum()) - 1)

    def bulk(self, points: int | None = None) -> Bulk:
        """Return the bulk on a grid of so many points, which crowd at the edges.

        Raises
        ------
        ParameterError
            If `points` is no whole number from 50 to 100000.
        """
        return self._law.bulk(whole_number("points", _POINTS if points is None else points, *GRID))

    def density(self, x: object) -> Any:
        """Return the density of the bulk at points of the real axis.

        One is the mass of all eigenvalues, atoms included. Zero off the bulk; infinite at an edge
        at zero.

        Raises
        ------
        ParameterError
            If x are no finite real numbers.
        """
        points = _real("x", x, "the density is one of real eigenvalues")
        flat, found = points.ravel(), np.zeros(points.size)
        ends = self.edges.astype(float)
        inside = np.zeros(flat.shape, dtype=bool)
        for low, high in ends:
            inside |= (flat > low) & (flat < high)
        if inside.any():
            ascending, back = np.unique(flat[inside], return_inverse=True)
            found[inside] = self._law.density(ascending)[back]
        found[(flat == 0) & (ends[:, 0] == 0).any()] = math.inf
        return float(found[0]) if points.ndim == 0 else found.reshape(points.shape)

    density_at = density

    def cumulative_at(self, x: object) -> Any:
        """Return the share of the eigenvalues up to points x, atoms included.

        Raises
        ------
        ParameterError
            If x are no finite real numbers.
        """
        points = _real("x", x, "eigenvalues are")
        flat, found = points.ravel(), np.zeros(points.size)
        for place, mass in self.atoms:
            found += float(mass) * (flat >= float(place))
        for (low, high), (least, most) in zip(self.edges.astype(float), self._shares, strict=True):
            inside = (flat > low) & (flat < high)
            if inside.any():
                found[inside] = np.clip(self._share_below(flat[inside]), least, most)
            found[flat >= high] = most
        return float(found[0]) if points.ndim == 0 else found.reshape(points.shape)

    def stieltjes(self, z: object, digits: int | None = None) -> Any:
        r"""Return the Stieltjes transform :math:`g(z) = \int \rho(dx)/(x - z)`, atoms included.

        Parameters
        ----------
        z : complex or array-like of complex
            Any points off the spectrum; real ones outside the bulk.
        digits : int, optional
            Of one point, so many digits with mpmath; its floats are read exactly.

        Returns
        -------
        complex, array of complex, or mpmath number

        Raises
        ------
        ParameterError
            If a point lies on the spectrum, is no finite number or beyond 1e100, or if there are
            no digits for it.
        ConvergenceError
            If a point is so close to the spectrum that nothing can be resolved.
        """
        points = complex_array("z", z)
        flat = points.ravel()
        for far in flat[np.maximum(abs(flat.real), abs(flat.imag)) > _FARTHEST]:
            raise ParameterError(
                f"z = {far:g} is too large: beyond {_FARTHEST:g} the transform is -1/z in floats"
            )
        self._refuse_spectrum(flat)
        lower = flat.imag < 0
        found = self._law.transform(np.where(lower, np.conj(flat), flat))
        found = np.where(lower, np.conj(found), found)
        if digits is not None:
            if points.ndim:
                raise ParameterError("digits are for one z at a time, not for an array")
            return self._precise(complex(flat[0]), complex(found[0]), checked_digits(digits))
        return complex(found[0]) if points.ndim == 0 else found.reshape(points.shape)

    def _refuse_spectrum(self, z: Complex) -> None:
        for x in z[z.imag == 0].real:
            for place, mass in self.atoms:
                if x == float(place):
                    raise ParameterError(
                        f"z = {x:g} is an eigenvalue of mass {float(mass):g}, where the transform "
                        "is infinite; give another z"
                    )
            for k, (low, high) in enumerate(self._support):
                if low <= x <= high:
                    ends = self.edges[k].astype(float)
                    raise ParameterError(
                        f"z = {x:g} lies on the real axis inside the bulk, between {ends[0]:g} and "
                        f"{ends[1]:g}, where the transform depends on the side from which it is "
                        f"reached; give a complex z, such as {x:g}+1e-6j, or take "
                        f"density({x:g})"
                    )

    @property
    def _support(self) -> Real:
        """Intervals with soft ends extended to where something may still be."""
        support: Real = self.edges.astype(float)
        if len(support):
            support[0, 0] = self._lowest if self.soft[0, 0] else support[0, 0]
            support[-1, 1] = np.inf if self.soft[-1, 1] else support[-1, 1]
        return support

    @property
    def _lowest(self) -> float:
        """The lowest point that there can be."""
        return 0.0

    # ------------------------------------------------------------------ presentation

    def plot(
        self, simulation: Any = None, *, width: int | None = None, ax: Any = None, **style: Any
    ) -> Any:
        """Draw the density, marks at edge and outliers, and histograms of simulated eigenvalues.

        Parameters
        ----------
        simulation : optional
            As :meth:`simulate` returns it, or eigenvalues, zeros included, in any shape.
        width : int, optional
            Mark the eigenvalue of the mean direction at this width, for a theory that has one;
            default: that of the simulation, or of the model.
        """
        samples = []
        if simulation is not None:
            samples = [(label, _checked(values)) for label, values in self._simulated(simulation)]
        if width is None:
            width = getattr(simulation, "width", None)
        caption = self._caption(None if width is None else whole_number("width", width))
        with drawing(ax, style) as (axes, pen):
            draw(axes, _drawing(self), samples, caption, pen)
        return axes

    def _shown(self, value: Any) -> str:
        return self.text(value, significant=6)

    def _bulk_text(self) -> str:
        pieces = [
            f"[{self._shown(low)}, {self._shown(high)}]{' (soft end)' if soft.any() else ''} "
            f"of mass {self._shown(mass)}"
            for (low, high), soft, mass in zip(self.edges, self.soft, self.masses, strict=True)
        ]
        return "bulk: " + (", ".join(pieces) or "none")

    @abstractmethod
    def page(self) -> Iterable[Block]:
        """Return the bulk, the outliers and what they rest on, line by line."""

    def latex(self) -> str:
        """Return support, atoms and outliers, without delimiters."""
        support = r"\cup".join(rf"[{float(a):.6g},\,{float(b):.6g}]" for a, b in self.edges)
        rows = [r"\operatorname{supp}\rho &= " + (support or r"\emptyset")]
        rows += [
            rf"\rho(\{{{float(place):.6g}\}}) &= {float(mass):.6g}" for place, mass in self.atoms
        ]
        return r"\begin{aligned}" + r" \\ ".join([*rows, *self._latex_rows()]) + r"\end{aligned}"

    def _latex_rows(self) -> list[str]:
        if not self.outliers:
            return []
        places = r",\,".join(f"{float(x):.6g}" for x in self.outliers)
        return [rf"x_\text{{outliers}} &= {places}"]

    def to_dataset(self, points: int | None = None) -> xr.Dataset:
        """Return density and cumulative share over ``eigenvalue``, with everything else beside."""
        bulk = self.bulk(points)
        numbers = {
            "density": ("eigenvalue", bulk.density),
            "cumulative": ("eigenvalue", bulk.cumulative),
            "edge": (("interval", "end"), self.edges.astype(float)),
            "soft": (("interval", "end"), self.soft),
            "mass": ("interval", self.masses.astype(float)),
            "mass_error": ("interval", bulk.mass_errors),
            "atom": (
                ("atom_number", "place_mass"), np.array(self.atoms, dtype=float).reshape(-1, 2),
            ),
            "outlier": ("outlier_number", np.array(self.outliers, dtype=float)),
        }  # fmt: skip
        found = labelled(
            numbers,
            names=_MEANINGS,
            coords={"eigenvalue": bulk.points},
            attrs={
                "kind": self._kind, "model": self.model.to_json(), **self._scalars(),
                "mass_error": self.mass_error, "rests_on": self.rests_on,
            },
        )  # fmt: skip
        words = {row.name: row.words for row in self.entries() if isinstance(row.value, float)}
        for name in words:
            found[name] = getattr(self, name)
        return described(found, _MEANINGS | words)

    # ------------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values; numbers with digits as text, those that hold."""
        found = super().to_dict()
        if getattr(self, "digits", None) is not None:
            texts = np.vectorize(self.text, otypes=[object])
            for name in ("edges", "masses", "atoms", *self._derived):
                found[name] = texts(np.array(getattr(self, name), dtype=object)).tolist()
        return found

    @classmethod
    def _read(cls, values: Any) -> dict[str, Any]:
        if isinstance(values, Mapping) and "atom" in values and "atoms" not in values:
            # Kernels of the releases before this class.
            atoms = [[0, values["atom"]]] if float(values["atom"]) else []
            values = {**values, "atoms": atoms, "soft": [[False, False]] * len(values["edges"])}
        found = super()._read(values)
        digits = found.get("digits")
        number = np.frompyfunc(float if digits is None else local_context(digits).mpf, 1, 1)
        for name, shape in cls._arrays.items():
            if name == "soft":
                found[name] = np.array(found[name], dtype=bool).reshape(shape)
                continue
            read = number(np.array(found[name], dtype=object).reshape(shape))
            found[name] = read.astype(float) if digits is None else read
        return found

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the spectrum that :meth:`to_json` wrote; of any theory, called of ``Spectrum``.

        Raises
        ------
        ParameterError
            If the text is no such JSON.
        """
        try:
            values = json.loads(text)
            # Releases before this class wrote another entry, and a model as text.
            kind = values.pop("format", None) or values["kind"].removeprefix("giantstep ")
            if isinstance(values.get("model"), str):
                values["model"] = json.loads(values["model"])
            module, name = _THEORIES[kind]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ParameterError(f"text is no {cls._document} written by to_json") from None
        theory = getattr(importlib.import_module(f"..{module}", __package__), name)
        if not issubclass(theory, cls):
            raise ParameterError(f"text is no {cls._document} written by to_json, but a {kind}")
        values.pop("kind", None)
        found: Self = theory.from_dict(values)
        return found


def _real(name: str, x: object, why: str) -> Real:
    points = complex_array(name, x)
    if points.imag.any():
        raise ParameterError(f"{name} must be real: {why}")
    return np.asarray(points.real)


# ------------------------------------------------------------------ figure


_BINS = 60
# More than so many decades between the ends are drawn on a logarithmic axis, as a density per
# unit of log x.
_DECADES = 2.5
# Of its maximum, what one sees of a density per unit of log x.
_VISIBLE = 0.02
# Simulated eigenvalues farther out, in units of the last mark, grow with the width.
_FAR = 1.5
_COLOURS = (GREY, GREEN)
_MARK = {"clip_on": False, "in_layout": False}


@dataclass(frozen=True)
class Caption:
    """What a figure says.

    Attributes
    ----------
    axis : str
        What is counted, in mathtext.
    notes : sequence of str
        Further lines of the legend.
    """

    axis: str
    title: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """What is drawn of a theory.

    Attributes
    ----------
    points, density, interval : array (n,)
        Of the bulk; to which interval a point belongs.
    ends : tuple of float
        Of what is visible of the bulk.
    edge : float or None
        Where the bulk ends, if it is marked.
    logarithmic : bool
        Draw a density per unit of log x.
    """

    points: Real
    density: Real
    interval: NDArray[np.int64]
    ends: tuple[float, float]
    outliers: tuple[float, ...]
    edge: float | None = None
    logarithmic: bool = False


def _checked(values: Any) -> Real:
    try:
        found = np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.size == 0 or not np.isfinite(found).all() or found.max() <= 0:
        raise ParameterError(
            "simulation must hold finite eigenvalues, not all of them zero, as simulate() "
            "returns them"
        )
    return found


def _drawing(spectrum: Spectrum) -> Drawing:
    outliers = tuple(float(x) for x in spectrum.outliers)
    bulk = spectrum.bulk()
    if not len(spectrum.edges):
        places = [*outliers, *(float(place) for place, _ in spectrum.atoms)]
        ends = 0.5 * min(places), 1.5 * max(places)
        return Drawing(bulk.points, bulk.density, bulk.interval, ends, outliers)
    inside = np.isfinite(bulk.density) & (bulk.points > 0)
    points = bulk.points[inside]
    curve = points * bulk.density[inside]
    shown = points[curve > _VISIBLE * curve.max()]
    low, high = (float(x) for x in (spectrum.edges[0, 0], spectrum.edges[-1, 1]))
    # The ends, or what is visible of the bulk if that is decades away.
    ends = (
        low if low > shown[0] / 100 else float(shown[0]),
        high if high < 100 * shown[-1] else float(shown[-1]),
    )
    return Drawing(
        bulk.points, bulk.density, bulk.interval, ends, outliers,
        edge=None if spectrum.soft[-1, 1] else high,
        logarithmic=bool(np.log10(ends[1] / ends[0]) > _DECADES),
    )  # fmt: skip


def draw(
    axes: Any, drawing: Drawing, samples: list[tuple[str, Real]], caption: Caption, pen: Pen
) -> None:
    """Draw densities over histograms of samples, each with its label, with marks and legend."""
    low, high = drawing.ends
    outliers, logarithmic = drawing.outliers, drawing.logarithmic
    last = max([high, *outliers])
    if logarithmic:
        bins = np.geomspace(low / 1.5, high * 1.1, _BINS + 1)
    else:
        bins = np.linspace(max(low - 0.02 * high, 1e-9 * high), 1.05 * high, _BINS + 1)
    far = last
    for number, ((label, values), colour) in enumerate(zip(samples, _COLOURS, strict=False)):
        counts, _ = np.histogram(values, bins)
        # A bin holds many eigenvalues or none: those of a narrow interval are told apart.
        share = counts / values.size / np.diff(np.log(bins) if logarithmic else bins)
        style = {"fill": True, "alpha": 0.3} if number == 0 else {"linewidth": 1.2}
        axes.stairs(share, bins, color=colour, label=label, zorder=1 + number, **style)
        beyond = values[(values > 1.02 * high) & (values < _FAR * last)]
        far = max([far, *beyond])
        # Marks across the axis are not clipped; a layout must make no room for them.
        axes.plot(
            beyond, np.full(len(beyond), -0.012 * number), "|", color=colour, markersize=11,
            markeredgewidth=1.3, zorder=4, transform=axes.get_xaxis_transform(), **_MARK,
        )  # fmt: skip
    tops = []
    for number in np.unique(drawing.interval):
        part = (drawing.interval == number) & np.isfinite(drawing.density)
        x = drawing.points[part]
        curve = drawing.density[part] * (x if logarithmic else 1)
        shown = curve[(x >= low) & (x <= high)]
        tops.append((shown.max(), np.quantile(shown, 0.75)))
        look = pen("" if number else r"theory, $d\to\infty$", color=BLUE, zorder=3)
        axes.plot(x, curve, **look | ({"label": "_"} if number else {}))
    if drawing.edge is not None:
        axes.axvline(
            drawing.edge, color=BLUE, linestyle=(0, (2, 2)), linewidth=1, zorder=0, label="edge"
        )
    if outliers:
        several = "outliers" if len(outliers) > 1 else "outlier"
        axes.plot(
            outliers, [0] * len(outliers), marker="^", color=VERMILLION, markersize=8, zorder=6,
            linestyle="none", transform=axes.get_xaxis_transform(), **_MARK,
            label=f"{several}, theory: {', '.join(f'{x:.4g}' for x in outliers)}",
        )  # fmt: skip
    for note in caption.notes:
        axes.plot([], [], " ", label=note)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low / 2, far * 1.5)
    else:
        axes.set_xlim(max(low - 0.05 * far, -0.02 * far), 1.06 * far)
    if tops:
        highest, usual = (max(column) for column in zip(*tops, strict=True))
        # A density that diverges at an end would flatten all the rest.
        axes.set_ylim(0, min(1.15 * highest, 6 * usual) if usual > 0 else None)
    axes.set_xlabel(caption.axis + (r", $x$" if logarithmic else ""))
    axes.set_ylabel(r"density per unit of $\log x$" if logarithmic else "density")
    axes.set_title(caption.title)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="best")


# ------------------------------------------------------------------ simulated

# Zeros of a matrix without full rank differ from zero by rounding, in units of the largest.
_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class SimulatedSpectrum:
    """Eigenvalues of independent matrices.

    Attributes
    ----------
    eigenvalues : array (matrices, size)
        Ascending, zeros included.
    projections : array (matrices, n) or None
        κ of the samples of each matrix, of features with a spike.
    width : int
        Number of features p.
    dimension : int
        Input dimension d.
    trained : bool
        Features of trained networks.
    """

    eigenvalues: NDArray[np.float64]
    projections: NDArray[np.float64] | None
    width: int
    dimension: int
    trained: bool

    def distance(self, spectrum: Spectrum, outliers: int = 1) -> float:
        """Return the Kolmogorov–Smirnov distance of the spectrum to all matrices together.

        Parameters
        ----------
        outliers : int
            So many largest eigenvalues of each matrix are left out.
        """
        count = whole_number("outliers", outliers, minimum=0)
        size = self.eigenvalues.shape[1]
        if count >= size:
            raise ParameterError(f"outliers must be fewer than the {size} eigenvalues, got {count}")
        values = np.sort(self.eigenvalues[:, : size - count], axis=None)
        positive = values > _ZERO * values[-1]
        expected = spectrum.cumulative_at(values[positive])
        steps = np.arange(len(values) + 1) / len(values)
        after, before = steps[1:][positive], steps[:-1][positive]
        return float(np.max(np.maximum(np.abs(expected - after), np.abs(expected - before))))
