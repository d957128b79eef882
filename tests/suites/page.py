"""The page of `systoll report --html` is one file that a real browser opens offline."""
import base64
import hashlib
import os
import re
import shutil

from browser import Browser
from harness import test, text
from suites.exports import VALUES, recorded

MOST = 2_000_000


def page_of(box, rec, name="a.html"):
    out = os.path.join(box.dir, name)
    r = box.run([box.systoll, "report", "--html", "-o", out, rec])
    assert r.returncode == 0, text(r.stderr)
    return out


def open_page(box, path, **kwargs):
    return Browser(box, f"file://{path}", **kwargs)


def quiet(page, path):
    """Asserts that the page has complained of nothing, and fetched nothing but itself."""
    assert not page.complaints, page.complaints
    assert [url for url in page.fetched if not url.endswith(os.path.basename(path))] == [], page.fetched


@test()
def the_browser_may_run_only_the_pages_own_code(box):
    """The policy names style and script by their checksums; a changed file needs new ones in
    crates/export/src/html.rs."""
    rec, _ = recorded(box)
    with open(page_of(box, rec), encoding="utf-8") as f:
        page = f.read()
    assert len(page.encode()) < MOST
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    parts = {"style": re.search(r"<style>(.*?)</style>", page, re.S)[1], "script": re.search(r"<script>(.*?)</script>", page, re.S)[1]}
    for kind, body in parts.items():
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy, f"{kind}: sha256-{digest} is not in: {policy}"
    assert "default-src 'none'" in policy and len(re.findall(r"<script", page)) == 2, policy
    for way in ("http://", "https://", "//", "src=", "url("):
        assert way not in re.sub(r'<script type="application/json".*?</script>|^\s*//.*$|/\*\*.*?\*/|"http://www.w3.org/2000/svg"', "", page, flags=re.S | re.M), way


@test(users=("root",))
def totals_are_the_reports(box):
    rec, report = recorded(box)
    path = page_of(box, rec)
    with open_page(box, path) as page:
        total = lambda: {c["key"]: int(c["value"]) for c in page.js("[...document.querySelectorAll('#totals td[data-key]')].map(c => ({key: c.dataset.key, value: c.dataset.value}))")}
        wanted = {"calls": report["calls"], "toll_ns": report["toll_ns"], "waited_ns": report["waited_ns"], "needless_ns": report["needless_toll_ns"]}
        estimate = sum(f["needless_calls"]["estimate"] for f in report["findings"])
        assert {**wanted, "needless_calls": estimate}.items() <= total().items(), (wanted, total())
        # The totals are the same however the calls are grouped.
        for i in range(page.js("document.querySelectorAll('#group option').length")):
            page.js(f"(() => {{ const g = document.getElementById('group'); g.selectedIndex = {i}; g.dispatchEvent(new Event('change')); }})()")
            assert wanted.items() <= total().items(), (i, total())
        # The flame graph's root shows the same total of each value.
        for value, field in VALUES.items():
            page.js(f"document.querySelector('input[value={value}]').click()")
            label = page.js("document.querySelector('[role=treeitem]').getAttribute('aria-label')")
            assert label.endswith(f"100 % of all {'cost of needless calls' if value == 'needless' else value}"), label
            if value == "calls":
                assert int(re.sub(r"\D", "", label.split(":")[1].split(",")[0])) == report[field], label
        assert page.js("document.querySelectorAll('#findings-list > article').length") == len(report["findings"])
        legend = page.js("[...document.querySelectorAll('#time .legend li')].map(li => Number(li.lastChild.textContent.replace(/\\D/g, '')))")
        assert sum(legend) == report["calls"], legend
        text_of = page.js("document.body.innerText")
        assert "undefined" not in page.js("document.getElementById('rounds').textContent")
        assert page.js("document.querySelectorAll('#rounds article').length") == len(report["rounds"])
        for finding in report["findings"]:
            assert finding["cause"] in text_of and finding["stop"][0] in text_of, finding["cause"]
        assert "localtime(&now)" in text_of, "the line in the source"
        quiet(page, path)


@test(users=("root",))
def the_keyboard_reaches_everything(box):
    rec, _ = recorded(box)
    path = page_of(box, rec)
    with open_page(box, path) as page:
        at = lambda: page.js("document.activeElement.getAttribute('aria-label')") or ""
        page.js("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()")
        assert at().startswith("all:"), at()
        page.key("ArrowDown")
        assert at().startswith("exported:"), at()
        page.key("Enter")
        assert at().startswith("exported:") and page.js("document.querySelector('#flame-body button').hidden") is False, at()
        page.key("Escape")
        assert at().startswith("all:") and page.js("document.querySelector('#flame-body button').hidden") is True, at()
        # Buttons sort, and say so.
        page.js("document.querySelector('th[data-key=calls] button').click()")
        assert page.js("document.querySelector('th[data-key=calls]').getAttribute('aria-sort')") == "descending"
        calls = page.js("[...document.querySelectorAll('#table tbody tr')].map(r => Number(r.children[1].textContent.replace(/\\D/g, '')))")
        assert calls == sorted(calls, reverse=True) and len(calls) > 5, calls
        page.js("(() => { const f = document.getElementById('filter'); f.value = 'GETPPID'; f.dispatchEvent(new Event('input')); })()")
        assert page.js("document.querySelectorAll('#table tbody tr').length") == 1
        # Everything that can be used has a name.
        nameless = page.js("""[...document.querySelectorAll('button, select, input, [role=treeitem], [role=region], [role=img]')].filter(e =>
            !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim() || (e.labels && e.labels.length))).map(e => e.outerHTML)""")
        assert nameless == [], nameless
        quiet(page, path)


