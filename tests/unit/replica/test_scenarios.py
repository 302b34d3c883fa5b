from tests.unit.replica.world import World


def test_three_elect_one() -> None:
    world = World("abc")
    root = world.elect()
    assert world.roles().count("root") == 1
    root.propose(b"one")
    world.settle()
    world.advance(300)
    assert [world.committed(name) for name in "abc"] == [[b"one"]] * 3
