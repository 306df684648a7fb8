"""The part of a C kernel that makes a grid of several variables, as templates; see `c_driver`."""

from __future__ import annotations

from .product_functions import LONGER_REACH, NESTED_REACH, REACH, STEP

# Steps and reaches of the nodes of the line: by themselves, and as part of a grid, where doubling
# the nodes divides distances by the square root of two.
LINE: dict[str, str] = {
    "step_of_level": "ldexp(set->step, -level)",
    "refinement": "level",
    "first_step": "0.13",
    "about_step": (
        "        /* 0.25 gives 1e-16; the estimate of 0.13 is good enough to show 1e-11. */\n"
    ),
    "first_reach": "12.0",
    "longer_reach": "1.15",
    "nested_reach": "pow(1.15, -(double)k)",
}
GRID: dict[str, str] = {
    "step_of_level": "set->step * pow(2.0, -0.5 * level)",
    "refinement": "level / 2 - 1",
    "first_step": repr(STEP),
    "about_step": "",
    "first_reach": repr(REACH),
    "longer_reach": repr(LONGER_REACH),
    "nested_reach": f"pow({NESTED_REACH}, (double)k)",
}
# The grid of outer and inner nodes, from the nodes of the line, which stay in their own memory.
POINTS_CONSTANTS = """\
    N_POINT_COLUMNS = ${n_point_columns},
    MOST_FIRST_POINTS = ${most_first_points}, /* of one rule at the first level */
    MOST_POINTS = ${most_points},             /* at the others */
"""
POINTS_MEMBER = """\
    double *points;
"""
POINTS_FORGET = """\
        free(set->levels[k].points);
        set->levels[k].points = NULL;
"""
MAKE_POINTS = """\
/* Replace the nodes of the line by points of the grid of outer and inner nodes. */
static int make_points(rule_level *made, int level, double reach, const double *p)
{
    ptrdiff_t points[3], all = 0, k;
    double *place;
    (void)p;
    for (k = 0; k < 3; k++) {
        points[k] = product_points(${point_arguments}, 0, NULL);
        if (points[k] < 0 || points[k] > (level == 0 ? MOST_FIRST_POINTS : MOST_POINTS))
            return ${NAME}_UNRESOLVED;
        all += N_POINT_COLUMNS * points[k];
    }
    place = (double *)malloc(((size_t)all + 1) * sizeof(double));
    if (place == NULL)
        return ${NAME}_NO_MEMORY;
    made->points = place;
    for (k = 0; k < 3; k++) {
        product_points(${point_arguments}, points[k], place);
        made->line[k] = place;
        made->line_count[k] = points[k];
        place += N_POINT_COLUMNS * points[k];
    }
    return ${NAME}_OK;
}

"""
POINTS = """\
    {
        const int status = make_points(made, level, reach, p);
        if (status != ${NAME}_OK) {
            free(made->memory);
            made->memory = NULL;
            return status;
        }
    }
"""
