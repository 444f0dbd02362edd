"""Chromium without a window, over a pipe of its DevTools protocol: no port, no library.

    with Browser(language="zh-CN") as browser:
        page = browser.open("http://127.0.0.1:8080/", width=1280, height=800, dark=True)
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        page.value("document.title")

One browser is a process with a profile of its own, which goes with it.
"""
import base64
import fcntl
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from itertools import count

START_LIMIT_S = 60
REPLY_LIMIT_S = 60
WAIT_LIMIT_S = 20
# What a page looks at every some seconds it looks at in a tenth of that, half a second at most: tests need not wait.
HURRY = """for (const name of ["setTimeout", "setInterval"]) {
    const begin = window[name];
    window[name] = (run, wait, ...more) => begin(run, wait >= 1000 ? Math.min(wait / 10, 500) : wait, ...more);
}"""


class BrowserError(Exception):
    pass


def find_chromium():
    # The first is the same without windows, and takes half of the others' time.
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise BrowserError("chromium is not installed: .ci/install-packages test")


class Browser:
    def __init__(self, language="en-US", timezone="Europe/Berlin"):
        self.profile = tempfile.mkdtemp(prefix="leaderboard-web-")
        self.ids = count(1)
        self.replies = {}
        self.pages = {}
        self.lock = threading.Lock()
        to_browser, self.commands = os.pipe()
        self.messages, from_browser = os.pipe()

        def as_3_and_4():
            # Both are moved out of the way first: one may be 3 or 4 already.
            high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in (to_browser, from_browser)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--mute-audio", f"--lang={language}", f"--accept-lang={language}",
             "--force-color-profile=srgb", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": timezone, "LANGUAGE": language}, close_fds=False,
            preexec_fn=as_3_and_4)
        os.close(to_browser)
        os.close(from_browser)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            self.send("Browser.getVersion", limit_s=START_LIMIT_S)
        except BrowserError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            try:
                self.send("Browser.close", limit_s=5)
                self.process.wait(10)
            except (BrowserError, OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        os.close(self.commands)
        self.reader.join(10)  # it closes a descriptor, whose number the next browser may get
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self):
        rest = b""
        while True:
            chunk = os.read(self.messages, 1 << 16)
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\0")
            for message in map(json.loads, whole):
                if "id" in message:
                    waiting = self.replies.pop(message["id"], None)
                    if waiting:
                        waiting.put(message)
                elif message.get("sessionId") in self.pages:
                    self.pages[message["sessionId"]].on_event(message["method"], message["params"])
        os.close(self.messages)
        for waiting in list(self.replies.values()):
            waiting.put({"error": {"message": "chromium has ended"}})

    def send(self, method, session=None, limit_s=REPLY_LIMIT_S, **params):
        number = next(self.ids)
        waiting = self.replies[number] = queue.Queue()
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        with self.lock:
            while data:
                data = data[os.write(self.commands, data):]
        try:
            reply = waiting.get(timeout=limit_s)
        except queue.Empty:
            raise BrowserError(f"{method}: no reply in {limit_s} s") from None
        if "error" in reply:
            raise BrowserError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def open(self, url, width=1280, height=800, dark=False, still=False, scale=1, language=None,
             timezone=None, hurried=False):
        # A context of its own: no cookies of another page, and nothing kept by it.
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context,
                           width=width, height=height)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session, context)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.size(width, height, scale)
        page.media(dark, still)
        if language:
            agent = self.send("Browser.getVersion")["userAgent"]
            page.send("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
        if timezone:
            page.send("Emulation.setTimezoneOverride", timezoneId=timezone)
        if hurried:
            page.send("Page.addScriptToEvaluateOnNewDocument", source=HURRY)
        page.go(url)
        return page


class Page:
    def __init__(self, browser, target, session, context):
        self.browser, self.target, self.session, self.context = browser, target, session, context
        self.errors = []  # what the page did wrong: exceptions, and violations of its Content-Security-Policy
        self.requested = []  # the addresses that it asked for
        self.dialogs = []  # alert() and the like

    def on_event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            entry = params["entry"]
            if entry["level"] == "error" and entry["source"] not in ("network",):
                self.errors.append(entry["text"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)
        self.browser.pages.pop(self.session, None)

    def go(self, url):
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def size(self, width, height, scale=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=False)

    def media(self, dark=False, still=False):
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def value(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, expression, limit_s=WAIT_LIMIT_S):
        """Wait until the expression is true; returns after how many seconds."""
        begin = time.monotonic()
        while True:
            try:
                if self.value(f"Boolean({expression})"):
                    return time.monotonic() - begin
            except BrowserError as error:
                if "context" not in str(error):  # the page is just changing
                    raise
            if time.monotonic() - begin > limit_s:
                raise BrowserError(f"not in {limit_s} s: {expression}\n{self.text()[:2000]}\n{self.errors}")
            time.sleep(0.02)

    def settle(self):
        """Until nothing has been fetched for a moment and what was is drawn."""
        seen = -1
        while seen != len(self.requested):
            seen = len(self.requested)
            time.sleep(0.1)
            self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def text(self, selector="body"):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector):
        return self.value(f"Array.from(document.querySelectorAll({json.dumps(selector)}),"
                          " (element) => element.innerText.trim())")

    def click(self, selector):
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector, text):
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def key(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def picture(self, path, whole=False):
        params = {"format": "png"}
        if whole:
            box = self.send("Page.getLayoutMetrics")["cssContentSize"]
            params.update(captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], 6000), "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", **params)["data"]))
