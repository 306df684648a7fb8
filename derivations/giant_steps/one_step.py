r"""One giant gradient step, exactly: which directions it learns, from how many samples, how well.

A neuron of unit norm takes the step :math:`w \leftarrow w + s\,g` with the gradient
:math:`g = \frac1n\sum_\mu y_\mu\,\sigma'(\langle w, x_\mu\rangle)\,x_\mu` on n fresh samples and
:math:`s = \eta a/p` for :math:`\hat f = \frac1p\sum_i a_i\sigma(\langle w_i, x\rangle)`. Let
:math:`\ell` be the first k ≥ 1 for which neither the Hermite tensor :math:`C_k` of the target nor
the coefficient :math:`\mu_k` of the student vanishes. To leading order in d

.. math:: g = \frac{\mu_\ell(\sigma)}{(\ell-1)!}\,C_\ell[w^{\ell-1}, \cdot] + A\,w + \text{noise},
          \qquad \mathbb{E}|\text{noise}|^2 = \frac dn\,(\mathbb{E}f^2 + \Delta)\,
          \mathbb{E}\,\sigma'(z)^2 .

The first term, of size :math:`d^{-(\ell-1)/2}`, points into the range of :math:`C_\ell` and is a
constant share of the whole for :math:`n \asymp d^\ell`. A w, the part along w, shows no new
direction: its projection on the relevant space is that of w, which was there before the step. But
where μ_2 and the mean of f are not zero, or μ_k = 0 ≠ μ_{k+2} for a tensor of an order k below
:math:`\ell`, it may be longer than the first term, and the alignment counts it.

Thresholds are theorems of Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270: for
:math:`\ell = 1`, and for :math:`f = \sum_k \sigma^*_k(\langle w_k^*, x\rangle)` with orthonormal
:math:`w_k^*`. Constants, other targets of higher order, and students that miss the leap index are
derived here from the gradient expansion (:mod:`giantstep.symbolic.targets.stein`). Only the product
s = η a/p enters, so other prefactors of the network are other scales of the learning rate η. Sizes
of the spike, the part along w and the noise are exact in d, n and s, and so are their means over
neurons on the unit sphere; what is left out of the gradient and of the noise changes them by
relative corrections of order 1/d.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, cast

import sympy as sp

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import positive_number, real_number, whole_number
from ...pages import Block, Table
from ...result import Result
from ...symbolic.expressions.activations import Activation, activation, z as variable
from ...symbolic.expressions.parser import Parameters, parse_expression
from ...symbolic.expressions.regularity import Parity, require_square_integrable
from ...symbolic.expressions.standing import Standing
from ...symbolic.gaussian.expectation import expect
from ...symbolic.hermite.heat_flow import gaussian_moment
from ...symbolic.leaps.leap_index import leap_index
from ...symbolic.targets.activation_mask import DegreeMask, activation_mask
from ...symbolic.targets.closed_symbols import closed_symbol
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.stein import (
    DIMENSION,
    SAMPLES,
    Direction,
    GradientExpansion,
    GradientTerm,
    gradient_expansion,
)
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import Target, target as read_target
from ..first_gradient.first_step import first_step
from ..readable import readable
from ..symbols import alpha0, noise as label_noise

WIDTH = sp.Symbol("p", positive=True)
"""The number of neurons p in step sizes."""

STEP = sp.Symbol("s", real=True)
"""The step of one neuron, s = η a/p; its sign is that of the readout weight a."""

BIAS = sp.Symbol("b", real=True)
"""The bias of a neuron, if there are biases."""


class Prefactor(StrEnum):
    """How a network weighs its neurons: in front of the sum, and the size of readout weights."""

    MEAN = "1/p, readouts of order 1"
    ROOT = "1/sqrt(p), readouts of order 1"
    SMALL_READOUT = "1/sqrt(p), readouts of order 1/sqrt(p)"

    @property
    def learning_rate(self) -> sp.Expr:
        """The learning rate η, in p, with which s is of order 1."""
        return sp.sqrt(WIDTH) if self is Prefactor.ROOT else WIDTH


@dataclass(frozen=True)
class GiantStepValues:
    r"""One giant step in numbers, means over neurons.

    Attributes
    ----------
    step, learning_rate : float
        s and η.
    spike, along, noise : float
        Mean squares of the three parts of the gradient.
    alignment : float
        Share of the spike in them: the best possible.
    squared_norm : float
        Mean of :math:`|w^1|^2`.
    relevant_share : float
        Share of it in the space of all coordinates of the target.
    directions : int
        Directions learned at most.
    """

    step: float
    learning_rate: float
    spike: float
    along: float
    noise: float
    alignment: float
    squared_norm: float
    relevant_share: float
    directions: int


def prefactor_of(value: Prefactor | str) -> Prefactor:
    """Return the weighing of a name or a value."""
    names = {**Prefactor.__members__, **{member.value: member for member in Prefactor}}
    result = names.get(value) if isinstance(value, str) else None
    if result is None:
        known = "; ".join(f"{name} ({member.value})" for name, member in names.items()
                          if name == member.name)  # fmt: skip
        raise ParameterError(f"prefactor must be one of {known}, got {value!r}")
    return result


def sphere_mean(polynomial: sp.Expr, weights: tuple[sp.Symbol, ...]) -> sp.Expr:
    r"""Return the mean of a polynomial in r components of w over the unit sphere of R^d.

    A monomial of degree 2k has the mean :math:`\mathbb{E}\,g^\alpha/(d(d+2)\cdots(d+2k-2))` over
    standard Gaussian g.

    Examples
    --------
    >>> w1, w2 = sp.symbols("w1 w2", real=True)
    >>> sphere_mean(w1**2 * w2**2 + 5 * w1, (w1, w2))
    1/(d*(d + 2))
    """
    total = []
    for alpha, c in sp.Poly(polynomial, *weights, domain=sp.EXRAW).terms():
        moment = gaussian_moment(alpha)
        if moment:
            factors = (DIMENSION + 2 * i for i in range(sum(alpha) // 2))
            total.append(c * moment / sp.Mul(*factors))
    return sp.Add(*total)


_HIGHEST_ORDER = 12
"""Orders up to which a target that is no polynomial is looked at."""

_MOST_SHOWN = 3
"""Coefficients of the student that vanish are listed up to this number."""


@dataclass(frozen=True, repr=False)
class GiantStep(Result):
    r"""What one giant step learns of a target; made by :func:`giant_step`.

    Attributes
    ----------
    target : Target
    student : Activation
        σ; with biases a function of z and b, the bias of the neuron.
    biases : bool
        Whether neurons have random biases with a density.
    noise_variance : Expr
        Δ, of the labels.
    leap_index : int
        Smallest k ≥ 1 with :math:`C_k \ne 0`.
    order : int or None
        :math:`\ell`, the smallest k ≥ 1 with :math:`C_k \ne 0` and :math:`\mu_k(\sigma) \ne 0`:
        the leap index if the student sees it; None if there is none.
    learned : Subspace
        The range of :math:`C_\ell`; {0} if there is no such order.
    basis : str
        What `learned` rests on: "exact", "certified" or "undetermined beyond order K".
    unseen : tuple of int
        Orders k, below :math:`\ell` or of all, with :math:`C_k \ne 0` but
        :math:`\mu_k(\sigma) = 0`.
    expansion : GradientExpansion
        The population gradient with all terms that are not smaller than the leading one.

    Examples
    --------
    >>> step = giant_step("x1*x2 + He(3, x1)", "relu")
    >>> step.order, step.learned, step.leading_vector.T
    (2, Subspace R^2 of R^2, Matrix([[sqrt(2)*w2/(2*sqrt(pi)), sqrt(2)*w1/(2*sqrt(pi))]]))
    >>> step.samples, step.step_size()
    (d**2, sqrt(d)*p)

    erf has no coefficient of order 2, and sees the third order alone:

    >>> step = giant_step("x1*x2 + He(3, x1)", "erf")
    >>> step.leap_index, step.order, step.learned
    (2, 3, Subspace ⟨e1⟩ of R^2)
    """

    _document = "giant step"
    _derived = ("statements",)

    target: Target
    student: Activation
    biases: bool
    noise_variance: sp.Expr
    leap_index: int
    order: int | None
    learned: Subspace
    basis: str
    unseen: tuple[int, ...]
    expansion: GradientExpansion

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping) or "variables" not in values:
            return super()._read(values)
        # Documents once held what a step was derived from, as texts.
        coordinates = [sp.Symbol(str(name)) for name in values["variables"]]
        target, student, noise = (
            str(values.get(name, "")) for name in ("target", "student", "noise_variance")
        )
        step = giant_step(
            read_target(target, coordinates), student, noise_variance=noise,
            biases=values.get("biases", False),
        )  # fmt: skip
        return {f.name: getattr(step, f.name) for f in fields(step)}

    @property
    def ridge_constants(self) -> tuple[sp.Expr, ...] | None:
        r"""The constants :math:`\mu_\ell(\sigma)\mu^*_{k,\ell}/(\ell-1)!`, one for each coordinate.

        Then :math:`\langle w^1, e_k\rangle = \langle w^0, e_k\rangle + s` times this times
        :math:`\langle w^0, e_k\rangle^{\ell-1}`. None if C_l mixes the coordinates of the target.
        """
        vector, weights = self.leading_vector, self.expansion.weights
        if self.order is None or not self.is_diagonal:
            return None
        # C_l[w^(l-1), e_k] is a constant times w_k^(l-1).
        return tuple(
            entry.xreplace({w: sp.S.One}) for entry, w in zip(vector, weights, strict=True)
        )

    @property
    def is_diagonal(self) -> bool:
        """Whether C_l is that of a sum of functions of single coordinates."""
        if self.order is None:
            return False
        alphas = self.target.he_coefficients(self.order)
        return all(max(alpha) == self.order for alpha in alphas)

    @property
    def is_separable(self) -> bool:
        """Whether the target is seen to be a sum of functions of single coordinates."""
        f = self.target
        if f.is_polynomial:
            monomials = f.expansion.symbol_element.itermonoms()
            return all(sum(map(bool, alpha)) <= 1 for alpha in monomials)
        return all(len(term.free_symbols) <= 1 for term in sp.Add.make_args(sp.expand(f.expr)))

    def directions(self, width: int) -> int:
        """Return how many directions that many neurons learn at most: min(p, dim range(C_l))."""
        return min(whole_number("width", width), self.learned.dimension)

    # ------------------------------------------------------------------ scales

    @property
    def samples(self) -> sp.Expr | None:
        r"""The scale :math:`d^\ell` of the samples with which a constant share is learned."""
        return None if self.order is None else DIMENSION**self.order

    @property
    def detectable_from(self) -> sp.Expr | None:
        r"""The scale :math:`d^{\ell-1}` beyond which the spike exceeds the noise per direction."""
        return None if self.order is None else DIMENSION ** (self.order - 1)

    def step_size(self, prefactor: Prefactor | str = Prefactor.MEAN) -> sp.Expr | None:
        r"""Return the scale of the learning rate η with which w moves by order 1.

        Parameters
        ----------
        prefactor : Prefactor or str
            The name, or the value, of a :class:`Prefactor`; for the first, 1/p, it is
            :math:`p\,d^{(\ell-1)/2}`.
        """
        rate = prefactor_of(prefactor).learning_rate
        if self.order is None:
            return None
        return rate * DIMENSION ** sp.Rational(self.order - 1, 2)

    # ------------------------------------------------------------------ sizes

    @property
    def leading(self) -> GradientTerm | None:
        """The leading term inside the relevant space, in the components w1..wr of a neuron."""
        wanted = (Direction.INSIDE, self._order - 1) if self.order else None
        return next((t for t in self.expansion.terms if (t.direction, t.k) == wanted), None)

    @property
    def leading_vector(self) -> sp.Matrix:
        r""":math:`\mu_\ell/(\ell-1)!\;C_\ell[w^{\ell-1},\cdot]`; zero if there is none.

        After the step :math:`P w^1 = P w^0 + s` times this, up to :math:`1 + o(1)`, noise of order
        :math:`s/\sqrt n` in each direction, and what rescales :math:`w^0`.
        """
        term = self.leading
        return sp.zeros(self.target.dimension, 1) if term is None else term.value

    @property
    def overlaps(self) -> tuple[sp.Symbol, ...]:
        r"""Symbols u1..ur for :math:`\sqrt d\,\langle w, e_i\rangle`.

        They are standard Gaussian for neurons uniform on the sphere and d → ∞.
        """
        return sp.symbols(f"u1:{self.target.dimension + 1}", real=True)

    @property
    def signal(self) -> sp.Expr:
        r"""c, the squared norm of the spike times :math:`d^{\ell-1}`, in the overlaps u."""
        return sp.Add(*(entry**2 for entry in self._scaled(self.leading_vector)))

    @property
    def mean_signal(self) -> sp.Expr:
        """Mean of c over neurons uniform on the sphere, exact in d."""
        term = self.leading
        if term is None:
            return sp.S.Zero
        return term.mean_square * DIMENSION**term.k

    @property
    def along(self) -> sp.Expr:
        r"""The part along w times :math:`d^{(\ell-1)/2}`, in u and d; 0 if it is smaller."""
        if self.order is None:
            return sp.S.Zero
        scale = sp.Rational(self.order - 1, 2)
        terms = (
            DIMENSION ** (scale - sp.Rational(term.k, 2)) * self._scaled(term.value)
            for term in self.expansion.terms
            if term.direction is Direction.ALONG
        )
        return sp.Add(*terms)

    @property
    def noise(self) -> sp.Expr:
        r"""V, of which the mean square of the noise is V d/n.

        :math:`(\mathbb{E}f^2+\Delta)\,\mathbb{E}\,\sigma'^2`.
        """
        slope_square = expect(self.student.derivative**2, variable)
        return (self.target.norm_squared + self.noise_variance) * slope_square

    @property
    def alignment(self) -> sp.Expr:
        r"""Share of the spike in the squared step of one neuron: the best possible, η → ∞.

        :math:`c/(c + A^2 + V d^\ell/n)` in the overlaps u of the neuron, d and n; 0 if there is
        no order :math:`\ell`. It is the squared cosine of step and spike too, unless A w is longer
        than the spike (:attr:`along_exceeds`): then both vanish for d → ∞, but the overlap of w
        itself with the spike makes the squared cosine of order 1/d at least.
        """
        if self.order is None:
            return sp.S.Zero
        return self.signal / (self.signal + self.along**2 + self._scaled_noise)

    @property
    def mean_alignment(self) -> sp.Expr:
        """The same from means over neurons: the share of their squared steps that is spike."""
        if self.order is None:
            return sp.S.Zero
        along = self.along_square * DIMENSION ** (self.order - 1)
        signal = self.mean_signal
        return 1 / (1 + along / signal + self._scaled_noise / signal)

    @property
    def _scaled_noise(self) -> sp.Expr:
        return self.noise * DIMENSION**self._order / SAMPLES

    @property
    def label_overlap(self) -> sp.Expr | None:
        r"""For :math:`\ell = 1` the squared overlap of :math:`X^Ty/n` with C_1; else None."""
        if self.order != 1:
            return None
        return self._at_finite_ratio(first_step("identity", self.target).alignment)

    @property
    def bulk_growth(self) -> sp.Expr | None:
        r"""For :math:`\ell = 1` the B in the bulk variance :math:`(1 + sA)^2 + s^2 B`; else None.

        The other part of the noise, :math:`\mu_1^2 \mathbb{E}y^2 d/n`, lies along :math:`X^Ty` for
        all neurons: the step is a matrix of rank one and this bulk. A is :attr:`along`.
        """
        if self.order != 1:
            return None
        bulk = first_step(self.student, self.target).bulk
        return self._at_finite_ratio(bulk**2) - self.along**2

    def _at_finite_ratio(self, limit: sp.Expr) -> sp.Expr:
        return limit.subs({alpha0: SAMPLES / DIMENSION, label_noise: self.noise_variance})

    @property
    def squared_norm(self) -> sp.Expr:
        r"""Mean of :math:`|w^1|^2` over neurons and samples, in s, d and n.

        :math:`|w^0 + sG|^2 + s^2\,\mathbb{E}|\text{noise}|^2` with the terms of `expansion` for G,
        averaged over the sphere exactly.
        """
        along, inward = self.expansion.along(), self._inward
        linear = 2 * self.start_overlap
        square = self._mean(along**2 + 2 * along * inward) + self.spike_square
        return 1 + STEP * linear + STEP**2 * (square + self.noise_square)

    @property
    def start_overlap(self) -> sp.Expr:
        r"""Mean of :math:`\langle w^0, G\rangle` over neurons, in d, to the order of the spike.

        That of the spike, and of the parts along w, of which the one of :math:`C_\ell[w^\ell]`
        is as large: for even :math:`\ell` its mean is not zero.
        """
        order = self.order or 0
        along = gradient_expansion(self.student, self.target, order).along()
        return self._mean(along + self._inward)

    @property
    def relevant_share(self) -> sp.Expr:
        r"""Share of the mean :math:`|w^1|^2` in the space of all coordinates of the target.

        In s, d and n; 1/d of the noise is in each direction.
        """
        along, inward = self.expansion.along(), self._inward
        own = sp.Add(*(w**2 for w in self.expansion.weights))
        linear = 2 * self._mean(along * own + inward)
        square = self._mean(along**2 * own + 2 * along * inward) + self.spike_square
        part = sp.Rational(self.target.dimension) / DIMENSION
        inside = part + STEP * linear + STEP**2 * (square + part * self.noise_square)
        return inside / self.squared_norm

    @property
    def _inward(self) -> sp.Expr:
        """The inner product of w and the spike."""
        pairs = zip(self.expansion.weights, self.leading_vector, strict=True)
        return sp.Add(*(w * entry for w, entry in pairs))

    @property
    def spike_square(self) -> sp.Expr:
        """Mean square of the spike over neurons, in d."""
        return sp.S.Zero if self.leading is None else self.leading.mean_square

    @property
    def along_square(self) -> sp.Expr:
        """Mean square of the part along w over neurons, in d."""
        return self._mean(self.expansion.along() ** 2)

    @property
    def noise_square(self) -> sp.Expr:
        """Mean square of the noise, in d and n."""
        return self.noise * DIMENSION / SAMPLES

    def _mean(self, polynomial: sp.Expr) -> sp.Expr:
        return sphere_mean(polynomial, self.expansion.weights)

    @property
    def _order(self) -> int:
        assert self.order is not None
        return self.order

    def _scaled(self, value: Any) -> Any:
        return value.xreplace(dict(zip(self.expansion.weights, self.overlaps, strict=True)))

    @property
    def along_exceeds(self) -> bool:
        """Whether the part along w grows faster with d than the spike, so that it hides it."""
        along = [t.order for t in self.expansion.terms if t.direction is Direction.ALONG]
        return self.leading is not None and any(order > self.leading.order for order in along)

    # ------------------------------------------------------------------ numbers

    def values(
        self,
        dimension: int,
        samples: int,
        *,
        width: int = 1,
        learning_rate: float | None = None,
        readout: float = 1.0,
        prefactor: Prefactor | str = Prefactor.MEAN,
        bias: float | None = None,
    ) -> GiantStepValues:
        r"""Return the step in numbers at finite size.

        Parameters
        ----------
        dimension, samples, width : int
            d, n and p.
        learning_rate : float, optional
            η > 0; by default the scale :meth:`step_size`.
        readout : float
            a, in units of its order in the prefactor.
        prefactor : Prefactor or str
        bias : float, optional
            That of the neuron; needed with biases, and only with them.

        Raises
        ------
        ParameterError
            If an argument is outside its range.
        AssumptionError
            If the student sees nothing of the target.
        """

        def finite_number(name: str, value: float) -> float:
            number = real_number(name, value)
            if not math.isfinite(number):
                raise ParameterError(f"{name} must be finite, got {value}")
            return number

        weighing = prefactor_of(prefactor)
        if self.biases != (bias is not None):
            raise ParameterError(
                "bias is missing: the numbers depend on that of the neuron"
                if self.biases
                else "bias is for neurons with biases; use giant_step(..., biases=True)"
            )
        p = whole_number("width", width)
        rule: dict[sp.Symbol, sp.Expr] = {
            DIMENSION: sp.Integer(whole_number("dimension", dimension, self.target.dimension)),
            SAMPLES: sp.Integer(whole_number("samples", samples)),
            WIDTH: sp.Integer(p),
        }
        if bias is not None:
            rule[BIAS] = sp.Float(finite_number("bias", bias), 17)
        scale = self.step_size(weighing)
        if scale is None:
            raise AssumptionError(f"{self.obstruction}; there is no step to evaluate")
        if learning_rate is None:
            eta = float(scale.subs(rule))
        else:
            eta = positive_number("learning_rate", learning_rate)
        s = eta / float(weighing.learning_rate.subs(rule)) * finite_number("readout", readout)
        rule[STEP] = sp.Float(s, 17)

        def number(expr: sp.Expr) -> float:
            result = expr.subs(rule).evalf(17)
            if not result.is_number:
                names = ", ".join(sorted(map(str, result.free_symbols)))
                raise ParameterError(f"noise_variance holds {names}; give it as a number")
            return float(result)

        return GiantStepValues(
            step=s,
            learning_rate=eta,
            spike=number(self.spike_square),
            along=number(self.along_square),
            noise=number(self.noise_square),
            alignment=number(self.mean_alignment),
            squared_norm=number(self.squared_norm),
            relevant_share=number(self.relevant_share),
            directions=self.directions(p),
        )

    # ------------------------------------------------------------------ faces

    @property
    def obstruction(self) -> str:
        """Why the student does not see the leap index, in words; empty if it does."""
        if not self.unseen:
            return ""
        orders = ", ".join(f"mu_{k}" for k in self.unseen[:_MOST_SHOWN])
        orders += ", ..." if len(self.unseen) > _MOST_SHOWN else ""
        vanish = f"{orders} of {self.student} vanish{'' if len(self.unseen) > 1 else 'es'}"
        if self.order is not None:
            return f"{vanish}: the step sees order {self.order} first"
        result = f"{vanish}: one giant step learns nothing of {self.target}"
        if self.basis.startswith("undetermined"):
            return f"{result}, {self.basis}"
        return f"{result}, from any number of samples"

    def page(self) -> Iterable[Block]:
        """Return the statements as a table with their remarks below."""
        yield _wrapped(headline(self))
        if self.obstruction:
            rest = "; random biases take the obstruction away, if σ is no polynomial"
            yield _wrapped(self.obstruction + rest * (not self.biases))
        rows = statements(self)
        if not rows:
            return
        yield Table(
            [(row.subject, row.text, row.standing.value) for row in rows],
            ("what", "is", "rests on", "source"),
            beside=[(row.source,) for row in rows],
        )
        yield from (_wrapped(f"{row.subject}: {row.remark}") for row in rows if row.remark)
        sources = dict.fromkeys(row.source for row in rows if row.standing is Standing.THEOREM)
        yield from (_wrapped(f"theorem: {source}") for source in sources)

    def __repr__(self) -> str:
        if self.order is None:
            return f"GiantStep({self.student} on {self.target}: learns nothing)"
        return (
            f"GiantStep({self.student} on {self.target}: order {self.order}, learns {self.learned} "
            f"from n ≍ {self.samples})"
        )

    def latex(self) -> str:
        """Return the statements as lines of LaTeX, without delimiters."""
        lines = [
            rf"\text{{{_escaped(row.subject)}}} & {row.latex} & \text{{{row.standing.value}}}"
            for row in statements(self)
        ] or [rf"\text{{{_escaped(self.obstruction)}}}"]
        return r"\begin{array}{lll}" + r" \\ ".join(lines) + r"\end{array}"

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What is known of the step, with what each statement rests on."""
        return statements(self)


