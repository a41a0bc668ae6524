"""A pytest fixture: `graph_oracle`.

    def test_my_pass(graph_oracle):
        before = copy.deepcopy(module)
        my_pass(module)
        graph_oracle.assert_pass_ok(before, module, "bucketing")
"""

import pytest

from .judge import check_pair


class Oracle:
    """What the fixture gives."""

    def check(self, before, after, kind="rewrite", **options):
        """The Verdict."""
        return check_pair(before, after, kind, **options)

    def assert_pass_ok(self, before, after, kind="rewrite", *, allow_undecided=False, **options):
        """Fails with what was found, and where the verdict is undecided or refused unless that is allowed."""
        verdict = check_pair(before, after, kind, **options)
        if not verdict and (verdict.decided or not allow_undecided):
            pytest.fail(str(verdict), pytrace=False)
        return verdict


@pytest.fixture(scope="session")
def graph_oracle():
    return Oracle()
