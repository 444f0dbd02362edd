# An image from the sources, for every machine that Debian runs on:
#
#     docker build -t leaderboard .
#     docker run -p 6379:6379 -p 8080:8080 -v boards:/data leaderboard
#
# docs/operate/containers.md has the rest. Nothing in here depends on the machine: the compiler of each platform builds for it.
FROM docker.io/library/debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
WORKDIR /src
COPY .ci/install-packages .ci/
RUN .ci/install-packages build
COPY Makefile VERSION ./
COPY deploy/container-root deploy/container.conf deploy/libraries deploy/
COPY codec codec
COPY protocol protocol
COPY skiplist skiplist
COPY server server
# The commit that --version names: the context has no .git.
ARG COMMIT=unknown
RUN make build COMMIT="$COMMIT" && deploy/container-root build/leaderboard-server /image

FROM scratch
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="leaderboard" \
    org.opencontainers.image.description="An in-memory ranking server that speaks the Redis protocol" \
    org.opencontainers.image.licenses="BSD-3-Clause" \
    org.opencontainers.image.version="1.0.0-rc1" \
    org.opencontainers.image.revision="$COMMIT"
COPY --from=build /image/root/ /
COPY --from=build --chown=10001:10001 /image/volume/ /
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 6379 8080
STOPSIGNAL SIGTERM
# Any answer means that it lives, -LOADING too. With another port, give another --health-cmd.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["/bin/leaderboard-server", "--ping", "6379", "--alive"]
ENTRYPOINT ["/bin/leaderboard-server"]
CMD ["/etc/leaderboard/leaderboard.conf"]
