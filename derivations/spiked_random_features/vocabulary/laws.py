r"""Letters of a continuous law: a Gauss rule for it, whose nodes are the letters.

With n letters the rule integrates polynomials of degree 2n - 1 in the letter exactly, and what is
averaged over letters, functions such as :math:`\mu_0^a(\kappa)^2`, is smooth in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import real_number, whole_number
from ....numeric.cache import FileCache
from ....runtime.quadrature import legendre_panels

Array = NDArray[np.float64]

_MOST_LETTERS = 40
_PANELS = 400
# Of an unbounded support, where a quantile of this size ends it.
_TAIL = 1e-13
_MASS_TOLERANCE = 1e-6
# Letters this rare change nothing that their neighbours do not.
_LEAST_FRACTION = 1e-10


@dataclass(frozen=True)
class LetterLaw:
    """A law of letters as points with weights, fine enough to stand for it.

    Attributes
    ----------
    points, weights : array (N,)
    discrete : bool
        The points are all values that there are.
    """

    points: Array
    weights: Array
    discrete: bool

    def rule(self, letters: int) -> tuple[Array, Array]:
        """Return letters and fractions: the Gauss rule of the law, by the Lanczos algorithm."""
        if self.discrete:
            return self.points, self.weights
        centre = float(self.weights @ self.points)
        scale = math.sqrt(float(self.weights @ (self.points - centre) ** 2))
        x = (self.points - centre) / scale
        root = np.sqrt(self.weights)
        basis = [root / np.linalg.norm(root)]
        diagonal, beside = [], []
        for k in range(letters):
            image = x * basis[-1]
            diagonal.append(float(basis[-1] @ image))
            # Twice: rounding would let the basis lose its orthogonality.
            for _ in range(2):
                for vector in basis:
                    image = image - (vector @ image) * vector
            beside.append(float(np.linalg.norm(image)))
            if k + 1 < letters:
                basis.append(image / beside[-1])
        nodes, vectors = scipy.linalg.eigh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
        fractions = vectors[0] ** 2
        kept = fractions > _LEAST_FRACTION
        return centre + scale * nodes[kept], fractions[kept] / fractions[kept].sum()


def letter_law(law: Any, support: object, cache: FileCache) -> LetterLaw:
    """Return the law that a user gives.

    Parameters
    ----------
    law : frozen distribution of scipy.stats, or str
        A text is a density in the variable a on `support`.
    support : (low, high) or None
        Needed with a text.
    cache : FileCache
        Where the generated function of a text is kept.

    Raises
    ------
    ParameterError
        If it is no distribution, or its mass is not one.
    ExpressionError
        If a text is not an expression in a.
    """
    if isinstance(law, str):
        return _of_density(_density(law, cache), *_interval(support), f"density {law!r}")
    if not hasattr(law, "support") or not hasattr(law, "ppf"):
        raise ParameterError(
            "law must be a frozen distribution of scipy.stats, such as scipy.stats.uniform(-1, 2), "
            f"or the text of a density in a with support=(low, high); got {law!r}"
        )
    low, high = (float(x) for x in law.support())
    if hasattr(getattr(law, "dist", law), "pmf"):
        return _discrete(law, low, high)
    low = low if math.isfinite(low) else float(law.ppf(_TAIL))
    high = high if math.isfinite(high) else float(law.isf(_TAIL))
    return _of_density(law.pdf, low, high, "law")


def checked_letter_number(letters: object) -> int:
    """Return how many letters stand for a continuous law.

    Raises
    ------
    ParameterError
    """
    number = whole_number("nodes", letters, minimum=2)
    if number > _MOST_LETTERS:
        raise ParameterError(f"nodes must be at most {_MOST_LETTERS}, got {number}")
    return number


def _of_density(density: Callable[[Array], Any], low: float, high: float, name: str) -> LetterLaw:
    # Panels that shrink towards both ends: densities may be infinite there.
    edges = low + (high - low) * (1 - np.cos(np.linspace(0, math.pi, _PANELS + 1))) / 2
    x, w = (part.ravel() for part in legendre_panels(edges))
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(density(x), dtype=float), x.shape)
    if not np.isfinite(values).all() or np.min(values) < 0:
        bad = float(x[np.argmin(np.where(np.isfinite(values), values, -np.inf))])
        raise ParameterError(f"{name} must be finite and not negative; it is not at a = {bad:.6g}")
    weights = w * values
    mass = float(weights.sum())
    if abs(mass - 1) > _MASS_TOLERANCE:
        raise ParameterError(
            f"{name} must integrate to 1 over its support, and integrates to {mass:.8g}"
        )
    kept = weights > 0
    return LetterLaw(x[kept], weights[kept] / mass, False)


def _discrete(law: Any, low: float, high: float) -> LetterLaw:
    if not (math.isfinite(low) and math.isfinite(high) and high - low < _MOST_LETTERS):
        raise ParameterError(
            f"a discrete law must have at most {_MOST_LETTERS} values, got support from {low:g} to "
            f"{high:g}; give letters= and fractions="
        )
    points = np.arange(low, high + 1)
    weights = np.asarray(law.pmf(points), dtype=float)
    return LetterLaw(points[weights > 0], weights[weights > 0], True)


def _density(text: str, cache: FileCache) -> Callable[[Array], Any]:
    import sympy as sp

    from ....symbolic.parser import parse_expression
    from ....symbolic.printing.compiled import compiled

    a = sp.Symbol("a", real=True)
    expr = parse_expression(text, [a], argument="law")
    return compiled(expr, (a,))


def _interval(support: object) -> tuple[float, float]:
    if not isinstance(support, tuple | list) or len(support) != 2:
        raise ParameterError(
            f"support must be (low, high), the interval of a density given as text, got {support!r}"
        )
    low, high = (real_number("support", x) for x in support)
    if not -math.inf < low < high < math.inf:
        raise ParameterError(f"support must be finite with low < high, got ({low}, {high})")
    return low, high
