"""Which index a name means: every statement gets indices that are unique in it.

`read_statements` walks the definitions, checks that reads and indices name what is in scope, and
renames bound indices so that later passes need no scopes: of two reductions over `k`, the second
is over `k_1`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from convdsl.diagnostics import CdslError, Note, Span
from convdsl.ir.expr import DType
from convdsl.sema.declarations import Head
from convdsl.sema.names import did_you_mean, is_size, quoted
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class IndexName:
    """An index of a statement: as the user wrote it, and its binder when a reduction binds it."""

    name: str
    span: Span
    binder: ast.Binder | None = None


@dataclass(slots=True)
class Statement:
    """A let or the result, its value renamed. `indices` has all of its indices, left side first."""

    target: str
    dtype: DType
    axes: tuple[ast.Axis, ...]
    value: ast.Expr
    span: Span
    indices: dict[str, IndexName] = field(default_factory=dict)
    reads: list[ast.Read] = field(default_factory=list)

    @property
    def left(self) -> tuple[str, ...]:
        """The indices of the left side, in order."""
        return tuple(ref.name for axis in self.axes for ref in axis.names)


def read_statements(head: Head) -> tuple[Statement, ...]:
    """The lets and the result, in order.

    Raises:
        CdslError: E0201, E0204, E0205, E0209, E0212 and E0219: see `convdsl.codes.sema`.
    """
    op, visible = head.op, set(head.inputs)
    statements: list[Statement] = []
    for let in op.lets:
        if let.definition.tensor.name == op.output.name.name:
            raise CdslError(
                "E0219",
                f"`{op.output.name.name}` is the result and cannot be a `let`",
                let.definition.tensor.span,
                help="leave out `let`, or give the intermediate tensor another name",
            )
        dtype: DType = let.dtype or "f32"
        statements.append(_Renamer(head, visible).read(let.definition, dtype))
        visible.add(let.definition.tensor.name)
    target = op.result.tensor
    if target.name != op.output.name.name:
        raise CdslError(
            "E0219",
            f"`{target.name}` is not the result of `{op.name.name}`",
            target.span,
            notes=(Note("the result is declared here", op.output.name.span),),
            help=f"write `{op.output.name.name}[...] = ...`, or `let {target.name}[...] = ...`",
        )
    statements.append(_Renamer(head, visible).read(op.result, op.output.dtype))
    return tuple(statements)


class _Renamer:
    """One walk over one statement."""

    def __init__(self, head: Head, visible: set[str]) -> None:
        self.head, self.visible = head, visible
        self.scope: dict[str, str] = {}  # from the user's name to the unique one
        self.used: set[str] = set()
        self.out: Statement

    def read(self, definition: ast.Definition, dtype: DType) -> Statement:
        self.out = Statement(
            definition.tensor.name, dtype, definition.axes, definition.value, definition.span
        )
        for axis in definition.axes:
            for ref in axis.names:
                self._check_index_name(ref)
                if ref.name in self.scope:
                    raise CdslError(
                        "E0209",
                        f"`{ref.name}` stands twice on the left side",
                        ref.span,
                        notes=(Note("it is first here", self.out.indices[ref.name].span),),
                        help="every element is defined once, so each axis has an index of its own",
                    )
                self._declare(ref, None)
        self.out.value = self._expr(definition.value)
        return self.out

    # -- names -------------------------------------------------------------------------------------
    def _check_index_name(self, ref: ast.Ref) -> None:
        if is_size(ref.name):
            raise CdslError(
                "E0204",
                f"`{ref.name}` is spelt like a size and cannot be an index",
                ref.span,
                notes=("names of sizes start with an upper-case letter, those of indices do not",),
                help=f"write `{ref.name.lower()}`" if ref.name.lower() != ref.name else None,
            )
        if ref.name in self.head.taken:
            kind = "parameter" if ref.name in self.head.parameters else "tensor"
            raise CdslError(
                "E0204",
                f"the index `{ref.name}` is named like a {kind}",
                ref.span,
                notes=(Note(f"the {kind} is declared here", self.head.taken[ref.name]),),
                help="rename the index",
            )

    def _declare(self, ref: ast.Ref, binder: ast.Binder | None) -> str:
        unique, n = ref.name, 0
        while unique in self.used or (n and unique in self.head.taken):
            n += 1
            unique = f"{ref.name}_{n}"
        self.used.add(unique)
        self.scope[ref.name] = unique
        self.out.indices[unique] = IndexName(ref.name, ref.span, binder)
        return unique

    def _index(self, ref: ast.Ref) -> ast.Ref:
        """An index that a read uses."""
        if ref.name in self.scope:
            return replace(ref, name=self.scope[ref.name])
        self._check_index_name(ref)
        raise self._out_of_scope(ref)

    def _out_of_scope(self, ref: ast.Ref) -> CdslError:
        hint = did_you_mean(ref.name, self.scope) if len(ref.name) > 1 else None
        remedy = f"bind it in a reduction, like `sum[{ref.name}] ...`, or put it on the left side"
        return CdslError(
            "E0201",
            f"no index `{ref.name}` is in scope here",
            ref.span,
            notes=(f"in scope: {quoted(self.scope)}" if self.scope else "no index is in scope",),
            help=hint if hint and hint.startswith("did") else remedy,
        )

    # -- expressions -------------------------------------------------------------------------------
    def _expr(self, expr: ast.Expr) -> ast.Expr:
        match expr:
            case ast.Number():
                return expr
            case ast.Ref():
                return self._ref(expr)
            case ast.Binary(_, left, right):
                return replace(expr, left=self._expr(left), right=self._expr(right))
            case ast.Negate(operand):
                return replace(expr, operand=self._expr(operand))
            case ast.Call(_, args):
                return replace(expr, args=tuple(self._argument(a) for a in args))
            case ast.Read():
                return self._read(expr)
            case ast.Reduce():
                return self._reduce(expr)

    def _ref(self, ref: ast.Ref) -> ast.Ref:
        if ref.name in self.scope:
            return replace(ref, name=self.scope[ref.name])
        if is_size(ref.name) or ref.name in self.head.taken:
            return ref
        # An index that another reduction binds must not pass for one that is in scope.
        hint = did_you_mean(ref.name, [*self.scope, *self.head.parameters])
        remedy = "declare it as a parameter, or bind it as an index"
        raise CdslError(
            "E0201",
            f"unknown name `{ref.name}`",
            ref.span,
            notes=(f"indices in scope: {quoted(self.scope)}",) if self.scope else (),
            help=hint if hint and hint.startswith("did") else remedy,
        )

    def _argument(self, arg: ast.Expr | ast.Comparison) -> ast.Expr | ast.Comparison:
        if isinstance(arg, ast.Comparison):
            return replace(arg, left=self._expr(arg.left), right=self._expr(arg.right))
        return self._expr(arg)

    def _read(self, read: ast.Read) -> ast.Read:
        self._check_tensor(read.tensor)
        axes = tuple(
            replace(axis, names=tuple(self._index(ref) for ref in axis.names)) for axis in read.axes
        )
        renamed = replace(read, axes=axes)
        self.out.reads.append(renamed)
        return renamed

    def _check_tensor(self, ref: ast.Ref) -> None:
        name, head = ref.name, self.head
        if name in self.visible:
            return
        if name == head.op.output.name.name:
            raise CdslError(
                "E0212",
                f"`{name}` is the result and cannot be read",
                ref.span,
                help="a tensor that is read again is a `let`",
            )
        if name in head.parameters:
            raise CdslError(
                "E0216",
                f"`{name}` is a parameter and has no axes",
                ref.span,
                help=f"write `{name}` without brackets",
            )
        if name in head.taken:  # a let that stands here or further down
            raise CdslError(
                "E0212",
                f"`{name}` is not defined yet",
                ref.span,
                notes=(Note("it is defined here", head.taken[name]),),
                help="a `let` reads inputs and earlier lets; move the definition up",
            )
        raise CdslError(
            "E0201", f"unknown tensor `{name}`", ref.span, help=did_you_mean(name, self.visible)
        )

    def _reduce(self, reduce: ast.Reduce) -> ast.Reduce:
        # `else` is outside: it has a value where the reduction has no point.
        otherwise = None if reduce.otherwise is None else self._expr(reduce.otherwise)
        outer = dict(self.scope)
        binders = tuple(self._bind(b, outer, reduce) for b in reduce.binders)
        relations = tuple(
            replace(r, left=self._expr(r.left), right=self._expr(r.right)) for r in reduce.relations
        )
        body = self._expr(reduce.body)
        self.scope = outer
        return replace(reduce, binders=binders, relations=relations, body=body, otherwise=otherwise)

    def _bind(self, binder: ast.Binder, outer: dict[str, str], reduce: ast.Reduce) -> ast.Binder:
        ref = binder.name
        self._check_index_name(ref)
        if ref.name in self.scope:
            before = self.out.indices[self.scope[ref.name]]
            twice = ref.name not in outer
            raise CdslError(
                "E0202",
                f"`{ref.name}` is bound twice"
                if twice
                else f"`{ref.name}` already is an index here",
                ref.span,
                notes=(Note("it is first here", before.span),),
                help=f"rename the index of this `{reduce.reducer}`",
            )
        unique = self._declare(ref, binder)
        renamed = replace(binder, name=replace(ref, name=unique))
        self.out.indices[unique] = replace(self.out.indices[unique], binder=renamed)
        return renamed