def giant_step(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation = "relu",
    *,
    noise_variance: sp.Expr | Fraction | int | str = 0,
    biases: bool = False,
    parameters: Parameters = True,
) -> GiantStep:
    r"""Derive what one giant gradient step learns of a target.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f. With parameters the answer is a :class:`.CaseTree` of giant steps.
    student : str, Expr or Activation
        σ, continuous, with :math:`\mathbb{E}\,\sigma'^2 < \infty`.
    noise_variance : Expr, Fraction, int or str
        Δ ≥ 0 of the labels, exact, or a symbol declared nonnegative.
    biases : bool
        Neurons :math:`\sigma(\langle w, x\rangle + b)` with random biases b that have a density.
        Coefficients are then functions of b, and vanish for all b only if σ is a polynomial of
        lower degree.
    parameters : optional
        Which symbols of the target are parameters; see :func:`.targets.target.target`.

    Returns
    -------
    GiantStep

    Raises
    ------
    AssumptionError
        If the target is constant or has no finite second moment, or the student has no derivative
        with one.
    ParameterError
        If the noise variance is negative or not exact.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.
    UndecidedError
        If it cannot be decided whether a coefficient vanishes.

    Examples
    --------
    >>> step = giant_step("x1 + 2*He(2, x2)", "relu")
    >>> step.ridge_constants, step.label_overlap
    ((1/2, 0), 1/(9*d/n + 1))
    >>> giant_step("He(3, x1)", "relu").order is None
    True
    >>> giant_step("He(3, x1)", "relu", biases=True).ridge_constants
    (-3*sqrt(2)*b*exp(-b**2/2)/(2*sqrt(pi)),)
    """
    f = read_target(target, parameters=parameters)
    sigma = activation(student, argument="student")
    if not isinstance(biases, bool):
        raise ParameterError(f"biases must be True or False, got {biases!r}")
    require_square_integrable(sigma.derivative, variable, argument="the derivative of student")
    mask = activation_mask(sigma, biases)
    if f.has_open_parameters:
        options: dict[str, Any] = {"noise_variance": noise_variance, "biases": biases}
        tree = f.by_cases(lambda g: giant_step(g, sigma, **options), "giant step")
        return cast(GiantStep, tree)
    leap = int(leap_index(f))
    if leap == 0:
        raise AssumptionError(f"target {f.name!r} is constant: there is nothing to learn")
    order, unseen, basis = _first_order(f, mask, leap)
    learned = Subspace.zero(f.dimension)
    if order is not None:
        # Of what the student sees, the lowest order is the range of the tensor.
        span = spans_of(f, mask).grow(learned, order, strict=True)
        learned, basis = span.subspace, span.basis
    neuron = _with_bias(sigma) if biases else sigma
    expansion = gradient_expansion(neuron, f, 0 if order is None else order - 1)
    return GiantStep(
        target=f,
        student=neuron,
        biases=biases,
        noise_variance=_variance(noise_variance),
        leap_index=leap,
        order=order,
        learned=learned,
        basis=basis,
        unseen=unseen,
        expansion=expansion,
    )


