"""A page in the browser on which the parameters of a model are sliders.

It is served on this machine alone, and all that it needs comes from there. A slider that moves
sends new numbers to figures that stay.
"""

from __future__ import annotations

import asyncio
import html
import importlib.util
import math
import socket
import warnings
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ..errors import ApproximationWarning, GiantstepError, MissingDependencyError, ParameterError
from ..numeric.arguments import whole_number
from .curves import HasCurves
from .figures import BLUE, GREEN, GREY, VERMILLION
from .kernels.kernel import Kernel
from .kernels.landscape import order_parameters

ADDRESS = "127.0.0.1"
_COLOURS = (BLUE, VERMILLION, GREEN, GREY)
_POINTS, _LANDSCAPE_POINTS, _SPECTRUM_POINTS, _STEPS = 80, 60, 300, 400
# A positive parameter goes so many times down and up from where it is.
_FACTOR = 20.0
_FIRST = {"alpha": 2.0, "ridge": 0.1}

Values = Mapping[str, float]


@dataclass(frozen=True)
class Scale:
    """The range of a slider."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, value: float, domain: str) -> Scale:
        """Return a range around a value in a domain."""
        if "positive" in domain and value > 0:
            return cls(value / _FACTOR, value * _FACTOR, True)
        reach = max(3 * abs(value), 1.0)
        return cls(0.0 if domain.startswith("nonnegative") else -reach, reach, False)

    def grid(self, count: int) -> Any:
        """Return values over the range."""
        return (np.geomspace if self.logarithmic else np.linspace)(self.low, self.high, count)


@dataclass(frozen=True)
class Subject:
    """What a page shows, for one kind of model.

    Attributes
    ----------
    title : str
    values : mapping from str to float
        Parameters with their first values.
    domains : mapping from str to str
    curve : callable
        Takes parameters, of which one is an array, and returns a curve.
    solve : callable
        Takes parameters and returns a result.
    code : callable
        Takes parameters and returns Python.
    spectrum, landscape : callable, optional
        The spectrum at parameters; the free energy over an unknown, at parameters.
    unknowns : sequence of str
        Those that `landscape` takes.
    """

    title: str
    values: Values
    domains: Mapping[str, str]
    curve: Callable[..., Any]
    solve: Callable[[Values], Any]
    code: Callable[[Values], str]
    spectrum: Callable[[Values], Any] | None = None
    landscape: Callable[[str, Values], Any] | None = None
    unknowns: Sequence[str] = ()


def subject_of(model: object, **values: float) -> Subject:
    """Return what a page shows of a model, from first values.

    Raises
    ------
    ParameterError
        If it is neither a model with curves nor a kernel, or a value belongs to no slider.
    """
    if isinstance(model, Kernel):
        found = _of_kernel(model)
    elif isinstance(model, HasCurves):
        found = _of_model(model)
    else:
        raise ParameterError(
            "model must be a model with parameters, such as SpikedRandomFeatures or "
            f"OneGradientStep, or a kernel of giantstep.lower, got {type(model).__name__}"
        )
    for name, value in values.items():
        if name not in found.values:
            raise ParameterError(f"no slider is named {name!r}; use {', '.join(found.values)}")
        if not math.isfinite(value):
            raise ParameterError(f"{name} must be finite to be on a slider, got {value}")
    return replace(found, values={**found.values, **values})


def _of_model(model: HasCurves) -> Subject:
    fixed: dict[str, Any] = getattr(model, "parameters", dict)()
    domains = dict(model._axes())
    own = {name: getattr(model, name, _FIRST.get(name)) for name in domains}

    def parted(values: Values) -> tuple[dict[str, float], dict[str, float]]:
        asked = {name: x for name, x in values.items() if name in model._asked}
        return {name: x for name, x in values.items() if name not in asked}, asked

    def solve(values: Values) -> Any:
        of_model, asked = parted(values)
        made: Any = model.at(**of_model)
        return made.solve(**asked)

    def spectrum(values: Values) -> Any:
        made: Any = model.at(**parted(values)[0])
        own_spectrum = getattr(made, "spectrum", None)
        return made.conjugate_kernel() if own_spectrum is None else own_spectrum(values["alpha"])

    def code(values: Values) -> str:
        of_model, asked = parted(values)
        made = f"gs.{type(model).__name__}({_arguments({**fixed, **of_model})})"
        return f"import giantstep as gs; print({made}.solve({_arguments(asked)}))"

    what = ", ".join(f"{name} {fixed[name]}" for name in ("student", "teacher") if name in fixed)
    return Subject(
        f"{type(model).__name__}: {what}",
        # What is infinite, or not asked for, has no slider.
        {name: float(x) for name, x in own.items() if x is not None and math.isfinite(x)},
        domains, model.curve, solve, code,
        spectrum if {"spectrum", "conjugate_kernel"} & {*dir(model)} else None,
    )  # fmt: skip


def _of_kernel(kernel: Kernel) -> Subject:
    domains = {name: kernel.domains[name] for name in kernel.parameters}
    first = {name: 1.0 if "positive" in domain else 0.0 for name, domain in domains.items()}
    unknowns = order_parameters(kernel)

    def landscape(of: str, values: Values) -> Any:
        ranges = {known.name: (known.lower, known.upper) for known in kernel.code.ranges}
        within = None
        if not all(map(math.isfinite, ranges.get(of, (math.inf,)))):
            high = 2 * max(abs(float(kernel.solve(**values).values[of])), 0.5)
            within = (1e-3 * high if kernel.domains.get(of) == "positive" else -high, high)
        return kernel.landscape(of, within, points=_LANDSCAPE_POINTS, **values)

    return Subject(
        kernel.title or kernel.name, {**first, **kernel.defaults}, domains, kernel.curve,
        lambda values: kernel.solve(**values),
        lambda values: f"print(kernel.solve({_arguments(values)}))",
        landscape=landscape if unknowns else None, unknowns=unknowns,
    )  # fmt: skip


def _arguments(values: Mapping[str, Any]) -> str:
    shown = {n: 'float("inf")' if x == math.inf else repr(x) for n, x in values.items()}
    return ", ".join(f"{name}={text}" for name, text in shown.items())


class ExplorePage:
    """The widgets and figures of one visit, and what moves them.

    Parameters
    ----------
    subject : Subject
    query : mapping from str to str
        First values from the address; what is no number is left alone.
    embedded : bool
        Whether the address of the window is that of something else.
    """

    def __init__(
        self, subject: Subject, query: Mapping[str, str] | None = None, *, embedded: bool = False
    ) -> None:
        from bokeh.models import Button, ColumnDataSource, CustomJS, Div, Select, TextInput
        from bokeh.plotting import figure

        def chosen(key: str, title: str, names: list[str]) -> Any:
            value = asked[key] if asked.get(key) in names else (names or [""])[0]
            return Select(title=title, options=names, value=value)

        asked = dict(query or {})
        self.subject = subject
        self.scales: dict[str, Scale] = {}
        self.sliders = {name: self._slider(name, asked.get(name)) for name in subject.values}
        axes = sorted(subject.values, key=lambda name: name != "alpha")
        self.over = chosen("over", "curve over", axes)
        self.of = chosen("of", "landscape of", list(subject.unknowns))
        self.status, self.table = Div(text=""), Div(text="")
        self.link = TextInput(title="permalink", disabled=True)
        self.python = TextInput(title="as Python", disabled=True)
        self.copy = Button(label="copy as Python")
        copied = "navigator.clipboard.writeText(text.value)"
        self.copy.js_on_click(CustomJS(args={"text": self.python}, code=copied))
        if not embedded:
            moved = "window.history.replaceState(null, '', cb_obj.value)"
            self.link.js_on_change("value", CustomJS(code=moved))

        def panel(title: str, x: str, y: str) -> Any:
            return figure(title=title, x_axis_label=x, y_axis_label=y, width=460, height=330,
                          toolbar_location=None)  # fmt: skip

        names = ("curve", "here", "density", "outliers", "lines", "points")
        empty: dict[str, Any] = {"x": [], "y": [], "colour": [], "fill": []}
        self.data = {name: ColumnDataSource(empty) for name in names}
        self.curve = panel("curve", self.over.value, "")
        self.curve.scatter("x", "y", source=self.data["here"], color=GREY, size=8)
        self.figures, self.drawn = [self.curve], list[str]()
        if subject.spectrum is not None:
            plot = panel("spectrum", "eigenvalue", "density")
            plot.line("x", "y", source=self.data["density"], color=BLUE, line_width=2)
            plot.scatter("x", "y", source=self.data["outliers"], color=VERMILLION, size=8)
            self.figures.append(plot)
        if subject.landscape is not None:
            plot = panel("free energy; full circles are stable", self.of.value, "")
            plot.multi_line("x", "y", source=self.data["lines"], color="colour", line_width=2)
            plot.scatter(
                "x", "y", source=self.data["points"], fill_color="fill", color=GREY, size=9
            )
            self.figures.append(plot)
        for slider in self.sliders.values():
            slider.on_change("value", self.follow)
            slider.on_change("value_throttled", self.settle)
        for select in (self.over, self.of):
            select.on_change("value", self.settle)
        self.settle("value", None, None)

    def _slider(self, name: str, text: str | None) -> Any:
        from bokeh.models import CustomJSTickFormatter, Slider

        value = self.subject.values[name]
        scale = Scale.of(value, self.subject.domains[name])
        try:
            wanted = value if text is None else float(text)
        except ValueError:
            wanted = value
        if math.isfinite(wanted) and (wanted > 0 or not scale.logarithmic):
            value = wanted
        scale = replace(scale, low=min(scale.low, value), high=max(scale.high, value))
        self.scales[name] = scale
        low, high, at, written = scale.low, scale.high, value, {}
        if scale.logarithmic:
            low, high, at = map(math.log10, (low, high, at))
            code = "return Math.pow(10, tick).toPrecision(4)"
            written = {"format": CustomJSTickFormatter(code=code)}
        step = (high - low) / _STEPS
        return Slider(title=name, start=low, end=high, value=at, step=step, **written)

    @property
    def values(self) -> dict[str, float]:
        """What the sliders say."""
        read = {n: 10**s.value if self.scales[n].logarithmic else s.value
                for n, s in self.sliders.items()}  # fmt: skip
        return {name: float(f"{value:.6g}") for name, value in read.items()}

    def follow(self, attr: str, old: object, new: object) -> None:
        """Follow a slider: what compiled kernels answer at once."""
        self._tried(self._update_curve, self._update_table)

    def settle(self, attr: str, old: object, new: object) -> None:
        """Follow a slider that was let go: spectrum and landscape, too."""
        steps = (self._update_curve, self._update_table)
        self._tried(*steps, self._update_spectrum, self._update_landscape)

    def _tried(self, *steps: Callable[[dict[str, float]], None]) -> None:
        """Run steps; what a model refuses is told, and its lines stay as they were."""
        values, told = self.values, list[str]()
        chosen = {"over": self.over.value, "of": self.of.value}
        self.link.value = f"?{urlencode(values | {k: v for k, v in chosen.items() if v})}"
        self.python.value = self.subject.code(values)
        for step in steps:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ApproximationWarning)
                    step(values)
            except GiantstepError as error:
                told.append(html.escape(str(error).splitlines()[0]))
        self.status.text = "<br>".join(dict.fromkeys(told))

    def _update_curve(self, values: dict[str, float]) -> None:
        over = self.over.value
        grid = self.scales[over].grid(_POINTS)
        data = self.subject.curve(progress=False, **{**values, over: grid}).to_dataset()
        names = str(data.attrs["shown"]).split()
        columns = {name: data[name].to_numpy().ravel() for name in names}
        self.data["curve"].data = {"x": grid, **columns}
        self.curve.xaxis.axis_label = over
        for name in names:
            if name not in self.drawn:
                look = {"color": _COLOURS[len(self.drawn) % 4], "line_width": 2}
                label = name.replace("_", " ")
                self.curve.line("x", name, source=self.data["curve"], legend_label=label, **look)
                self.drawn.append(name)
        marks = [float(np.interp(values[over], grid, y)) for y in columns.values()]
        self.data["here"].data = {"x": [values[over]] * len(marks), "y": marks}

    def _update_table(self, values: dict[str, float]) -> None:
        self.table.text = self.subject.solve(values)._repr_html_()

    def _update_spectrum(self, values: dict[str, float]) -> None:
        if self.subject.spectrum is not None:
            found = self.subject.spectrum(values)
            bulk, outliers = found.bulk(_SPECTRUM_POINTS), [float(x) for x in found.outliers]
            self.data["density"].data = {"x": bulk.points, "y": bulk.density}
            self.data["outliers"].data = {"x": outliers, "y": [0.0] * len(outliers)}

    def _update_landscape(self, values: dict[str, float]) -> None:
        if self.subject.landscape is not None:
            found = self.subject.landscape(self.of.value, values)
            self.figures[-1].xaxis.axis_label = found.of
            parts = [(list(s.values), list(s.free_energy)) for s in found.sections]
            points = [(p.value, p.free_energy, GREY if p.stable else "white") for p in found.points]
            self.data["lines"].data = {
                "x": [x for x, _ in parts], "y": [y for _, y in parts],
                "colour": [_COLOURS[k % 3] for k in range(len(parts))],
            }  # fmt: skip
            columns = zip(*points, strict=True) if points else ((), (), ())
            self.data["points"].data = dict(
                zip(("x", "y", "fill"), map(list, columns), strict=True)
            )

    def layout(self) -> Any:
        """Return all of it, arranged."""
        from bokeh.layouts import column, row

        picked = [self.over, *([self.of] if self.subject.unknowns else [])]
        left = column(*self.sliders.values(), *picked, self.copy, self.python, self.link)
        return column(self.status, row(left, column(row(*self.figures), self.table)))


@dataclass(frozen=True)
class Explorer:
    """A page that is served; notebooks show it.

    Attributes
    ----------
    url : str
    server : bokeh.server.server.Server
    """

    url: str
    server: Any

    def stop(self) -> None:
        """End the server."""
        self.server.stop()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="900" frameborder="0"></iframe>'


def serve(model: object, *, port: int = 0, embedded: bool = False, **values: float) -> Explorer:
    """Start a server for the page of a model, on this machine alone, and return at once."""
    if importlib.util.find_spec("bokeh") is None:
        raise MissingDependencyError(
            'explore needs bokeh, which is not installed; use pip install "giantstep[explore]"'
        )
    from bokeh.server.server import Server

    port = whole_number("port", port, minimum=0)
    subject = subject_of(model, **values)

    def visited(document: Any) -> None:
        given = document.session_context.request.arguments
        query = {name: texts[0].decode("utf-8", "replace") for name, texts in given.items()}
        document.title = subject.title
        document.add_root(ExplorePage(subject, query, embedded=embedded).layout())

    if not port:
        with socket.socket() as free:
            free.bind((ADDRESS, 0))
            port = free.getsockname()[1]
    hosts = [f"{ADDRESS}:{port}", f"localhost:{port}"]
    server = Server({"/": visited}, address=ADDRESS, port=port, allow_websocket_origin=hosts)
    server.start()
    return Explorer(f"http://{ADDRESS}:{port}/", server)


def explore(model: object, *, port: int = 0, browser: bool = True, **values: float) -> Explorer:
    """Open a page on which the parameters of a model are sliders.

    It shows curves over any parameter, order parameters, the limiting spectrum of models that have
    one and, for kernels with a free energy, its landscape with all stationary points. The address
    holds all values, and a button copies them as Python. The server listens on 127.0.0.1 only, and
    the page loads nothing from elsewhere.

    Parameters
    ----------
    model : SpikedRandomFeatures, OneGradientStep, another model with curves, or Kernel
    port : int
        Default: one that is free.
    browser : bool
        Whether to open the browser, where no notebook shows the page.
    **values
        First values of parameters, such as ``alpha=1.5``.

    Returns
    -------
    Explorer
        In a notebook at once, and shown there. Elsewhere when the server was interrupted.

    Raises
    ------
    ParameterError
        If the model is none of these, or a value belongs to no parameter.
    MissingDependencyError
        Without bokeh.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        explorer = serve(model, port=port, **values)
        print(f"{explorer.url} (interrupt with Ctrl-C)", flush=True)
        if browser:
            webbrowser.open(explorer.url)
        try:
            explorer.server.io_loop.start()
        finally:
            explorer.stop()
        return explorer
    return serve(model, port=port, embedded=True, **values)
