"""The search for branches: first values, continuation, special points, phases that exchange.

What is found depends on counted work only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sympy as sp
from numpy.typing import NDArray

from ...errors import ConvergenceError, EmissionError, ParameterError, StructureError
from ...numeric.arguments import positive_number, whole_number
from ...numeric.branches import (
    CLOSED,
    CROSSING,
    EDGE,
    FOLD,
    LONG,
    LOST,
    MARGIN,
    MOST_POINTS,
    SAME,
    Curve,
    Equations,
    all_curves,
    between,
    corrected,
    isolated,
    leaving,
    null_vectors,
    solutions_at,
    usual_size,
    zero_between,
)
from ...numeric.first_values import spread
from ...symbolic.systems.branch_conditions import Condition
from .arguments import box_of, known_names
from .branches import (
    COLUMNS,
    FIRST_ORDER,
    INSTABILITY,
    SECOND_ORDER,
    SPINODAL,
    Branch,
    BranchDiagram,
    End,
    Meeting,
    SpecialPoint,
    Stated,
    zero_of,
)
from .families import VALUE, Extremum, Family, OpenKernel, numbers_of

if TYPE_CHECKING:
    from .kernel import Kernel

Array = NDArray[np.float64]

# Values of the parameter at which solutions are searched.
SEARCHED = 7
# First values at each of them for each unknown of Newton's method.
_STARTS = 32
# Where a branch was found by one start alone, so many times as many are tried.
_MOST_TRIED = 4
# Relative distance to a boundary at which a branch that ends has run into it, and the size, in
# typical ones, of what has run off.
_AT_BOUNDARY, _FAR = 1e-3, 1e4
# Relative accuracy of a crossing that is located by the sign of a determinant alone: Newton's
# method across the curve is singular there.
_ROUGH = 1e-4
# Points at which equations are tried where unknowns are at an end.
_SAMPLED = 16
# So many faces of the box are tried; of more, those at zero.
_MOST_FACES = 1024
# Scaled distance from a crossing on a face at which a branch has run into it.
_JOINED = 1e-4


# Unknowns, by their place, at an end of their interval each.
Face = dict[int, float]


class Solutions:
    """Branches of a family with its equations: what is between their points.

    Attributes
    ----------
    family : Family
    equations : Equations
    branches : sequence of Branch
    """

    def __init__(self, family: Family, sizes: Array | None, branches: Sequence[Branch]) -> None:
        self.family = family
        self.equations: Equations = family.equations(sizes)
        self.branches = branches

    def solutions(self, value: float) -> list[tuple[Array, dict[str, float]]]:
        """Return all solutions at a value, with unknowns at an end, by the first unknown."""
        found = []
        for ends in dict.fromkeys(tuple(branch.held.items()) for branch in self.branches):
            held = dict(ends)
            near = [np.append(x, value) for x in self._near_value(value, held)]
            if near:
                # So near, no coarse rule has to come first, and all is known to be resolved: at a
                # crossing, where all derivatives may vanish, that is not seen.
                equations = replace(self.on_face(held), evaluate=self.family.linearised, rough=())
                there, _ = solutions_at(equations, np.array(near), most=30)
                found += [(y, held) for y in there]
        return sorted(found, key=lambda item: item[0].tolist())

    def on_face(self, held: Iterable[str]) -> Equations:
        return replace(self.equations, held=tuple(map(self.family.names.index, held)))

    def _near_value(self, value: float, held: Mapping[str, float]) -> Iterator[Array]:
        """Iterate over unknowns near a value, for each step of a branch that contains it."""
        for branch in self.branches:
            if branch.held != held:
                continue
            p = branch.parameter
            x = np.stack([branch.unknowns[name] for name in self.family.names], axis=1)
            for k in range(len(p) - 1):
                if min(p[k], p[k + 1]) <= value <= max(p[k], p[k + 1]):
                    width = p[k + 1] - p[k]
                    share = (value - p[k]) / width if width else 0.0
                    yield x[k] + share * (x[k + 1] - x[k])
                    # From a fold or a pitchfork on, unknowns go with the root of the distance.
                    if k in branch.special:
                        yield x[k] + math.sqrt(share) * (x[k + 1] - x[k])
                    if k + 1 in branch.special:
                        yield x[k + 1] + math.sqrt(1 - share) * (x[k] - x[k + 1])


class Search(Solutions):
    """The branches of a family and where they meet.

    Parameters
    ----------
    family : Family
    starts, points, extremum, zeros
        As for :meth:`.kernel.Kernel.branches`.
    thorough : bool
        Where no start leads anywhere, try the solver of the kernel: it has safeguards, and takes
        long to find that there is no solution.
    """

    def __init__(
        self, family: Family, starts: int, points: int, extremum: Extremum, zeros: Sequence[str],
        *, thorough: bool = False,
    ) -> None:  # fmt: skip
        self.family = family
        self.thorough = thorough
        self.largest = 1 / points
        self.extremum = extremum
        self.zeros = tuple(zeros)
        seeds = self._seeds(starts)
        known = np.concatenate([solutions for solutions, _ in seeds.values()])
        sizes = np.max(np.abs(known[:, :-1]), axis=0) if len(known) else None
        super().__init__(family, sizes, ())
        curves: list[Curve] = []
        faces: list[Face] = []
        self.loose: list[Array] = []
        self.tried = SEARCHED * starts
        while True:
            for ends, (solutions, hits) in seeds.items():
                face = dict(ends)
                inner = replace(self.equations, held=tuple(face))
                new, loose = all_curves(inner, solutions, hits, largest=self.largest, known=curves)
                self.loose += list(loose)
                for curve in new:
                    _joined(curve, [*curves, *new], inner)
                curves += new
                faces += [face] * len(new)
            self.rarest = min((c.hits for c in curves if c.hits), default=0)
            # What one start alone has found is no rare kind: there may be others (Good and Turing).
            if self.rarest != 1 or self.tried >= _MOST_TRIED * SEARCHED * starts:
                break
            seeds = self._seeds(starts, self.tried // SEARCHED)
            self.tried += SEARCHED * starts
        self.special: list[SpecialPoint] = []
        # From the inside: a transition is one of the branch that leaves, on both of them.
        self.branches = [self._branch(c, face) for c, face in zip(curves, faces, strict=True)]
        self.left_out = self._leave_out()
        self.special += Exchanges(self).points()
        kinds = (SPINODAL, INSTABILITY, SECOND_ORDER, FIRST_ORDER)
        order = {kind: k for k, kind in enumerate(kinds)}
        self.special.sort(key=lambda p: (order.get(p.kind, len(order)), p.kind, p.value))

    def has_values(self) -> bool:
        """Tell whether the equations are finite anywhere in the box, seen at a sample."""
        return bool(np.isfinite(self._sampled()).all(axis=1).any())

    def without_stationary_point(self) -> list[str]:
        """Return unknowns by which the derivative of a free energy has one sign at a sample."""
        if self.family.open.system.free_energy is None:
            return []
        signs = np.sign(self._sampled())
        same = np.all(signs == signs[0], axis=0) & (signs[0] != 0)
        return [name for name, found in zip(self.family.names, same, strict=True) if found]

    def _sampled(self) -> Array:
        """Return residuals at a sample of the box."""
        low, high = self.equations.lower, self.equations.upper
        points = spread(low.tolist(), high.tolist(), _SAMPLED)
        residuals, _ = self.equations.rough[-1](points)
        return residuals

    @property
    def sought(self) -> str:
        """How the branches were looked for, in words."""
        rare = (
            "one branch was reached by a single one, so others may be missing: give more starts="
            if self.rarest == 1
            else f"each branch, or one that it is joined to, was reached by {self.rarest} or more"
        )
        loose = f"; what is no curve is left out: {self.continuum}" if self.loose else ""
        return f"found from {self.tried} first values; {rare}{self.left_out}{loose}"

    @property
    def continuum(self) -> str:
        """Where solutions are not isolated, in words."""
        points = np.round(self.loose, 12) + 0.0
        over, (*x, value) = self.family.over, points[0].tolist()
        low, high = points[:, -1].min(), points[:, -1].max()
        where = f"{over} = {low:.6g}" if low == high else f"{over} from {low:.6g} to {high:.6g}"
        place = ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.family.names, x, strict=True))
        return (
            f"for {where} solutions are not isolated, as through {place} at {over} = {value:.6g}, "
            "where others are as near as one likes: by a continuous symmetry, state the equations "
            "in what it leaves unchanged or break it by a field"
        )

    def _leave_out(self) -> str:
        """Leave out branches outside of the domain of the free energy, and say in words which."""
        names, over = self.family.names, self.family.over
        tables = [
            np.stack([*(b.unknowns[n] for n in names), b.parameter], axis=1) for b in self.branches
        ]
        real = [
            bool(self._real(y, b.held).any()) for y, b in zip(tables, self.branches, strict=True)
        ]
        # Where there is no other, the whole is refused.
        if all(real) or not any(real):
            return ""
        count, y = real.count(False), tables[real.index(False)][0]
        place = ", ".join(f"{n} = {x:.6g}" for n, x in zip(names, y, strict=False))
        self.branches = list(itertools.compress(self.branches, real))
        self.special = [
            p
            for p in self.special
            if self._real(np.array([[*(p.unknowns[n] for n in names), p.value]]), p.stated.held)[0]
        ]
        return (
            f"; {count} more {'is' if count == 1 else 'are'} left out, where the free energy is no "
            f"real number, as at {place} for {over} = {y[-1]:.6g}"
        )

    def _real(self, points: Array, held: Mapping[str, float]) -> NDArray[np.bool_]:
        """Tell where the free energy is a real number, at ends of unknowns as a limit."""
        family = self.family
        if family.open.free_energy is None:
            return np.ones(len(points), dtype=bool)
        found: NDArray[np.bool_] = np.isfinite(family.described(points).values[VALUE])
        if held and not found.any():
            next_to = points.copy()
            for name, end in held.items():
                k = family.names.index(name)
                inwards = -1.0 if end == self.equations.upper[k] else 1.0
                next_to[:, k] += inwards * SAME * self.equations.scale[k]
            found = np.isfinite(family.described(next_to).values[VALUE])
        return found

    # ------------------------------------------------------------------ first values

    def _seeds(
        self, starts: int, before: int = 0
    ) -> dict[tuple[tuple[int, float], ...], tuple[Array, NDArray[np.int64]]]:
        """Return solutions at some values of the parameter, by the unknowns at an end there.

        With them, how many first values led to each; so many `before` have been tried already.
        Those with most unknowns at an end come first.
        """
        family = self.family
        low, high = family.box
        values = np.linspace(*family.within, SEARCHED)
        cloud = spread(low.tolist(), high.tolist(), before + starts)[before:]
        cloud = np.concatenate([np.hstack([cloud, np.full((starts, 1), v)]) for v in values])
        equations = family.equations()
        found = {}
        for face in (*_faces(equations, cloud), {}):
            on = _on_face(face, cloud)
            # Where nothing but the parameter is left, one point is as good as all.
            on = np.unique(on, axis=0)
            found[tuple(face.items())] = solutions_at(replace(equations, held=tuple(face)), on)
        if before or any(len(hits) for _, hits in found.values()) or not self.thorough:
            return found
        # First values of the kernel, whose safeguards may lead where Newton alone does not.
        kernel = family.kernel
        job = kernel.job(family.data, None, family.rtol, len(values), keep=True)
        batch = job(np.stack([list(family.point(v).values()) for v in values.tolist()]))
        own = np.stack([*(batch.values[n] for n in family.names), values], axis=1)
        found[()] = solutions_at(equations, own[batch.converged & np.isfinite(own).all(axis=1)])
        return found

    # ------------------------------------------------------------------ branches

    def _branch(self, curve: Curve, face: Face) -> Branch:
        family = self.family
        held = {family.names[k]: end for k, end in face.items()}
        marked: list[tuple[float, Array, bool]] = [
            (float(k), y, False) for k, y in enumerate(curve.points)
        ]
        ends = ((curve.start, curve.points[0]), (curve.end, curve.points[-1]))
        left = [y for how, y in ends if how == CROSSING]
        for place, kind, y in curve.marks:
            # Where a branch leaves another one it turns round, by a symmetry, as far as rounding
            # tells.
            if kind == FOLD and any(self._apart(y, z) <= _JOINED for z in left):
                continue
            if kind == FOLD:
                point = self._fold(y, held)
            elif face and self._leaves_face(y, face):
                point = self._boundary(y, curve, int(place), face)
            else:
                point = self._crossing(y, held)
            y = np.array([*(point.unknowns[n] for n in family.names), point.value])
            marked.append((place, y, True))
            known = (k for k, p in enumerate(self.special) if self._near(p, point))
            k = next(known, len(self.special))
            # Of the same crossing, the one at which most eigenvalues were seen to vanish.
            if k == len(self.special):
                self.special.append(point)
            elif len(point.stated.others) > len(self.special[k].stated.others):
                self.special[k] = point
        marked.sort(key=lambda item: item[0])
        points = np.array([y for _, y, _ in marked])
        special = tuple(k for k, (_, _, is_special) in enumerate(marked) if is_special)
        if curve.start == CROSSING:
            special = (0, *special)
        if curve.end == CROSSING:
            special = (*special, len(marked) - 1)
        batch = family.described(points)
        residuals, derivatives = family.linearised(points)
        unknowns = {n: points[:, k] for k, n in enumerate(family.names)}
        for x in family.open.system.unknowns:
            name = family.open.system.identifiers[x]
            if name not in unknowns:
                unknowns[name] = batch.values[name]
        middle = len(points) // 2
        at = family.point(float(points[middle, -1]))
        solution = {name: float(x[middle]) for name, x in unknowns.items()}
        family.kernel._require_fitting_sites(at, solution)
        eigenvalues = family.hessian_eigenvalues(batch)
        radius = family.map_radius(derivatives)
        stable = family.judged(eigenvalues, radius, self.extremum)
        branch = Branch(
            over=family.over,
            parameter=points[:, -1],
            unknowns=unknowns,
            outputs={name: batch.values[name] for name in family.open.system.outputs},
            residual=np.max(np.abs(residuals), axis=1),
            free_energy=batch.values.get(VALUE),
            hessian_eigenvalues=eigenvalues,
            map_radius=radius,
            stable=stable,
            special=special,
            ends=(
                self._end(curve.start, curve.points[0], curve.tangents[0], face),
                self._end(curve.end, curve.points[-1], curve.tangents[-1], face),
            ),
            held=held,
        )
        for output in self.zeros:
            self._add_zeros(output, curve, face)
        return branch

    def _apart(self, y: Array, other: Array) -> float:
        return float(np.max(np.abs(y - other) / self.equations.sizes(y)))

    def _near(self, p: SpecialPoint, other: SpecialPoint) -> bool:
        """Tell whether two points are the same, found along two branches."""
        crossings = (SECOND_ORDER, INSTABILITY)
        if p.kind != other.kind and not (p.kind in crossings and other.kind in crossings):
            return False
        if abs(p.value - other.value) > max(1e-6 * self.equations.scale[-1], p.error, other.error):
            return False
        names = self.family.names
        gaps = [abs(p.unknowns[n] - other.unknowns[n]) for n in names]
        y = np.array([*(p.unknowns[n] for n in names), p.value])
        return bool(np.all(np.array(gaps) <= 1e-4 * self.equations.sizes(y)[:-1]))

    def _end(self, how: str, y: Array, t: Array, face: Face) -> End:
        family, over = self.family, self.family.over
        value, x = float(y[-1]), dict(zip(family.names, y[:-1].tolist(), strict=True))
        if how == EDGE:
            return End(value, x, f"the edge {over} = {value:g}")
        if how == CLOSED:
            return End(value, x, "itself, as a closed curve")
        if how == CROSSING:
            return End(value, x, f"another branch at {over} = {value:.10g}")
        if how == LONG:
            return End(value, x, f"{over} = {value:.10g}, left after {MOST_POINTS} points")
        for edge in family.within:
            if abs(value - edge) <= SAME * float(self.equations.scale[-1]):
                reason = f"the edge {over} = {edge:g}, where the equations are singular"
                return End(value, x, reason)
        reason = f"{over} = {value:.10g}, beyond which the equations have no solution or no value"
        # The last point is as near to where points are refused as steps are small.
        if self.family.blur(y[None], self.equations.sizes(y)[None])[2][0] > SAME / 2:
            reason = (
                f"{over} = {value:.10g}, beyond which quadrature does not resolve the equations"
            )
        nearest = _AT_BOUNDARY
        for k, (name, number) in enumerate(x.items()):
            if k in face:
                continue
            size = self.equations.scale[k]
            for bound in (self.equations.lower[k], self.equations.upper[k]):
                gap = abs(number - bound) / size
                if math.isfinite(bound) and gap <= nearest:
                    nearest = gap
                    # By a straight line: what decays never comes there.
                    decays = 0 < _AT_BOUNDARY * abs(t[k]) < gap * abs(t[-1])
                    reason = f"{over} = {value:.10g}, where {name} " + (
                        f"is {bound:g} to {MARGIN:g} of its size, and is followed no further"
                        if decays
                        else f"leaves its domain through {bound:g}"
                    )
            if abs(number) > _FAR * size:
                reason = f"{over} = {value:.10g}, where {name} runs off"
        return End(value, x, reason)

    # ------------------------------------------------------------------ special points

    def _null(self, matrix: Array) -> tuple[Array, int]:
        """Return the null vector of a matrix, its largest component one, and which this is."""
        vector = np.linalg.svd(matrix)[2][-1]
        k = int(np.argmax(np.abs(vector)))
        return vector / vector[k], k

    def _jacobian(self, y: Array) -> tuple[Array, Array]:
        _, jacobian = self.family.linearised(y[None])
        return jacobian[0][:, :-1], jacobian[0][:, -1]

    def _fold(self, y: Array, held: Mapping[str, float]) -> SpecialPoint:
        family = self.family
        jacobian, slope = self._jacobian(y)
        vector, k = self._null(jacobian)
        left, _ = self._null(jacobian.T)
        # The parameter of a fold moves by what the left null vector sees of an error.
        with np.errstate(divide="ignore", invalid="ignore"):
            error = family.residual_error(y) * float(np.abs(left).sum() / abs(left @ slope))
        start = {
            f"direction_{name}": float(v) for name, v in zip(family.names, vector, strict=True)
        }
        condition = self._condition("fold", held, family.names[k])
        return self.point(SPINODAL, y, error, condition, start)

    def _nulls(self, matrix: Array, y: Array) -> tuple[Array, list[int]]:
        """Return null vectors of derivatives at a point, one for each eigenvalue that vanishes.

        The large components at the places that are returned are one in one of them each, and
        zero in the others.
        """
        size = self._usual(y)
        found = null_vectors(matrix, size)
        # By rows or by columns, what belongs to these places follows from the rest.
        both = np.vstack([found, null_vectors(matrix.T, size)]) if len(found) > 1 else found
        ones = scipy.linalg.qr(both, mode="r", pivoting=True)[1][: len(found)]
        units = np.asarray(np.linalg.solve(found[:, ones], found), dtype=float)
        return units, ones.tolist()

    def _condition(self, kind: str, held: Mapping[str, float], *ones: str) -> Condition:
        """Return a condition with the components of its null vectors that are one."""
        found = Condition(self.family.open, kind, held=self.family.ends(held))
        first, *others = map(found.components.index, ones)
        return replace(found, component=first, others=tuple(others))

    def _leaves_face(self, y: Array, face: Face) -> bool:
        """Tell whether a crossing is with a branch off the face, not with one on it."""
        jacobian = self._jacobian(y)[0] * self.equations.sizes(y)[:-1]
        rest = [k for k in range(len(jacobian)) if k not in face]
        off, on = (np.linalg.svd(jacobian[np.ix_(s, s)])[1] for s in (list(face), rest))
        return not rest or bool(off[-1] <= on[-1])

    def _boundary(self, y: Array, curve: Curve, place: int, face: Face) -> SpecialPoint:
        """Return a crossing at which unknowns leave their ends."""
        family, rows = self.family, np.ix_(list(face), list(face))

        def block(at: Array) -> Array:
            found: Array = self._jacobian(at)[0][rows]
            return found

        ahead, behind = curve.points[place + 1], curve.points[place]
        slope = (block(ahead) - block(behind)) / (ahead[-1] - behind[-1])
        vectors, left = (null_vectors(a, self._usual(y)) for a in (block(y), block(y).T))
        with np.errstate(divide="ignore"):
            noise = family.residual_error(y) * float(np.abs(left).sum() * np.abs(vectors).sum())
            error = noise / float(np.linalg.norm(left @ slope @ vectors.T, -2))
        return self.point(self._kind(y), y, error, *self._boundary_condition(y, face))

    def _boundary_condition(self, y: Array, face: Face) -> tuple[Condition, dict[str, float]]:
        """Return the condition that a branch leaves ends of unknowns, with first values."""
        rows = np.ix_(list(face), list(face))
        (vector, *_), ones = self._nulls(self._jacobian(y)[0][rows], y)
        held = {self.family.names[j]: end for j, end in face.items()}
        start = {f"weight_{name}": float(v) for name, v in zip(held, vector, strict=True)}
        return self._condition("boundary", held, *(list(held)[k] for k in ones)), start

    def _usual(self, y: Array) -> float:
        """Return the size of derivatives by unknowns around a point."""
        return usual_size(self.equations, y, self.largest) / float(self.equations.sizes(y).max())

    def _face_at(self, y: Array) -> Face:
        """Return the unknowns at an end at a solution, if their equations then always hold."""
        near = SAME * self.equations.sizes(y)
        face = {
            k: end
            for k, ends in enumerate(_ends(self.equations))
            for end in ends
            if abs(y[k] - end) <= near[k]
        }
        low, high = self.family.box
        others = spread(low.tolist(), high.tolist(), _SAMPLED)
        sample = np.hstack([others, np.full((_SAMPLED, 1), y[-1])])
        return face if face and _holds(self.equations, face, sample) else {}

    def _crossing(self, y: Array, held: Mapping[str, float]) -> SpecialPoint:
        """Return a crossing, located by its own regular system where curves locate it badly."""
        family = self.family
        free_names = [name for name in family.names if name not in held]
        places = [family.names.index(name) for name in free_names]

        def nulls(at: Array) -> tuple[Array, list[int]]:
            return self._nulls(self._jacobian(at)[0][np.ix_(places, places)].T, at)

        vectors, ones = nulls(y)
        start = {
            f"weight{j + 1 if j else ''}_{name}": float(v)
            for j, vector in enumerate(vectors)
            for name, v in zip(free_names, vector, strict=True)
        }
        condition = self._condition("branch point", held, *(free_names[k] for k in ones))
        rough = _ROUGH * float(self.equations.scale[-1])
        try:
            closed = family.closed(condition, family.over)
        except (EmissionError, StructureError):
            # As where tables depend on the parameter, which then can be no unknown.
            return self.point(self._kind(y), y, rough, condition, start)
        parameters = family.point(float(y[-1]))
        del parameters[family.over]
        square = OpenKernel(
            kernel=closed, parameters=parameters, data=family.data, rtol=family.rtol
        )
        names = square.names
        free = np.full(len(names), math.inf)
        equations = Equations(square.linearised, -free, free, np.ones(len(names)))
        near = {**start, **self._values(y)}
        first = np.array([[near.get(name, 0.0) for name in names]])
        found, good, _ = corrected(equations, first, np.zeros((1, 0, len(names))), most=30)
        exact = dict(zip(names, found[0].tolist(), strict=True))
        polished = np.array(
            [*(exact.get(n, held.get(n)) for n in family.names), exact[family.over]]
        )
        moved = np.max(np.abs(polished - y) / self.equations.sizes(y))
        if not (good[0] and moved <= self.largest):
            return self.point(self._kind(y), y, rough, condition, start)
        y = polished
        if len(nulls(y)[1]) > len(ones):
            # From a curve on which another eigenvalue only touches zero, it was located badly.
            return self._crossing(y, held)
        face = self._face_at(y)
        if face and self._leaves_face(y, face):
            # A pitchfork: exact on the symmetric side, where Newton's method has nothing to solve.
            condition, start = self._boundary_condition(y, face)
        inverse = np.linalg.pinv(square.linearised(found)[1][0])
        noise = square.residual_error(found[0]) * np.abs(inverse[names.index(family.over)]).sum()
        return self.point(self._kind(y), y, float(noise), condition, start)

    def _kind(self, y: Array) -> str:
        return kind_of_crossing(self.family, self.equations, y, self.extremum, self.largest)

    def _values(self, y: Array) -> dict[str, float]:
        """Return all unknowns and the parameter at a solution."""
        family = self.family
        found = dict(zip((*family.names, family.over), y.tolist(), strict=True))
        values = family.described(y[None]).values
        for x in family.open.system.unknowns:
            name = family.open.system.identifiers[x]
            if name not in found:
                found[name] = float(values[name][0])
        return found

    def point(
        self, kind: str, y: Array, error: float,
        condition: Condition,
        start: Mapping[str, float], other: Array | None = None,
    ) -> SpecialPoint:  # fmt: skip
        family = self.family
        unknowns = self._values(y)
        value = unknowns.pop(family.over)
        if other is not None:
            opposite = self._values(other)
            del opposite[family.over]
            unknowns |= {f"{name}_other": x for name, x in opposite.items()}
        return SpecialPoint(
            kind=kind,
            over=family.over,
            value=value,
            error=max(error, math.ulp(value)),
            unknowns=unknowns,
            stated=Stated.of(condition),
            start={**start, **unknowns, family.over: value},
        ).traced(Meeting(condition, family.control, family.others(value), family.data))

    def _add_zeros(self, output: str, curve: Curve, face: Face) -> None:
        family, equations = self.family, replace(self.equations, held=tuple(face))
        held = family.ends({family.names[k]: end for k, end in face.items()})

        def value(y: Array) -> float:
            return float(family.described(y[None]).values[output][0])

        column = family.described(np.array(curve.points)).values[output]
        for k in sign_changes(column):
            place = partial(between, equations, curve, k, end=curve.points[k + 1])
            share = zero_between(lambda s, place=place: value(place(s)))  # type: ignore[misc]
            if share is None:
                continue
            y = place(share)
            run = abs(float((curve.points[k + 1] - curve.points[k])[-1]))
            noise = float(family.described(y[None]).errors[output][0])
            error = noise * run / abs(float(column[k + 1] - column[k]))
            condition = Condition(family.open, "zero", output=output, held=held)
            self.special.append(self.point(zero_of(output), y, error, condition, {}))


def _faces(equations: Equations, cloud: Array) -> Iterator[Face]:
    """Iterate over unknowns that are at ends together in solutions, most of them first.

    Some of them are at ends of their intervals there, others may vanish with these, and their own
    equations hold whatever the rest are.
    """
    ends = _ends(equations)
    if math.prod(1 + len(those) for those in ends) > _MOST_FACES:
        ends = [tuple(end for end in those if end == 0) for those in ends]
    limits = list(zip(equations.lower.tolist(), equations.upper.tolist(), strict=True))
    sample = cloud[:: max(1, len(cloud) // _SAMPLED)]
    able = [k for k, those in enumerate(ends) if those]
    for size in range(len(able), 0, -1):
        for places in itertools.combinations(able, size):
            for values in itertools.product(*(ends[k] for k in places)):
                face = dict(zip(places, values, strict=True))
                at_end = any(end in limits[k] for k, end in face.items())
                if at_end and _holds(equations, face, sample):
                    yield face


def _ends(equations: Equations) -> list[tuple[float, ...]]:
    """Return where each unknown may be held: at finite ends of its interval, and at zero in it."""
    limits = zip(equations.lower[:-1].tolist(), equations.upper[:-1].tolist(), strict=True)
    return [
        tuple(sorted({x + 0.0 for x in (low, 0.0, high) if low <= x <= high and math.isfinite(x)}))
        for low, high in limits
    ]


def _on_face(face: Face, points: Array) -> Array:
    found = points.copy()
    found[:, list(face)] = list(face.values())
    return found


def _holds(equations: Equations, face: Face, sample: Array) -> bool:
    """Tell whether equations of unknowns hold at their ends, at a sample of the others."""
    evaluate = equations.rough[-1] if equations.rough else equations.evaluate
    residual, jacobian = evaluate(_on_face(face, sample))
    places = list(face)
    zero = np.all(np.abs(residual[:, places]) <= np.finfo(float).eps)
    return bool(zero and np.isfinite(jacobian[:, places][:, :, places]).all())


def _joined(curve: Curve, known: Sequence[Curve], equations: Equations) -> None:
    """Let a curve that is lost next to a crossing on a face end there."""
    for end in (0, -1):
        if (curve.end if end else curve.start) != LOST:
            continue
        y = curve.points[end]
        marks = [point for other in known for _, kind, point in other.marks if kind == CROSSING]
        near = [p for p in marks if np.max(np.abs(y - p) / equations.sizes(y)) <= _JOINED]
        if not near:
            continue
        if end:
            curve.points.append(near[0])
            curve.tangents.append(curve.tangents[-1])
            curve.end = CROSSING
        else:
            curve.points.insert(0, near[0])
            curve.tangents.insert(0, curve.tangents[0])
            curve.marks = [(k + 1, kind, point) for k, kind, point in curve.marks]
            curve.start = CROSSING


def checked_bounds(bounds: object) -> dict[str, tuple[float, float]]:
    """Return bounds of unknowns, whose values are looked at where their names are known."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterError(
            f"bounds must map unknowns to two numbers, as {{'q': (0, 1)}}, got {bounds!r}"
        )
    return dict(bounds or {})


