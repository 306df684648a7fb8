"""A kernel as a module of Fortran 2008, which needs nothing but the C library's ``log1p``.

Functions are those of all scalar languages; memory and entries are written here.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from ...printing.printers import FortranPrinter
from ...printing.spellings import FortranLanguage, fortran_identifier, fortran_lines
from ..documentation import about
from ..driver import BakedTables
from .kernel_parts import KernelParts
from .levels import BAD_ARGUMENT, NO_MEMORY, UNRESOLVED
from .vectors import Vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..lowered import LoweredSystem

MODULE = Template("""\
${about}
module ${name}
${uses}    private
    public :: solve, solve_many${also}

    integer, parameter, public :: n_parameters = ${n_parameters}, n_outputs = ${n_outputs}
    character(len=*), parameter, public :: parameter_names(n_parameters) = ${inputs}
    character(len=*), parameter, public :: output_names(n_outputs) = ${outputs}

    ! status: 0 solved; 1 no solution; 2 no memory; 3 an integrand varies on a scale that no rule
    ! here resolves; 4 a parameter or data are not finite or outside their domain.
    ! Iterations are negative where Newton's method did not converge.
    type, public :: solve_info
        integer :: status = 0, iterations = 0, nodes = 0
        real(dp) :: residual = 0.0_dp, rounding = 0.0_dp
    end type solve_info

    ! Rows of a data set: a column of the array for each of its columns; weights of any sum, which
    ! need not be there.
    type, public :: data_set
        real(dp), allocatable :: columns(:, :), weight(:)
    end type data_set

    type :: rule_level
        integer :: counts(6) = 0
        real(dp) :: table_error = 0.0_dp
        real(dp), allocatable :: columns(:)
    end type rule_level

    ! Nodes and tables, which stay here from one call to the next; each thread needs its own.
    type, public :: workspace
        private
        logical :: made = .false.
        real(dp) :: line(2) = 0.0_dp, made_for(${n_all_parameters}) = 0.0_dp
        type(rule_level) :: levels(0:${n_levels} - 1)
        type(data_set) :: data(${n_data})
    end type workspace

${library}${constants}
contains

${tools}
${functions}
! Make the rules of a level, if they are not there; return 0 or what went wrong.
function make_level(rules, level, p) result(status)
    type(workspace), intent(inout) :: rules
    integer, value :: level
    real(dp), contiguous, intent(in) :: p(:)
    real(dp), allocatable :: columns(:)${points_locals}
    integer :: status, total, failure
    status = 0
    if (allocated(rules%levels(level)%columns)) return
    status = ${unresolved}
    associate (now => rules%levels(level))
        total = level_counts(level, p, rules%line, now%counts)
        if (total < 0) return
        allocate (columns(total), stat=failure)
        if (failure /= 0) status = ${no_memory}
        if (failure /= 0) return
        now%table_error = level_columns(level, p, rules%line, now%counts, columns)
        if (now%table_error < 0.0_dp) return
${points}        call move_alloc(columns, now%columns)
    end associate
    status = 0
end function make_level

! Solve a row on the rules of a level; what is known about them goes with the solution.
subroutine solve_level(rules, level, p, values, errors, state)
    type(workspace), intent(inout) :: rules
    integer, value :: level
    real(dp), contiguous, intent(in) :: p(:)
    real(dp), contiguous, intent(inout) :: values(:), errors(:), state(:)
    associate (now => rules%levels(level))
        ${solve_columns}
        state(4) = now%table_error
    end associate
end subroutine solve_level

${driver}
! Solve at one set of parameters; nodes and tables of the workspace are used again.
subroutine solve(rules, parameters, ${data_argument}rtol, values, errors, info)
    type(workspace), intent(inout) :: rules
    real(dp), intent(in) :: parameters(n_parameters), rtol
${data_declaration}    real(dp), intent(out) :: values(n_outputs), errors(n_outputs)
    type(solve_info), intent(out) :: info
    real(dp) :: p(${n_all_parameters}), state(5)
    real(dp) :: found(${n_all_outputs}), found_errors(${n_all_outputs})
    integer :: status
    values = nan
    errors = infinity
    state = 0.0_dp
    p = 0.0_dp
    status = merge(0, ${bad_argument}, admissible(parameters))