def _first_order(f: Target, mask: DegreeMask, leap: int) -> tuple[int | None, tuple[int, ...], str]:
    """Return the first order that student and target have, those only the target has, a basis."""
    ends = [end for end in (f.degree, mask.highest) if end is not None]
    # The leap index at least, so that an order the student misses is named.
    last = max(min(ends, default=_HIGHEST_ORDER), leap)
    unseen: list[int] = []
    for k in range(leap, last + 1):
        if _vanishes(f, k):
            continue
        if mask.admits(k, 1):
            return k, tuple(unseen), "exact"
        unseen.append(k)
    decided = ends or _have_opposite_parity(f, mask)
    return None, tuple(unseen), "exact" if decided else f"undetermined beyond order {last}"


def _have_opposite_parity(f: Target, mask: DegreeMask) -> bool:
    """Whether all high degrees that the student admits vanish, by parity."""
    if mask.parity is None or max(mask.extra, default=0) > _HIGHEST_ORDER:
        return False
    return not closed_symbol(f.expr, f.variables).of_parity(1 if mask.parity is Parity.EVEN else -1)


def _with_bias(sigma: Activation) -> Activation:
    argument = variable + BIAS
    name = f"{sigma.name}(z + b)" if sigma.name.isidentifier() else f"[{sigma.name}](z + b)"
    return Activation(name, sigma.expr.xreplace({variable: argument}))


