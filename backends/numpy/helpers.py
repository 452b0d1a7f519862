"""Functions placed at the end of a generated module, when it uses them."""

from __future__ import annotations

from convdsl.backends.numpy.threads import NEEDS, ON_THREADS, PRODUCTS_ON_THREADS

HELPERS: dict[str, str] = {
    "_check": '''
def _check(name, array, shape, dtype):
    """Refuse an array of another shape or dtype."""
    if array.shape != shape or array.dtype != dtype:
        want, have = list(shape), list(array.shape)
        raise ValueError(f"{name} must be {np.dtype(dtype)}{want}, not {array.dtype}{have}")
''',
    "_rank": '''
def _rank(name, array, axes):
    """Refuse an array with another number of axes."""
    if array.ndim != len(axes):
        want = ", ".join(axes)
        raise ValueError(f"{name} must have the axes [{want}], not the shape {array.shape}")
''',
    "_bind": '''
def _bind(function, inputs, folds, constants):
    """`function` with constants (copied); results of `folds` that read no other inputs are kept."""
    if unknown := constants.keys() - set(inputs):
        raise TypeError(f"no inputs: {unknown}")
    constants = {name: np.array(value, order="C") for name, value in constants.items()}
    free = [name for name in inputs if name not in constants]
    constant = {fold for fold, needs in folds.items() if constants.keys() >= set(needs)}
    kept = {}

    def run(fold, *given):
        if fold not in constant:
            return fold(*given)
        key = (fold, *(g if isinstance(g, int) else id(g) for g in given))
        found = kept.get(key)
        if found is None:
            if len(kept) > 15:
                kept.pop(list(kept)[0], None)
            found = kept.setdefault(key, (fold(*given), given))  # while it is kept, so are the ids
        return found[0]

    def bound(*arrays, out=None, **named):
        if len(arrays) > len(free):
            raise TypeError(f"{len(arrays)} arrays for the inputs {free}")
        return function(**constants, **dict(zip(free, arrays)), **named, out=out, run=run)

    return bound
''',
    "_on_threads": ON_THREADS,
    "_products_on_threads": PRODUCTS_ON_THREADS,
    "_strided": '''
def _strided(array, start, shape, steps):
    """The view whose element (i, j, ..) is array[start + i*steps[0] + j*steps[1] + ..]."""
    strides = [sum(s * t for s, t in zip(array.strides, step)) for step in steps]
    first = array[tuple(slice(s, None) for s in start)]
    return np.lib.stride_tricks.as_strided(first, shape, strides)
''',
    "_gather": '''
def _gather(array, *index):
    """array[index]; a position outside reads some element, which the caller does not use."""
    if not array.size:
        return np.zeros(np.broadcast_shapes(*(np.shape(i) for i in index)), array.dtype)
    return array[tuple(np.clip(i, 0, n - 1) for i, n in zip(index, array.shape))]
''',
    "_sigmoid": '''
def _sigmoid(x, out=None):
    """1 / (1 + exp(-x))."""
    if out is None:
        return 1.0 / (1.0 + np.exp(-x))
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1.0, out=out)
    return np.divide(1.0, out, out=out)
''',
    "_leaky_relu": '''
def _leaky_relu(x, slope, out=None):
    """x where it is not negative, else slope * x; for 0 < slope <= 1."""
    return np.maximum(x, x * slope, out=out)
''',
    "_leaky_relu_any": '''
def _leaky_relu_any(x, slope):
    """x where it is not negative, else slope * x."""
    return np.where(x >= 0, x, x * slope)
''',
    "_to_int": '''
def _to_int(x):
    """x truncated to int32: NaN becomes 0, what is out of range the nearest bound."""
    x = np.nan_to_num(np.asarray(x, np.float64), nan=0.0)
    return np.clip(x, -2147483648.0, 2147483647.0).astype(np.int32)
''',
    "_gelu": '''
def _gelu(x):
    """x * Phi(x), the exact form: erfc by a Chebyshev fit, relative error 1.2e-7 everywhere."""
    x = np.asarray(x)
    flat = x.reshape(-1)
    out = np.empty(flat.shape, np.float32)
    for at in range(0, flat.size, 16384):  # float64 blocks that stay in the cache
        v = np.maximum(flat[at : at + 16384].astype(np.float64), -64.0)
        z = np.abs(v) * 0.7071067811865476
        t = 1.0 / (1.0 + 0.5 * z)
        p = np.full_like(t, 0.17087277)
        for c in _ERFC:
            p *= t
            p += c
        tail = 0.5 * t * np.exp(p - z * z)
        out[at : at + 16384] = v * np.where(v < 0, tail, 1.0 - tail)
    return out.reshape(x.shape)


_ERFC = (-0.82215223, 1.48851587, -1.13520398, 0.27886807,
         -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223)
''',
}


def with_needed(used: set[str]) -> set[str]:
    """Helpers with those that they call."""
    return used.union(*(NEEDS.get(name, ()) for name in used))


def texts(used: set[str]) -> list[list[str]]:
    """The lines of each helper used, in a fixed order."""
    return [text.strip("\n").split("\n") for name, text in HELPERS.items() if name in used]
