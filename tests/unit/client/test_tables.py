"""A table that is the same everywhere: what writes do, what readers see, and the bytes of its checkpoint."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import groupsvc
from groupsvc import aio
from groupsvc.events import Message
from groupsvc.tables import BLOCK_BYTES, VALUE_BYTES_MAX, AioTable, Row, Rows, Table, Write, _encoder
from groupsvc.views import View
from groupsvc.voting_words import Vote
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import daemon_on_a_socket

VIEW = View(0, 0, (), b"", 0, Vote.APPROVE)


def entry(seq: int, payload: bytes) -> Message:
    return Message(None, payload, seq, "db", "n1/1/1", VIEW)


def write(kind: Any, key: str, value: bytes | None = None, expected: bytes | None = None) -> bytes:
    return _encoder.encode(Write(0, kind, key, value, expected))


def filled(*writes: bytes) -> Rows:
    rows = Rows()
    for seq, payload in enumerate(writes, 1):
        rows.apply(entry(seq, payload))
    return rows


class TestRows:
    """The table as a state machine."""

    def test_puts_deletes_and_compare_and_sets_are_applied_in_order(self) -> None:
        rows = filled(
            write("put", "a", b"1"), write("put", "b", b"2"), write("delete", "a"), write("cas", "c", b"3"),
            write("cas", "b", b"4", b"2"), write("cas", "b", b"5", b"2"), write("cas", "c", None, b"3"),
        )  # fmt: skip
        assert {"b": b"4"} == dict(rows)
        assert (5, 0) == (rows.version("b"), rows.version("a"))

    def test_what_is_no_write_is_left_out(self) -> None:
        """By everybody alike: so it costs nobody the group."""
        rows = filled(write("put", "a", b"1"), b"", b"garbage", _encoder.encode([1, "steal", "a"]))
        assert {"a": b"1"} == dict(rows)

    def test_the_bytes_of_a_checkpoint_do_not_depend_on_how_the_table_came_to_be(self) -> None:
        one = filled(write("put", "b", b"2"), write("put", "a", b"1"))
        other = filled(write("put", "b", b"2"), write("put", "a", b"1"))
        restored = Rows()
        restored.restore(list(one.snapshot()))
        assert list(one.snapshot()) == list(other.snapshot()) == list(restored.snapshot())
        assert [b"\x92\x93\xa1a\xc4\x011\x02\x93\xa1b\xc4\x012\x01"] == list(one.snapshot())

    def test_a_large_table_has_several_blocks_each_fit_for_an_entry(self) -> None:
        rows = filled(*(write("put", f"k{number}", b"x" * 100_000) for number in range(10)),
                      write("put", "large", b"y" * VALUE_BYTES_MAX))  # fmt: skip
        blocks = list(rows.snapshot())
        assert len(blocks) > 3
        assert max(map(len, blocks)) <= groupsvc.limits.checkpoint_block_bytes_max
        assert sorted(map(len, blocks))[-2] <= 2 * BLOCK_BYTES
        restored = Rows()
        restored.restore(blocks)
        assert dict(rows) == dict(restored)

    def test_blocks_are_measured_in_bytes_however_short_the_rows_look(self) -> None:
        rows = Rows()
        names = (chr(0x4E00 + number // 300) + chr(0x4E00 + number % 300) for number in range(90_000))
        rows.restore([_encoder.encode([Row(name, b"", 1 << 32) for name in names])])
        assert max(map(len, rows.snapshot())) <= groupsvc.limits.checkpoint_block_bytes_max

    def test_restoring_forgets_what_was_there(self) -> None:
        rows = filled(write("put", "a", b"1"))
        rows.restore(())
        assert {} == dict(rows)

    def test_every_change_is_told_also_those_of_a_restored_checkpoint(
        self, reported: list[BaseException | None]
    ) -> None:
        told: list[tuple[str, bytes | None]] = []

        def on_change(key: str, value: bytes | None) -> None:
            told.append((key, value))
            raise RuntimeError("whatever it does, the table goes on")

        rows = Rows(on_change)
        for seq, payload in enumerate((write("put", "a", b"1"), write("delete", "z"), write("cas", "a", b"2")), 1):
            rows.apply(entry(seq, payload))
        assert [("a", b"1")] == told
        rows.restore(list(filled(write("put", "b", b"2")).snapshot()))
        assert [("a", b"1"), ("a", None), ("b", b"2")] == told
        assert {"b": b"2"} == dict(rows)
        assert [RuntimeError] * 3 == [type(error) for error in reported]

    def test_iterating_is_safe_while_others_write(self) -> None:
        rows = filled(*(write("put", f"k{number}", b"1") for number in range(2_000)))
        stop = threading.Event()

        def change() -> None:
            seq = 10_000
            while not stop.is_set():
                seq += 1
                rows.apply(entry(seq, write("delete" if seq % 2 else "put", f"k{seq % 2_000}", b"2")))

        writer = threading.Thread(target=change)
        writer.start()
        try:
            for _ in range(50):
                for key, value in rows.items():
                    assert (key[0], value) in (("k", b"1"), ("k", b"2"))
                assert all(key.startswith("k") for key in rows)
        finally:
            stop.set()
            writer.join()


class TestTable:
    """The table in a group."""

    def test_a_write_returns_when_it_can_be_read_here(self) -> None:
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            table = Table()
            group = session.join("db", machine=table)
            table.put("a", b"1")
            assert (b"1", 1) == (table["a"], len(table))
            assert table.compare_and_set("a", b"1", b"2")
            assert not table.compare_and_set("a", b"1", b"3")
            assert (True, False) == (table.delete("a"), table.delete("a"))
            for number in range(300):
                table.put_nowait(f"k{number}", b"x")
            group.flush()
            assert 300 == len(table)
            assert table.sync() >= 300

    def test_wrong_uses_are_told(self) -> None:
        with pytest.raises(groupsvc.UsageError, match="in no group"):
            Table().put("a", b"1")
        with pytest.raises(groupsvc.UsageError):
            Table(on_change=3)  # type: ignore[arg-type]
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            table = Table()
            session.join("db", machine=table)
            for key, value in (
                ("", b"1"),
                ("\ud800", b"1"),
                (3, b"1"),
                ("a", "text"),
                ("a", None),
                ("a", b"x" * (1 << 20)),
            ):
                with pytest.raises(groupsvc.UsageError):
                    table.put(key, value)  # type: ignore[arg-type]

    def test_a_write_whose_group_is_lost_is_not_known(self) -> None:
        def script(ask: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
            return [wire.MemberLost(1, False, "gone")] if isinstance(ask, wire.Multicast) else None

        with daemon_on_a_socket(script) as daemon, groupsvc.connect(daemon.address) as session:
            table = Table()
            session.join("db", machine=table)
            with pytest.raises(groupsvc.OutcomeUnknown):
                table.put("a", b"1")

    def test_a_write_inside_on_change_is_refused_and_put_nowait_is_not(self) -> None:
        found: list[str] = []

        def on_change(key: str, value: bytes | None) -> None:
            if key == "a":
                try:
                    table.put("b", b"1")
                except groupsvc.UsageError as error:
                    found.append(str(error))
                table.put_nowait("c", b"1")

        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            table = Table(on_change)
            group = session.join("db", machine=table)
            table.put("a", b"1")
            assert group.wait_for(lambda: "c" in table)
            group.sync()
            assert 1 == len(found)
            assert "inside a callback" in found[0]
            assert {"a": b"1", "c": b"1"} == dict(table), "what is refused is not written"

    @pytest.mark.parametrize("error", [ZeroDivisionError("broken code"), SystemExit("broken code")])
    def test_an_error_in_on_change_is_shown_as_that_of_any_callback_and_the_table_goes_on(
        self, error: BaseException, reported: list[BaseException | None], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Also one of ``sys.exit()``: in a thread it ends no program."""

        def on_change(key: str, value: bytes | None) -> None:
            raise error

        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            table = Table(on_change)
            group = session.join("db", machine=table)
            table.put("a", b"1")
            table.put("b", b"1")
            assert {"a": b"1", "b": b"1"} == dict(table)
            assert not group.ended
        shown = [one.__cause__ if isinstance(one, groupsvc.UsageError) else one for one in reported]
        assert [error, error] == shown
        assert "on_change('a') raised an error" in caplog.text

    def test_a_value_that_is_no_bytes_is_told_without_a_group(self) -> None:
        """Also before there is one."""
        with pytest.raises(groupsvc.UsageError) as caught:
            Table().put("a", "text")  # type: ignore[arg-type]
        assert "a value of a table is a str; encode it to bytes first" == str(caught.value)
        assert caught.value.group is None

    def test_a_wrong_timeout_writes_nothing(self) -> None:
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            table = Table()
            group = session.join("db", machine=table)
            with pytest.raises(groupsvc.UsageError, match="timeout"):
                table.put("a", b"1", timeout=-1)
            group.sync()
            assert {} == dict(table)

    def test_the_timeout_counts_also_while_there_is_no_room(self) -> None:
        def silent(ask: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
            return [] if isinstance(ask, wire.Multicast) else None

        with daemon_on_a_socket(silent) as daemon, groupsvc.connect(daemon.address) as session:
            table = Table()
            group = session.join("db", machine=table)
            for _ in range(groupsvc.limits.outstanding_max):
                group.multicast_nowait(b"x")
            began = time.monotonic()
            with pytest.raises(groupsvc.TimedOut):
                table.put("a", b"1", timeout=0.05)
            assert time.monotonic() - began < 10.0

    def test_in_asyncio_a_refused_write_is_not_written_either(self) -> None:
        async def scene(address: str) -> None:
            table = AioTable()
            async with aio.connect(address) as session, session.join("db", machine=table) as group:
                with pytest.raises(groupsvc.UsageError, match="timeout"):
                    await table.put("a", b"1", timeout=-1)
                await group.sync()
                assert {} == dict(table)

        with daemon_on_a_socket() as daemon:
            asyncio.run(scene(daemon.address))

    def test_in_asyncio_it_is_the_same(self) -> None:
        async def scene(address: str) -> None:
            table = AioTable()
            with pytest.raises(groupsvc.UsageError, match="in no group"):
                await table.put("a", b"1")
            async with aio.connect(address) as session, session.join("db", machine=table) as group:
                await asyncio.gather(*(table.put(f"k{number}", b"1") for number in range(100)))
                assert 100 == len(table)
                assert await table.compare_and_set("k1", b"1", b"2")
                assert await table.delete("k2")
                table.put_nowait("last", b"1")
                await group.flush()
                assert (b"2", b"1") == (table["k1"], table["last"])
                assert await table.sync() >= 100

        with daemon_on_a_socket() as daemon:
            asyncio.run(scene(daemon.address))

    def test_an_error_in_on_change_is_shown_by_the_loop(self) -> None:
        async def scene(address: str) -> None:
            shown: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: shown.append(context))
            error = ZeroDivisionError("broken code")

            def on_change(key: str, value: bytes | None) -> None:
                raise error

            async with aio.connect(address) as session:
                table = AioTable(on_change)
                await session.join("db", machine=table)
                await table.put("a", b"1")
                assert {"a": b"1"} == dict(table)
            assert [{"message": "groupsvc: on_change('a') raised an error", "exception": error}] == shown

        with daemon_on_a_socket() as daemon:
            asyncio.run(scene(daemon.address))
