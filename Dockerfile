# The operator's image: its static binary, that of converter pods, and nothing else. No base
# image, so building it needs no registry. `make image` builds the binaries and this.
FROM scratch
# Set by the image builder to the architecture of the image.
ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="conversion-operator" \
      org.opencontainers.image.description="Converts, migrates and prunes CustomResourceDefinitions through one ConversionPolicy" \
      org.opencontainers.image.source="https://github.com/conversion-operator/conversion-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Whatever the umask was, anybody may run it.
COPY --chmod=0755 bin/linux-${TARGETARCH}/conversion-operator bin/linux-${TARGETARCH}/converter /
# A number, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/conversion-operator"]
