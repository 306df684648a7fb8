"""Support code of JAX files with averages over several Gaussian variables, as text.

Values are computed on the grids of :mod:`.product_parts`. Derivatives need nodes that move with the
parameters: break points carry theirs along, while which points belong to the grid stays fixed.
"""

GRID = '''
def line_rules(values, level):
    """Return the finest rule on the grid, as arrays without parameters, in a list."""
    grid = product_grid(values)
    reach = min(grid._reach * LONGER_REACH**level, max(grid._reach, FARTHEST_REACH))
    scale = REFINEMENT**-level
    if breaks(jnp.zeros(1), *values):
        length = PANEL_LENGTH * scale * float(outer_scale(jnp.zeros(1), *values))
        outer = {**unit_rule(length, reach), "outer_reach": np.float64(reach)}
    else:
        x, w = even_rule(STEP * scale * float(outer_scale(jnp.zeros(1), *values)), reach)
        x, w = halved(x, w) if EVEN else (x, w)
        outer = {"outer_node": x, "outer_weight": w}
    x = np.asarray(outer_nodes(values, outer)[0])
    _, inner_level = converged_tables(values, x)
    rules = {**outer, "inner": inner_rules_at(values, x, inner_level), "grid_reach": reach}
    points, found = [x], []
    for slot, width in zip(INNER_NODES, product_scales(jnp.zeros(1), *values), strict=True):
        width = float(width) * scale
        if cuts_of(slot, points, values).shape[1]:
            rule = unit_rule(PANEL_LENGTH * width, reach)
        else:
            node, weight = even_rule(INNER_STEP * width, reach)
            rule = {"node": node, "weight": weight}
        new = np.asarray(next_nodes(slot, points, values, rule, reach)[0])
        left = reach**2 - squares(points, NESTED)
        rule["kept"] = np.flatnonzero(new**2 <= left[:, None] * (1 + 1e-12))
        parent = rule["kept"] // new.shape[1]
        points = [*(x[parent] for x in points), new.reshape(-1)[rule["kept"]]]
        found.append(rule)
    return [{**rules, "grid": found}]


def unit_rule(length, reach):
    """Return a composite rule on [0, 1] whose panels are short enough for the whole line."""
    node, weight = panel_rule(math.ceil(2 * reach / length))
    return {"cut_node": node, "cut_weight": weight}


def cuts_of(slot, points, values):
    """Return where integrands have kinks or jumps in an inner node, a row for each point."""
    return getattr(GRID_FUNCTIONS, f"product_breaks_{slot}")(*points, *values)


def next_nodes(slot, points, values, rule, reach):
    """Return nodes and weights of one variable more, a row for each point."""
    if "node" in rule:
        shape = (len(points[0]), len(rule["node"]))
        return [jnp.broadcast_to(rule[name], shape) for name in ("node", "weight")]
    return image_rule(cuts_of(slot, points, values), reach, rule["cut_node"], rule["cut_weight"])


def line_arrays(values, rules):
    """Return weights, nodes and tables; traced values of the parameters may come in."""
    x, weight = outer_nodes(values, rules)
    columns = tables(x, *values, inner_nodes(values, x, rules["inner"]))
    points, origin = [x], jnp.arange(len(x))
    for slot, rule in zip(INNER_NODES, rules["grid"], strict=True):
        new, factor = next_nodes(slot, points, values, rule, rules["grid_reach"])
        parent = rule["kept"] // new.shape[1]
        points = [*(x[parent] for x in points), new.reshape(-1)[rule["kept"]]]
        weight = weight[parent] * factor.reshape(-1)[rule["kept"]]
        origin = origin[parent]
    columns = {name: column[origin] for name, column in columns.items()}
    own = ("outer_node", "outer_weight", "outer_reach", "cut_node", "cut_weight", "inner", "grid",
           "grid_reach")
    return {
        **{name: array for name, array in rules.items() if name not in own},
        "weight": weight,
        **dict(zip((NODE, *INNER_NODES), points, strict=True)),
        **columns,
        **product_tables(*points, *values, columns),
    }
'''
