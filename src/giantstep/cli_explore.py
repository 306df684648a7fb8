"""``giantstep explore``: sliders for all parameters of a model, in the browser."""

from __future__ import annotations

import argparse
from typing import Any

from . import cli_options as opts
from .cli_conjecture import MODELS, read_argument, read_pair
from .cli_kernel import MODELS as KERNELS, check_model, kernel_named, own_object
from .cli_options import Command, option, whole

EPILOG = """\
One page: curves over any parameter, order parameters, the limiting spectrum and, for kernels with a
free energy, the free energy over an order parameter with all stationary points. The address of the
page holds all values; a button copies them as Python. It is served on 127.0.0.1 only, and loads
nothing from elsewhere. Needs bokeh: pip install "giantstep[explore]".

MODEL is srf (spiked random features), one-step, a model of giantstep kernel --list, or
FILE.py:NAME: a model, system or kernel of your own, or a function that returns one.

examples of what to type:
  giantstep explore --student erf --teacher "sin(z) + He(3, z)/6" --set alpha0=5
  giantstep explore one-step --teacher erf --set step_size=3 --set alpha=1.5
  giantstep explore sherrington-kirkpatrick --set beta=2
  giantstep explore mymodel.py:system --port 5006 --no-browser
"""

# Teachers, and arguments that a model has to have.
_DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "srf": ("sin", {}),
    "one-step": ("erf", {"alpha": 2.0, "beta": 1.5, "step_size": 2.0}),
}


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until it is interrupted."""
    import giantstep

    check_model(arguments.model, (*MODELS, *KERNELS))
    given = dict(read_pair("--set", text, "alpha=2") for text in arguments.set)
    values = {name: read_argument(text) for name, text in given.items()}
    model: Any
    if arguments.model in MODELS:
        kind = getattr(giantstep, MODELS[arguments.model])
        teacher, first = _DEFAULTS[arguments.model]
        own = first | {name: x for name, x in values.items() if name not in kind._asked}
        pair = arguments.student or "tanh", arguments.teacher or teacher
        model = kind(*pair, **own, cache_folder=arguments.cache_folder)
        values = {name: x for name, x in values.items() if name in kind._asked}
    elif ":" in arguments.model:
        model = own_object(arguments.model)
        model = model if hasattr(model, "curve") else giantstep.lower(model)
    else:
        model = kernel_named(arguments)
    giantstep.explore(model, port=arguments.port, browser=not arguments.no_browser, **values)
    return 0


EXPLORE = Command(
    "explore", "sliders for all parameters of a model, in the browser", run, (
        opts.STUDENT.but(help=f"{opts.STUDENT.help} [tanh]", default=None),
        opts.TEACHER.but(help=f"{opts.TEACHER.help} [sin, erf for one-step]", default=None),
        option("MODEL", "what is explored; see below", default="srf", nargs="?"),
        option(
            "--set NAME=VALUE", "first value of a parameter, such as alpha=2; once for each",
            default=[], action="append",
        ),
        option("--port N", "of 127.0.0.1; 0 for one that is free", whole(0, 5006), 0),
        option("--no-browser", "print the address and open nothing"), opts.CACHE_FOLDER,
    ), EPILOG, flags=None,
)  # fmt: skip
