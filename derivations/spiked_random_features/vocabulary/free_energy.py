r"""The free energy of several kinds of rows; the one place where it is written.

Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, appendices C.8 and D. Rows
come in letters a = 1..K: a fraction π_a of them is
:math:`w_j = \sqrt{c_a}\,u_j + \sum_l r_{a,l} v_l`, with bias b_a. The paper leaves traces over
finite matrices; the closed form for independent rows is derived here.

With :math:`\mu_1^a` for rows of unit length (:math:`\sqrt{c_a}` is part of it), given κ,

.. math::
    V = \mu_1^\top V_1\mu_1 + \sum_a(\mu_2^a)^2V_2^a,\qquad
    C = m\cdot\mu_0 + \sum_l\kappa_l\,\vartheta_l\cdot\mu_1,\qquad P_u = \psi_u\cdot\mu_1,

and the free energy in V_1 (K × K), V_2, m, ϑ, ψ, q_1, q_2 is

.. math::
    f = \tfrac{\alpha}{2\beta}\Big\langle\frac{\mathrm{err}}{1 + V}\Big\rangle
        - \tfrac12\big(q\cdot\partial_V\big)S
        + \sum_a\frac{m_a^2/p + \sum_l\vartheta_{l,a}^2/\beta}{2V_2^a}
        + \tfrac{1}{2\beta}\sum_u\psi_u^\top V_1^{-1}\psi_u .

S is the Legendre transform of the logarithm of the determinant
:math:`\Gamma(\hat V_1, \Lambda)` of :math:`\Lambda + \sum_i E_iE_i^\top`,

.. math::
    \Gamma = \sum_a\pi_a\log(\Lambda_a + \delta_a)
        + \tfrac1\beta\log\det(1 + \hat V_1N) - \sum_a\pi_aM_a\delta_a,
        \qquad N = \beta\,\mathrm{diag}(\pi_aM_a),

stationary in M and δ. Its conditions :math:`V_2^a = \pi_aM_a` and
:math:`V_1 = \beta^{-1}N(1 + \hat V_1N)^{-1}` can be solved for the conjugates,
:math:`\beta\hat V_1 = V_1^{-1} - \mathrm{diag}(1/V_2)`, so that nothing is left to iterate:

.. math::
    S = \tfrac1\beta\log\det V_1 + \sum_a\Big[(\pi_a - \tfrac1\beta)\log V_2^a
        - \frac{V_1^{aa}}{\beta V_2^a} - \lambda V_2^a\Big].

For orthonormal bulk rows :math:`\Omega_{ab} = \delta_{ab} - (Bv)_a(Bv)_b^\top` holds as it stands:
V_1 = diag(V_2), :math:`q_1 = \mathrm{diag}(q_2) - \vartheta\vartheta^\top`, and
:math:`S = \sum_a(\pi_a\log V_2^a - \lambda V_2^a)`.

What is left to solve is that :math:`F(V) = \tfrac\alpha\beta\langle\log(1 + V)\rangle - S` is
stationary; q then solves its Hessian once more. **F has one stationary point, its minimum, for
λ > 0.** Any two points are joined by a curve :math:`V_1 = Le^{\tau S}L^\top`,
:math:`V_2^a = v_ae^{\tau s_a}` with S symmetric. With eigenvalues :math:`\lambda_i` of S, its
eigenvectors in the columns of U and A = LU,

- :math:`\mu_1^\top V_1\mu_1 = \sum_i(A^\top\mu_1)_i^2e^{\tau\lambda_i}`, so that
  :math:`\log(1 + V)` is the logarithm of a sum of exponentials: convex, like its average;
- log det :math:`V_1` and :math:`\log V_2^a` are linear;
- :math:`V_1^{aa}/V_2^a = \sum_iA_{ai}^2e^{\tau(\lambda_i - s_a)}/v_a` and :math:`V_2^a` are sums of
  exponentials, convex. If an s_a is not zero, :math:`\lambda V_2^a` is strictly convex; if all are
  and a λ_i is not, the sum over a of :math:`V_1^{aa}/V_2^a` is, since no column of A vanishes.

So F is strictly convex along every such curve: it has at most one stationary point. As
:math:`\tau \to \infty`, F grows exponentially if an s_a > 0 or a λ_i > s_a with
:math:`A_{ai} \neq 0`. Otherwise its slope tends to
:math:`\beta^{-1}(\sum_as_a - \sum_i\lambda_i) - \sum_a\pi_as_a`. A is regular, so that a
permutation σ has :math:`A_{a\sigma(a)} \neq 0` for all a; hence
:math:`\lambda_{\sigma(a)} \le s_a \le 0`, and the slope is positive unless all s and λ vanish. So
F grows along every curve from a point, at a rate that is bounded below on the compact set of
directions, and has a minimum. Orthonormal rows: the same without V_1, with slope
:math:`-\sum_a\pi_as_a`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from ....symbolic.equations import FreeEnergy
from ....symbolic.gaussian import GaussianExpectation

alpha, beta, ridge = sp.symbols("alpha beta ridge", positive=True)
noise = sp.Symbol("noise_variance", nonnegative=True)
inverse_width = sp.Symbol("inverse_width", nonnegative=True)
fraction = sp.Symbol("fraction", positive=True)
kappa = sp.Symbol("kappa", real=True)

# One letter: V_1^aa, V_2^a and squares of its overlaps, summed over spikes and orthogonal parts.
X = sp.Symbol("X", positive=True)
V2 = sp.Symbol("V2", positive=True)
m_squared, theta_squared, psi_squared = sp.symbols(
    "m_squared theta_squared psi_squared", nonnegative=True
)
# One value of κ: the conditional variance, the prediction along the mean, sum_u T_1^u P_u,
# sum_l (theta_l . mu_1)^2, and the variance from q.
V = sp.Symbol("V", positive=True)
C, W = sp.symbols("C W", real=True)
D_squared = sp.Symbol("D_squared", nonnegative=True)
Q = sp.Symbol("Q", real=True)
T0, T2 = sp.symbols("T0 T2", real=True)


def conditional_error(bulk: str) -> sp.Expr:
    """Return the mean squared error on noisy labels, given κ."""
    hole = D_squared if bulk == "orthonormal" else 0
    return T2 - 2 * T0 * C - 2 * W + C**2 - hole + Q


def node_energy(bulk: str) -> sp.Expr:
    """Return the integrand of the data term of f."""
    return alpha / (2 * beta) * conditional_error(bulk) / (1 + V)


def node_potential() -> sp.Expr:
    """Return the integrand of the data term of F."""
    return alpha / beta * sp.log(1 + V)


def letter_potential(bulk: str) -> sp.Expr:
    """Return what one letter adds to F, without log det V_1."""
    if bulk == "orthonormal":
        return ridge * V2 - fraction * sp.log(V2)
    return (1 / beta - fraction) * sp.log(V2) + X / (beta * V2) + ridge * V2


def determinant_weight(bulk: str) -> sp.Expr:
    """Return the factor of −log det V_1 in F."""
    return sp.S.Zero if bulk == "orthonormal" else 1 / beta


def letter_cost(bulk: str) -> sp.Expr:
    """Return the ridge cost of the overlaps of one letter in f."""
    total = inverse_width * m_squared + theta_squared / beta
    if bulk == "orthonormal":
        total += psi_squared / beta
    return total / (2 * V2)


def psi_weight(bulk: str) -> sp.Expr:
    r"""Return the factor of :math:`\psi^\top V_1^{-1}\psi` in f."""
    return determinant_weight(bulk) / 2


@dataclass(frozen=True)
class ExplicitFreeEnergy:
    """The free energy of K letters with a spike of rank one, every entry a symbol of its own.

    Attributes
    ----------
    free_energy : FreeEnergy
        In all order parameters; the functions mu_0^a, mu_1^a, mu_2^a squared, T_0, T_1 and T_2 of κ
        are left as names.
    potential : Expr
        F(V).
    test_error, training_error : Expr
        The first without the noise of the labels.
    """

    free_energy: FreeEnergy
    potential: sp.Expr
    test_error: sp.Expr
    training_error: sp.Expr


def explicit_free_energy(letters: int, bulk: str = "iid") -> ExplicitFreeEnergy:
    """Assemble the terms of this module for a number of letters.

    Parameters
    ----------
    letters : int
        K; the determinant of V_1 is written out, so this is for small K.
    bulk : {"iid", "orthonormal"}
    """
    names = [str(a + 1) for a in range(letters)]

    def vector(name: str, **assumptions: bool) -> list[sp.Symbol]:
        return [sp.Symbol(f"{name}_{a}", **assumptions) for a in names]

    def functions(name: str) -> sp.Matrix:
        return sp.Matrix([sp.Function(f"{name}_{a}", real=True)(kappa) for a in names])

    fractions = vector("pi", positive=True)
    v2, q2 = vector("V2", positive=True), vector("q2", real=True)
    m, theta, psi = (vector(name, real=True) for name in ("m", "theta", "psi"))
    v1 = _symmetric("V1", letters, positive=True) if bulk == "iid" else sp.diag(*v2)
    q1 = _symmetric("q1", letters) if bulk == "iid" else sp.diag(*q2)
    mu0, mu1, mu2 = functions("mu0"), functions("mu1"), functions("mu2_squared")
    t0, t1, t2 = (sp.Function(name, real=True)(kappa) for name in ("T0", "T1", "T2"))
    along = sum(t * u for t, u in zip(theta, mu1, strict=True))
    node = {
        V: (mu1.T * v1 * mu1)[0] + sum(x * y for x, y in zip(mu2, v2, strict=True)),
        C: sum(x * y for x, y in zip(m, mu0, strict=True)) + kappa * along,
        W: t1 * sum(x * y for x, y in zip(psi, mu1, strict=True)),
        D_squared: along**2,
        Q: (mu1.T * q1 * mu1)[0] + sum(x * y for x, y in zip(mu2, q2, strict=True)),
        T0: t0,
        T2: t2 + noise,
    }
    potential = GaussianExpectation(node_potential().xreplace(node), kappa)
    potential -= determinant_weight(bulk) * sp.log(v1.det())
    costs = psi_weight(bulk) * (sp.Matrix(psi).T * v1.inv() * sp.Matrix(psi))[0]
    for a in range(letters):
        letter = {
            X: v1[a, a], V2: v2[a], fraction: fractions[a],
            m_squared: m[a] ** 2, theta_squared: theta[a] ** 2, psi_squared: psi[a] ** 2,
        }  # fmt: skip
        potential += letter_potential(bulk).xreplace(letter)
        costs += letter_cost(bulk).xreplace(letter)
    pairs = list(zip(v2, q2, strict=True))
    if bulk == "iid":
        pairs += [(v1[i, j], q1[i, j]) for i in range(letters) for j in range(i, letters)]
    spectral = potential.xreplace({alpha: sp.S.Zero})
    data = GaussianExpectation(node_energy(bulk).xreplace(node), kappa)
    expression = data + sum(q * spectral.diff(v) for v, q in pairs) / 2 + costs
    free_energy = FreeEnergy(
        expression=expression,
        order_parameters=(*(v for v, _ in pairs), *m, *theta, *psi, *(q for _, q in pairs)),
        conjugates=(),
        parameters=(alpha, beta, ridge, noise, inverse_width, *fractions),
        source="Cui et al., arXiv 2402.04980, C.8, in the closed form derived here",
    )
    error = conditional_error(bulk).xreplace(node)
    return ExplicitFreeEnergy(
        free_energy,
        potential,
        test_error=GaussianExpectation(error - noise, kappa),
        training_error=GaussianExpectation(error / (1 + node[V]) ** 2, kappa),
    )


def log_determinant(
    v1_hat: sp.Matrix,
    levels: Sequence[sp.Expr],
    fractions: Sequence[sp.Expr],
    resolvents: Sequence[sp.Expr],
    shifts: Sequence[sp.Expr],
) -> sp.Expr:
    r"""Return :math:`\Gamma(\hat V_1, \Lambda; M, \delta)`, from which S follows.

    Parameters
    ----------
    v1_hat : Matrix (K, K)
    levels, fractions, resolvents, shifts : sequence of Expr
        Λ_a, π_a, M_a and δ_a.
    """
    letters = range(len(levels))
    n = beta * sp.diag(*(fractions[a] * resolvents[a] for a in letters))
    diagonal = sum(
        fractions[a] * (sp.log(levels[a] + shifts[a]) - resolvents[a] * shifts[a]) for a in letters
    )
    return diagonal + sp.log((sp.eye(len(levels)) + v1_hat * n).det()) / beta


def legendre_transform(
    v1: sp.Matrix, v2: Sequence[sp.Expr], fractions: Sequence[sp.Expr]
) -> sp.Expr:
    """Return S(V_1, V_2) of independent rows, assembled from the terms of this module."""
    total = determinant_weight("iid") * sp.log(v1.det())
    for a, v in enumerate(v2):
        total -= letter_potential("iid").xreplace({X: v1[a, a], V2: v, fraction: fractions[a]})
    return total


def _symmetric(name: str, size: int, *, positive: bool = False) -> sp.Matrix:
    """Return a matrix of symbols; a positive one has a positive diagonal."""

    def entry(i: int, j: int) -> sp.Symbol:
        known = {"positive": True} if positive and i == j else {"real": True}
        return sp.Symbol(f"{name}_{min(i, j) + 1}{max(i, j) + 1}", **known)

    return sp.Matrix(size, size, entry)
