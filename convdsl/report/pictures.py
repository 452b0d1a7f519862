"""Pictures of a tiling: the product in tiles of workgroups, a workgroup in threads, the sum in steps."""

from __future__ import annotations

from itertools import product as combinations

from convdsl.lowering.tiling import Side, Tiling
from convdsl.report.drawing import Box, drawing, label, lattice, line, rect, short, turned
from convdsl.report.markup import Markup
from convdsl.schedule.nest import Loop, Nest

SIZE, STRIP = 200.0, 62.0
ROW = 46.0  # from one loop of the sum to the next


def product_picture(tiling: Tiling, result: str) -> Markup:
    """The result in tiles, its rows beside it, its columns above; one workgroup's part marked."""
    rows, columns = tiling.rows, tiling.columns
    left, top = STRIP + 30, STRIP + 40
    height, width = _shape(rows, columns)
    c, a, b = (
        Box(left, top, width, height),
        Box(left - STRIP - 10, top, STRIP, height),
        Box(left, top - STRIP - 10, width, STRIP),
    )
    down, right = _tiles(rows), _tiles(columns)
    mine = (_span(down, len(down) // 3), _span(right, len(right) // 3))
    step = _step(tiling)
    out = [rect(c, "matrix")]
    for box, name in ((a, tiling.a), (b, tiling.b)):
        out += [rect(box, "operand" if name else "nothing")]
    if tiling.a:
        out += [rect(a.part(0, mine[0][0], 1, mine[0][1]), "band")]
        out += [rect(a.part(step[0], mine[0][0], step[1], mine[0][1]), "staged")]
        out += [label(a.x + STRIP / 2, a.y + height * 0.75 + 4, tiling.a, "middle", "name")]
    if tiling.b:
        out += [rect(b.part(mine[1][0], 0, mine[1][1], 1), "band")]
        out += [rect(b.part(mine[1][0], step[0], mine[1][1], step[1]), "staged")]
        out += [label(b.x + width * 0.75, b.y + STRIP / 2 + 4, tiling.b, "middle", "name")]
    out += [rect(c.part(mine[1][0], mine[0][0], mine[1][1], mine[0][1]), "tile")]
    out += lattice(c, down[1:-1], right[1:-1])
    out += _overhang(c, rows, columns)
    out += [
        label(c.x + width * 0.75, c.y + height * 0.75 + 4, result, "middle", "name"),
        label(b.x, b.y - 8, _count(columns, "column")),
        turned(a.x - 8, c.y + height / 2, _count(rows, "row")),
        label(a.x, b.y + STRIP / 2, short(f"{tiling.terms.extent} terms", 12), kind="small"),
        label(a.x, b.y + STRIP / 2 + 12, short(f"({', '.join(tiling.terms.names)})", 12), kind="small"),
    ]  # fmt: skip
    title = f"{result}: {_count(rows, 'row')}, {_count(columns, 'column')}, in tiles"
    return drawing(left + max(width, 110) + 40, top + height + 16, title, *out)


def group_picture(tiling: Tiling) -> Markup | None:
    """The tile of one workgroup, with the results of two threads; None without numbers."""
    down, right = _owned(tiling.rows), _owned(tiling.columns)
    if down is None or right is None or not tiling.rows.tile.as_int():
        return None
    rows, columns = tiling.rows.tile.as_int() or 1, tiling.columns.tile.as_int() or 1
    longest = max(rows, columns)
    width = max(SIZE * columns / longest, 40.0)
    height = max(SIZE * rows / longest, 40.0)
    box = Box(34, 28, width, height)
    out = [rect(box, "matrix")]
    neighbour = (0, 1) if len(right) > 1 else (1, 0)
    for row, column, kind in ((0, 0, "mine"), (*neighbour, "other")):
        if row >= len(down) or column >= len(right):
            continue
        for (r0, r1), (c0, c1) in combinations(down[row], right[column]):
            part = box.part(c0 / columns, r0 / rows, c1 / columns, r1 / rows)
            out.append(rect(part, kind))
    edges = (_edges(down, rows), _edges(right, columns))
    out += lattice(box, *edges, kind="fine")
    out += [
        label(box.x + width / 2, box.y - 8, f"{columns} columns", "middle"),
        turned(box.x - 8, box.y + height / 2, f"{rows} rows"),
    ]
    title = f"the {rows} x {columns} results of a workgroup, and those of two of its threads"
    return drawing(max(box.x + width + 16, 180), box.y + height + 12, title, *out)


def sum_picture(nest: Nest) -> Markup | None:
    """The summed loops, the outermost on top, each iteration of one opened below; None without."""
    loops = [x for x in nest.loops if x.reduced]
    if not loops:
        return None
    width, out = 320.0, list[Markup]()
    labels: list[Markup] = []
    y = 18.0
    for number, loop in enumerate(loops):
        parts = max(1, min(loop.extent.as_int() or 8, 48))
        box = Box(10, y, width, 14)
        first = box.part(0, 0, 1 / parts, 1)
        out.append(rect(box, "sum"))
        out.append(rect(first, "staged" if _copied(nest, loop, "workgroup") else "band"))
        out += lattice(box, [], [n / parts for n in range(1, parts)])
        labels.append(label(10, y - 4, short(f"{loop.name}: {loop.extent}", 22)))
        labels.append(label(10 + width, y - 4, _notes(nest, loop), "end", "small"))
        if number + 1 < len(loops):
            out.append(line(10, y + 14, 10, y + ROW, "zoom"))
            out.append(line(first.x + first.width, y + 14, 10 + width, y + ROW, "zoom"))
        y += ROW
    height = y - ROW + 20
    return drawing(width + 20, height, "the loops of the sum, outermost first", *out, *labels)


# -- where the lines are ------------------------------------------------------------------------
def _shape(rows: Side, columns: Side) -> tuple[float, float]:
    """Height and width of the result, the longer side full, none too thin to be read."""
    m, n = rows.extent.as_int(), columns.extent.as_int()
    if not m or not n:
        return SIZE, SIZE
    longest = max(m, n)
    return max(SIZE * m / longest, SIZE / 3), max(SIZE * n / longest, SIZE / 3)


def _tiles(side: Side) -> list[float]:
    """The borders of tiles as fractions of the result; four tiles without numbers.

    Where every variable has a tail of its own, the tiles are drawn alike.
    """
    extent, tile, count = (x.as_int() for x in (side.extent, side.tile, side.groups))
    if not extent or not tile or not count:
        return [n / 4 for n in range(5)]
    if count != -(-extent // tile):
        return [n / count for n in range(count + 1)]
    return [n * tile / extent for n in range(count)] + [1.0]


def _span(borders: list[float], at: int) -> tuple[float, float]:
    """One tile, widened where it would be too thin to be seen."""
    at = max(0, min(at, len(borders) - 2))
    low, high = borders[at], borders[at + 1]
    return low, min(1.0, max(high, low + 0.02))


def _step(tiling: Tiling) -> tuple[float, float]:
    depth = tiling.depth.as_int() if tiling.depth is not None else None
    terms = tiling.terms.extent.as_int()
    share = depth / terms if depth and terms else 0.12
    return 0.36, 0.36 + min(0.64, max(share, 0.08))


def _overhang(c: Box, rows: Side, columns: Side) -> list[Markup]:
    """The part of the last tiles that lies outside of the result."""
    out = []
    for side, down in ((columns, False), (rows, True)):
        extent, tile = side.extent.as_int(), side.tile.as_int()
        one_tail = side.groups.as_int() == (-(-extent // tile) if extent and tile else None)
        if extent and tile and extent % tile and one_tail:
            share = min((-extent % tile) / extent, 0.07)
            part = (0, 1, 1, 1 + share) if down else (1, 0, 1 + share, 1)
            out.append(rect(c.part(*part), "beyond"))
    return out


Runs = list[tuple[int, int]]


def _owned(side: Side) -> list[Runs] | None:
    """For each position of a thread along a side the results that it has, as runs."""
    extents = [x.extent.as_int() for x in side.inside]
    if any(e is None for e in extents):
        return None
    numbers = [e or 1 for e in extents]
    threads: dict[tuple[int, ...], list[int]] = {}
    if len(numbers) and _volume(numbers) > 1 << 14:
        return None
    for digits in combinations(*(range(e) for e in numbers)):
        place = 0
        for digit, extent in zip(digits, numbers, strict=True):
            place = place * extent + digit
        lane = tuple(d for d, x in zip(digits, side.inside, strict=True) if x.level == "thread")
        threads.setdefault(lane, []).append(place)
    return [_runs(sorted(places)) for _, places in sorted(threads.items())]


def _volume(numbers: list[int]) -> int:
    out = 1
    for number in numbers:
        out *= number
    return out


def _runs(places: list[int]) -> Runs:
    out: Runs = []
    for place in places:
        if out and out[-1][1] == place:
            out[-1] = (out[-1][0], place + 1)
        else:
            out.append((place, place + 1))
    return out


def _edges(owned: list[Runs], extent: int) -> list[float]:
    inner = {low for runs in owned for low, _ in runs} - {0}
    return [low / extent for low in sorted(inner)]


# -- words --------------------------------------------------------------------------------------
def _count(side: Side, what: str) -> str:
    names = f" ({', '.join(side.names)})" if side.names else ""
    number = side.extent.as_int()
    plural = "" if number == 1 else "s"
    return short(f"{side.extent} {what}{plural}{names}", 30)


def _copied(nest: Nest, loop: Loop, memory: str) -> list[str]:
    return [s.operand for s in nest.stages if s.at == loop.name and s.memory == memory]


def _notes(nest: Nest, loop: Loop) -> str:
    notes = []
    for memory, where in (("workgroup", "workgroup memory"), ("register", "registers")):
        if staged := _copied(nest, loop, memory):
            notes.append(f"{', '.join(staged)} to {where}")
    if nest.partial == loop.name:
        notes.append("partial sums")
    if loop.level == "unroll":
        notes.append("unrolled")
    return short(", ".join(notes), 44)