def _vanishes(f: Target, k: int) -> bool:
    return f.vanish(
        list(f.he_coefficients(k).values()), f"a coefficient of degree {k} in target {f.name!r}"
    )


def _variance(value: sp.Expr | Fraction | int | str) -> sp.Expr:
    """Return Δ as an exact expression."""
    if isinstance(value, str):
        exact = parse_expression(value, [], argument="noise_variance")
    else:
        try:
            exact = sp.sympify(value, strict=True)
        except (sp.SympifyError, TypeError):
            exact = None
    if not isinstance(exact, sp.Expr) or isinstance(value, bool):
        raise ParameterError(f"noise_variance must be an exact number >= 0, got {value!r}")
    if exact.has(sp.Float):
        raise ParameterError(
            f"noise_variance {value} is a floating-point number; write it exactly, as '1/4' or "
            "Fraction(1, 4)"
        )
    if not exact.is_nonnegative or exact.is_finite is False:
        hint = "; declare its symbols nonnegative" if exact.free_symbols else ""
        raise ParameterError(f"noise_variance must be >= 0 and finite, got {value}{hint}")
    return exact


_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"
_EXPANSION = "leading term of the gradient expansion"
_AGAINST_NOISE = "gradient expansion against its noise"
_MOST_CHARACTERS = 72
"""Longer formulas are shown by their letters alone: the table has 120 columns at most."""

