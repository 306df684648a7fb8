r"""Random polynomial targets of bounded size, no two of them the same to giant steps.

A target is a short sum :math:`\sum c_\alpha \mathrm{He}_\alpha` in an orthonormal frame, with small
rational coefficients and no constant. Two targets count as one if a permutation or reflection of
the coordinates, or a factor, takes one to the other: nothing that giant steps learn tells them
apart. Rotations by other angles are not looked for; sums of several linear terms already point
into directions that are no axis.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ...symbolic.targets.target import Target, target as read_target

LARGEST_DIMENSION = 5
"""All permutations and reflections are tried, 3840 of them in five coordinates."""

HIGHEST_DEGREE = 8

COEFFICIENTS = tuple(Fraction(c) for c in ("1", "-1", "2", "-2", "1/2", "-1/2", "3/2"))

_LINEAR_SHARE = 0.75
r"""Share of targets that begin with a linear term; without one no step at n = Θ(d) learns."""

_MOST_REPETITIONS = 2000
"""So many repetitions in a row mean that the family is used up."""

Terms: TypeAlias = dict[tuple[int, ...], Fraction]


@dataclass(frozen=True)
class TargetFamily:
    r"""Random sparse targets of bounded size, in an order that the seed fixes.

    Parameters
    ----------
    dimension : int
        Largest number r of coordinates, 1 to `LARGEST_DIMENSION`.
    degree : int
        Highest total degree, 1 to `HIGHEST_DEGREE`.
    terms : int
        Largest number of Hermite terms; at least 1.
    seed : int
        Fixes the targets and their order: `draw(10)` begins with `draw(5)`.

    Notes
    -----
    A term is :math:`c/\lfloor\sqrt{\alpha!}\rfloor \cdot \mathrm{He}_\alpha` with c from
    `COEFFICIENTS`, so that no term drowns the others: its norm is :math:`|c|` to within a factor
    2. Every coordinate up to r occurs, three quarters of the targets have a linear term, and
    targets of one coordinate occur only where no more are allowed.

    Examples
    --------
    >>> for f in TargetFamily(dimension=2, degree=3, terms=3, seed=1).draw(3):
    ...     print(f)
    -2*x2 + x1*x2
    x1 - 1/2*x2 + 1/2*He(2, x1)
    3/4*He(3, x1) - He(3, x2)
    """

    dimension: int = 4
    degree: int = 4
    terms: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("dimension", 1, LARGEST_DIMENSION),
            ("degree", 1, HIGHEST_DEGREE),
            ("terms", 1, math.inf),
            ("seed", 0, math.inf),
        ):
            value = whole_number(name, getattr(self, name), least)
            if value > most:
                raise ParameterError(f"{name} must be at most {most}, got {value}")
            object.__setattr__(self, name, value)

    def draw(self, count: int) -> tuple[Target, ...]:
        """Return the first targets of the family.

        Raises
        ------
        ParameterError
            If the family does not hold that many.
        """
        wanted = whole_number("count", count, 0)
        result = tuple(itertools.islice(self, wanted))
        if len(result) < wanted:
            raise ParameterError(
                f"{self} holds only {len(result)} different targets, not {wanted}\n"
                "  allow more dimensions, terms or a higher degree"
            )
        return result

    def __iter__(self) -> Iterator[Target]:
        """Go through the targets; ends when the family seems to be used up."""
        generator = random.Random(self.seed)
        seen: set[tuple[object, ...]] = set()
        repetitions = 0
        while repetitions < _MOST_REPETITIONS:
            drawn = self._terms(generator)
            form = canonical_form(drawn)
            # Of one coordinate there is nothing to learn step by step.
            if form in seen or len(next(iter(drawn))) == 1 < self.dimension:
                repetitions += 1
                continue
            repetitions = 0
            seen.add(form)
            yield read_target(target_text(drawn))

    def _terms(self, generator: random.Random) -> Terms:
        # One coordinate or one term is tried only where nothing else is allowed.
        r = generator.randrange(min(2, self.dimension), self.dimension + 1)
        count = generator.randrange(min(2, self.terms), self.terms + 1)
        indices: list[tuple[int, ...]] = []
        if generator.random() < _LINEAR_SHARE:
            indices.append(self._multi_index(generator, r, 1))
        while len(indices) < count:
            indices.append(self._multi_index(generator, r, generator.randrange(1, self.degree + 1)))
        unused = [i for i in range(r) if not any(alpha[i] for alpha in indices)]
        selected = [i for i in range(r) if i not in unused]
        result: Terms = {}
        for alpha in indices:
            size = math.isqrt(math.prod(map(math.factorial, alpha)))
            short = tuple(alpha[i] for i in selected)
            result.setdefault(short, generator.choice(COEFFICIENTS) / size)
        return result

    @staticmethod
    def _multi_index(generator: random.Random, r: int, degree: int) -> tuple[int, ...]:
        alpha = [0] * r
        support = generator.sample(range(r), generator.randrange(1, min(r, degree) + 1))
        for i in support:
            alpha[i] += 1
        for _ in range(degree - len(support)):
            alpha[generator.choice(support)] += 1
        return tuple(alpha)


def canonical_form(terms: Terms) -> tuple[object, ...]:
    """Return what all permutations, reflections and multiples of a sum of terms share.

    Examples
    --------
    >>> canonical_form({(1, 0): 2, (1, 1): 2}) == canonical_form({(0, 1): -1, (1, 1): 1})
    True
    >>> canonical_form({(1, 0): 1, (1, 1): 2}) == canonical_form({(1, 0): 1, (1, 1): 1})
    False
    """
    r = len(next(iter(terms)))
    forms = []
    for order in itertools.permutations(range(r)):
        permuted = sorted(
            (tuple(alpha[i] for i in order), Fraction(c)) for alpha, c in terms.items()
        )
        for signs in itertools.product((1, -1), repeat=r):
            values = [
                c * math.prod(s**n for s, n in zip(signs, alpha, strict=True))
                for alpha, c in permuted
            ]
            forms.append(
                tuple((a, v / values[0]) for (a, _), v in zip(permuted, values, strict=True))
            )
    return min(forms)


def target_text(terms: Terms) -> str:
    """Return a sum of terms as text that reads back, by degree and then by the first coordinates.

    Examples
    --------
    >>> target_text({(2, 1): Fraction(-1, 2), (1, 0): Fraction(1)})
    'x1 - 1/2*He(2, x1)*x2'
    """
    parts = []
    for alpha in sorted(terms, key=lambda a: (sum(a), [-n for n in a])):
        names = [f"x{i}" if n == 1 else f"He({n}, x{i})" for i, n in enumerate(alpha, start=1) if n]
        c = terms[alpha]
        size = [] if abs(c) == 1 and names else [str(abs(c))]
        parts.append(("- " if c < 0 else "+ ") + "*".join(size + names))
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else "-" + text.removeprefix("- ")
