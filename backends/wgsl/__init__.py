"""The WGSL backend: loop programs as WebGPU shaders, and a runner over wgpu."""

from convdsl.backends.wgsl.backend import WgslBackend

__all__ = ["WgslBackend"]