def checked_options(
    kernel: Kernel, zeros: str | Sequence[str], extremum: object, starts: int | None, points: int
) -> tuple[int, int, Extremum, tuple[str, ...]]:
    """Return the options of a search.

    Raises
    ------
    ParameterError
        If one is of the wrong kind, or an output unknown.
    """
    if not isinstance(zeros, Iterable):
        raise ParameterError(f"zeros must be names of outputs, got {zeros!r}")
    outputs = (zeros,) if isinstance(zeros, str) else tuple(zeros)
    known_names(outputs, kernel.solved.stated.outputs, "output")
    taken = sorted({*kernel.outputs, *kernel.parameters} & {*COLUMNS})
    if taken:
        raise ParameterError(
            f"{taken[0]} is the name of a column of the diagram of branches: give what has it in "
            "the equations another one"
        )
    return (
        _STARTS * len(kernel.code.unknowns) if starts is None else whole_number("starts", starts),
        whole_number("points", points),
        Extremum.of(kernel, extremum),
        outputs,
    )


def sign_changes(column: Array) -> list[int]:
    """Return the places after which a column changes its sign; next to a zero, after it."""
    signs = np.sign(column)
    for k in np.flatnonzero(signs[1:] == 0).tolist():
        signs[k + 1] = signs[k]
    found: list[int] = np.flatnonzero(signs[:-1] * signs[1:] < 0).tolist()
    return found


