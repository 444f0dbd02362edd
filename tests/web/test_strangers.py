"""Who may see what: without a login, with a wrong password, with few rights; logging out."""
import unittest

from browser import Browser
from web_server import WebServer


def setUpModule():
    global browser, server
    server = WebServer("--web-public", "open:*", password="secret")
    server.run("ACL", "SETUSER", "ann", "on", ">right", "%R~arena", "+@read", "+ping")
    server.run("ZADD", "arena", "5", "bob")
    server.run("ZADD", "hidden", "5", "bob")
    server.run("ZADD", "open:1", "5", "bob")
    try:
        browser = Browser()
    except Exception:
        server.stop()
        raise


def tearDownModule():
    browser.close()
    server.stop()


class Strangers(unittest.TestCase):
    def open(self, url):
        page = browser.open(url)
        self.addCleanup(page.close)
        return page

    def log_in(self, page, user, password):
        page.wait("document.getElementById('user')")
        page.value("document.querySelector('form').reset()")
        page.type("#user", user)
        page.type("#password", password)
        page.key("Enter", 13, "\r")

    def test_a_wrong_password_is_refused_and_the_right_one_leads_back(self):
        page = self.open(server.board_url("arena", "member=bob"))
        self.log_in(page, "ann", "wrong")
        page.wait("document.getElementById('login-wrong').innerText.includes('do not match')")
        self.assertEqual(page.value("location.pathname"), "/login")
        self.log_in(page, "ann", "right")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'bob'")
        self.assertEqual(page.value("location.pathname + location.search"), "/boards/arena?member=bob")
        self.assertEqual(page.value("document.cookie"), "")  # HttpOnly
        page.go(server.board_url("hidden"))
        page.wait("document.querySelector('h1')?.innerText === 'Your user may not see this.'")
        page.value("Array.from(document.querySelectorAll('.tools button')).find((it) =>"
                   " it.innerText === 'Sign out').click()")
        page.wait("document.querySelector('.tools a.button')?.innerText === 'Sign in'")
        page.go(server.board_url("arena"))
        page.wait("document.getElementById('user')")

    def test_public_boards_need_no_login(self):
        page = self.open(server.board_url("open:1"))
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'bob'")
        page.go(server.url("/"))
        page.wait("document.querySelectorAll('.card').length === 1")
        self.assertEqual(page.texts(".card h2"), ["open:1"])

    def test_a_login_leads_to_this_server_only(self):
        for to in ("https%3A%2F%2Fexample.com", "%2F%2Fexample.com", "%2F%5Cexample.com", "%2F%09%2Fexample.com",
                   "%2F%0A%5Cexample.com", "javascript:alert(1)"):
            page = self.open(server.url(f"/login?to={to}"))
            self.log_in(page, "ann", "right")
            page.wait("document.querySelector('h1')?.innerText === 'Boards'")
            self.assertEqual(page.value("location.href"), server.url("/"))
