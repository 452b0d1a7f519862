"""Device buffers that are used again: one pool for tensors, one for the way back to the host."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.runtime.errors import is_memory, out_of_memory, too_large

UNIT = 16  # bytes: a vec4<f32>, and the least size of a buffer, so that no binding is empty
KEEP = 512 * 2**20  # bytes of free buffers that are kept for later

_serials = count()


def rounded(nbytes: int) -> int:
    """The size in bytes of the buffer for `nbytes` bytes of data."""
    return max(UNIT, -(-nbytes // UNIT) * UNIT)


class Block:
    """A buffer of `size` bytes. `serial` is its own in this process."""

    __slots__ = ("buffer", "serial", "size")

    def __init__(self, buffer: Any, size: int) -> None:
        self.buffer, self.size, self.serial = buffer, size, next(_serials)


class Pool:
    """Storage buffers by size. All methods but `give` are called under the session's lock.

    A block that comes back may still be read by work that was submitted: the queue runs in order,
    so whatever writes it next comes later.
    """

    def __init__(self, gpu: Any, limits: Limits, adapter: str) -> None:
        from wgpu import BufferUsage as Usage

        self._gpu, self._limits, self._adapter = gpu, limits, adapter
        self._usage = Usage.STORAGE | Usage.COPY_SRC | Usage.COPY_DST
        # Held while lent: else the collector could finalize a tensor in a cycle together with its
        # buffer, and the block would come back with a dead one.
        self._lent: set[Block] = set()
        self._returned: deque[Block] = deque()
        self._free: dict[int, list[Block]] = {}
        self._order: deque[Block] = deque()
        self.free_bytes = 0
        self.created = 0

    def take(self, nbytes: int, what: str) -> Block:
        """A block for `nbytes` bytes, contents unspecified; `what` is named in a DeviceError."""
        self._settle()
        size = rounded(nbytes)
        found = self._free.get(size)
        if found:
            block = found.pop()
            self._order.remove(block)
            self.free_bytes -= size
            self._lent.add(block)
            return block
        self.check(nbytes, what)
        return self._create(size, nbytes, what)

    def check(self, nbytes: int, what: str) -> None:
        """DeviceError when a tensor is larger than a binding or a buffer may be."""
        binding, buffer = self._limits.max_storage_binding_bytes, self._limits.max_buffer_bytes
        if rounded(nbytes) > binding:
            raise too_large(self._adapter, what, nbytes, binding, "storage binding")
        if rounded(nbytes) > buffer:
            raise too_large(self._adapter, what, nbytes, buffer, "buffer")

    def give(self, block: Block) -> None:
        """Take a block back; from any thread, and from finalizers."""
        self._returned.append(block)

    def trim(self, keep: int) -> None:
        """Destroy free blocks, the oldest first, until at most `keep` bytes are left."""
        while self._order and self.free_bytes > keep:
            block = self._order.popleft()
            self._free[block.size].remove(block)
            if not self._free[block.size]:
                del self._free[block.size]
            self.free_bytes -= block.size
            block.buffer.destroy()

    def _settle(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._lent.discard(block)
            self._free.setdefault(block.size, []).append(block)
            self._order.append(block)
            self.free_bytes += block.size
        if self.free_bytes > KEEP:
            self.trim(KEEP)

    def _create(self, size: int, nbytes: int, what: str) -> Block:
        try:
            buffer = self._gpu.create_buffer(size=size, usage=self._usage)
        except Exception as error:
            if not is_memory(error):
                raise
            self.trim(0)
            try:
                buffer = self._gpu.create_buffer(size=size, usage=self._usage)
            except Exception as again:
                if not is_memory(again):
                    raise
                raise out_of_memory(self._adapter, what, nbytes) from again
        self.created += 1
        block = Block(buffer, size)
        self._lent.add(block)
        return block


class Staging:
    """Mappable buffers, sizes powers of two, each used by one reader at a time."""

    SMALLEST, LARGEST = 256, 32 * 2**20  # bytes

    def __init__(self, gpu: Any) -> None:
        from wgpu import BufferUsage as Usage

        self._gpu = gpu
        self._usage = Usage.COPY_DST | Usage.MAP_READ
        self._free: dict[int, list[Any]] = {}

    def take(self, nbytes: int) -> Any:
        """A buffer of at least `nbytes` bytes, which are at most LARGEST."""
        size = max(self.SMALLEST, 1 << (nbytes - 1).bit_length())
        found = self._free.get(size)
        return found.pop() if found else self._gpu.create_buffer(size=size, usage=self._usage)

    def give(self, buffer: Any) -> None:
        """Take an unmapped buffer back; two of a size are kept."""
        kept = self._free.setdefault(buffer.size, [])
        if len(kept) < 2:
            kept.append(buffer)