_TEXT_WIDTH = 100


@dataclass(frozen=True)
class Statement:
    """One row: what is said of the step, and what it rests on.

    Attributes
    ----------
    remark : str
        Under which conditions, and what else has to be known.
    """

    subject: str
    text: str
    latex: str
    standing: Standing
    source: str
    remark: str = ""


def statements(step: GiantStep) -> tuple[Statement, ...]:
    """Return what holds of a step, the most important first; nothing if nothing is learned."""
    if step.order is None:
        return ()
    result = [*_thresholds(step), *_spike(step), *_sizes(step)]
    if step.order == 1:
        result += _rank_one(step)
    return tuple(result)


def _thresholds(step: GiantStep) -> list[Statement]:
    order = step.order or 0
    proven = not _why_not_proven(step)
    standing = Standing.THEOREM if proven else Standing.DERIVED_HERE
    source = _DKLPS if proven else _AGAINST_NOISE
    remark = _why_not_proven(step)
    power = _power(order)
    rates = [readable(str(step.step_size(name))) for name in Prefactor]
    others = zip(rates[1:], list(Prefactor)[1:], strict=True)
    eta = sp.latex(step.step_size())
    dimension = step.learned.dimension
    return [
        Statement(
            "samples", f"n ≍ {power}", rf"n \asymp d^{{{order}}}", standing, source,
            remark or f"from n = O(d^({order} - ε)) no step of any size learns a constant share",
        ),
        Statement(
            "learned subspace", f"{step.learned}, dimension {dimension}",
            rf"\mathrm{{range}}\,C_{{{order}}} = {step.learned.latex()}", standing, source,
            "" if step.basis == "exact" else step.basis,
        ),
        Statement(
            "by p neurons", f"at most min(p, {dimension}) directions",
            rf"\min(p, {dimension})\ \text{{directions}}", Standing.DERIVED_HERE, _EXPANSION,
            f"neuron i moves along {_contraction(order)}",
        ),
        Statement(
            "learning rate", f"η ≍ {rates[0]}", rf"\eta \asymp {eta}", standing, source,
            f"for the prefactor {Prefactor.MEAN.value}; "
            + "; ".join(f"{rate} for {name.value}" for rate, name in others),
        ),
        Statement(
            "detectable", f"n ≫ {_power(order - 1)}", rf"n \gg d^{{{order - 1}}}",
            Standing.DERIVED_HERE, _AGAINST_NOISE,
            f"in a fixed direction the spike, of order {_power(sp.Rational(1 - order, 2))}, "
            "exceeds the noise of order n^(-1/2)",
        ),
    ]  # fmt: skip


