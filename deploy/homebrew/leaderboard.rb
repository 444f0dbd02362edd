# Homebrew's formula, for Linux; make-formula beside it fills in what is between two @.
class Leaderboard < Formula
  desc "In-memory ranking server that speaks the Redis protocol"
  homepage "@HOMEPAGE@"
  url "@ARCHIVE@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "BSD-3-Clause"
  head "@REPOSITORY@", branch: "main"

  depends_on "xxhash" => :build
  depends_on "gnutls"
  depends_on "hiredis"
  depends_on "libmicrohttpd"
  depends_on "libuv"
  # It needs eventfd and prctl.
  depends_on :linux
  depends_on "openssl@3"
  depends_on "zstd"
  depends_on "zlib"

  def install
    # Not `make build`, which asks the distribution for what is missing.
    system "make", "build/leaderboard-server", "build/leaderboard.so", "B=build", "CC=#{ENV.cc}"
    # A configuration that was edited stays.
    system "make", "install-files", "install-module", "B=build", "IS_OWN=", "PREFIX=#{prefix}", "SYSCONFDIR=#{etc}",
           "LOCALSTATEDIR=#{var}", "COMPLETIONDIR=#{bash_completion}"
  end

  service do
    run [opt_bin/"leaderboard-server", etc/"leaderboard/leaderboard.conf"]
    keep_alive crashed: true
    working_dir var/"lib/leaderboard"
    log_path var/"log/leaderboard/leaderboard.log"
    error_log_path var/"log/leaderboard/leaderboard.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/leaderboard-server --version")
    port = free_port
    (testpath/"test.conf").write "port #{port}\ndir #{testpath}\n"
    assert_match "no errors", shell_output("#{bin}/leaderboard-server --check-config test.conf")
    pid = spawn bin/"leaderboard-server", "test.conf"
    begin
      sleep 2
      assert_equal "PONG", shell_output("#{bin}/leaderboard-server --ping #{port}").strip
    ensure
      Process.kill "TERM", pid
      Process.wait pid
    end
  end
end
