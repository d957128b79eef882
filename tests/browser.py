"""Shows a page in a real browser: Chromium without a screen, asked through its remote debugging pipe."""
import base64
import json
import os
import select
import subprocess
import time

from harness import tool

LIMIT = 60


class Browser:
    """`with Browser(box, url) as page:` loads the page; `complaints` holds what the browser complained of."""

    def __init__(self, box, url, width=1280, height=900, dark=False):
        self.next, self.got, self.complaints = 0, b"", []
        to_read, to_write = os.pipe(), os.pipe()
        ours, theirs = (to_write[1], to_read[0]), (to_write[0], to_read[1])
        profile = os.path.join(box.dir, "chromium")
        command = [tool("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        # The browser reads from descriptor 3 and writes to 4; dash knows no descriptors above 9.
        shell = ["bash", "-c", f'exec 3<&{theirs[0]} 4>&{theirs[1]}; exec "$@"', "bash", *command]
        self.process = subprocess.Popen(shell, env=box.env, cwd=box.dir, pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in theirs:
            os.close(fd)
        self.writes, self.reads = ours
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.fetched = []
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Page.navigate", url=url)
        self.until(lambda m: m.get("method") == "Page.loadEventFired")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.ask("Browser.close")
        except (OSError, AssertionError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for fd in (self.reads, self.writes):
            os.close(fd)

    def ask(self, method, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        answer = self.until(lambda m: m.get("id") == self.next)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def until(self, wanted):
        end = time.monotonic() + LIMIT
        while True:
            while b"\0" in self.got:
                line, _, self.got = self.got.partition(b"\0")
                message = json.loads(line)
                self.note(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self.reads], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self.reads, 1 << 20)
            assert more, "the browser has ended"
            self.got += more

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(params["args"])[:400])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"][:400])
        elif method == "Network.requestWillBeSent":
            self.fetched.append(params["request"]["url"])

    def js(self, expression):
        """Returns the value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def key(self, key):
        """Presses a key and releases it."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path):
        """Writes the whole page to `path` as a PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1})
        with open(path, "wb") as f:
            f.write(base64.b64decode(data["data"]))
