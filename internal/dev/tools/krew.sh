#!/usr/bin/env bash
# Packs the kubectl plugin for krew: an archive per platform, and the manifest. The archives are
# reproducible from the binaries.
#
# usage: krew.sh VERSION URI FOLDER
#
#   VERSION   a semantic version that begins with v
#   URI       the folder from which krew will fetch the archives
#   FOLDER    has OS-ARCH/kubectl-conversion, on Windows with .exe; the output goes there
set -euo pipefail
version=$1 uri=${2%/} folder=$(cd "$3" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)

manifest=$folder/conversion.yaml
cat >"$manifest" <<BLOCK
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: conversion
spec:
  version: $version
  homepage: https://github.com/conversion-operator/conversion-operator
  shortDescription: See and operate the conversion of custom resources
  description: |
    Shows how far conversion-operator is with each ConversionPolicy, and what to
    do next; tries rules on objects before they are applied; says which rule made
    a field; and audits the CustomResourceDefinitions of any cluster.
  caveats: |
    For completion, link kubectl_complete-conversion to it in a directory of
    your PATH:
      ln -s "\$(command -v kubectl-conversion)" kubectl_complete-conversion
  platforms:
BLOCK
for binary in "$folder"/*-*/kubectl-conversion*; do
  platform=$(basename "$(dirname "$binary")") name=$(basename "$binary")
  archive=kubectl-conversion-$platform.tar.gz
  install -m 644 "$root/LICENSE" "$(dirname "$binary")/LICENSE"
  tar -C "$(dirname "$binary")" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -cf - LICENSE "$name" | gzip -9n >"$folder/$archive"
  cat >>"$manifest" <<BLOCK
  - selector:
      matchLabels: {os: ${platform%-*}, arch: ${platform#*-}}
    uri: $uri/$archive
    sha256: $(sha256sum <"$folder/$archive" | cut -d' ' -f1)
    bin: $name
BLOCK
done
