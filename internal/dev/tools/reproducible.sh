#!/usr/bin/env bash
# reproducible.sh ARCH VERSION REVISION builds the binaries and the images twice, from copies of the
# sources in different directories with different times and umasks, and fails if the results differ.
set -euo pipefail
cd "$(dirname "$0")/../../.."
arch=$1 version=$2 revision=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for copy in 022/a 077/one/level/deeper; do
  dir=$work/$copy
  mkdir -p "$dir"
  umask "${copy%%/*}"
  git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T - | tar --no-same-permissions -xf - -C "$dir"
  find "$dir" -exec touch -t "20$((RANDOM % 16 + 10))01010000" {} +
  (
    cd "$dir"
    make --no-print-directory "binary-$arch" VERSION="$version" REVISION="$revision"
    ARCHIVE=$dir/image.tar internal/dev/tools/image.sh build localhost/reproducible:dev "$arch" "VERSION=$version" "REVISION=$revision"
    make --no-print-directory bundle-image ARCH="$arch" BUNDLE_IMAGE=localhost/reproducible-bundle:dev
  )
  cat "$dir/bin/linux-$arch"/{conversion-operator,converter} | sha256sum >>"$work/binaries"
  # The archive names the configuration by digest, and that the layers by digest.
  tar -xOf "$dir/image.tar" manifest.json | sha256sum >>"$work/images"
  tar -xOf "$dir/bin/bundle.tar" manifest.json | sha256sum >>"$work/bundles"
done

for what in binaries images bundles; do
  if [[ $(sort -u "$work/$what" | wc -l) -ne 1 ]]; then
    printf 'error: two builds of the same sources give two %s:\n%s\n' "$what" "$(<"$work/$what")" >&2
    exit 1
  fi
done
printf 'reproducible: binaries %s, image %s, bundle %s\n' "$(head -c 12 "$work/binaries")" "$(head -c 12 "$work/images")" "$(head -c 12 "$work/bundles")"
