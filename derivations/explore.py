"""A page in the browser on which the parameters of a model are sliders.

It is served on this machine alone, and all that it needs comes from there. A slider that moves
sends new numbers to figures that stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import importlib.util
import math
import numbers
import socket
import warnings
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ..errors import ApproximationWarning, GiantstepError, MissingDependencyError, ParameterError
from ..numeric.arguments import whole_number
from .curves import HasCurves
from .figures import BLUE, GREEN, GREY, VERMILLION
from .kernels.kernel import Kernel

ADDRESS = "127.0.0.1"
_LAST_PORT = 65535
_COLOURS = (BLUE, VERMILLION, GREEN, GREY)
_POINTS, _LANDSCAPE_POINTS, _SPECTRUM_POINTS, _STEPS = 80, 60, 300, 400
# A positive parameter goes so many times down and up from where it is.
_FACTOR = 8.0
# Of its maximum, what one sees of a density.
_VISIBLE = 1e-3
_NOTHING = "nothing"
_COMPUTED = "computing …"
_FIRST_COMPUTED = "computing … what is compiled at first use takes up to a minute"
_PLAIN = (str, int, float, tuple)
_FIRST = {"alpha": 2.0, "ridge": 0.1}

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Subject:
    """What a page shows of a model: parameters with first values, and answers by callables.

    `curve` takes parameters, of which one is an array; `landscape` takes one of `unknowns` first;
    all others take parameters alone. `code` returns Python, `spectrum` points, density, outliers.
    """

    title: str
    values: Values
    domains: Mapping[str, str]
    curve: Callable[..., Any]
    solve: Callable[[Values], Any]
    code: Callable[[Values], str]
    spectrum: Callable[[Values], Any] | None = None
    landscape: Any = None
    unknowns: Sequence[str] = ()


def subject_of(model: object, **values: float) -> Subject:
    """Return what a page shows of a model, from first values.

    Raises
    ------
    ParameterError
        If it is neither a model with curves nor a kernel, or a value belongs to no slider.
    """
    if not isinstance(model, Kernel | HasCurves):
        raise ParameterError(
            "model must be a model with parameters, such as SpikedRandomFeatures or "
            f"OneGradientStep, or a kernel of giantstep.lower, got {type(model).__name__}"
        )
    found = _of_kernel(model) if isinstance(model, Kernel) else _of_model(model)
    for name, value in values.items():
        is_number = isinstance(value, numbers.Real) and math.isfinite(value)
        if name not in found.values or not is_number:
            names = ", ".join(found.values)
            raise ParameterError(f"{name}={value!r}: sliders are finite numbers named {names}")
    return replace(found, values={**found.values, **values})


def _of_model(model: HasCurves) -> Subject:
    domains = dict(model._axes())
    own = {name: getattr(model, name, _FIRST.get(name)) for name in domains}
    if fixed := [name for name in model._asked if own.get(name) is None]:
        raise ParameterError(
            f"{type(model).__name__} is asked for {fixed[0]}, for which there is no slider; "
            f"use model.solve({fixed[0]}=...) and its plot()"
        )

    def parted(values: Values) -> tuple[Any, dict[str, float]]:
        asked = {name: x for name, x in values.items() if name in model._asked}
        return model.at(**{name: x for name, x in values.items() if name not in asked}), asked

    def solve(values: Values) -> Any:
        made, asked = parted(values)
        return made.solve(**asked)

    def landscape(of: str, **values: Any) -> Any:
        made, asked = parted(values)
        return made.landscape(of, points=_LANDSCAPE_POINTS, **asked)

    def spectrum(values: Values) -> Any:
        made, asked = parted(values)
        alpha = asked.get("alpha")
        found = made.conjugate_kernel() if alpha is None else made.spectrum(alpha)
        bulk = found.bulk(_SPECTRUM_POINTS)
        # Per unit of log x, as in its plot: a bulk that touches zero is no spike there.
        density = bulk.density * bulk.points
        seen = density > _VISIBLE * np.nanmax(density)
        return bulk.points[seen], density[seen], [float(x) for x in found.outliers]

    # Of many letters, say, there is no kernel. Lines of models may take a minute: when asked for.
    overlaps = _told(lambda _: model._with_landscape(), {})[0]

    def code(values: Values) -> str:
        made, asked = parted(values)
        return f"{_making(made)}; print(model.solve({_arguments(asked)}))"

    return Subject(
        type(model).__name__,
        # What is infinite, or not asked for, has no slider.
        {name: float(x) for name, x in own.items() if x is not None and math.isfinite(x)},
        domains, model.curve, solve, code,
        spectrum if {"spectrum", "conjugate_kernel"} & {*dir(model)} else None,
        landscape, (_NOTHING, *overlaps) if overlaps else (),
    )  # fmt: skip


def _of_kernel(kernel: Kernel) -> Subject:
    domains = {name: kernel.domains[name] for name in kernel.parameters}
    first = {name: 1.0 if "positive" in domain else 0.0 for name, domain in domains.items()}

    return Subject(
        kernel.title or kernel.name, {**first, **kernel.defaults}, domains, kernel.curve,
        lambda values: kernel.solve(**values),
        lambda values: f"print(kernel.solve({_arguments(values)}))",
        landscape=partial(kernel.landscape, points=_LANDSCAPE_POINTS),
        unknowns=kernel.with_landscape(),
    )  # fmt: skip


def _making(model: Any) -> str:
    """Return Python that makes a model of arguments, or where these are no plain values of JSON."""
    kind = type(model)
    own = {
        f.name: getattr(model, f.name)
        for f in fields(model)
        if f.init and f.name != "cache_folder" and getattr(model, f.name) != f.default
    }
    if all(isinstance(x, _PLAIN) for x in own.values()):
        return f"import giantstep as gs; model = gs.{kind.__name__}({_arguments(own)})"
    where = f"from {kind.__module__} import {kind.__name__}"
    return f"{where}; model = {kind.__name__}.from_json({model.to_json()!r})"


def _arguments(values: Mapping[str, Any]) -> str:
    shown = {n: 'float("inf")' if x == math.inf else repr(x) for n, x in values.items()}
    return ", ".join(f"{name}={text}" for name, text in shown.items())


def _told(answer: Callable[[Any], Any] | None, values: Values) -> tuple[Any, str]:
    """Return an answer, or what a model refuses: then lines stay as they were."""
    try:
        return (None if answer is None else answer(values)), ""
    except GiantstepError as error:
        return None, html.escape(str(error).splitlines()[0])


class ExplorePage:
    """The widgets and figures of one visit, and what moves them.

    `query` holds first values from the address, where they are numbers; where the page is
    `embedded`, the address of the window is that of something else. A page that is `later` shows
    nothing until :meth:`begin`.
    """

    def __init__(
        self, subject: Subject, query: Mapping[str, str] | None = None, *, embedded: bool = False,
        later: bool = False,
    ) -> None:  # fmt: skip
        from bokeh.models import Button, ColumnDataSource, CustomJS, Div, Legend, Select, TextInput
        from bokeh.plotting import figure

        def chosen(key: str, title: str, names: list[str]) -> Any:
            value = asked[key] if asked.get(key) in names else (names or [""])[0]
            return Select(title=title, options=names, value=value)

        asked = dict(query or {})
        self.subject = subject
        self.logarithmic: set[str] = set()
        self.sliders = {name: self._slider(name, asked.get(name)) for name in subject.values}
        axes = sorted(subject.values, key=lambda name: name != "alpha")
        self.over = chosen("over", "curve over", axes)
        self.of = chosen("of", "landscape of", list(subject.unknowns))
        self.status, self.table, self.busy = Div(text=""), Div(text=""), Div(text="")
        self.link = TextInput(title="permalink", disabled=True)
        self.python = TextInput(title="as Python", disabled=True)
        self.copy = Button(label="copy as Python")
        copied = "navigator.clipboard.writeText(text.value)"
        self.copy.js_on_click(CustomJS(args={"text": self.python}, code=copied))
        if not embedded:
            moved = "window.history.replaceState(null, '', cb_obj.value)"
            self.link.js_on_change("value", CustomJS(code=moved))

        panel = partial(figure, width=460, height=330, toolbar_location=None)
        names = ("curve", "here", "density", "outliers", "lines", "points")
        empty: dict[str, Any] = {"x": [], "y": [], "colour": [], "fill": []}
        self.data = {name: ColumnDataSource(empty) for name in names}
        self.curve = panel(title="curve")
        self.curve.add_layout(Legend(ncols=2, border_line_color=None, padding=0), "above")
        self.curve.scatter("x", "y", source=self.data["here"], color=GREY, size=8)
        self.figures, self.drawn = [self.curve], list[str]()
        plain = {"line_width": 2}
        if subject.spectrum is not None:
            labels = {"x_axis_label": "eigenvalue x", "y_axis_label": "density per unit of log x"}
            plot = panel(title="spectrum", x_axis_type="log", **labels)
            plot.line("x", "y", source=self.data["density"], color=BLUE, **plain)
            plot.scatter("x", "y", source=self.data["outliers"], color=VERMILLION, size=8)
            self.figures.append(plot)
        if subject.unknowns:
            plot = panel(title="free energy; full circles are stable", visible=False)
            plot.multi_line("x", "y", source=self.data["lines"], color="colour", **plain)
            look = {"fill_color": "fill", "line_color": GREY, "size": 9}
            plot.scatter("x", "y", source=self.data["points"], **look)
            self.figures.append(plot)
        for slider in self.sliders.values():
            slider.on_change("value", self.follow)
            slider.on_change("value_throttled", self.settle)
        for select in (self.over, self.of):
            select.on_change("value", self.settle)
        self.beside = ThreadPoolExecutor(1)
        if not later:
            self.follow("value", None, None)

    def begin(self, document: Any) -> None:
        """Compile beside the page, which says so meanwhile, and then answer."""
        self.busy.text = _FIRST_COMPUTED

        def compiled() -> None:
            _told(self.subject.solve, self.values)
            document.add_next_tick_callback(lambda: self.settle("value", None, None))

        self.beside.submit(compiled)

    def _slider(self, name: str, text: str | None) -> Any:
        from bokeh.models import CustomJSTickFormatter, Slider

        value, domain = self.subject.values[name], self.subject.domains[name]
        low, high = (0.0 if domain.startswith("nonneg") else -1.0), max(3 * abs(value), 1.0)
        low *= high
        if is_logarithmic := "positive" in domain and value > 0:
            low, high = value / _FACTOR, value * _FACTOR
        with contextlib.suppress(ValueError):
            wanted = value if text is None else float(text)
            if math.isfinite(wanted) and (wanted > 0 or not is_logarithmic):
                value = wanted
        low, high, form = min(low, value), max(high, value), {}
        if is_logarithmic:
            self.logarithmic.add(name)
            low, high, value = map(math.log10, (low, high, value))
            code = "return Math.pow(10, tick).toPrecision(4)"
            form = {"format": CustomJSTickFormatter(code=code)}
        step = (high - low) / _STEPS
        return Slider(title=name, start=low, end=high, value=value, step=step, **form)

    def _read(self, name: str, positions: Any) -> Any:
        """Return values at positions of a slider."""
        return 10**positions if name in self.logarithmic else positions

    @property
    def values(self) -> dict[str, float]:
        """What the sliders say."""
        read = {name: self._read(name, slider.value) for name, slider in self.sliders.items()}
        return {name: float(f"{value:.6g}") for name, value in read.items()}

    def follow(self, attr: str, old: object, new: object) -> None:
        """Follow a slider: what compiled kernels answer at once."""
        values = self.values
        chosen = {"over": self.over.value, "of": self.of.value}
        self.link.value = f"?{urlencode(values | {k: v for k, v in chosen.items() if v})}"
        self.python.value = _told(self.subject.code, values)[0] or ""
        # Here alone, for filters of warnings are those of all threads.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            self.status.text = _told(self._update_curve, values)[1]

    def settle(self, attr: str, old: object, new: object) -> None:
        """Follow a slider that was let go: spectrum and landscape, too, beside the page."""
        self.follow(attr, old, new)
        document, values, of = self.status.document, self.values, self.of.value
        if document is None:
            self._update_slow(*self._slow(values, of))
            return
        self.busy.text = _COMPUTED

        def computed() -> None:
            # Of sliders that moved meanwhile the last one counts.
            if values == self.values:
                found = self._slow(values, of)
                document.add_next_tick_callback(lambda: self._update_slow(*found))

        self.beside.submit(computed)

    def _slow(self, values: dict[str, float], of: str) -> tuple[Any, Any, str]:
        """Return spectrum and landscape, None where there is none, and what was refused."""
        subject = self.subject
        spectrum, told = _told(subject.spectrum, values)
        wanted = subject.unknowns and of != _NOTHING
        over = (lambda at: subject.landscape(of, **at)) if wanted else None
        landscape, more = _told(over, values)
        return spectrum, landscape, "<br>".join(filter(None, [told, more]))

    def _update_curve(self, values: dict[str, float]) -> None:
        over = self.over.value
        slider = self.sliders[over]
        grid = self._read(over, np.linspace(slider.start, slider.end, _POINTS))
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
        self.table.text = self.subject.solve(values)._repr_html_()
        marks = [float(np.interp(values[over], grid, y)) for y in columns.values()]
        self.data["here"].data = {"x": [values[over]] * len(marks), "y": marks}

    def _update_slow(self, spectrum: Any, landscape: Any, told: str) -> None:
        self.busy.text = ""
        self.status.text = "<br>".join(filter(None, [self.status.text, told]))
        if spectrum is not None:
            x, density, outliers = spectrum
            self.data["density"].data = {"x": x, "y": density}
            self.data["outliers"].data = {"x": outliers, "y": [0.0] * len(outliers)}
        if self.subject.unknowns:
            self.figures[-1].visible = self.of.value != _NOTHING
        if landscape is not None:
            sections, points = landscape.sections, landscape.points
            self.figures[-1].xaxis.axis_label = landscape.of
            self.data["lines"].data = {
                "x": [list(s.values) for s in sections],
                "y": [list(s.free_energy) for s in sections],
                "colour": [_COLOURS[k % 3] for k in range(len(sections))],
            }
            self.data["points"].data = {
                "x": [p.value for p in points], "y": [p.free_energy for p in points],
                "fill": [GREY if p.stable else "white" for p in points],
            }  # fmt: skip

    def layout(self) -> Any:
        """Return all of it, arranged."""
        from bokeh.layouts import column, row

        picked = [self.over, *([self.of] if self.subject.unknowns else [])]
        left = column(*self.sliders.values(), *picked, self.copy, self.python, self.link)
        beside = column(row(*self.figures[:2]), row(self.table, *self.figures[2:]))
        return column(self.busy, self.status, row(left, beside))


@dataclass(frozen=True)
class Explorer:
    """A page that is served at `url`; notebooks show it."""

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

    port = whole_number("port", port, minimum=0, maximum=_LAST_PORT)
    subject = subject_of(model, **values)

    def visited(document: Any) -> None:
        given = document.session_context.request.arguments
        query = {name: texts[0].decode("utf-8", "replace") for name, texts in given.items()}
        document.title = subject.title
        page = ExplorePage(subject, query, embedded=embedded, later=True)
        document.add_root(page.layout())
        document.on_session_destroyed(lambda context: page.beside.shutdown(wait=False))
        page.begin(document)

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            reason = f"port {port} cannot be used: {error.strerror}; leave it out"
            raise ParameterError(reason) from None
        port = probe.getsockname()[1]
    hosts = [f"{ADDRESS}:{port}", f"localhost:{port}"]
    server = Server({"/": visited}, address=ADDRESS, port=port, allow_websocket_origin=hosts)
    server.start()
    return Explorer(f"http://{ADDRESS}:{port}/", server)


def explore(model: object, *, port: int = 0, browser: bool = True, **values: float) -> Explorer:
    """Open a page on which the parameters of a model are sliders.

    It shows curves over any parameter, order parameters, the limiting spectrum of models that have
    one and, where there is a free energy, its landscape with all stationary points. The address
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
    given: dict[str, Any] = {"port": port, **values}
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        explorer = serve(model, **given)
        print(f"{explorer.url} (interrupt with Ctrl-C)", flush=True)
        if browser:
            webbrowser.open(explorer.url)
        try:
            explorer.server.io_loop.start()
        finally:
            explorer.stop()
        return explorer
    return serve(model, embedded=True, **given)