@test(users=("root",))
def it_fits_any_width_in_light_and_dark(box):
    rec, _ = recorded(box)
    path = page_of(box, rec)
    for width, dark in ((360, False), (820, True), (1600, False)):
        with open_page(box, path, width=width, dark=dark) as page:
            assert page.js("document.documentElement.scrollWidth") <= width, f"wider than {width}"
            paper = page.js("getComputedStyle(document.body).backgroundColor")
            assert paper == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)"), paper
            quiet(page, path)
            if os.environ.get("SYSTOLL_TEST_PICTURES"):
                page.picture(os.path.join(os.environ["SYSTOLL_TEST_PICTURES"], f"page-{width}.png"))


@test()
def a_page_goes_to_a_file(box):
    rec, _ = recorded(box)
    r = box.run([box.systoll, "run", "--html", "--", "true"])
    assert r.returncode == 125 and "-o FILE.html" in text(r.stderr), text(r.stderr)
    # --open hands the page to the user's browser; the command's exit code stays its own.
    box.file("browser", '#!/bin/sh\ncp "$1" seen.html\n', 0o755)
    r = box.run([box.systoll, "run", "--open", "--", "sh", "-c", "exit 7"], env={**box.env, "BROWSER": os.path.join(box.dir, "browser")})
    where = re.search(r"the page is (\S+)", text(r.stderr))
    assert r.returncode == 7 and where, (r.returncode, text(r.stderr))
    assert os.stat(where[1]).st_mode & 0o777 == 0o600 and where[1].startswith(box.tmp), where[1]
    with open(where[1], encoding="utf-8") as f:
        assert "<h1 id=\"command\">" in f.read()
    os.unlink(where[1])
    r = box.run([box.systoll, "run", "--open", "-o", "named.html", "--", "sh", "-c", "exit 7"], env={**box.env, "BROWSER": "/no/such/browser"})
    assert r.returncode == 7 and "named.html; /no/such/browser can't open it" in text(r.stderr), text(r.stderr)
    # A locale without UTF-8 changes nothing: the script's checksum must hold.
    plain = box.run([box.systoll, "report", "--html", rec]).stdout
    assert plain == box.run([box.systoll, "report", "--html", rec], env={**box.env, "LC_ALL": "C"}).stdout


HOSTILE = "<img src=x onerror=document.title=1><!--"


@test(users=("root",))
def hostile_names_are_text(box):
    """A program, its folder and its arguments have names that would be markup, formulas and lines of other formats."""
    folder = os.path.join(box.dir, "=cmd|' C calc'!A0;x 99\n# EOF")
    os.mkdir(folder)
    program = os.path.join(folder, HOSTILE)
    shutil.copy(box.build("exported.c", name="exported"), program)
    argument = "</script><script>document.title='owned'</script>\x1b]0;owned\x07"
    r = box.run([box.systoll, "run", "-q", "--save", "h.systoll", "--", program, argument])
    assert r.returncode == 0, text(r.stderr)
    path = page_of(box, "h.systoll", "h.html")
    with open_page(box, path) as page:
        assert page.js("document.title").startswith("systoll: "), page.js("document.title")
        told = page.js("document.getElementById('command').textContent")
        assert "<script>document.title='owned'</script>" in told.replace("'\\''", "'") or "document.title" in told, told
        assert page.js("document.querySelectorAll('img, iframe, script:not(#data)').length") == 1
        assert HOSTILE in page.js("document.body.innerText")
        quiet(page, path)
    r = box.run([box.systoll, "export", "--format", "flamegraph", "-o", "h.svg", "h.systoll"])
    assert r.returncode == 0, text(r.stderr)
    with open_page(box, os.path.join(box.dir, "h.svg")) as page:
        assert page.js("document.querySelectorAll('script').length") == 1 and page.js("document.querySelectorAll('img').length") == 0
        assert not page.complaints, page.complaints
    for form in ("csv", "collapsed", "openmetrics"):
        told = text(box.run([box.systoll, "export", "--format", form, "h.systoll"]).stdout)
        assert "\x1b" not in told and not re.search(r"(^|,)[=+@]", told, re.M), form
        assert len(told.splitlines()) == told.count("\n") and told.count("# EOF\n") == (form == "openmetrics"), form