def kind_of_crossing(
    family: Family, equations: Equations, y: Array, extremum: Extremum, largest: float
) -> str:
    """Return the kind of a point where branches cross: whether something stable leaves there."""
    # What leaves next to an edge may do so beyond it.
    lowest, highest = box_of(family.kernel.domains[family.over])
    low, high, width = equations.lower.copy(), equations.upper.copy(), equations.scale[-1]
    low[-1], high[-1] = max(lowest, low[-1] - width), min(highest, high[-1] + width)
    sides = leaving(replace(equations, lower=low, upper=high), y, largest)
    if not len(sides):
        return INSTABILITY
    alone = sides[isolated(equations, sides, away=largest / 8)]
    # Of a continuum, one eigenvalue vanishes.
    stable = family.stable(alone, extremum) if len(alone) else None
    return SECOND_ORDER if stable is None or stable.any() else INSTABILITY


# Relative differences of free energies below this are rounding: such phases are copies.
_COPIES = 1e-9
# Of the points of two phases, so many for one at which their free energies are compared.
_THINNED = 4
# How far, in steps, a solution may be from the line between its neighbours on a branch.
_NEAR = 5.0


@dataclass(frozen=True, eq=False)
class _Phase:
    """A part of a branch on which the parameter is monotone, of one stability if it is known."""

    branch: Branch
    part: slice
    stable: bool | None

    @property
    def parameter(self) -> Array:
        return self.branch.parameter[self.part]

    def holds(self, value: float) -> bool:
        return bool(self.parameter.min() <= value <= self.parameter.max())


