"""The arrays of a layer: several sets of what varies, one of what is constant."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.arguments import Array
from convdsl.bench.layer import Layer
from convdsl.cli.inputs import gather
from convdsl.sema.without import without

SETS = 2  # calls take them in turn, so that nothing can be kept from the call before


@dataclass(frozen=True, slots=True)
class Data:
    """Arrays by the names of inputs."""

    sets: tuple[dict[str, Array], ...]
    constants: dict[str, Array]

    def all(self, which: int) -> dict[str, Array]:
        """Every input of one set."""
        return self.sets[which] | self.constants


def make_data(layer: Layer) -> Data:
    """Random numbers, the same at every run: standard normal, or integers from -8 to 8.

    Raises:
        CdslError: E0365 for sizes that are not known, and what does not fit the operator.
    """
    op = without(layer.op, layer.absent)
    names = [*layer.varying, *layer.constant]
    first = gather(op, layer.params, layer.sizes, {}, names, seed=0)
    constants = {n: first[n] for n in layer.constant}
    sets = [{n: first[n] for n in layer.varying}]
    for seed in range(1, SETS):
        more = gather(op, layer.params, layer.sizes, constants, list(layer.varying), seed)
        sets.append({n: more[n] for n in layer.varying})
    return Data(tuple(sets), constants)
