"""systoll's start keeps to budgets that systoll itself checks: a user pays for the start before anything is watched."""
import os

from harness import HERE, test, text


def holds(box, name, argv):
    budget = os.path.join(HERE, "budgets", name)
    r = box.run([box.systoll, "check", "--quiet", "--all", "--budget", budget, "--", *argv])
    assert r.returncode == 0, f"{r.returncode}: {text(r.stdout)[-1500:]}{text(r.stderr)[-500:]}"
    return text(r.stdout)


@test()
def version_calls_little(box):
    holds(box, "version.toml", [box.systoll, "--version"])


@test()
def a_watched_true_makes_only_the_calls_it_needs(box):
    # The first run has no cache, the second one has.
    true = [box.systoll, "run", "-q", "--", "/bin/true"]
    for _ in range(2):
        holds(box, "run.toml", true)
    # Runs keep what they learn, and the third may still find something new.
    box.run(true)
    holds(box, "run_again.toml", true)


@test()
def a_broken_budget_is_seen(box):
    """A broken budget fails, so the budgets hold because few calls are made, not because nothing is checked."""
    budget = os.path.join(HERE, "budgets", "version.toml")
    r = box.run([box.systoll, "check", "--quiet", "--budget", budget, "--", "/bin/sh", "-c",
                 "for i in 1 2 3 4 5 6 7; do test -e /nowhere; done; exit 0"])
    assert r.returncode == 1 and "%file" in text(r.stdout), f"{r.returncode}: {text(r.stdout)}"
