from tests.unit.law import nothing_blocks_the_loop  # noqa: F401
