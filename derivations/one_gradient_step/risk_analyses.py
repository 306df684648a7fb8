"""Questions about the risk; each method delegates to the module that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...deprecations import by_name, renamed
from ...errors import ParameterError
from ..penalties import in_convention, one_penalty
from .analysed import Analysed

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

    from ..expansions.expansion import Expansion
    from ..kernels.kernel import Kernel
    from .conditional_risk import ConditionalRisk
    from .figures import FiniteSizes
    from .limits import InterpolationPeak, RiskLimits
    from .optimal_ridge import OptimalRidge
    from .risk import RidgeRisk


class RiskAnalyses(Analysed):
    """Risk, its optimum, its limits and its figures."""

    @one_penalty
    @by_name("ridge", outer=1)
    def solve(
        self,
        *,
        ridge: object = None,
        digits: int | None = None,
        certify: bool = False,
    ) -> RidgeRisk:
        r"""Return the risk of the ridge readout before and after the step, at one penalty.

        Parameters
        ----------
        ridge : float
            λ ≥ 0 of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`; 0 is the limit of
            a vanishing penalty. :func:`giantstep.paper_ridge` gives it as λ_B of
            :math:`\frac1n\sum(y - f)^2 + \frac{\lambda_B}{N}|a|^2`.
        digits : int, optional
            So many digits with mpmath. Floats are then read as the decimal numbers that they
            print as.
        certify : bool
            Prove `digits` digits (default: 15) with ball arithmetic; the result holds the
            certificate.

        Raises
        ------
        ParameterError
            If no penalty is given, or it is negative or infinite.
        AssumptionError
            If the penalty is zero at the interpolation peak, n = N.
        CertificationError
            If a proof is wanted and does not succeed.
        MissingDependencyError
            If a proof is wanted and python-flint is not installed.

        Examples
        --------
        >>> from giantstep import OneGradientStep, paper_ridge
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
        ...                         noise_variance=0.25)
        >>> risk = model.risk(ridge=paper_ridge(0.05))
        >>> print(f"{risk.initial:.12f} - {risk.improvement:.12f} = {risk.trained:.12f}")
        0.310294640925 - 0.027682845422 = 0.282611795503
        """
        from .risk import risk

        return risk(self._model, ridge, digits=digits, certify=certify)

    risk = solve
    """The field's word for :meth:`solve`."""

    @by_name("digits")
    def ridgeless(self, *, digits: int | None = None) -> RidgeRisk:
        """Return the risk in the limit of a vanishing penalty, in closed form.

        Raises
        ------
        AssumptionError
            At the interpolation peak: n = N, or n = d < N for a linear student.
        """
        return self.solve(ridge=0.0, digits=digits)

    @renamed("curve(...)")
    def risk_curve(
        self, *, paper_ridge: object = None, progress: bool | None = None, **parameters: Any
    ) -> xr.Dataset:
        """Return :meth:`curve` as a dataset, as the last release did."""
        if paper_ridge is not None:
            if parameters.get("ridge") is not None:
                raise ParameterError("give the penalty once: ridge or paper_ridge")
            parameters["ridge"] = in_convention("paper_ridge", paper_ridge)
        # The penalty was the first axis, and the others stood in this order.
        names = ("ridge", "alpha", "beta", "step_size", "noise_variance")
        parameters = {name: parameters.pop(name, None) for name in names} | parameters
        given = {name: value for name, value in parameters.items() if value is not None}
        found = self._model.curve(**given, progress=progress is not False).to_dataset()
        scalars = [name for name, coordinate in found.coords.items() if not coordinate.dims]
        return found.drop_vars([*scalars, "iterations", "converged"])

    def optimum(
        self,
        *,
        over: str | Sequence[str] = "ridge",
        of: str = "risk",
        trained: bool = True,
        digits: int | None = None,
        progress: bool | None = None,
        **parameters: Any,
    ) -> Any:
        r"""Return the penalty with the smallest risk, the best of all local minima.

        All stationary points are roots of one polynomial, so that nothing is searched and there
        are no bounds.

        Parameters
        ----------
        over : {"ridge"}
            There is no best step size beside it: the risk at its best penalty falls with the step.
        of : {"risk", "test_error"}
            Two words for the same.
        trained : bool
            After the step, or before it.
        digits : int, optional
            So many digits. Floats are read as the decimal numbers that they print as.
        progress : bool, optional
            Show a bar over several α if it takes longer than a second; default: if stderr is a
            terminal.
        **parameters
            ``alpha``: n/d of the readout (and of the step, if the model has no `alpha0`); default:
            that of the model.

        Returns
        -------
        OptimalRidge or xarray.Dataset
            Where the risk falls towards an end of the range the penalty is 0 or inf, and `kind`
            says so. A dataset where `alpha` is a sequence: ``ridge_…``, ``paper_ridge_…``,
            ``risk_…`` and ``curvature_…``, before (initial) and after (trained) the step.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or another output or parameter is named.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
        ...                         noise_variance=0.25)
        >>> best = model.optimum(over="ridge")
        >>> print(f"{best.paper_ridge:.12f} {best.risk:.12f}")
        0.272826395556 0.226236404702
        """
        from .optimal_ridge import optimum

        return optimum(
            self._model, over=over, of=of, trained=trained, digits=digits, progress=progress,
            parameters=parameters,
        )  # fmt: skip

    @renamed("optimum(over='ridge')")
    def optimal_ridge(
        self, trained: bool = True, *, digits: int | None = None, alpha: float | None = None
    ) -> OptimalRidge:
        """Return the penalty with the smallest risk, as :meth:`optimum` does."""
        from .optimal_ridge import optimal_ridge

        return optimal_ridge(self._model, trained=trained, digits=digits, alpha=alpha)

    @renamed("optimum(over='ridge', alpha=[...])")
    def optimal_ridge_curve(
        self, alpha: Sequence[float], *, progress: bool | None = None
    ) -> xr.Dataset:
        """Return the best penalties and their risks over n/d, as :meth:`optimum` does."""
        from .optimal_ridge import optimal_ridge_curve

        return optimal_ridge_curve(self._model, alpha, progress=progress)

    @one_penalty
    @by_name("ridge", outer=1)
    def interpolation_peak(
        self, *, ridge: object = None, digits: int | None = None
    ) -> InterpolationPeak:
        r"""Return the height of the peak at n = N for a small penalty.

        Parameters
        ----------
        ridge : float
            λ > 0; that of the paper is the same at n = N.
        digits : int, optional
            So many digits. Floats are read as the decimal numbers that they print as.

        Returns
        -------
        InterpolationPeak
            The leading term :math:`(B + \Delta)/(2\sqrt{\lambda\tau_1})` beside the exact risk,
            for this model at α = β.

        Raises
        ------
        ParameterError
            If not exactly one penalty is given, or it is not positive and finite.
        AssumptionError
            If the student is linear and N ≥ d: its peak is at n = d and has another form.
        """
        from .limits import interpolation_peak

        return interpolation_peak(self._model, ridge, digits=digits)

    @one_penalty
    @by_name("ridge", outer=1)
    def limits(self, *, ridge: object = None) -> RiskLimits:
        """Return the limits of the risk in step size, samples, width and penalty.

        Parameters
        ----------
        ridge : float
            λ > 0 of the limits that keep a penalty, or :func:`giantstep.paper_ridge`.

        Returns
        -------
        RiskLimits
            Each with its formula and its number for this model; what they follow from is in
            :mod:`.properties`.

        Raises
        ------
        ParameterError
            If not exactly one penalty is given, or it is not positive and finite.
        """
        from .limits import risk_limits

        return risk_limits(self._model, ridge)

    @one_penalty
    def expansion(
        self,
        name: str,
        order: int = 2,
        *,
        ridge: object = None,
        digits: int = 30,
        formulas: bool = False,
    ) -> Expansion:
        r"""Return the risk as a series: many samples, a vanishing penalty, or short steps.

        Parameters
        ----------
        name : {"large_alpha", "small_ridge", "small_step"}
            In 1/α (the samples of the step follow, unless the model has its own `alpha0`), in λ,
            or in the step size.
        order : int
            The last power of the small quantity, from 0 to 20.
        ridge : float
            The penalty that is held fixed, or :func:`giantstep.paper_ridge`; none for
            "small_ridge".
        digits : int
            Of the coefficients, from 1 to 1000.
        formulas : bool
            With formulas of the first coefficients, which take up to a few seconds once; for
            students and teachers with linear part and students that are not linear.

        Returns
        -------
        Expansion
            Of risk, bias, variance, training error and objective, before and after the step, with
            the radius of convergence. At the interpolation threshold "small_ridge" is a series in
            √λ that begins with the peak.

        Raises
        ------
        ParameterError
            If there is no such expansion, an argument is outside its range, or not exactly the
            penalties are given that are held fixed.
        AssumptionError
            If the fixed penalty is 0 at the interpolation peak, or the student jumps and the
            series is in the step size.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
        ...                         noise_variance=0.25)
        >>> series = model.expansion("large_alpha", ridge=0.1)
        >>> print(series.latex("initial"))
        R_0 = 0.0955154 + 0.518273\,\alpha^{-1} - 0.723410\,\alpha^{-2} + O(\alpha^{-3})
        >>> left = series.estimate_of_remainder(100.0, "initial")
        >>> print(f"{series(100.0, 'initial'):.7f} {left:.1e}")
        0.1006258 1.9e-06
        """
        from .expansion import expansion

        return expansion(
            self._model, name, order, ridge=ridge, digits=digits, formulas=formulas,
        )  # fmt: skip

    def kernel(self) -> Kernel:
        """Return the kernel of the risk: sweeps, derivatives, files for other languages.

        Its parameters are those of the model and the moments of student and teacher, with the
        model's values as defaults; `step_size` is η of the formulas, twice that of a model with
        ``loss="full"``. The penalty `ridge` must be given, and is positive. Files that it writes
        take finite numbers only: for the population gradient, ``alpha0=math.inf``, give them
        1e300, of which no digit differs.
        """
        from .risk import risk_kernel

        return risk_kernel(self._model)

    @one_penalty
    def conditional_risk(
        self,
        weights: ArrayLike,
        *,
        ridge: object = None,
        direction: ArrayLike | None = None,
    ) -> ConditionalRisk:
        """Return the risk that Gaussian equivalence predicts for a given first layer.

        Parameters
        ----------
        weights : array_like, shape (d, N)
            A column for each neuron, after any number of steps of any size.
        ridge : float
            λ ≥ 0, or :func:`giantstep.paper_ridge`.
        direction : array_like, shape (d,), optional
            The teacher's, of any length; by default the first axis, as in simulations.

        Raises
        ------
        ParameterError
            If an argument has a wrong shape or is outside its range.
        """
        from .conditional_risk import conditional_risk

        return conditional_risk(self._model, weights, ridge=ridge, direction=direction)

    @one_penalty
    def plot_risk(
        self,
        over: str,
        values: object,
        *,
        ridge: object = None,
        simulated: FiniteSizes | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the risk before and after the step over one parameter.

        Parameters
        ----------
        over : {"alpha", "beta", "step_size", "noise_variance", "ridge", "paper_ridge"}
        values : sequence of float
            Where on that axis.
        ridge : float, optional
            λ or :func:`giantstep.paper_ridge`; needed unless the axis is the penalty.
        simulated : FiniteSizes, optional
            Networks, and models with Gaussian features, to be drawn with standard errors.
        ax : matplotlib.axes.Axes, optional
            Where to draw; default: a new figure, found as ``axes.figure``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from .figures import plot_risk, risk_data

        data = risk_data(self._model, over, values, ridge=ridge, simulated=simulated)
        return plot_risk(data, ax=ax)

    @one_penalty
    def plot_phase(
        self,
        x: str,
        x_values: object,
        y: str,
        y_values: object,
        *,
        ridge: object = None,
        quantity: str = "improvement",
        ax: Any = None,
    ) -> Any:
        """Draw what the step improves over two parameters, with the critical step sizes.

        Parameters
        ----------
        x, y : str
            Two different of the axes of :meth:`plot_risk`, such as "step_size" and "alpha".
        x_values, y_values : sequence of float
        ridge : float, optional
            λ or :func:`giantstep.paper_ridge`; needed unless an axis is the penalty.
        quantity : {"improvement", "relative_improvement", "risk_initial", "risk_trained"}
        ax : matplotlib.axes.Axes, optional
            Where to draw; default: a new figure, found as ``axes.figure``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from .figures import phase_data, plot_phase

        data = phase_data(self._model, x, x_values, y, y_values, ridge=ridge)
        return plot_phase(data, quantity, ax=ax)
