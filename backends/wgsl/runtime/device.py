"""Devices by adapter: one a process, opened at first use and again after a loss."""

from __future__ import annotations

import threading

import numpy.typing as npt

from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.runtime.adapter import (
    AdapterInfo,
    choose_adapter,
    forget_adapters,
    list_adapters,
)
from convdsl.backends.wgsl.runtime.session import Session
from convdsl.backends.wgsl.runtime.tensor import DeviceTensor, upload
from convdsl.diagnostics import DeviceError


class Device:
    """An adapter and, from the first use on, its opened device. Any thread may use it."""

    def __init__(self, info: AdapterInfo) -> None:
        self.info = info
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._created_before = 0

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    @property
    def name(self) -> str:
        """Name and backend of the adapter."""
        return str(self.info)

    @property
    def limits(self) -> Limits:
        """What modules may use on it."""
        return self.info.limits

    @property
    def pipelines_created(self) -> int:
        """How many pipelines were made so far, over all runners."""
        session = self._session
        return self._created_before + (session.pipelines.created if session else 0)

    def session(self) -> Session:
        """The opened device; opens it when there is none or the last one was lost."""
        session = self._session
        if session is not None and not session.lost:
            return session
        with self._lock:
            if self._session is not None and self._session.lost:
                self._forget(self._session)
                self.info = _again(self.info)
            if self._session is None:
                self._session = Session(self.info)
            return self._session

    def upload(self, array: npt.ArrayLike, what: str = "tensor") -> DeviceTensor:
        """A copy of an array on the device; DeviceError when it does not fit."""
        return upload(self.session(), array, what)

    def close(self) -> None:
        """Give the device back; its tensors are gone, and a later use opens it anew."""
        with self._lock:
            session = self._session
            if session is None:
                return
            if not session.lost:
                session.close()
            self._forget(session)

    def _forget(self, session: Session) -> None:
        self._created_before += session.pipelines.created
        self._session = None


_devices: dict[tuple[str, str], Device] = {}
_devices_lock = threading.Lock()


def get_device(adapter: AdapterInfo | str | None = None) -> Device:
    """The process's device for an adapter, by default the preferred one (see `choose_adapter`)."""
    info = adapter if isinstance(adapter, AdapterInfo) else choose_adapter(adapter)
    with _devices_lock:
        return _devices.setdefault((info.name, info.backend), Device(info))


def _again(info: AdapterInfo) -> AdapterInfo:
    """The same adapter as it is found now: a loss can leave the old handle useless."""
    forget_adapters()
    for found in list_adapters():
        if (found.name, found.backend) == (info.name, info.backend):
            return found
    raise DeviceError(f"the adapter {info} is no longer there")
