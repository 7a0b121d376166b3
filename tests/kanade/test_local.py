"""What `make run` starts together ends together."""

import multiprocessing

import pytest

from kanade.local import Together


@pytest.mark.concurrency
def test_a_ctrl_c_that_reaches_a_helper_before_its_program_leaves_the_programs_to_the_parent() -> (
    None
):
    together = Together()
    together.add_process("web", "exec true")
    helper = multiprocessing.get_context("fork").Process(target=together.terminate)
    helper.start()
    helper.join(10)
    ended = helper.exitcode
    helper.kill()
    assert ended == 0