${data_checks}    if (status == 0) then
        call load_parameters(parameters, p)
        if (.not. (rules%made .and. same_tables(p, rules%made_for))) call forget(rules)
        rules%made = .true.
        rules%made_for = p
        status = solve_row(rules, p, rtol, found, found_errors, state)
    end if
    info%status = finish_row(status, found, found_errors, state, values, errors)
    info%iterations = int(state(1))
    info%residual = state(2)
    info%rounding = state(3)
    info%nodes = int(state(5))
end subroutine solve

subroutine forget(rules)
    type(workspace), intent(inout) :: rules
    integer :: k
    do k = lbound(rules%levels, 1), ubound(rules%levels, 1)
        if (allocated(rules%levels(k)%columns)) deallocate (rules%levels(k)%columns)
    end do
end subroutine forget

! Solve at many sets of parameters, one in each column.
subroutine solve_many(parameters, ${data_argument}rtol, values, errors, info)
    real(dp), intent(in) :: parameters(:, :), rtol
${data_declaration}    real(dp), intent(out) :: values(:, :), errors(:, :)
    type(solve_info), intent(out) :: info(:)
    type(workspace) :: rules
    integer :: k
    do k = 1, size(parameters, 2)
        call solve( &
            rules, parameters(:, k), ${data_argument}rtol, values(:, k), errors(:, k), info(k))
    end do
end subroutine solve_many

${selfcheck}
end module ${name}
""")
POINTS = """\
        total = point_counts(level, p, rules%line, now%counts, columns, points)
        if (total < 0) return
        allocate (grid(total), stat=failure)
        if (failure /= 0) status = 2
        if (failure /= 0) return
        call point_columns(level, p, rules%line, now%counts, columns, points, grid)
        call move_alloc(grid, columns)
"""
DATA_CHECK = Template("""\
    rules%data(${k}) = data(${k})
    if (status == 0 .and. .not. allocated(data(${k})%columns)) status = ${bad_argument}
    if (status == 0) then
        associate (given => rules%data(${k}))
            if (.not. allocated(given%weight)) &
                allocate (given%weight(size(given%columns, 1)), source=1.0_dp)
            if (size(given%columns, 2) /= ${columns}) status = ${bad_argument}
            if (size(given%weight) /= size(given%columns, 1)) status = ${bad_argument}
        end associate
    end if
    if (status == 0) then
        if (.not. check_data_${place}(rules%data(${k})%weight${arrays})) status = ${bad_argument}
    end if
""")
SELFCHECK = Template("""\
! Solve at points of which the results are known; return how many values are wrong.
function selfcheck() result(wrong)
    real(dp), parameter :: points(n_parameters, ${count}) = reshape( &
        [real(dp) :: ${points}], [n_parameters, ${count}])
    real(dp), parameter :: expected(n_outputs, ${count}) = reshape( &
        [${expected}], [n_outputs, ${count}])
    real(dp), parameter :: allowed(n_outputs, ${count}) = reshape( &
        [${allowed}], [n_outputs, ${count}])
    real(dp) :: values(n_outputs), errors(n_outputs)
${data_local}    type(workspace) :: rules
    type(solve_info) :: info
    integer :: wrong, i, k
    wrong = 0
${data}    do k = 1, ${count}
        call solve(rules, points(:, k), ${data_argument}1e-11_dp, values, errors, info)
        do i = 1, n_outputs
            if (abs(values(i) - expected(i, k)) <= errors(i) + allowed(i, k)) cycle
            wrong = wrong + 1
            print *, trim(output_names(i)), values(i), ", expected", expected(i, k)
        end do
    end do
end function selfcheck
""")


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return the module; see :meth:`..lowered.LoweredSystem.files`."""
    roots = {root.name: fortran_identifier(root.name) for root in lowered.program.roots}
    language = FortranLanguage(FortranPrinter(roots))
    parts = KernelParts(lowered, language, tables, vectors)
    name = lowered.system.name if name is None else name
    # Nothing inside of a module may have its name.
    module = fortran_identifier(f"{name}_kernel")
    return {f"{name}.f90": _module(lowered, parts, language, module)}


