"""The verbs of schedules, one file each."""

from __future__ import annotations

from convdsl.schedule.step import Compound, Step
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.swizzle import Swizzle
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.tile import Tile
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize

VERBS: dict[str, type[Step]] = {
    verb.verb: verb
    for verb in (
        Materialise, Inline, Gather, Solve, Phases, Taps, Columns, Toeplitz, Toom, Reindex, Layout,
        Pack, Pad, Rfactor, Split, Fuse, Order, Map, Swizzle, Stage, Pipeline, Interior, Unroll,
        Vectorize,
        Partial, Compute,
    )
}  # fmt: skip
"""From the verb to its record, in the order in which the reference lists them."""

COMPOUNDS: dict[str, type[Compound]] = {Tile.verb: Tile}
"""Verbs that are short for several steps."""
