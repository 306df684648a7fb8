"""Quadrature rules for the normal law as functions that every scalar language can say.

Rules and constants are those of :mod:`giantstep.runtime.quadrature`.
"""

from __future__ import annotations

from ...printing.scalar_helpers import LEGENDRE_NODES, LEGENDRE_WEIGHTS
from .language import Function, Kind, Parameter

PANEL_ORDER = 2 * len(LEGENDRE_NODES)
# A wave of this frequency is resolved by panels of the usual length.
PANEL_FREQUENCY = 10.0

DENSITY = Function(
    name="rule_density",
    parameters=(Parameter("x"),),
    body="return exp(-0.5 * x * x) * 0.3989422804014327\n",
    returns=Kind.REAL,
    documentation="Density of the standard normal law.",
)

TRAPEZOIDAL_STEP = Function(
    name="rule_step",
    parameters=(Parameter("strip"), Parameter("growth"), Parameter("frequency")),
    body="""
rate = 0.5 + growth
y = sqrt(44.0 / rate)
if strip < y:
    y = strip
return 6.283185307179586 * y / (44.0 + rate * y * y + frequency * y)
""",
    returns=Kind.REAL,
    documentation="""Largest step of the trapezoidal rule with an error below exp(-44).

The error is exp(-2 pi y/h + y**2 (1/2 + growth) + frequency y) for every y inside the strip of
analyticity.""",
)

REFINED_STEP = Function(
    name="rule_refined",
    parameters=(Parameter("step"), Parameter("refinement", Kind.WHOLE)),
    body="""
ratio = 0.6180339887498949
for i in range(refinement):
    step *= ratio
    ratio = 0.25 / ratio
return step
""",
    returns=Kind.REAL,
    documentation="""Step after some refinements, of which two divide it by four.

One is by the golden ratio: halves would see a wave in resonance with both as the same slow one.""",
)

CLIPPED = Function(
    name="rule_clipped",
    parameters=(Parameter("x"), Parameter("reach")),
    body="""
if not (x > -reach):
    return -reach
if x > reach:
    return reach
return x
""",
    returns=Kind.REAL,
    documentation="A break point moved into [-reach, reach].",
)

PIECES = Function(
    name="rule_pieces",
    parameters=(Parameter("width"), Parameter("size")),
    body="""
panels = 0
while panels * size < width:
    panels += 1
return panels
""",
    returns=Kind.WHOLE,
    documentation="Number of panels of at most a size in a piece of the line.",
)

PANEL_RULE = Function(
    name="rule_reference",
    parameters=(
        Parameter("panels", Kind.WHOLE),
        Parameter("panel_weight", Kind.OUTPUT),
        Parameter("panel_node", Kind.OUTPUT),
    ),
    body=f"""
for i in range(panels):
    for k in range({PANEL_ORDER}):
        panel_weight[{PANEL_ORDER} * i + k] = gauss_weight[k] / panels
        panel_node[{PANEL_ORDER} * i + k] = (i + gauss_node[k]) / panels
""",
    documentation="Composite Gauss-Legendre rule on [0, 1].",
)


def gauss_rule() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the Gauss–Legendre rule on [0, 1]."""
    nodes = (*(-x for x in reversed(LEGENDRE_NODES)), *LEGENDRE_NODES)
    weights = (*reversed(LEGENDRE_WEIGHTS), *LEGENDRE_WEIGHTS)
    return tuple((1 + x) / 2 for x in nodes), tuple(w / 2 for w in weights)