def _module(
    lowered: LoweredSystem, parts: KernelParts, language: FortranLanguage, name: str
) -> str:
    arrays = [[f"%columns(:, {c + 1})" for c in range(len(columns))] for _, columns in parts.data]
    call = ["level", "p", "now%counts", "now%columns"]
    for k, columns in enumerate(arrays, start=1):
        call += [f"rules%data({k}){x}" for x in ("%weight", *columns)]
    grid, data = parts.product is not None, bool(parts.data)
    checks = (
        DATA_CHECK.substitute(
            k=k + 1,
            place=k,
            columns=len(columns),
            arrays="".join(f", rules%data({k + 1}){x}" for x in columns),
            bad_argument=BAD_ARGUMENT,
        )
        for k, columns in enumerate(arrays)
    )
    text = MODULE.substitute(
        about=_about(lowered, parts, name),
        name=name,
        n_parameters=len(parts.inputs),
        n_outputs=len(parts.results),
        n_all_parameters=len(parts.all_inputs),
        n_all_outputs=len(parts.all_outputs),
        n_levels=parts.levels,
        n_data=len(parts.data),
        inputs=_texts(parts.inputs),
        outputs=_texts([o for o, _ in parts.results]),
        constants="".join(_array(*item, language) for item in parts.arrays.items()),
        uses=language.uses,
        library=language.library,
        tools=language.tools,
        functions="\n".join([*parts.helpers, *(language.source(f) for f in parts.functions)]),
        driver=language.source(parts.driver),
        points_locals=", grid(:)\n    integer :: points(3)" if grid else "",
        points=POINTS if grid else "",
        solve_columns=f"call solve_columns({', '.join([*call, 'values', 'errors', 'state'])})",
        data_argument="data, " if data else "",
        data_declaration=f"    type(data_set), intent(in) :: data({len(parts.data)})\n" * data,
        data_checks="".join(checks),
        unresolved=UNRESOLVED,
        no_memory=NO_MEMORY,
        bad_argument=BAD_ARGUMENT,
        selfcheck=_selfcheck(parts, language) if parts.vectors else "",
        also=", selfcheck" if parts.vectors else "",
    )
    return "\n".join(part for line in text.split("\n") for part in fortran_lines(line))


def _selfcheck(parts: KernelParts, language: FortranLanguage) -> str:
    def numbers(values: Sequence[float]) -> str:
        return ", ".join(map(language.number, values))

    sets = parts.vectors.columns(parts.data) if parts.vectors else []
    return SELFCHECK.substitute(
        parts.known(numbers),
        data_argument="data, " if sets else "",
        data_local=f"    type(data_set) :: data({len(sets)})\n" if sets else "",
        data="".join(
            f"    data({k})%columns = reshape( &\n        "
            f"[{', '.join(map(numbers, columns))}], [{len(columns[0])}, {len(columns)}])\n"
            for k, columns in enumerate(sets, start=1)
        ),
    )


def _about(lowered: LoweredSystem, parts: KernelParts, name: str) -> str:
    lines = about(lowered, "Fortran 2008, no libraries", parts.fixed)
    columns = "; ".join(f"{d}: {', '.join(c)}" for d, c in parts.data)
    lines += ["", f"Data sets and their columns, in this order: {columns}."] if columns else []
    data = "data, " if columns else ""
    lines += [
        "",
        f"    use {name}",
        "    type(workspace) :: rules",
        f"    call solve(rules, parameters, {data}1e-11_dp, values, errors, info)",
    ]
    return "\n".join(f"! {line}".rstrip() for line in lines)


def _texts(names: Sequence[str]) -> str:
    longest = max(map(len, names), default=1)
    return f"[character(len={longest}) :: {', '.join(f'{chr(34)}{n}{chr(34)}' for n in names)}]"


def _array(name: str, values: Sequence[float], language: FortranLanguage) -> str:
    """Return an array of constants, of parts where a statement would have too many lines."""
    parts, lines = [values[k : k + 500] for k in range(0, len(values), 500)], []
    for k, part in enumerate(parts):
        numbers = ", ".join(language.number(float(x)) for x in part)
        own = name if len(parts) == 1 else f"{name}_{k}"
        lines.append(f"    real(dp), parameter :: {own}({len(part)}) = [{numbers}]\n")
    if len(parts) > 1:
        names = ", ".join(f"{name}_{k}" for k in range(len(parts)))
        lines.append(f"    real(dp), parameter :: {name}({len(values)}) = [{names}]\n")
    return "".join(lines)