@dataclass(frozen=True, eq=False)
class Exchanges:
    """Where phases exchange their order.

    Attributes
    ----------
    search : Search
        With its branches.
    """

    search: Search

    def points(self) -> list[SpecialPoint]:
        """Return all exchanges; none without a free energy."""
        if self.search.family.open.free_energy is None:
            return []
        phases = self._phases()
        return [
            point
            for one, other in itertools.combinations(phases, 2)
            for low, high in self._exchanges(one, other)
            if (point := self._first_order(one, other, low, high, phases)) is not None
        ]

    def _phases(self) -> list[_Phase]:
        """Return the parts of branches of one stability on which the parameter is monotone."""
        found = []
        for branch in self.search.branches:
            for part, stable in branch.runs():
                steps = np.sign(np.diff(branch.parameter[part]))
                cuts = [0, *(np.flatnonzero(steps[1:] * steps[:-1] < 0) + 1).tolist(), len(steps)]
                for first, last in itertools.pairwise(cuts):
                    if last > first:
                        own = slice(part.start + first, part.start + last + 1)
                        found.append(_Phase(branch, own, stable))
        return found

    def _near_phase(self, phase: _Phase, values: Array) -> Array:
        """Return unknowns and parameter (N, n + 1) of a phase near given values."""
        p = phase.parameter
        order = np.argsort(p, kind="stable")
        found = [
            np.interp(values, p[order], phase.branch.unknowns[name][phase.part][order])
            for name in self.search.family.names
        ]
        return np.stack([*found, values], axis=1)

    def _on_phase(self, phase: _Phase, values: Array) -> tuple[Array, Array, Array]:
        """Return points of a phase at given values, their free energies and errors of these."""
        near = self._near_phase(phase, values)
        fixed = np.zeros((len(near), 1, near.shape[1]))
        fixed[:, 0, -1] = 1.0
        equations = self.search.on_face(phase.branch.held)
        points, good, _ = corrected(equations, near, fixed, most=20)
        # Next to its end a phase may lead to another solution.
        moved = np.max(np.abs(points - near) / self.search.equations.sizes(near), axis=1)
        good &= moved <= _NEAR * self.search.largest
        batch = self.search.family.described(points)
        return points, np.where(good, batch.values[VALUE], np.nan), batch.errors[VALUE]

    def _exchanges(self, one: _Phase, other: _Phase) -> Iterator[tuple[float, float]]:
        """Iterate over intervals in which the free energies of two phases change their order."""
        grids = [one.parameter, other.parameter]
        low = max(grid.min() for grid in grids)
        high = min(grid.max() for grid in grids)
        if not low < high:
            return
        values = np.unique(np.concatenate(grids))
        values = values[(values >= low) & (values <= high)]
        values = np.append(values[:-1:_THINNED], values[-1])
        first, second = (self._on_phase(phase, values)[1] for phase in (one, other))
        gap = first - second
        gap[~(np.abs(gap) > _COPIES * (1 + np.abs(first)))] = 0
        there = np.flatnonzero(gap)
        for a, b in itertools.pairwise(there):
            if gap[a] * gap[b] < 0:
                yield float(values[a]), float(values[b])

    def _left(self, phase: _Phase, point: Array) -> bool:
        """Tell whether what vanishes in a phase grows; other instabilities are of the phase."""
        family = self.search.family
        if not phase.branch.held or phase.stable is not False:
            return False
        if family.by_free_energy(self.search.extremum) or not family.open.is_map:
            return True
        at = [family.names.index(name) for name in phase.branch.held]
        slopes = family.linearised(point[None])[1][0][np.ix_(at, at)]
        # Residuals of what vanishes do not depend on the rest there, so these are all of its own.
        growth = np.eye(len(at)) - slopes
        return not np.isfinite(growth).all() or bool(np.abs(np.linalg.eigvals(growth)).max() > 1)

    def _first_order(
        self, one: _Phase, other: _Phase, low: float, high: float,
        phases: Sequence[_Phase],
    ) -> SpecialPoint | None:  # fmt: skip
        family = self.search.family

        def on(phase: _Phase, value: float) -> tuple[Array, float, float]:
            points, values, errors = self._on_phase(phase, np.array([value]))
            return points[0], float(values[0]), float(errors[0])

        def gap(share: float) -> float:
            value = low + share * (high - low)
            return on(one, value)[1] - on(other, value)[1]

        share = zero_between(gap)
        if share is None:
            return None
        value = low + share * (high - low)
        (y, here, error), (opposite, _, more) = on(one, value), on(other, value)
        margin = 1e-6 * (1 + abs(here))
        rivals = []
        for phase in phases:
            if phase is one or phase is other or not phase.holds(value):
                continue
            ahead = here - on(phase, value)[1]
            if (ahead if self.search.extremum.prefers_low else -ahead) > margin:
                rivals.append(phase)
        if self._left(one, y) or self._left(other, opposite):
            # What vanishes grows: such a phase is left before its free energy tells.
            return None
        if rivals and not (one.stable and other.stable and not any(r.stable for r in rivals)):
            # Two phases that exchange their order behind a third one: no transition.
            return None
        error = (error + more) * (high - low) / abs(gap(1.0) - gap(0.0))
        condition = Condition(
            family.open,
            "coexistence",
            held=family.ends(one.branch.held),
            held_other=family.ends(other.branch.held),
        )
        return self.search.point(FIRST_ORDER, y, error, condition, {}, opposite)