def _spike(step: GiantStep) -> list[Statement]:
    order, constants = step.order or 0, step.ridge_constants
    result = [
        Statement(
            "spike of a neuron", _shown(step.leading_vector, readable(_letters(order))),
            sp.latex(step.leading_vector.T), Standing.DERIVED_HERE, _EXPANSION,
            f"{readable(_letters(order))} in the components w1, w2, … of the neuron; its part in "
            "the relevant space moves by η a/p times this",
        )
    ]  # fmt: skip
    # Of order 1 the spike itself is constant.
    if constants is not None and order > 1:
        power = "w_k" if order == 2 else f"w_k^{order - 1}"
        result.append(
            Statement(
                "by direction", _shown(sp.Matrix(constants), f"μ_{order} μ*_{order}/{order - 1}!"),
                ",\\ ".join(map(sp.latex, constants)), Standing.DERIVED_HERE, _EXPANSION,
                f"the component k of the spike is this times {power}",
            )
        )  # fmt: skip
    return result


def _sizes(step: GiantStep) -> list[Statement]:
    order = step.order or 0
    power = _power(order)
    signal = f"{f'{_power(order - 1)} ' if order > 1 else ''}|spike|²"
    along = "" if step.along == 0 else " + A²"
    return [
        Statement(
            "signal of a neuron, c", _shown(step.signal, signal),
            sp.latex(step.signal), Standing.DERIVED_HERE, _EXPANSION,
            signal + ("" if order == 1 else " in u = √d w, standard Gaussian for random neurons"),
        ),
        Statement(
            "noise of a neuron, V", _shown(step.noise, "E y² E σ'²"), sp.latex(step.noise),
            Standing.DERIVED_HERE, _AGAINST_NOISE, "mean square of the noise is V d/n",
        ),
        Statement(
            "best alignment", _shown(step.mean_alignment, f"c/(c{along} + V {power}/n)"),
            sp.latex(step.mean_alignment), Standing.DERIVED_HERE, _AGAINST_NOISE,
            f"share c/(c{along} + V {power}/n) of the spike in the squared step, which is its "
            "squared cosine to the spike, for η → ∞, from means over neurons" + _along_remark(step),
        ),
        Statement(
            "squared norm", _shown(step.squared_norm, "|w + s G|² + s² V d/n"),
            sp.latex(step.squared_norm), Standing.DERIVED_HERE, _AGAINST_NOISE,
            "mean of |w|² after the step, s = η a/p",
        ),
    ]  # fmt: skip


