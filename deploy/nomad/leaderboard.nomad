# One server on one Nomad client, which has a host volume "leaderboard" (client.host_volume), owned by
# the image's user. The password is a Nomad variable: nomad var put nomad/jobs/leaderboard password=...
job "leaderboard" {
  type = "service"

  group "leaderboard" {
    count = 1

    # The old server must have ended before a new one can use its files.
    update {
      max_parallel = 1
      canary       = 0
    }

    network {
      port "redis" {
        static = 6379
      }
    }

    volume "data" {
      type   = "host"
      source = "leaderboard"
    }

    service {
      name     = "leaderboard"
      port     = "redis"
      provider = "consul"
      task     = "server"

      # Only PONG means that it serves: not while it loads, and not while it drains.
      check {
        name     = "ready"
        type     = "script"
        command  = "leaderboard-server"
        args     = ["--ping", "6379"]
        interval = "2s"
        timeout  = "5s"
      }

      # Any answer means that it lives: -LOADING too, so that a server that loads is not killed.
      check {
        name      = "alive"
        type      = "script"
        command   = "leaderboard-server"
        args      = ["--ping", "6379", "--alive"]
        interval  = "10s"
        timeout   = "5s"
        on_update = "ignore"

        check_restart {
          limit = 6
          grace = "60s"
        }
      }
    }

    task "server" {
      driver = "docker"

      config {
        image   = "leaderboard:1.0.0-rc1"
        ports   = ["redis"]
        command = "leaderboard-server"
        args    = ["/secrets/leaderboard.conf"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      template {
        destination = "secrets/password.env"
        env         = true
        data        = <<EOT
REDISCLI_AUTH={{ with nomadVar "nomad/jobs/leaderboard" }}{{ .password }}{{ end }}
EOT
      }

      template {
        destination = "secrets/leaderboard.conf"
        data        = <<EOT
bind *
port 6379
dir /data
appendonly yes
maxmemory 3gb
shutdown-drain-timeout 10
requirepass {{ with nomadVar "nomad/jobs/leaderboard" }}{{ .password }}{{ end }}
EOT
      }

      # SIGTERM drains for 10 s; then what must be written to disk.
      kill_signal  = "SIGTERM"
      kill_timeout = "120s"

      resources {
        cpu    = 1000
        memory = 4096
      }
    }
  }
}