def branches(
    kernel: Kernel,
    /,
    over: str,
    within: Sequence[float],
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    zeros: str | Sequence[str] = (),
    extremum: str | Mapping[str, str] | None = None,
    starts: int | None = None,
    points: int = 100,
    data: Mapping[str, Any] | None = None,
    rtol: float = 1e-11,
    **parameters: Any,
) -> BranchDiagram:
    r"""Return every solution over one parameter that a search finds, and where they meet.

    Newton's method from many first values at seven values of the parameter; then each branch
    is followed in both directions, through folds and to the branches that leave it. Special
    points are zeros of exact derivatives and of differences of free energies.

    Parameters
    ----------
    over : str
        The control parameter.
    within : (float, float)
        Its range, ends included.
    bounds : mapping from str to (float, float), optional
        Where Newton unknowns are wanted, inside of the domains that their symbols declare:
        ``{"q": (0, 1)}``. First values are spread over this box, so a finite one helps.
    zeros : str or sequence of str
        Outputs whose zeros along the branches are wanted: a stability, an entropy.
    extremum : {"minimum", "maximum"} or mapping from str to these, optional
        Call a solution stable where the free energy, as a function of its order parameters and
        stationary in the conjugates, has this extremum. By default a solution is stable where
        the iteration x → F(x) of the equations converges to it, and a minimum where the
        equations are no such map, or come from a free energy without averages. A free
        energy, minus the logarithm of a number of states, has a minimum and a free entropy a
        maximum; in overlaps of n → 0 replicas it is the other way round, because the number of
        pairs of replicas is negative:
        ``{"m": "maximum", "q": "minimum"}`` for a free entropy of a magnetisation and an
        overlap. Phases are compared by the sense of the first order parameter, by default that
        of lower free energy is preferred.
    starts : int, optional
        First values at each of the seven values of the parameter; default: 32 for each Newton
        unknown.
    points : int
        About as many points lie on a branch across the whole range; more where it bends.
    data, rtol
        As for :meth:`.kernel.Kernel.solve`.
    **parameters
        The others, by name; numbers.

    Returns
    -------
    BranchDiagram
        With ``branches``, ``spinodals``, ``transitions``, ``at(value)``, ``plot()``.

    Raises
    ------
    ParameterError
        If a parameter is missing or outside its domain, or bounds contradict a domain.
    StructureError
        If the equations are linear: their only solution has nothing to meet.
    ConvergenceError
        If no solution is found at all; or the free energy is not finite and real at any of them,
        which then are the error's ``state``.

    Notes
    -----
    First-order transitions are crossings of the lowest free energies, or of the lowest among
    stable phases, for systems from a :class:`giantstep.FreeEnergy` or with an output
    ``free_energy``.

    Where the equations of unknowns at an end of their domains or of `bounds` hold, whatever the
    others are (the overlap q = 0 of an estimate that knows nothing, the probability u = 1 of
    extinction), these solutions are branches, too: ``held`` of a branch tells the unknowns with
    their ends, and a transition of second order is where another branch leaves them. At other
    ends equations have a limit at most, as a perceptron at q = 1, and there are no branches: what
    is known of the free energy there makes an output, whose zeros can be asked for.

    A branch that no first value leads to, and that is joined to no other one, is not found.
    Solutions that are not isolated, as those of a vector that may point anywhere, are no branch;
    ``sought`` tells where they are. Where a branch was reached by a single
    first value, further ones are tried, up to four times as many; ``sought`` says how many there
    were and how few led to the rarest branch.

    Examples
    --------
    The magnet of Curie and Weiss has a second-order transition at β = 1:

    >>> import sympy as sp
    >>> import giantstep as gs
    >>> m, h = sp.symbols("m h", real=True)
    >>> beta = sp.Symbol("beta", positive=True)
    >>> magnet = gs.SaddlePointSystem.from_fixed_point(
    ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
    ... )
    >>> found = gs.lower(magnet).branches("beta", (0.5, 2), bounds={"m": (-1, 1)}, h=0)
    >>> point = found.transitions[0]
    >>> print(point.kind, f"{point.value:.12f}")
    second-order 1.000000000000
    >>> [round(s.m, 10) + 0 for s in found.at(2)]
    [-0.9575040241, 0.0, 0.9575040241]
    """
    options = checked_options(kernel, zeros, extremum, starts, points)
    family = Family(
        kernel=kernel,
        over=over,
        within=numbers_of(within, "within"),
        parameters=parameters,
        bounds=checked_bounds(bounds),
        data=data,
        rtol=positive_number("rtol", rtol),
    )
    search = Search(family, *options, thorough=True)
    if not search.branches:
        if not search.has_values():
            raise ConvergenceError(
                f"the equations of {kernel.name} have no finite value at {_SAMPLED} points of "
                f"their domain, for {over} from {family.within[0]:g} to {family.within[1]:g}: give "
                "bounds= where they have, or declare what the unknowns may be"
            )
        monotone = search.without_stationary_point()
        falls = (
            f"the derivative of its free energy by {monotone[0]} has one sign at all of {_SAMPLED} "
            "points, so that it has no extremum there and nothing but the domain bounds it; "
            if monotone
            else ""
        )
        if search.loose:
            raise ConvergenceError(
                f"no branch of {kernel.name} was found: {search.continuum}",
                state=search.loose[0],
            )
        raise ConvergenceError(
            f"no solution of {kernel.name} was found for {over} from {family.within[0]:g} to "
            f"{family.within[1]:g}, from {options[0]} first values at each of {SEARCHED} "
            f"values; {falls}give bounds= around the unknowns, or more starts="
        )
    found = BranchDiagram(
        name=kernel.name,
        title=kernel.title,
        over=over,
        within=family.within,
        parameters=_floats(family),
        bounds={name: (float(low), float(high)) for name, (low, high) in family.bounds.items()},
        branches=tuple(search.branches),
        points=tuple(search.special),
        extremum=search.extremum,
        stability=family.stability(search.extremum),
        equations={
            name: sp.latex(e.residual)
            for name, e in zip(family.names, family.open.core, strict=True)
        },
        labels=dict(kernel.labels),
        sought=search.sought,
    ).traced(search)
    energies = [b.free_energy for b in search.branches if b.free_energy is not None]
    if energies and not any(np.isfinite(energy).any() for energy in energies):
        y = {name: float(x[0]) for name, x in search.branches[0].unknowns.items()}
        place = ", ".join(f"{name} = {x:.6g}" for name, x in y.items())
        raise ConvergenceError(
            f"the free energy of {kernel.name} is no finite real number at any point where its "
            f"derivatives vanish, as at {place} for {over} = "
            f"{search.branches[0].parameter[0]:.6g}: the domains of the unknowns are to be where "
            "it is (domains= of the system, or bounds=); the branches are the state of this error",
            state=found,
        )
    return found


def restored(
    kernel: Kernel, diagram: BranchDiagram, data: Mapping[str, Any] | None = None
) -> BranchDiagram:
    """Return a diagram that was read from a document, with its equations."""
    family = Family(
        kernel=kernel, over=diagram.over, within=diagram.within, parameters=diagram.parameters,
        bounds=diagram.bounds, data=data,
    )  # fmt: skip
    table = [np.concatenate([b.unknowns[n] for b in diagram.branches]) for n in family.names]
    sizes = np.max(np.abs(np.array(table)), axis=1)
    points = tuple(
        replace(p).traced(
            Meeting(p.stated.on(family.open), family.control, family.others(p.value), data)
        )
        for p in diagram.points
    )
    return replace(diagram, points=points).traced(Solutions(family, sizes, diagram.branches))


def _floats(family: Family) -> dict[str, float]:
    """Return the parameters that are fixed."""
    found = family.point(family.within[0])
    del found[family.over]
    return found
