"""What all who try cases share: what can't be tried here, further attempts, and how it is told."""

# Attempts after one that failed, of which none may.
AGAIN = 3


class Skip(Exception):
    """The case can't be tried here; the reason is its text."""


class Tally:
    """Tries things by name and counts them.

    What fails is tried AGAIN times more. What fails even once of these has failed (FAILED); what passes them all
    has met something rare (FLAKY), which is told at the end and passes. Where `strict`, what was skipped fails.
    """

    def __init__(self, strict):
        self.strict = strict
        self.passed = self.failed = self.skipped = 0
        self.remarks = []

    def attempt(self, name, once, width=28, loose=False):
        """Tries `once(again)`: it returns (what to print, [what is wrong]) or raises Skip.

        `loose`: what it does is up to the scheduler, and passes if it does once. Spinners that share their processors
        with others give them time, herds that come late are none: there the disease itself comes and goes."""
        verdict = "ok"
        try:
            line, wrong = once(False)
            if wrong:
                first = "; ".join(wrong)
                outcomes = []
                for _ in range(AGAIN):
                    line, wrong = once(True)
                    outcomes.append(bool(wrong))
                    if bool(wrong) != loose:
                        break
                verdict = "FAILED" if outcomes[-1] else "FLAKY"
                why = "; ".join(wrong) if wrong else f"not at the first attempt: {first}"
                why += f"; at the first attempt: {first}" if wrong and wrong != [first] and first != why else ""
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

    def end(self):
        """Says which failed and why, then how many of each; -> the exit status."""
        print("\n".join([*self.remarks, f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"]), flush=True)
        return 1 if self.failed or not self.passed + self.skipped else 0
