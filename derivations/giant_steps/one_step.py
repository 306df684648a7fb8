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
derived here from the gradient expansion (:mod:`giantstep.symbolic.stein`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from ...errors import AssumptionError, ExpressionError, ParameterError
from ...pages import Block, Page, Typeset
from ...symbolic.activations import Activation, activation
from ...symbolic.activations import z as variable
from ...symbolic.expression_text import expression_text
from ...symbolic.leaps.activation_mask import DegreeMask, activation_mask
from ...symbolic.leaps.closed_symbols import closed_symbol
from ...symbolic.leaps.leap_index import leap_index
from ...symbolic.leaps.spans import spans_of
from ...symbolic.parser import parse_expression
from ...symbolic.regularity import Parity, require_square_integrable
from ...symbolic.stein import (
    DIMENSION,
    GradientExpansion,
    gradient_expansion,
)
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import Target
from ...symbolic.targets import target as read_target
from ...symbolic.zero_test import is_exactly_zero
from .one_step_sizes import StepSizes
from .one_step_values import BIAS, GiantStepValues, Prefactor, prefactor_of

_HIGHEST_ORDER = 12
"""Orders up to which a target that is no polynomial is looked at."""

_MOST_SHOWN = 3
"""Coefficients of the student that vanish are listed up to this number."""


@dataclass(frozen=True, repr=False)
class GiantStep(StepSizes, Page, Typeset):
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
        from ...numeric.arguments import whole_number

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
        from .one_step_values import step_values

        return step_values(
            self, dimension, samples, width=width, learning_rate=learning_rate, readout=readout,
            prefactor=prefactor, bias=bias,
        )  # fmt: skip

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
        found = f"{vanish}: one giant step learns nothing of {self.target}"
        if self.basis.startswith("undetermined"):
            return f"{found}, {self.basis}"
        return f"{found}, from any number of samples"

    def page(self) -> Iterable[Block]:
        """Return the statements as a table with their remarks below."""
        from .one_step_presentation import page

        return page(self)

    def __repr__(self) -> str:
        if self.order is None:
            return f"GiantStep({self.student} on {self.target}: learns nothing)"
        return (
            f"GiantStep({self.student} on {self.target}: order {self.order}, learns {self.learned} "
            f"from n ≍ {self.samples})"
        )

    def latex(self) -> str:
        """Return the statements as lines of LaTeX, without delimiters."""
        from .one_step_presentation import as_latex

        return as_latex(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what the step was made of, and what was found."""
        from .one_step_presentation import as_dict

        return as_dict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GiantStep:
        """Return the step that :meth:`to_dict` described, derived again; texts are parsed.

        Examples
        --------
        >>> step = giant_step("x1 + x1*x2", "gelu", noise_variance=sp.Rational(1, 4))
        >>> GiantStep.from_dict(step.to_dict()) == step
        True
        """
        try:
            variables = [sp.Symbol(str(name)) for name in content["variables"]]
            texts = [str(content[key]) for key in ("target", "student", "noise_variance")]
            biases = content["biases"]
        except (LookupError, TypeError):
            raise ExpressionError(
                "the content is not that of a giant step as to_dict writes it"
            ) from None
        return giant_step(
            read_target(texts[0], variables), texts[1], noise_variance=texts[2], biases=biases
        )


def giant_step(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation = "relu",
    *,
    noise_variance: sp.Expr | Fraction | int | str = 0,
    biases: bool = False,
) -> GiantStep:
    r"""Derive what one giant gradient step learns of a target.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f.
    student : str, Expr or Activation
        σ, continuous, with :math:`\mathbb{E}\,\sigma'^2 < \infty`.
    noise_variance : Expr, Fraction, int or str
        Δ ≥ 0 of the labels, exact, or a symbol declared nonnegative.
    biases : bool
        Neurons :math:`\sigma(\langle w, x\rangle + b)` with random biases b that have a density.
        Coefficients are then functions of b, and vanish for all b only if σ is a polynomial of
        lower degree.

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
    f = read_target(target)
    sigma = activation(student, argument="student")
    if not isinstance(biases, bool):
        raise ParameterError(f"biases must be True or False, got {biases!r}")
    require_square_integrable(sigma.derivative, variable, argument="the derivative of student")
    mask = activation_mask(sigma, biases)
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
    return all(
        is_exactly_zero(c, f"the coefficient of He_{alpha} in target {f.name!r}")
        for alpha, c in f.he_coefficients(k).items()
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


def student_text(step: GiantStep) -> str:
    """Return the student without its bias as text that is read back."""
    return expression_text(step.student.expr.xreplace({BIAS: sp.S.Zero}))
