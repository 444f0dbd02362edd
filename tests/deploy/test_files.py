"""What is built elsewhere, by a registry and by Homebrew, as far as can be told here."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from process import LIMIT_S, PROGRAM, ROOT

VERSION = re.search(r'SERVER_VERSION "(.*)"', (ROOT / "server/system/version.h").read_text())[1]
# What Homebrew has instead: each word of the class is noted, and the blocks are run with what is given here.
HOMEBREW = """
require "pathname"
class Formula
  class << self
    attr_reader :said
    %i[desc homepage url version sha256 license head depends_on].each do |word|
      define_method(word) { |*arguments| (@said ||= []) << [word, *arguments] }
    end
    def service(&block) = Class.new { def method_missing(*words) = puts("service", words.inspect)
      def opt_bin = Pathname("/brew/opt/leaderboard/bin")
      def etc = Pathname("/brew/etc")
      def var = Pathname("/brew/var") }.new.instance_eval(&block)
    def test(&block) = puts("test")
  end
  def system(*words) = puts(["system", *words].join(" "))
  def method_missing(name) = "/brew/#{name}"
end
def ENV.cc = "gcc-12"
load ARGV[0]
Leaderboard.said.each { |words| puts words.inspect }
Leaderboard.new.install
"""


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="leaderboard-deploy-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)

    def output(self, *words, cwd=ROOT):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd,
                              timeout=LIMIT_S, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Contributing(Case):
    def test_the_three_lines_build_and_run_one_test_in_a_fresh_clone(self):
        """A copy without what is built is one, wherever the tests are run."""
        clone = self.directory / "clone"
        shutil.copytree(ROOT, clone, symlinks=True,
                        ignore=shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__"))
        block = re.search(r"in a fresh clone:\n\n```sh\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)[1]
        self.assertEqual(len(block.splitlines()), 3)
        said = self.output("bash", "-euc", block, cwd=clone)
        self.assertRegex(said, r" ok +tests/codec/test_layout +\d+ tests ")
        self.assertRegex(said, r"\n\d+ passed, 0 failed\n$")


    def test_ci_draws_a_seed_from_the_commit_prints_it_and_takes_another_one(self):
        make = self.directory / "make"
        make.write_text('#!/bin/sh\necho "$1 with $LEADERBOARD_TEST_SEED"\n')
        make.chmod(0o755)
        ci = ["env", "-u", "LEADERBOARD_TEST_SEED", f"PATH={self.directory}:{os.environ['PATH']}"]
        said = self.output(*ci, ".ci/run")
        seed = re.match(r"ci: LEADERBOARD_TEST_SEED=(\d+) .ci/run repeats these random tests\n", said)[1]
        self.assertIn(f"test with {seed}\ncheck with {seed}\n", said)
        self.assertEqual(self.output(*ci, ".ci/run"), said)
        self.assertIn("test with 7001\ncheck with 7001\n", self.output(*ci, "LEADERBOARD_TEST_SEED=7001", ".ci/run"))


class Package(Case):
    def test_the_maintainer_is_who_builds_it_and_the_version_sorts_before_the_release(self):
        """As make_deb fills them in: no address is an example's, and dpkg takes both."""
        script = (ROOT / "tests/deploy/make_deb").read_text()
        begin, fill = (re.search(pattern, script, re.S | re.M)[0]
                       for pattern in (r"^version=.*?(?=^commit=)", r"^sed -i .*?debian/control\"$"))
        shutil.copytree(ROOT / "deploy/debian", self.directory / "debian")
        for name in ("changelog", "control"):
            self.assertNotIn("example", (ROOT / "deploy/debian" / name).read_text())
        self.output("env", "DEBFULLNAME=Ann Lee", "DEBEMAIL=ann@boards.test", f"top={self.directory}", "bash", "-euc", begin + fill)
        changelog, control = ((self.directory / "debian" / name).read_text() for name in ("changelog", "control"))
        version = re.match(r"leaderboard \((.*)\) ", changelog)[1]
        self.assertEqual(version.replace("~", "-"), VERSION)
        self.output("dpkg", "--compare-versions", version, "le", VERSION.split("-")[0])
        self.assertRegex(changelog, r"\n -- Ann Lee <ann@boards.test>  \w{3}, ")
        self.assertIn("\nMaintainer: Ann Lee <ann@boards.test>\n", control)


