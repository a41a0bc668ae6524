"""A pytest fixture: `graph_oracle`.

    def test_my_pass(graph_oracle):
        before = copy.deepcopy(module)
        my_pass(module)
        graph_oracle.assert_pass_ok(before, module, "bucketing")

Tests that ask for it are skipped where the command graph-oracle is missing, unless GRAPH_ORACLE names it.
"""

import os

import pytest

from .judge import NoOracle, check_pair, command


class Oracle:
    """What the fixture gives."""

    def check(self, before, after, pass_kind, **options):
        """The Verdict."""
        return check_pair(before, after, pass_kind, **options)

    def assert_pass_ok(self, before, after, pass_kind, *, allow_undecided=False, **options):
        """Fails with what was found, and where the verdict is undecided or refused unless that is allowed."""
        verdict = check_pair(before, after, pass_kind, **options)
        if not verdict and (verdict.decided or not allow_undecided):
            pytest.fail(str(verdict), pytrace=False)
        return verdict


@pytest.fixture(scope="session")
def graph_oracle():
    try:
        command()
    except NoOracle as error:
        if os.environ.get("GRAPH_ORACLE"):
            raise
        pytest.skip(str(error))
    return Oracle()
