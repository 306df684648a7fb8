r"""Stability of a replica-symmetric solution: the condition of de Almeida and Thouless.

A replica-symmetric free energy averages the logarithm of the partition function of a single site in
a Gaussian field, :math:`\mathbb{E}_z \log Z(\omega)` with :math:`\omega = b + \sqrt v\,z`. Sites
determine overlaps, and overlaps the variances of fields:

.. math:: q_s = n_s\,\mathbb{E}\big[(\partial_\omega \log Z_s)^2\big], \qquad v_s = v_s(q) .

In the direction of replicas that differ from each other, the replicon, a perturbation of the
overlaps goes once round this circle as

.. math:: \delta q_s = \gamma_s \sum_t \frac{\partial v_s}{\partial q_t}\,\delta q_t , \qquad
          \gamma_s = n_s\,\mathbb{E}\big[(\partial_\omega^2 \log Z_s)^2\big] ,

because the derivative of the overlap matrix by its own elements is, in this direction,

.. math:: \langle x_a^2 x_b^2\rangle - 2\langle x_a^2 x_b x_c\rangle
          + \langle x_a x_b x_c x_d\rangle
          = \mathbb{E}\big(\langle x^2\rangle - \langle x\rangle^2\big)^2 .

Where overlaps form one circle, the eigenvalue of the Hessian is, up to a positive factor, one minus
the product of these gains, and replica symmetry is stable if and only if it is positive:
:math:`1 - \beta^2 \mathbb{E}\operatorname{sech}^4` for the Sherrington–Kirkpatrick model,
:math:`1 - \alpha \gamma_1\gamma_2` for perceptrons.

Sources: de Almeida, Thouless, J. Phys. A 11, 983 (1978); Gardner, J. Phys. A 21, 257 (1988), for
networks; the form by single sites as in Engel, Van den Broeck, *Statistical mechanics of learning*
(2001), appendix 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sympy as sp

from ...errors import ParameterError, StructureError, UnsupportedExpressionError
from ..expressions.arguments import as_expression
from ..gaussian.expectation import GaussianExpectation, ranges_over_the_line
from ..gaussian.integration_by_parts import canonical, collected

_VARIABLE = sp.Symbol("z", real=True)


@dataclass(frozen=True)
class SingleSite:
    r"""A single site in a Gaussian field, of which a replica-symmetric free energy is made.

    Parameters
    ----------
    log_partition : Expr
        Logarithm of the partition function :math:`\log Z(\omega)` in `field`, twice differentiable;
        it may hold variables and parameters of the free energy.
    field : Symbol
        The field ω, declared real, which couples linearly to the degree of freedom.
    variance : Expr
        Variance v of the field, a function of overlaps.
    overlap : Symbol
        The variable q of the free energy that the site determines,
        :math:`q = n\,\mathbb{E}[w\,(\partial_\omega\log Z)^2]` at the saddle point. For the
        constraints of a perceptron this is the conjugate of the overlap of the weights.
    mean : Expr
        Mean b of the field.
    count : Expr
        Number n of such sites for each of those that overlaps are divided by: α for constraints.
    weight : Expr
        Density w of the disorder with respect to the normal law of the field, in `field`, as where
        a teacher makes the labels.
    variable : Symbol
        The Gaussian variable z of the average.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind.

    Examples
    --------
    >>> q, beta = sp.symbols("q beta", positive=True)
    >>> omega, h = sp.symbols("omega h", real=True)
    >>> spin = SingleSite(sp.log(2 * sp.cosh(omega)), omega, beta**2 * q, q, mean=beta * h)
    >>> spin.average()
    E_z[log(2*cosh(beta*h + beta*sqrt(q)*z))]
    >>> replicon((spin,))
    -beta**2*E_z[(1 - tanh(beta*h + beta*sqrt(q)*z)**2)**2] + 1
    """

    log_partition: sp.Expr
    field: sp.Symbol
    variance: sp.Expr
    overlap: sp.Symbol
    mean: sp.Expr = sp.S.Zero
    count: sp.Expr = sp.S.One
    weight: sp.Expr = sp.S.One
    variable: sp.Symbol = _VARIABLE

    def __post_init__(self) -> None:
        for name in ("log_partition", "variance", "mean", "count", "weight"):
            object.__setattr__(self, name, as_expression(getattr(self, name), name))
        for name in ("field", "variable"):
            symbol = getattr(self, name)
            if not isinstance(symbol, sp.Symbol) or not ranges_over_the_line(symbol):
                raise ParameterError(
                    f"{name} must be a SymPy Symbol declared real and nothing else, got {symbol!r}"
                )
        if not isinstance(self.overlap, sp.Symbol):
            raise ParameterError(f"overlap must be a SymPy Symbol, got {self.overlap!r}")
        if self.field not in self.log_partition.free_symbols:
            raise ParameterError(
                f"log_partition must be a function of the field {self.field}, got "
                f"{self.log_partition}"
            )
        for name in ("variance", "mean", "count"):
            held = getattr(self, name).free_symbols & {self.field, self.variable}
            if held:
                raise ParameterError(
                    f"{name} may hold variables and parameters of the free energy only, not "
                    f"{min(map(str, held))}"
                )

    def average(self) -> sp.Expr:
        r"""Return :math:`n\,\mathbb{E}[w \log Z]`, the part of the site in the free energy."""
        return self._averaged(self.log_partition)

    def overlap_value(self) -> sp.Expr:
        r"""Return :math:`n\,\mathbb{E}[w\,(\partial_\omega \log Z)^2]`, the overlap."""
        return self._averaged(self._derivative(1) ** 2)

    def susceptibility(self) -> sp.Expr:
        r"""Return :math:`\gamma = n\,\mathbb{E}[w\,(\partial^2_\omega \log Z)^2]`."""
        return self._averaged(self._derivative(2) ** 2)

    def _derivative(self, order: int) -> sp.Expr:
        result = self.log_partition
        for _ in range(order):
            result = collected(result.diff(self.field), self.field)
        return result

    def _averaged(self, function: sp.Expr) -> sp.Expr:
        field = self.mean + sp.sqrt(self.variance) * self.variable
        # In one spelling, a weight cancels what the function is divided by.
        integrand = canonical(self.weight * function, self.field).xreplace({self.field: field})
        return self.count * GaussianExpectation(integrand, self.variable)


def replicon(sites: Sequence[SingleSite]) -> sp.Expr:
    r"""Return the replicon eigenvalue, positive where replica symmetry is stable.

    Parameters
    ----------
    sites : sequence of SingleSite
        All sites of a free energy, each with an overlap of its own.

    Returns
    -------
    Expr
        :math:`1 - \prod_s \gamma_s\,\partial v_s/\partial q_{s-1}`, at the values of the variables
        at the saddle point; its zero is the line of de Almeida and Thouless.

    Raises
    ------
    StructureError
        If two sites determine the same overlap, or the variances depend on no overlap.
    UnsupportedExpressionError
        If the overlaps form more than one circle: then the condition is on the largest eigenvalue
        of a matrix, which has no expression.

    Examples
    --------
    A perceptron with binary weights and margin κ, by Gardner's free energy:

    >>> q, q_hat, alpha = sp.symbols("q qhat alpha", positive=True)
    >>> omega, kappa = sp.symbols("omega kappa", real=True)
    >>> weight = SingleSite(sp.log(2 * sp.cosh(omega)), omega, q_hat, q)
    >>> volume = sp.log(sp.erfc((kappa - omega) / sp.sqrt(2 * (1 - q))) / 2)
    >>> constraint = SingleSite(volume, omega, q, q_hat, count=alpha)
    >>> replicon((weight, constraint)).has(alpha)
    True
    """
    sites = list(sites)
    overlaps = [site.overlap for site in sites]
    repeated = [x for k, x in enumerate(overlaps) if x in overlaps[:k]]
    if repeated:
        raise StructureError(f"two single sites determine the overlap {repeated[0]}")
    couplings = [[site.variance.diff(q) for q in overlaps] for site in sites]
    circles = list(_circles(couplings))
    if not circles:
        names = ", ".join(map(str, overlaps))
        raise StructureError(
            f"no circle leads from an overlap through the variance of a field back to it (overlaps "
            f"{names}): declare the single site of every overlap that a variance depends on"
        )
    if len(circles) > 1:
        raise UnsupportedExpressionError(
            f"the overlaps {', '.join(map(str, overlaps))} form {len(circles)} circles; the "
            "replicon has an expression for one, as in models with one kind of site and one of "
            "constraints"
        )
    (circle,) = circles
    gains = [
        sites[s].susceptibility() * couplings[s][t]
        for s, t in zip(circle, (*circle[1:], circle[0]), strict=True)
    ]
    return 1 - sp.Mul(*gains)


def _circles(couplings: Sequence[Sequence[sp.Expr]]) -> Iterator[tuple[int, ...]]:
    """Iterate over the simple circles of the sites, each from its first site on."""

    def extended(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for t, coupling in enumerate(couplings[path[-1]]):
            if coupling != 0 and t == path[0]:
                yield path
            elif coupling != 0 and t > path[0] and t not in path:
                yield from extended((*path, t))

    for start in range(len(couplings)):
        yield from extended((start,))
