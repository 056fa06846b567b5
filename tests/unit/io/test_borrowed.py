"""Asking the socket behind a descriptor that is not ours: its number may be that of something else by now."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from groupsvcd.io.sockets import borrowed


def test_a_socket_is_asked_and_stays_open() -> None:
    ours, other = socket.socketpair()
    with ours, other:
        with borrowed(ours.fileno()) as same:
            assert socket.AF_UNIX == same.family
        other.send(b"x")
        assert b"x" == ours.recv(1)


def test_without_a_descriptor_for_a_copy_it_is_asked_itself_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_is_free(fd: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    ours, other = socket.socketpair()
    with ours, other:
        monkeypatch.setattr(os, "dup", none_is_free)
        with borrowed(ours.fileno()) as same:
            assert socket.AF_UNIX == same.family
        other.send(b"x")
        assert b"x" == ours.recv(1)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="there is no pidfd_open here")
def test_of_what_is_no_socket_nothing_is_left_open() -> None:
    """The number of a closed connection was that of a new pidfd, of which one was left open each time."""
    pidfd = os.pidfd_open(os.getpid())
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError), borrowed(pidfd):
        pass
    assert before == len(os.listdir("/proc/self/fd"))
    os.close(pidfd)
