#!/usr/bin/env bash
# choose-cluster.sh prints the default cluster of the demo: kind, which starts in seconds, if kind,
# kubectl and a running container engine are installed; otherwise local, which first builds
# Kubernetes, and needs no root. KUBERNETES_VERSION requires local.
set -euo pipefail

installed() { command -v "$1" >/dev/null; }
answers() { installed "$1" && timeout 10 "$1" info >/dev/null 2>&1; }

if [[ -z ${KUBERNETES_VERSION:-} ]] && installed kind && installed kubectl && { answers docker || answers podman; }; then
  echo "using kind; CLUSTER=local for the project's own cluster" >&2
  echo kind
else
  echo local
fi