def _rank_one(step: GiantStep) -> list[Statement]:
    overlap, growth = step.label_overlap, step.bulk_growth
    assert overlap is not None and growth is not None
    bulk = (1 + STEP * step.along) ** 2 + STEP**2 * growth
    return [
        Statement(
            "overlap of X^T y", _shown(overlap, "|C_1|²/(|C_1|² + (d/n) E y²)"),
            sp.latex(overlap), Standing.DERIVED_HERE, "E|X^T v/n|² = |E v x|² + (d/n) E v²",
            "squared cosine with C_1",
        ),
        Statement(
            "bulk variance", _shown(bulk, "(1 + s A)² + s² (d/n) E y² Var σ'"), sp.latex(bulk),
            Standing.DERIVED_HERE,
            "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 3, for E y = 0",
            "rank one: all the rest of the step lies along X^T y, for all neurons",
        ),
    ]  # fmt: skip


def _why_not_proven(step: GiantStep) -> str:
    """In what a step is not that of the theorems; empty if it is."""
    if step.along_exceeds:
        return "a constant share of what is orthogonal to the old w; see the best alignment"
    if step.order != step.leap_index:
        return "the source has the leap index, which this student does not see"
    if step.biases:
        return "the source has no biases"
    if step.order != 1 and not step.is_separable:
        return "the source has sums of functions of orthonormal directions"
    return ""


