"""From the syntax tree of an op to its system of equations.

head -> statements with unique indices -> ranges and shapes -> equations
"""

from __future__ import annotations

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System, Tensor
from convdsl.ir.expr import Var
from convdsl.sema.declarations import output_tensor, read_head
from convdsl.sema.integers import to_index
from convdsl.sema.model import ResolvedOp
from convdsl.sema.names import did_you_mean, quoted
from convdsl.sema.ranges import equalities, solve_ranges
from convdsl.sema.scopes import read_statements
from convdsl.sema.values import equation
from convdsl.syntax import ast


def resolve(program: ast.Program, op: str | None = None) -> ResolvedOp:
    """The meaning of one op of a program; without a name, of the only one.

    Raises:
        CdslError: E0217 when there is no such op or several to choose from, else any of E02xx.
    """
    return resolve_op(select_op(program, op))


def select_op(program: ast.Program, name: str | None) -> ast.Op:
    """The op with a name, or the only one.

    Raises:
        CdslError: E0217.
    """
    names = [op.name.name for op in program.ops]
    if name is None:
        if len(names) == 1:
            return program.ops[0]
        if not names:
            raise CdslError("E0217", f"{program.source.name} defines no op")
        raise CdslError(
            "E0217",
            f"{program.source.name} defines {len(names)} ops: {quoted(names)}",
            help="choose one: `--op NAME`, or `op=...` in Python",
        )
    if name not in names:
        raise CdslError(
            "E0217",
            f"{program.source.name} defines no op `{name}`",
            notes=(f"it defines {quoted(names)}",) if names else (),
            help=did_you_mean(name, names),
        )
    return next(op for op in program.ops if op.name.name == name)


def resolve_op(op: ast.Op) -> ResolvedOp:
    """The meaning of one op.

    Raises:
        CdslError: the first mistake found, any of E02xx.
    """
    head = read_head(op)
    output = output_tensor(head)
    statements = read_statements(head)
    ranges = solve_ranges(head, statements, output, equalities(head))
    tensors: dict[str, Tensor] = {**head.inputs, **ranges.lets, output.name: output}
    declared = {let.definition.tensor.name for let in op.lets if let.dtype is not None}
    equations = []
    for n, statement in enumerate(statements):
        variables: dict[str, Var] = {name: ranges.variables[n, name] for name in statement.indices}
        known = statement.target in declared or statement.target == output.name
        equations.append(equation(head, statement, variables, tensors, known))
    defined = tuple(
        (name, to_index(chain.operands[1], head.integer))
        for name, chain in head.definitions.items()
    )
    system = System(
        op.name.name, head.input_sizes, defined, tuple(tensors.values()), tuple(equations)
    )
    binders = tuple(
        index.binder
        for statement in statements
        for index in statement.indices.values()
        if index.binder is not None and index.binder.high is not None
    )
    return ResolvedOp(
        name=op.name.name,
        syntax=op,
        parameters=tuple(head.parameters.values()),
        inputs=tuple(head.inputs.values()),
        output=output,
        input_sizes=head.input_sizes,
        defined=defined,
        clauses=tuple(head.definitions.values()),
        checks=head.checks,
        binders=binders,
        narrowings=tuple(ranges.narrowings),
        system=system,
    )
