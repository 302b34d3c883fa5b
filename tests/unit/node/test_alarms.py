"""The memory alarm rises above the mark and ends somewhat below it."""

from pandomq.node.alarms import MESSAGE_OVERHEAD_BYTES, MemoryAlarm


def test_rises_above_the_mark_and_ends_below() -> None:
    alarm = MemoryAlarm(1000)
    assert not alarm.update(1000, 0)
    assert not alarm.raised
    assert alarm.update(1001, 0)
    assert alarm.raised
    assert not alarm.update(960, 0), "a little below the mark the alarm stays"
    assert alarm.raised
    assert alarm.update(950, 0)
    assert not alarm.raised


def test_many_small_messages_count_too() -> None:
    alarm = MemoryAlarm(MESSAGE_OVERHEAD_BYTES * 10)
    assert alarm.update(0, 11)
