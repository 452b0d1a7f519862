"""Identifiers for the generated text: never a WGSL word, never one name twice."""

from __future__ import annotations

import re

_KEYWORDS = """
alias break case const const_assert continue continuing default diagnostic discard else enable
false fn for if let loop override requires return struct switch true var while
"""

_RESERVED = """
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
binding_array cast catch class co_await co_return co_yield coherent column_major common compile
compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete
demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough
filter final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset partial pass patch pixelfragment precise precision premerge
priv protected pub public readonly ref regardless register reinterpret_cast require resource
restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super
target template this thread_local throw trait try type typedef typeid typename typeof union unless
unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield
"""

_PREDECLARED = """
bool f16 f32 f64 i32 u32 i64 u64 vec2 vec3 vec4 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2
mat4x3 mat4x4 array atomic ptr sampler sampler_comparison function private workgroup uniform
storage read write read_write bitcast all any select arrayLength abs acos acosh asin asinh atan
atanh atan2 ceil clamp cos cosh countLeadingZeros countOneBits countTrailingZeros cross degrees
determinant distance dot dot4U8Packed dot4I8Packed exp exp2 extractBits faceForward
firstLeadingBit firstTrailingBit floor fma fract frexp insertBits inverseSqrt ldexp length log
log2 max min mix modf normalize pow quantizeToF16 radians reflect refract reverseBits round
saturate sign sin sinh smoothstep sqrt step tan tanh transpose trunc dpdx dpdy fwidth atomicLoad
atomicStore atomicAdd atomicSub atomicMax atomicMin atomicAnd atomicOr atomicXor atomicExchange
atomicCompareExchangeWeak pack2x16float unpack2x16float pack4x8snorm unpack4x8snorm storageBarrier
workgroupBarrier textureBarrier workgroupUniformLoad subgroupAdd subgroupBroadcast subgroupShuffle
quadBroadcast main
"""

RESERVED = frozenset(f"{_KEYWORDS} {_RESERVED} {_PREDECLARED}".split())
"""Words of the language and the predeclared names: none of them is ever declared."""

WORDS = frozenset(f"{_KEYWORDS} {_RESERVED}".split()) - {"true", "false"}
"""The words that may not be used as a name at all."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_SHORT_VECTOR = re.compile(r"(vec[234]|mat[234]x[234])[fihu]")


def safe(name: str) -> str:
    """`name` as a valid identifier: other characters become `_`, a word of WGSL gets one behind."""
    text = _UNSAFE.sub("_", name)
    if not text or text[0] == "_" or text[0].isdigit():
        text = f"v{text}"
    return f"{text}_" if text in RESERVED or _SHORT_VECTOR.fullmatch(text) else text


class Names:
    """Hands out identifiers; a namespace inside another one avoids the names of both."""

    def __init__(self, outer: Names | None = None) -> None:
        self._taken: set[str] = set(outer._taken) if outer is not None else set()
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """`hint`, made safe, with a number behind it when it is taken."""
        base = safe(hint)
        if base not in self._taken:
            self._taken.add(base)
            return base
        number = self._next.get(base, 2)
        stem = base if base.endswith("_") else f"{base}_"
        while f"{stem}{number}" in self._taken:
            number += 1
        self._next[base] = number + 1
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"