class Page(Case):
    def test_a_file_that_comes_or_goes_is_embedded_anew(self):
        """-W: as if the directory were newer, which it is then."""
        self.assertIn("server/web/embed ", self.output("make", "-n", "-W", "server/web/page", "build/web_table.c"))


class Pages(Case):
    def test_where_pages_are_installed_their_links_hold(self):
        """In Debian's package, whose rules put them there, and in the tarball."""
        top = self.directory / "doc"
        self.output("docs/install", top)
        self.assertRegex(self.output("docs/check", top), r"^\d{3} pages: no faults$")
        for name in ("README.md", "docs/operate/install.md", "docs/scale/sentinel.md", "docs/reference/settings.md",
                     "docs/pictures/board-light.png", "examples/prometheus/rules.yml", "examples/grafana/leaderboard.json",
                     "examples/haproxy.cfg", "examples/sentinel.conf", "examples/kubernetes/statefulset.yaml"):
            self.assertTrue((top / name).exists(), name)
        text = (top / "docs/scale/sentinel.md").read_text()
        self.assertIn("[`deploy/sentinel.conf`](../../examples/sentinel.conf)", text)
        self.assertNotIn("CHANGELOG.md", (top / "README.md").read_text())
        rules = (ROOT / "deploy/debian/rules").read_text()
        self.assertIn("\n\tdocs/install debian/leaderboard-server/usr/share/doc/leaderboard-server\n", rules)

    def faults(self, top):
        """What docs/check has to say of a checkout at top."""
        done = subprocess.run([top / "docs/check"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, int("no faults" not in done.stdout), done.stderr)
        return done.stdout.splitlines()[:-1]

    def test_a_page_that_is_too_long_or_leads_nowhere_is_named(self):
        top = self.directory / "checkout"
        for source in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "docs/check"):
            (top / source.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, top / source.relative_to(ROOT))
        before = set(self.faults(top))  # pictures, measurements and other folders are not there
        page = top / "docs/operate/install.md"
        text = page.read_text()
        page.write_text(text + "\n[one](nowhere.md) [two](secure.md#no-such-heading)\n" + "word " * 800)
        (top / "docs/operate/new.md").write_text("# New\n")
        found = set(self.faults(top)) - before
        words = len(text.split()) + 802
        self.assertEqual(found, {
            "docs/operate/install.md: nowhere.md leads nowhere",
            "docs/operate/install.md: secure.md#no-such-heading leads to no heading",
            f"docs/operate/install.md: {words} words, of which 800 are allowed (CONTRIBUTING.md)",
            "docs/operate/README.md: does not name new.md"})
        shutil.rmtree(top / "docs/start")
        self.assertIn("CONTRIBUTING.md: no page is docs/start/*.md", self.faults(top))


