#!/usr/bin/env bash
# Builds an image with the available image builder: the operator's, or that of DOCKERFILE and
# ARCHIVE. The binary must be in bin/linux-ARCH.
#
#   image.sh builder                 print the image builder, or fail
#   image.sh build IMG ARCH [ARG...] write the archive, with build arguments KEY=VALUE
#   image.sh push IMG                push the image of the archive to IMG's registry
#   image.sh index TO IMG "ARCH..." [ARG...]
#                                    build for several architectures, and write an index
#                                    of the images to oci-archive:FILE or docker://IMG
#
# The archive has docker's format, which docker, podman, kind and containerd load. The image is
# reproducible from the binaries: its times are SOURCE_DATE_EPOCH, and its modes those of the
# Dockerfile.
set -euo pipefail
cd "$(dirname "$0")/../../.."
archive=${ARCHIVE:-bin/image.tar}
context=${CONTEXT:-.}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
dockerfile=${DOCKERFILE:-Dockerfile}

# Root needs no container engine for buildah. Other users need one that is set up.
builder() {
  local candidates=(docker podman buildah) candidate
  [[ $(id -u) -ne 0 ]] || candidates=(buildah podman docker)
  for candidate in "${candidates[@]}"; do
    command -v "$candidate" >/dev/null || continue
    # docker without an engine is only a client.
    [[ $candidate != docker ]] || docker version >/dev/null 2>&1 || continue
    echo "$candidate"
    return
  done
  return 1
}

# Runs buildah with a temporary store: it neither reads nor changes the host's container storage,
# and vfs works on any file system.
with_store() {
  store=$(mktemp -d)
  trap 'rm -rf "$store"' EXIT
  buildah=(buildah --storage-driver vfs --root "$store/root" --runroot "$store/run")
}

build() {
  local img=$1 arch=$2 arguments=() argument
  shift 2
  for argument in "$@"; do arguments+=(--build-arg "$argument"); done
  rm -f "$archive"
  case $(builder) in
  buildah)
    with_store
    "${buildah[@]}" build --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --platform "linux/$arch" --build-arg "TARGETARCH=$arch" "${arguments[@]}" --file "$dockerfile" --tag "$img" "$context" >/dev/null
    "${buildah[@]}" push --quiet "$img" "docker-archive:$archive:$img" >/dev/null
    ;;
  podman)
    podman build --quiet --timestamp "$SOURCE_DATE_EPOCH" --platform "linux/$arch" --build-arg "TARGETARCH=$arch" "${arguments[@]}" --file "$dockerfile" --tag "$img" "$context" >/dev/null
    podman save --quiet --format docker-archive --output "$archive" "$img"
    ;;
  docker)
    docker build --quiet --platform "linux/$arch" "${arguments[@]}" --file "$dockerfile" --tag "$img" "$context" >/dev/null
    docker save --output "$archive" "$img"
    ;;
  esac
}

index() {
  local to=$1 img=$2 arch arguments=() argument tool
  local -a arches=($3)
  shift 3
  for argument in "$@"; do arguments+=(--build-arg "$argument"); done
  case $(builder) in
  docker)
    [[ $to == docker://* ]] && to=type=registry || to="type=oci,dest=${to#oci-archive:}"
    docker buildx build --quiet --platform "$(printf 'linux/%s,' "${arches[@]}" | sed 's/,$//')" "${arguments[@]}" --file "$dockerfile" --tag "$img" --output "$to" "$context" >/dev/null
    return
    ;;
  buildah) with_store && tool=("${buildah[@]}") && arguments+=(--isolation chroot) ;;
  podman) tool=(podman) && podman manifest rm "$img" >/dev/null 2>&1 || true ;;
  esac
  [[ $to != oci-archive:* ]] || rm -f "${to#oci-archive:}"
  for arch in "${arches[@]}"; do
    "${tool[@]}" build --quiet --timestamp "$SOURCE_DATE_EPOCH" --platform "linux/$arch" --build-arg "TARGETARCH=$arch" "${arguments[@]}" --file "$dockerfile" --manifest "$img" "$context" >/dev/null
  done
  [[ $to != oci-archive:* ]] || to+=:$img
  "${tool[@]}" manifest push --quiet --all "$img" "$to" >/dev/null
}

push() {
  local img=$1
  case $(builder) in
  buildah)
    with_store
    "${buildah[@]}" push "$("${buildah[@]}" pull --quiet "docker-archive:$archive")" "docker://$img"
    ;;
  podman) podman load --quiet --input "$archive" >/dev/null && podman push "$img" ;;
  docker) docker load --quiet --input "$archive" >/dev/null && docker push "$img" ;;
  esac
}

"$@"
