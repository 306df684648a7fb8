"""The part of a C kernel that makes a grid of several variables, as templates; see `c_driver`."""

from __future__ import annotations

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
static int make_points(const rule_set *set, rule_level *made, ptrdiff_t level, const double *p)
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
        const int status = make_points(set, made, level, p);
        if (status != ${NAME}_OK) {
            free(made->memory);
            made->memory = NULL;
            return status;
        }
    }
"""
