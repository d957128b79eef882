"""Shared by all scripts that try cases: cases that can't be tried here, second attempts, and the last lines."""


# Number of attempts after the second of what failed at the first only.
FURTHER = 4


class Skip(Exception):
    """The case can't be tried here; the reason is its text."""


class Tally:
    """Tries things by name and counts them.

    What fails is tried once more, so that the last lines can tell what always fails (FAILED) from what fails now and
    then (FLAKY). With `strict`, a skipped case is a failure, and what passes at its second attempt is tried FURTHER times
    more: it is a failure if one of those fails too."""

    def __init__(self, strict):
        self.strict = strict
        self.passed = self.failed = self.skipped = 0
        self.remarks = []

    def attempt(self, name, once, width=28, loose=False):
        """Tries `once(again)`, which returns (what to print, [what is wrong]) or raises Skip.

        With `loose`, the disease itself comes and goes, because the scheduler decides: spinners that share their
        processors with others give them time, and threads that wake late are no herd."""
        verdict = "ok"
        try:
            line, wrong = once(False)
            if wrong:
                first = "; ".join(wrong)
                line, wrong = once(True)
                verdict = "FAILED" if wrong else "FLAKY"
                why = "; ".join(wrong) if wrong else f"not at the first attempt: {first}"
                why += f"; at the first attempt: {first}" if wrong and wrong != [first] and first != why else ""
                again = next(self.further(once), None) if verdict == "FLAKY" and not loose else None
                if again is not None:
                    verdict, why = "FAILED", f"{again}; at the first attempt: {first}; at the second: passed"
        except Skip as e:
            verdict, line, why = ("FAILED" if self.strict else "skipped"), "", f"skipped: {e}"
        print(f"{name:{width}} {verdict:8} {line}".rstrip(), flush=True)
        if verdict != "ok":
            print(f"      {why[:1000]}", flush=True)
        self.skipped += verdict == "skipped"
        bad = verdict == "FAILED"
        self.failed += bad
        self.passed += verdict in ("ok", "FLAKY") and not bad
        if verdict in ("FAILED", "FLAKY"):
            self.remarks.append(f"{verdict} {name}: {why[:600]}")

    def further(self, once):
        """Tries FURTHER times more, with `strict`. Yields what is wrong for each failure."""
        for _ in range(FURTHER if self.strict else 0):
            _, wrong = once(True)
            if wrong:
                yield "; ".join(wrong)

    def end(self):
        """Says which failed and why, then how many of each. Returns the exit status."""
        print("\n".join([*self.remarks, f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"]), flush=True)
        return 1 if self.failed or not self.passed + self.skipped else 0


def until_interrupted(main):
    """Returns what `main()` returns, or 130 if it is interrupted: what was tried until then has been told."""
    try:
        return main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
        return 130
