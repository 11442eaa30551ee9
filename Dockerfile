# The images of the ready-made programs, one target for each: llm-map, http-sink, numathrottle.
#
#   docker build --target http-sink --tag numathrottle-http-sink .
#
# An image holds one static binary, with the time zones in it, and the authorities that TLS trusts: no shell, no package
# manager, no users. It runs as a user without a name, needs no capability, and writes nothing but its socket below /var/run/numaflow, so
# that its root may be read-only. The build stage runs on the builder's own platform, whatever the image is for.

# By version, and pinned by the digest of its index for all platforms, which dependabot keeps up to date. The toolchain is that of
# .go-version, which is also what CI scans for vulnerabilities: where it is newer than the image's, the go command fetches it, and compares
# it with Go's checksum database.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26.8-trixie@sha256:bdca99a00bc16590cb1a0bb4e698f5fc5d6a64e4d5eef13d9f18a0ee08e5fa65 AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
# The checkout belongs to somebody else here, which git takes for a danger and does not tell the version then.
ENV GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/src
RUN --mount=type=bind,target=/src \
    --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    GOTOOLCHAIN=go$(cat .go-version) GOOS=$TARGETOS GOARCH=$TARGETARCH scripts/build.sh /out

# The programs alone, for the archives of a release: docker buildx build --target binaries --output dist .
FROM scratch AS binaries
COPY --from=build /out/ /

FROM scratch AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# By number, so that Kubernetes can tell that it is not root (runAsNonRoot).
USER 65532:65532
# Given by scripts/image.sh and by the release.
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.source=https://github.com/numaproj-contrib/numathrottle \
      org.opencontainers.image.licenses=Apache-2.0

FROM base AS llm-map
LABEL org.opencontainers.image.title=llm-map \
      org.opencontainers.image.description="A Numaflow map vertex that calls an LLM, within its limits"
COPY --from=build /out/llm-map /llm-map
ENTRYPOINT ["/llm-map"]

FROM base AS http-sink
LABEL org.opencontainers.image.title=http-sink \
      org.opencontainers.image.description="A Numaflow sink over HTTP, with one limit over all its pods"
COPY --from=build /out/http-sink /http-sink
ENTRYPOINT ["/http-sink"]

FROM base AS numathrottle
LABEL org.opencontainers.image.title=numathrottle \
      org.opencontainers.image.description="Shows the pools of numathrottle, changes their limits, and puts a limit in front of other programs"
COPY --from=build /out/numathrottle /numathrottle
ENTRYPOINT ["/numathrottle"]