class Container(Case):
    def instructions(self, name):
        text = re.sub(r"\\\n\s*", "", (ROOT / name).read_text())
        return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]

    def test_a_registry_builds_from_what_is_copied(self):
        """On any platform: the base has all of Debian's, no stage is fixed to one, no flag is of one machine."""
        lines = self.instructions("Dockerfile")
        self.assertEqual([rest for word, rest in lines if word == "FROM"],
                         ["docker.io/library/debian:bookworm-slim AS build", "scratch"])
        self.assertNotRegex((ROOT / "Makefile").read_text(), "-march=|-mtune=|-mcpu=|-msse|-mavx")
        for word, rest in lines:
            if word == "COPY" and "--from" not in rest:
                *sources, target = rest.split()
                for source in sources:
                    self.assertTrue((ROOT / source).exists(), source)
                    place = self.directory / target / (Path(source).name if target.endswith("/") else "")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if (ROOT / source).is_dir() else shutil.copy2)(ROOT / source, place)
        said = self.output("make", "--dry-run", "build/leaderboard-server", "COMMIT=abcdef0", "B=build",
                           cwd=self.directory)
        self.assertIn("abcdef0", said)
        run = [rest for word, rest in lines if word == "RUN"][-1]
        self.assertEqual(run, 'make build COMMIT="$COMMIT" && deploy/container-root build/leaderboard-server /image')
        self.output("deploy/container-root", PROGRAM, self.directory / "image", cwd=self.directory)
        root = self.directory / "image/root"
        self.assertEqual((root / "etc/leaderboard/leaderboard.conf").read_text(), (ROOT / "deploy/container.conf").read_text())
        for found in ("bin/leaderboard-server", "usr/share/zoneinfo/Europe/Berlin"):
            self.assertTrue((root / found).exists(), found)
        self.assertTrue([*root.rglob("libuv.so.1")] and [*root.rglob("ld-linux*")])

    def test_both_images_are_the_same_to_whoever_runs_them(self):
        ends = []
        for name in ("deploy/Containerfile", "Dockerfile"):
            last = self.instructions(name)
            last = last[max(i for i, line in enumerate(last) if line[0] == "FROM"):]
            ends.append([line for line in last if line[0] not in ("FROM", "COPY", "ARG", "LABEL")])
            self.assertIn(["USER", "10001:10001"], last)
            # Copied to a directory that is there, the files get the owner and the directory does not.
            self.assertRegex([rest for word, rest in last if "--chown" in rest][0], "--chown=10001:10001 .*volume/ /$")
        self.assertEqual(*ends)
        words = dict(self.instructions("Dockerfile"))
        self.assertIn(f'image.version="{VERSION}"', words["LABEL"])
        self.assertIn('["/bin/leaderboard-server", "--ping", "6379", "--alive"]', words["HEALTHCHECK"])


class Homebrew(Case):
    def formula(self):
        archive = self.directory / "v.tar.gz"
        archive.write_bytes(b"")
        text = self.output("deploy/homebrew/make-formula", "https://git.example.org/leaderboard.git",
                           "https://git.example.org/leaderboard/v.tar.gz", archive)
        path = self.directory / "leaderboard.rb"
        path.write_text(text)
        return path, text

    def test_the_formula_has_what_homebrew_asks_for(self):
        _, text = self.formula()
        self.assertNotRegex(text, "@[A-Z0-9]+@")
        for line in ('homepage "https://git.example.org/leaderboard"', f'version "{VERSION}"',
                     'url "https://git.example.org/leaderboard/v.tar.gz"', 'license "BSD-3-Clause"',
                     'sha256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"',
                     'head "https://git.example.org/leaderboard.git", branch: "main"', "service do", "test do"):
            self.assertIn(f"\n  {line}\n", text)
        self.assertLess(len(re.search('desc "(.*)"', text)[1]), 80)
        # Everything that is linked, by the name of Homebrew's package.
        linked = re.search(r"^LIBRARIES := (.*)$", (ROOT / "Makefile").read_text(), re.M)[1]
        names = {"-luv": "libuv", "-lzstd": "zstd", "-lz": "zlib", "-lssl": "openssl@3", "-lcrypto": "openssl@3",
                 "-lmicrohttpd": "libmicrohttpd", "-lgnutls": "gnutls", "-lhiredis": "hiredis"}
        self.assertEqual(set(re.findall(r'depends_on "([^"]*)"$', text, re.M)),
                         {names[word] for word in linked.split()})

    @unittest.skipUnless(shutil.which("ruby"), "needs ruby")
    def test_ruby_takes_the_formula_and_make_what_it_asks_for(self):
        path, _ = self.formula()
        self.assertIn("Syntax OK", self.output("ruby", "-wc", path))
        (self.directory / "brew.rb").write_text(HOMEBREW)
        said = self.output("ruby", self.directory / "brew.rb", path)
        self.assertIn("/brew/opt/leaderboard/bin/leaderboard-server", said)
        asked = re.findall("^system (make .*)$", said, re.M)
        self.assertEqual(len(asked), 2)
        for line in asked:
            self.output(*line.split(), "--dry-run", "COMMIT=none")


if __name__ == "__main__":
    unittest.main()
