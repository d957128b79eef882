"""Compares the gain that systoll tells beforehand (`expected_gain`) with what `systoll prove` measures.

Both are parts of a run's own processor time: the watched run's for what is told, the sick side's of the pairs for what is measured.
The speed of a machine that others share changes between the two, which milliseconds would show as an error of the model. Starts of
programs have no such part (their processor time is not the program's own): there, and only there, milliseconds are compared.
"""
import statistics

MS = 1e6
# Number of watched runs, as in `prove`.
WATCHED = 3


def least_disturbed(reports):
    """Returns that of several reports of one command whose run took the least processor time: whoever else uses the
    machine only adds to it."""
    return min(reports, key=lambda r: r["own_cpu_ns"] or r["user_ns"] + r["sys_ns"])


def sums(told, low, high):
    """Returns the least and the most of all gains together; None if one finding tells none."""
    if any(t.get(low) is None or t.get(high) is None for t in told):
        return None
    return sum(t[low] for t in told), sum(t[high] for t in told)


def row_of(found, proof):
    """Returns what the findings tell and what a proof measured; `shares` says which of the two units are compared."""
    told = [f.get("expected_gain") for f in found]
    told = None if not told or None in told else told
    change, cpu = proof["change"]["cpu"], proof["a"]["cpu_ns"]["median"]
    won = [-change[k] / 100 for k in ("high", "percent", "low")]
    ns, shares = told and sums(told, "low_ns", "high_ns"), told and sums(told, "share_low", "share_high")
    # No program can win more than it takes.
    expected = (shares[0], min(1.0, shares[1])) if shares else ns
    return {
        "cpu_ns": cpu,
        "price_ns": sum(f["needless_toll_ns"] for f in found),
        "price": sum(f["share_of_cpu"] for f in found) if shares else None,
        "waits": any(f["share_of_wall"] is not None for f in found),
        "shares": shares is not None,
        "expected_ns": ns,
        "expected": expected,
        "measured": won if shares else [w * cpu for w in won],
        "found": found,
    }


def holds(row):
    """Returns True if the interval that was measured meets the one that was expected."""
    (low, high), (least, _, most) = row["expected"], row["measured"]
    return least <= high and most >= low


def within(row):
    low, high = row["expected"]
    return low <= row["measured"][1] <= high


def unsure(row):
    """Returns True if the measured interval is more than half as wide as the expected one: more pairs may narrow it."""
    (low, high), (least, _, most) = row["expected"], row["measured"]
    return most - least > (high - low) / 2


def shown(row):
    unit, by = ("%", 100) if row["shares"] or row["expected"] is None else ("ms", 1 / MS)
    least, median, most = (x * by for x in row["measured"])
    if row["expected"] is None:
        told, verdict = "not told", ""
        least, median, most = (x / row["cpu_ns"] * 100 for x in row["measured"])
    else:
        told = f"{row['expected'][0] * by:.1f} to {row['expected'][1] * by:.1f} {unit}"
        verdict = "within" if within(row) else "meets" if holds(row) else "OUTSIDE"
    price = f"{100 * row['price']:.1f} %" if row["price"] is not None else f"{row['price_ns'] / MS:.1f} ms"
    return f"price {price:>8}  expected {told:20} won {median:7.1f} {unit} ({least:.1f} to {most:.1f}) of {row['cpu_ns'] / MS:7.1f} ms  {verdict}"


def tally(label, rows):
    """Prints in how many of the rows that tell a gain it holds, and how wide the intervals are; nothing if none tells
    one."""
    told = [r for r in rows if r["expected"] is not None and not r["waits"]]
    if not told:
        return ""
    wide = statistics.median(r["expected"][1] / r["expected"][0] if r["expected"][0] else float("inf") for r in told)
    return f"{label}: {sum(map(within, told))} of {len(told)} within, {sum(map(holds, told))} by the measure's own interval; the most told is {wide:.2f} times the least (median)"
