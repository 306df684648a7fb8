"""All solutions of a kernel, where they meet, and the equations as dynamics: its further methods.

What they need is imported when they are called: a kernel that solves loads neither SymPy nor SciPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import positive_number, whole_number

if TYPE_CHECKING:
    import xarray as xr

    from .branches import BranchDiagram
    from .kernel import Kernel
    from .phase_diagram import PhaseDiagram
    from .solution import KernelSolution


class KernelDiagrams:
    """The part of a :class:`.kernel.Kernel` that follows solutions over parameters."""

    def branches(
        self,
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
            equations are no such map. A free energy, minus the logarithm of a number of states,
            has a minimum and a free entropy a maximum; in overlaps of n → 0 replicas it is the
            other way round, because the number of pairs of replicas is negative:
            ``{"m": "maximum", "q": "minimum"}`` for a free entropy of a magnetisation and an
            overlap. Phases are compared by the sense of the first order parameter, by default that
            of lower free energy is preferred.
        starts : int, optional
            First values at each of the seven values of the parameter; default: 32 for each Newton
            unknown.
        points : int
            About as many points lie on a branch across the whole range; more where it bends.
        data, rtol
            As for :meth:`solve`.
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
            If no solution is found at all.

        Notes
        -----
        First-order transitions are crossings of the lowest free energies, or of the lowest among
        stable phases, for systems from a :class:`giantstep.FreeEnergy` or with an output
        ``free_energy``.

        Where unknowns vanish at an end of their domains and their equations hold there, whatever
        the others are (the overlap q = 0 of an estimate that knows nothing), these solutions are
        branches, too: ``zeros`` of a branch names the unknowns, and a transition of second order is
        where another branch leaves them. At other ends equations have a limit at most, as a
        perceptron at q = 1, and there are no branches: what is known of the free energy there makes
        an output, whose zeros can be asked for.

        A branch that no first value leads to, and that is joined to no other one, is not found; nor
        are crossings at which two eigenvalues vanish at once.

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
        from .branch_search import SEARCHED, Search, checked_options
        from .branches import BranchDiagram
        from .families import Family, numbers_of

        kernel = cast("Kernel", self)
        options = checked_options(kernel, zeros, extremum, starts, points)
        family = Family(
            kernel=kernel,
            over=over,
            within=numbers_of(within, "within"),
            parameters=parameters,
            bounds=dict(bounds or {}),
            data=data,
            rtol=positive_number("rtol", rtol),
        )
        search = Search(family, *options, thorough=True)
        if not search.branches:
            raise ConvergenceError(
                f"no solution of {kernel.name} was found for {over} from {family.within[0]:g} to "
                f"{family.within[1]:g}, from {options[0]} first values at each of {SEARCHED} "
                "values; give bounds= around the unknowns, or more starts="
            )
        return BranchDiagram(
            kernel=kernel,
            over=over,
            within=family.within,
            parameters=dict(parameters),
            branches=tuple(search.branches),
            points=tuple(search.special),
            extremum=search.extremum,
            _search=search,
        )

    def phase_diagram(
        self,
        x: tuple[str, float, float],
        y: tuple[str, float, float],
        /,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        zeros: str | Sequence[str] = (),
        extremum: str | Mapping[str, str] | None = None,
        starts: int | None = None,
        points: int = 100,
        cuts: int = 3,
        data: Mapping[str, Any] | None = None,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> PhaseDiagram:
        """Return lines of transitions over two parameters.

        Special points of some cuts through the plane, those of :meth:`branches`, are followed as
        solutions of larger systems; nothing is scanned.

        Parameters
        ----------
        x, y : (str, float, float)
            Names of two parameters with their ranges: ``("alpha", 0, 2), ("beta", 1, 4)``.
        bounds, zeros, extremum, starts, points, data, rtol
            As for :meth:`branches`.
        cuts : int
            So many cuts at constant y, and at constant x; a line that none of them crosses is not
            found.
        **parameters
            The others, by name; numbers.

        Returns
        -------
        PhaseDiagram
            With ``lines``, ``critical_points``, ``tricritical_points`` and ``plot()``.

        Raises
        ------
        ParameterError, StructureError
            As for :meth:`branches`.

        Notes
        -----
        Along a line of first-order transitions the two phases are followed wherever they exist:
        beyond a triple point it goes on between phases that a third one lies below.

        Examples
        --------
        The spinodals of the magnet of Curie and Weiss meet at β = 1, h = 0:

        >>> import sympy as sp
        >>> import giantstep as gs
        >>> m, h = sp.symbols("m h", real=True)
        >>> beta = sp.Symbol("beta", positive=True)
        >>> magnet = gs.SaddlePointSystem.from_fixed_point(
        ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
        ... )
        >>> plane = gs.lower(magnet).phase_diagram(
        ...     ("h", -0.5, 0.5), ("beta", 0.5, 2.5), bounds={"m": (-1, 1)}
        ... )
        >>> critical = plane.critical_points[0]
        >>> print(f"{abs(critical.x):.8f} {critical.y:.8f}")
        0.00000000 1.00000000
        """
        from .branch_search import Search, checked_options
        from .families import Family, numbers_of
        from .phase_diagram import PhaseDiagram, Plane, different

        kernel = cast("Kernel", self)
        axes = []
        for word, axis in (("x", x), ("y", y)):
            if not isinstance(axis, tuple | list) or len(axis) != 3 or not isinstance(axis[0], str):
                raise ParameterError(
                    f"{word} must be a parameter with its range, such as ('alpha', 0, 2), got "
                    f"{axis!r}"
                )
            axes.append((axis[0], *numbers_of(axis[1:], f"the range of {axis[0]}")))
        across, up = axes
        if across[0] == up[0]:
            raise ParameterError(f"x and y must be two parameters, got {across[0]} twice")
        options = checked_options(kernel, zeros, extremum, starts, points)
        rtol = positive_number("rtol", rtol)
        ranges = {name: (low, high) for name, low, high in axes}
        plane = Plane(dict(parameters), ranges, points, options[2])
        for name, other in ((across[0], up[0]), (up[0], across[0])):
            inner = np.linspace(*ranges[other], whole_number("cuts", cuts) + 2)[1:-1]
            for value in inner.tolist():
                cut = Family(
                    kernel=kernel,
                    over=name,
                    within=ranges[name],
                    parameters={**parameters, other: value},
                    bounds=dict(bounds or {}),
                    data=data,
                    rtol=rtol,
                )
                for point in Search(cut, *options).special:
                    plane.add(point, cut, other, value)
        found = list(plane.lines(across[0], up[0]))
        turns = different([p for _, _, points in found for p in points], across, up)
        cusps = different([*turns, *(p for _, points, _ in found for p in points)], across, up)
        return PhaseDiagram(
            kernel=kernel,
            x=across,
            y=up,
            parameters=dict(parameters),
            lines=tuple(line for line, _, _ in found),
            # Spinodals have a cusp at a tricritical point, too.
            critical_points=cusps[len(turns) :],
            tricritical_points=turns,
            _names=plane.names,
        )

    def iterate(
        self,
        /,
        *,
        start: Mapping[str, float] | KernelSolution | None = None,
        damping: float = 0.0,
        steps: int = 1000,
        tolerance: float = 1e-12,
        data: Mapping[str, Any] | None = None,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> xr.Dataset:
        r"""Iterate the equations as a map, as state evolution does, and return the trajectory.

        The unknowns that Newton's method would solve for move by
        :math:`x \leftarrow d\,x + (1 - d)\,F(x)` with damping d; the others follow from them at
        once, conjugates for example.

        Parameters
        ----------
        start : mapping or KernelSolution, optional
            First values of Newton unknowns; by default those of the system.
        damping : float
            Inside [0, 1).
        steps : int
            At most so many.
        tolerance : float
            It ends where :math:`|F(x) - x| \le` tolerance :math:`\cdot (1 + |x|)` for all unknowns.
        data, rtol
            As for :meth:`solve`.
        **parameters
            By name; numbers.

        Returns
        -------
        xarray.Dataset
            Unknowns, outputs and the ``change`` at each ``step``, the start included. The
            attributes say whether it ``converged`` and how it ended (``ending``).

        Raises
        ------
        ParameterError
            If an equation is implicit, so that there is no map.
        ConvergenceError
            If the equations are not finite at the start.

        Examples
        --------
        >>> import sympy as sp
        >>> import giantstep as gs
        >>> m, h = sp.symbols("m h", real=True)
        >>> beta = sp.Symbol("beta", positive=True)
        >>> magnet = gs.SaddlePointSystem.from_fixed_point(
        ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
        ... )
        >>> path = gs.lower(magnet).iterate(beta=2, h=0, start={"m": 0.1})
        >>> print(path.ending, f"{float(path.m[-1]):.10f}")
        a fixed point after 18 steps 0.9575040241
        """
        from .families import OpenKernel
        from .iterate import trajectory

        rtol = positive_number("rtol", rtol)
        family = OpenKernel(
            kernel=cast("Kernel", self), parameters=parameters, data=data, rtol=rtol
        )
        return trajectory(family, start, damping, steps, tolerance)
