r"""The law of spectrum and overlaps of the bulk: Assumption 3.2 of Cui et al. as an argument.

What the equations see of the bulk rows B is the joint law of the eigenvalues D of
:math:`\Omega = B(1 - vv^\top)B^\top` and of how B v and B ζ lie to its eigenvectors :math:`e_i`:
:math:`F = d\,(e_i\cdot Bv)^2`, :math:`G = d\,(e_i\cdot Bv)(e_i\cdot B\zeta)` and
:math:`H = d\,(e_i\cdot B\zeta)^2`, with the spike v and the teacher's direction ζ across it. The
law is data, or a density that a tanh-sinh rule turns into data.

Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Assumption 3.2.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import is_one_of, positive_number, real_array
from ...numeric.networks.bulk import bulk_overlaps, bulk_spectrum
from ...symbolic.expressions.arguments import as_expression
from ...symbolic.expressions.parser import parse_expression
from ...symbolic.printing.compiled import compiled
from ..kernels.precise import exact_number

if TYPE_CHECKING:
    from ...numeric.networks.layer import FirstLayer
    from .model import SpikedRandomFeatures

IID, ORTHONORMAL = BULKS = ("iid", "orthonormal")
"""How bulk rows are drawn: independent, or an orthonormal frame."""
ISOTROPIC, OVERLAPS = "isotropic", "overlaps"
"""Equations of a law as data: overlaps follow from isotropy, or are given."""

Array = NDArray[np.float64]

_OF_OVERLAPS = ("F", "G", "H")
# Of sums that users may have rounded to nine digits.
_ROUNDED = 1e-9
# Of the mean: eigenvalues of a Gram matrix that vanish, up to rounding.
_ZERO = 1e-12
_FLOAT_DIGITS = 16


@dataclass(frozen=True, repr=False)
class BulkLaw:
    r"""The law of spectrum and overlaps of the bulk rows; made by its class methods.

    Attributes
    ----------
    columns : tuple of (str, tuple of float)
        ``weight`` and ``D``; ``F``, ``G`` and ``H`` if they are given, ``P`` if there is a penalty.
    scale : float
        Eigenvalues and overlaps are these times their columns.
    density : BulkDensity or None
        What the columns came from, if that was a density.

    Notes
    -----
    Result 3.3 with any such law: averages over the spectrum are those over it. Rows have to have
    the same squared norm, so its mean is the bulk variance c. Without `F` the bulk is isotropic:
    its law does not change under rotations of the inputs. Then G has mean zero, H the conditional
    mean D, and :math:`\mathbb{E}[F/S] = J/(1 - \beta\hat V_1J)`,
    :math:`J = \mathbb{E}[D/S]`; F may sit on eigenvalues without weight outside of the law of D.

    A penalty P makes the readout pay :math:`\lambda w^\top\!P w` with P diagonal where
    :math:`BB^\top` is, in place of :math:`\lambda|w|^2`.

    References
    ----------
    Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Assumption 3.2.

    Examples
    --------
    >>> law = BulkLaw.from_eigenvalues([0.5, 2.5], weights=[0.75, 0.25])
    >>> law
    BulkLaw(2 eigenvalues, mean 1, isotropic)
    >>> from giantstep import SpikedRandomFeatures
    >>> model = SpikedRandomFeatures.from_parameters(
    ...     "erf", "erf", spike_strength=1, bulk_variance=1, alignment=0.8, beta=0.5, bulk=law
    ... )
    >>> print(f"{model.solve(alpha=2, ridge=0.1).test_error:.10f}")
    0.1514526182
    """

    columns: tuple[tuple[str, tuple[float, ...]], ...]
    scale: float = 1.0
    density: BulkDensity | None = None

    # ------------------------------------------------------------------ made from

    @classmethod
    def from_eigenvalues(
        cls,
        eigenvalues: object,
        *,
        weights: object = None,
        F: object = None,
        G: object = None,
        H: object = None,
        penalty: object = None,
    ) -> BulkLaw:
        r"""Return the law of given eigenvalues, each with its overlaps.

        Parameters
        ----------
        eigenvalues : array-like (n,)
            D >= 0: all of one matrix, quantiles, or the points of a rule.
        weights : array-like (n,), optional
            Their probabilities, which sum to one; default: equal.
        F, G, H : array-like (n,), optional
            Overlaps, or their means given D; :math:`G^2 \le FH`. Default: those of an isotropic
            bulk; with F alone, G = 0 and H = D.
        penalty : array-like (n,), optional
            P > 0 on the same eigenvectors.

        Raises
        ------
        ParameterError
            If columns are of different lengths or outside their ranges.
        """
        given = {"eigenvalues": eigenvalues, "F": F, "G": G, "H": H, "penalty": penalty}
        arrays = {name: _column(name, x) for name, x in given.items() if x is not None}
        size = len(arrays["eigenvalues"])
        shares = np.full(size, 1.0 / size) if weights is None else _column("weights", weights)
        for name, values in {**arrays, "weights": shares}.items():
            if len(values) != size:
                raise ParameterError(
                    f"{name} must have one number for each of the {size} eigenvalues, got "
                    f"{len(values)}"
                )
        _nonnegative("weights", shares)
        if abs(math.fsum(shares) - 1) > _ROUNDED:
            raise ParameterError(
                f"weights must sum to 1, and these sum to {math.fsum(shares):.12g}; divide them by "
                "that"
            )
        table = {"weight": shares, "D": arrays.pop("eigenvalues")}
        if "penalty" in arrays:
            table["P"] = arrays.pop("penalty")
        return cls._of({**table, **arrays})

    @classmethod
    def from_matrix(cls, rows: object, spike: object, teacher: object) -> BulkLaw:
        r"""Return the law of one matrix of bulk rows.

        Parameters
        ----------
        rows : array-like (p, d)
            B: rows without their part :math:`r\,v` of the spike.
        spike : array-like (d,)
            v, of unit length.
        teacher : array-like (d,)
            ζ, the unit vector along the teacher's direction across v.

        Raises
        ------
        ParameterError
            If shapes do not fit, or v and ζ are not orthonormal.
        """
        return cls._of(bulk_overlaps(rows, spike, teacher))

    @classmethod
    def from_layer(cls, layer: FirstLayer) -> BulkLaw:
        """Return the law of the bulk of one first layer.

        Raises
        ------
        ParameterError
            If it has several spikes or teachers.
        """
        return cls._of(bulk_spectrum(layer))

    @classmethod
    def from_density(
        cls,
        density: Any,
        domain: Any,
        *,
        atoms: Mapping[Any, float] | None = None,
        F: Any = None,
        G: Any = None,
        H: Any = None,
        penalty: Any = None,
    ) -> BulkLaw:
        """Return the law of a density of eigenvalues.

        Parameters
        ----------
        density : str or Expr
            Expression in x.
        domain : sequence of numbers or texts
            Its ends, and between them places where it is not smooth. There it may vanish like any
            power, and diverge like an inverse square root.
        atoms : mapping from numbers or texts to float, optional
            Eigenvalues with their probabilities; those of density and atoms sum to one.
        F, G, H, penalty : str or Expr, optional
            As for :meth:`from_eigenvalues`, as expressions in x.

        Raises
        ------
        ParameterError
            If density and atoms do not sum to one, or something is outside its range.
        ExpressionError
            If a text cannot be read.
        ConvergenceError
            If no rule resolves the density.
        """
        named = (("F", F), ("G", G), ("H", H), ("P", penalty))
        if isinstance(domain, str) or not isinstance(domain, Iterable):
            raise ParameterError(f"domain must be a sequence of ends, got {domain!r}")
        ends = tuple(expression_text(x, "domain") for x in domain)
        if len(ends) < 2:
            raise ParameterError(f"domain must hold two ends or more, got {', '.join(ends)}")
        values = [float(read_expression(t, "domain").evalf()) for t in ends]
        if not (0 <= values[0] and sorted(set(values)) == values and values[-1] < math.inf):
            raise ParameterError(
                f"domain must increase from at least 0 to a finite end, got {', '.join(ends)}"
            )
        spec = BulkDensity(
            expression_text(density, "density"),
            ends,
            tuple(
                (expression_text(place, "atoms"), positive_number("atoms", share))
                for place, share in (atoms or {}).items()
            ),
            tuple((name, expression_text(x, name)) for name, x in named if x is not None),
        )
        table = {
            name: np.array([float(x) for x in values])
            for name, values in spec.table(_FLOAT_DIGITS).items()
        }
        total, held = math.fsum(table["weight"]), math.fsum(share for _, share in spec.atoms)
        if not held < 1:
            raise ParameterError(
                f"atoms must leave a share to the density, they sum to {held:.12g}"
            )
        if abs(total - 1) > _ROUNDED:
            raise ParameterError(
                f"density and atoms must sum to 1, and these sum to {total:.12g}: divide "
                f"{spec.density} by {(total - held) / (1 - held):.12g}"
            )
        return replace(cls._of(table), density=spec)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> BulkLaw:
        """Return the law in a file: JSON as :meth:`to_dict` has it, or numbers as text.

        Parameters
        ----------
        path : path
            JSON with the keys of :meth:`to_dict` (``scale`` may be left out) or a list of
            eigenvalues; else text, with an eigenvalue and, in a second column, its weight per line.

        Raises
        ------
        ParameterError
            If there is no such file, or it holds no law.
        """
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ParameterError(f"bulk: cannot read {os.fspath(path)!r}: {error}") from None
        try:
            values = json.loads(text)
        except json.JSONDecodeError:
            try:
                table = np.loadtxt(text.splitlines(), delimiter="," if "," in text else None)
            except ValueError:
                table = np.zeros((0, 0))
            columns = np.atleast_2d(table.T)
            if not columns.size or len(columns) > 2:
                raise ParameterError(
                    f"bulk: {os.fspath(path)!r} is neither JSON nor one or two columns of numbers, "
                    "eigenvalues and their weights"
                ) from None
            return cls.from_eigenvalues(
                columns[0], weights=columns[1] if len(columns) > 1 else None
            )
        if isinstance(values, dict):
            return cls.from_dict({"scale": 1.0, **values})
        return cls.from_eigenvalues(values)

    @classmethod
    def _of(cls, table: Mapping[str, Array]) -> BulkLaw:
        """Return the law of columns that have one length, with what follows from isotropy."""
        size = len(table["D"])
        found = {"weight": np.full(size, 1.0 / size), **table}
        _nonnegative("eigenvalues", found["D"])
        if not found["weight"] @ found["D"] > 0:
            raise ParameterError("eigenvalues must not all vanish: rows have a positive length")
        if "P" in found and not (found["P"] > 0).all():
            raise ParameterError(f"penalty must be positive, got {found['P'].min():g}")
        if "F" not in found and {"G", "H"} & {*found}:
            raise ParameterError(
                "F must be given where G or H is: only together they are the overlaps of a bulk "
                "that is not isotropic"
            )
        if "F" in found:
            found.setdefault("G", np.zeros(size))
            found.setdefault("H", found["D"])
            _nonnegative("F", found["F"])
            _nonnegative("H", found["H"])
            bound = found["F"] * found["H"]
            if (found["G"] ** 2 > bound * (1 + _ROUNDED) + _ROUNDED * bound.mean()).any():
                raise ParameterError(
                    "G must satisfy G**2 <= F*H, as the product of two components whose squares "
                    "are F and H"
                )
        order = ("weight", "D", *_OF_OVERLAPS, "P")
        return cls(tuple((name, tuple(found[name].tolist())) for name in order if name in found))

    # ------------------------------------------------------------------ what it is

    @property
    def equations(self) -> str:
        """Which equations the law goes into: "isotropic" or "overlaps"."""
        return OVERLAPS if "F" in dict(self.columns) else ISOTROPIC

    @property
    def bulk_variance(self) -> float:
        """Mean eigenvalue, which is the squared norm c of the bulk rows."""
        return self.scale * self._mean

    @cached_property
    def _mean(self) -> float:
        table = dict(self.columns)
        products = (w * x for w, x in zip(table["weight"], table["D"], strict=True))
        return math.fsum(products) / math.fsum(table["weight"])

    @property
    def zeros(self) -> float:
        """The probability of the eigenvalue zero."""
        table = {name: np.array(values) for name, values in self.columns}
        return float(table["weight"][table["D"] <= _ZERO * self._mean].sum())

    def scaled(self, bulk_variance: float) -> BulkLaw:
        """Return the law of the same shape with another mean."""
        wanted = positive_number("bulk_variance", bulk_variance)
        return replace(self, scale=wanted / self._mean)

    def table(self) -> dict[str, Array]:
        """Return weights and columns in units of the mean, as kernels take them."""
        found = {name: np.array(values) for name, values in self.columns}
        for name in ("D", *_OF_OVERLAPS):
            if name in found:
                found[name] = found[name] / self._mean
        return {**found, "P": found.get("P", np.ones(len(found["D"])))}

    def exact_table(self, digits: int) -> dict[str, list[sp.Expr]]:
        """Return the same to so many digits: floats mean the decimals that they print as."""
        if self.density is None:
            found = {name: [exact_number(x) for x in values] for name, values in self.columns}
        else:
            # The numbers of an mpmath context print with all of its digits.
            table = self.density.table(digits)
            found = {
                name: [sp.Float(str(x), digits + 10) for x in values]
                for name, values in table.items()
            }
        total = sp.Add(*found["weight"])
        mean = sp.Add(*(w * x for w, x in zip(found["weight"], found["D"], strict=True))) / total
        if "F" in found:
            found.setdefault("G", [sp.S.Zero] * len(found["D"]))
            found.setdefault("H", found["D"])
        for name in ("D", *_OF_OVERLAPS):
            if name in found:
                found[name] = [x / mean for x in found[name]]
        found["weight"] = [w / total for w in found["weight"]]
        return {**found, "P": found.get("P", [sp.S.One] * len(found["D"]))}

    # ------------------------------------------------------------------ as text

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain values; :meth:`from_dict` reads them."""
        found: dict[str, Any] = {"scale": self.scale}
        if self.density is None:
            return found | {name: list(values) for name, values in self.columns}
        spec = self.density
        return found | {
            "density": spec.density, "domain": list(spec.domain), "atoms": dict(spec.atoms),
            **dict(spec.columns),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BulkLaw:
        """Return the law that :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If the values are not those of a law.
        """
        given = dict(values)
        try:
            scale = positive_number("scale", given.pop("scale"))
            given["penalty"] = given.pop("P", None)
            if "density" in given:
                found = cls.from_density(given.pop("density"), given.pop("domain"), **given)
            else:
                weights = given.pop("weight")
                found = cls.from_eigenvalues(given.pop("D"), weights=weights, **given)
        except (KeyError, TypeError) as error:
            raise ParameterError(f"bulk is not a law written by to_dict: {error}") from None
        return replace(found, scale=scale)

    def __repr__(self) -> str:
        table = dict(self.columns)
        what = f"{len(table['D'])} eigenvalues"
        if self.density is not None:
            what = f"density {self.density.density}"
        words = [what, f"mean {self.bulk_variance:.6g}", self.equations]
        return f"BulkLaw({', '.join([*words, *(['penalty'] if 'P' in table else [])])})"


def checked_kind(bulk: object, beta: float) -> str:
    """Return the kind of bulk rows."""
    if not is_one_of(bulk, BULKS):
        raise ParameterError(f"bulk must be one of {', '.join(BULKS)}, got {bulk!r}")
    if bulk == ORTHONORMAL and beta > 1:
        raise ParameterError(
            f"bulk='orthonormal' needs at most as many rows as dimensions, beta <= 1, got {beta:g}"
        )
    return str(bulk)


def checked_bulk(bulk: object, variance: float, beta: float, *, stretched: bool) -> str | BulkLaw:
    """Return the bulk of a model of given spiked features."""
    if not isinstance(bulk, BulkLaw):
        if not is_one_of(bulk, BULKS):
            raise ParameterError(
                f"bulk must be 'iid', 'orthonormal' or a BulkLaw, got {bulk!r}; "
                "BulkLaw.from_eigenvalues makes one of numbers"
            )
        bulk = checked_kind(bulk, beta)
    if bulk != IID and stretched:
        raise ParameterError(
            "stretch is about independent rows, and a law of the bulk has its stretch already: "
            "give bulk='iid', or the law of stretched rows without stretch"
        )
    if isinstance(bulk, BulkLaw):
        own = bulk.bulk_variance
        if abs(own - variance) > _ROUNDED * variance:
            raise ParameterError(
                f"bulk_variance={variance:g}, but the mean of the bulk law is {own:.12g}, and it "
                "is the squared norm of the rows: give bulk_variance=law.bulk_variance, or "
                f"bulk=law.scaled({variance:g})"
            )
        _require_rank(bulk, beta)
    return bulk


def _require_rank(law: BulkLaw, beta: float) -> None:
    """Refuse more rows than dimensions of which too few are redundant."""
    if law.equations == ISOTROPIC and beta * (1 - law.zeros) > 1 + _ROUNDED:
        raise ParameterError(
            f"beta={beta:g} rows for each dimension have a rank of at most 1: a share of at "
            f"least {1 - 1 / beta:g} of the eigenvalues vanishes, and of this bulk law it is "
            f"{law.zeros:g}"
        )


@dataclass(frozen=True)
class BulkData:
    """The law of a model's bulk as the data of its kernels; none for independent rows."""

    law: BulkLaw | None

    @classmethod
    def of(cls, model: SpikedRandomFeatures) -> BulkData:
        """Return that of a model."""
        if isinstance(model.bulk, BulkLaw):
            return cls(model.bulk)
        # The frame B Bᵀ = c.
        return cls(_FRAME if model.bulk == ORTHONORMAL else None)

    @property
    def equations(self) -> str:
        """Which equations of :func:`.physics.spiked_free_energy` these are."""
        return IID if self.law is None else self.law.equations

    @cached_property
    def columns(self) -> dict[str, Array] | None:
        """Columns as ``data=`` of a kernel."""
        return None if self.law is None else self.law.table()

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Weights and columns as rows of an array, by the name of the data set."""
        if self.columns is None:
            return {}
        order = _ORDER[self.equations]
        return {"bulk": np.stack([self.columns[name] for name in order])}

    def check(self, parameters: Mapping[str, Any], data: Mapping[str, Array] | None = None) -> None:
        """Refuse parameters of a kernel that the law does not fit, or data in its place.

        Raises
        ------
        ParameterError
        """
        law = self.law
        if law is None:
            return
        if data is not None and law.equations == ISOTROPIC:
            weights, eigenvalues = (tuple(row.tolist()) for row in data["bulk"][:2])
            law = BulkLaw((("weight", weights), ("D", eigenvalues)))
        _require_rank(law, float(np.max(parameters["beta"])))

    def exact(self, digits: int) -> dict[str, list[list[sp.Expr]]]:
        """Return the same exactly, or of a density to so many digits."""
        if self.law is None:
            return {}
        table = self.law.exact_table(digits)
        return {"bulk": [table[name] for name in _ORDER[self.equations]]}


_ORDER = {ISOTROPIC: ("weight", "D", "P"), OVERLAPS: ("weight", "D", *_OF_OVERLAPS, "P")}
_FRAME = BulkLaw((("weight", (1.0,)), ("D", (1.0,))))


def _column(name: str, values: object) -> Array:
    if name == "penalty" and (isinstance(values, str) or callable(values)):
        raise ParameterError(
            f"penalty must be positive numbers, one for each eigenvalue, got {values!r}: a "
            "quadratic penalty that is diagonal where the bulk is. One that is a sum over the "
            "coordinates of the readout, such as l1, needs to know how the eigenvectors of the "
            "bulk lie to the coordinates, and the law of D, F, G and H does not say that"
        )
    found = np.atleast_1d(real_array(name, values))
    if found.ndim > 1:
        raise ParameterError(f"{name} must be one-dimensional, got an array of shape {found.shape}")
    return found


def _nonnegative(name: str, values: Array) -> None:
    if not (values >= 0).all():
        raise ParameterError(f"{name} must be >= 0, got {values.min():g}")


# ------------------------------------------------------------------ bulk density

# Digits beyond those asked for.
_MARGIN = 6
# Arguments whose expressions are numbers.
_PLACES = ("domain", "atoms")
_DEGREES = range(4, 11)
# The rule has to resolve 𝔼 1/(z + D) at these z, in units of the mean.
_PENALTIES = ("1e-6", "1e-3", "1", "1e3")


@dataclass(frozen=True)
class BulkDensity:
    """A law as expressions in x, all as text: of the density and the overlaps given x."""

    density: str
    domain: tuple[str, ...]
    atoms: tuple[tuple[str, float], ...]
    columns: tuple[tuple[str, str], ...]

    def table(self, digits: int) -> dict[str, list[Any]]:
        """Return weights and columns as mpmath numbers that are good for so many digits.

        Raises
        ------
        ConvergenceError
            If no rule resolves the density.
        ParameterError
            If it is negative somewhere, or not finite.
        """
        import mpmath
        from mpmath.calculus.quadrature import TanhSinh

        ctx = mpmath.mp.clone()
        # At ends where the density diverges like a root, half of the digits are lost.
        ctx.dps = 2 * digits + 2 * _MARGIN
        functions = {
            name: self._compiled(text, ctx)
            for name, text in (("weight", self.density), *self.columns)
        }
        rule = TanhSinh(ctx)
        before: list[Any] = []
        for degree in _DEGREES:
            table = self._rule(rule, degree, functions, ctx)
            now = _summaries(table, ctx)
            tolerance = ctx.mpf(10) ** -(digits - 2)
            if before and all(
                abs(a - b) <= tolerance * abs(b) for a, b in zip(before, now, strict=True)
            ):
                return _without_tails(table, ctx, digits)
            before = now
        raise ConvergenceError(
            f"the density {self.density} is not resolved to {digits} digits between "
            f"{' and '.join(self.domain)}: name the places where it is not smooth in domain, as in "
            "domain=(0, 1, 4)"
        )

    def _rule(
        self, rule: Any, degree: int, functions: Mapping[str, Any], ctx: Any
    ) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {"weight": [], "D": []} | {n: [] for n, _ in self.columns}
        ends = [ctx.mpf(str(read_expression(t, "domain").evalf(ctx.dps))) for t in self.domain]
        # Closer to an end than rounding lets tell on which side a node is.
        least = ctx.eps * 10**_MARGIN
        for low, high in itertools.pairwise(ends):
            half, middle = (high - low) / 2, (high + low) / 2
            for part in range(1, degree + 1):
                # Nodes of a degree are those that coarser ones do not have.
                for node, weight in rule.calc_nodes(part, ctx.prec):
                    if weight > least:
                        self._add(table, functions, middle + half * node, half * weight, ctx)
        step = ctx.ldexp(1, -degree)
        table["weight"] = [step * w for w in table["weight"]]
        for place, weight in self.atoms:
            value = ctx.mpf(str(read_expression(place, "atoms").evalf(ctx.dps)))
            self._add(table, {**functions, "weight": lambda _: 1}, value, ctx.one, ctx)
            table["weight"][-1] = ctx.mpf(str(sp.Rational(repr(weight)).evalf(ctx.dps)))
        return table

    def _add(
        self, table: dict[str, list[Any]], functions: Mapping[str, Any], x: Any, weight: Any,
        ctx: Any,
    ) -> None:  # fmt: skip
        try:
            found = {name: f(x) for name, f in functions.items()}
            finite = all(ctx.isfinite(value) and not ctx.im(value) for value in found.values())
        except (ArithmeticError, ValueError):
            finite = False
        if not finite or found["weight"] < 0:
            raise ParameterError(
                f"density and overlaps must be finite, and the density nonnegative, inside the "
                f"domain; those of {self.density} are not at x = {ctx.nstr(x, 6)}"
            )
        table["weight"].append(weight * ctx.re(found.pop("weight")))
        table["D"].append(x)
        for name, value in found.items():
            table[name].append(ctx.re(value))

    @staticmethod
    def _compiled(text: str, ctx: Any) -> Any:
        return compiled(read_expression(text, "density"), [_variable()], ctx)


def _variable() -> sp.Symbol:
    return sp.Symbol("x", positive=True)


def expression_text(value: Any, argument: str) -> str:
    """Return an expression in x, or a number, as text that :func:`read_expression` reads."""
    if isinstance(value, str):
        return value

    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return str(exact_number(value))
    return str(as_expression(value, argument))


def read_expression(text: str, argument: str) -> sp.Expr:
    """Return the expression of a text, in x or without a variable."""
    known = [] if argument in _PLACES else [_variable()]
    return parse_expression(text, known, argument=argument)


def _summaries(table: Mapping[str, list[Any]], ctx: Any) -> list[Any]:
    """Return total, mean and resolvents, which the rule has to resolve."""
    weights, values = table["weight"], table["D"]
    total, mean = ctx.fsum(weights), ctx.fdot(weights, values)
    return [
        total,
        mean,
        *(
            ctx.fsum(w / (ctx.mpf(z) * mean + x) for w, x in zip(weights, values, strict=True))
            for z in _PENALTIES
        ),
    ]


def _without_tails(table: dict[str, list[Any]], ctx: Any, digits: int) -> dict[str, list[Any]]:
    """Leave out nodes next to the ends whose weight is nothing."""
    least = ctx.mpf(10) ** -(digits + 6)
    kept = [k for k, w in enumerate(table["weight"]) if w > least]
    return {name: [values[k] for k in kept] for name, values in table.items()}