def _along_remark(step: GiantStep) -> str:
    along = [term for term in step.expansion.terms if term.direction is Direction.ALONG]
    if not along:
        return ""
    text = f"; A is the part along w, {readable(', '.join(term.name for term in along))}"
    if step.along_exceeds:
        text += ", longer than the spike: the share goes to 0, the cosine to that of w itself"
    if any(term.k == 0 for term in along):
        text += "; the mean of the target is in it: take it off the labels"
    return text


def headline(step: GiantStep) -> str:
    """Return student, target and orders in a line."""
    order = "none" if step.order is None else str(step.order)
    noise = "" if step.noise_variance == 0 else f", label noise {step.noise_variance}"
    return (
        f"one giant step: student {step.student}, target {step.target}{noise}; "
        f"leap index {step.leap_index}, order seen {order}"
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _TEXT_WIDTH, subsequent_indent="  ", break_long_words=False)


def _shown(formula: sp.Expr | sp.MatrixBase, letters: str) -> str:
    """Return a formula as text, or the letters that stand for it if it is long."""
    if isinstance(formula, sp.MatrixBase):
        text = ", ".join(map(str, formula))
        text = f"({text})" if len(formula) > 1 else text
    else:
        text = str(formula)
    return readable(text) if len(text) <= _MOST_CHARACTERS else letters


def _letters(order: int) -> str:
    factorial = f"/{order - 1}!" if order > 2 else ""
    return f"mu_{order}{factorial} {_contraction(order)}"


def _contraction(order: int) -> str:
    slots = {1: "", 2: "[w, .]"}.get(order, f"[w^{order - 1}, .]")
    return f"C_{order}{slots}"


def _power(exponent: int | sp.Rational) -> str:
    return readable(str(DIMENSION**exponent))


def _escaped(text: str) -> str:
    """Return a text to stand in ``\\text{...}``, which it leaves for exponents."""
    escaped = text.replace("\\", r"\backslash ").replace("_", r"\_")
    return re.sub(r"\^(\w)", r"}^{\1}\\text{", escaped)
