#!/usr/bin/env bash
# release.sh builds what a release publishes, from the current commit, and writes it to a folder:
# images, manifests, chart, bundle, kubectl's plugin, bill of materials, changelog, checksums and a
# provenance statement. Two runs on one commit write the same files.
#
# usage: release.sh VERSION IMAGE URI FOLDER
#
#   VERSION   a semantic version that begins with v
#   IMAGE     the name of the image, with its registry and without a tag
#   URI       the folder from which the files will be fetched
#   FOLDER    receives the files; its previous content is removed
#
# To publish: run `make test-release` before, and `make try-release` after it. Then tag the commit, push
# the images with `skopeo copy --all`, sign the checksums, and put the files where URI is.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=$1 image=$2 uri=${3%/} folder=$4
number=${version#v}
repository=https://github.com/conversion-operator/conversion-operator

fail() {
  echo "error: $1" >&2
  exit 1
}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION is '$version': set a semantic version, such as VERSION=v1.2.3"
[[ $image == */* && ${image##*/} != *[:@]* ]] || fail "RELEASE_IMAGE is '$image': set a name with a registry and without a tag, such as RELEASE_IMAGE=registry.example.com/conversion-operator"
[[ $uri == https://* ]] || fail "RELEASE_URI is '$uri': set the URL of the folder from which users fetch the files, such as RELEASE_URI=https://example.com/conversion-operator/v1.2.3"
[[ -z $(git status --porcelain) ]] || fail "the working tree has changes that no commit has: commit them"
revision=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$folder" && mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# With these options, an archive depends only on the content of files.
plain=(--sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX)

make --no-print-directory images sbom krew install-manifest VERSION="$version" IMG="$image:$version" KREW_VERSION="$version" KREW_URI="$uri"
mkdir "$work/images" && tar -C "$work/images" -xf bin/images.tar
(cd "$work/images" && tar "${plain[@]}" -cf "$folder/conversion-operator-$number-images.tar" -- *)
jq --arg time "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" '.metadata.timestamp = $time' bin/sbom.json >"$folder/conversion-operator-$number-sbom.json"
cp bin/install.yaml bin/krew/conversion.yaml bin/krew/kubectl-conversion-*.tar.gz "$folder"
digest=$(tar -xOf bin/images.tar index.json | jq -er '.manifests[0].digest')

cp -r config/chart "$work/conversion-operator"
sed -i -E "s,^(version|appVersion): .*,\\1: $number," "$work/conversion-operator/Chart.yaml"
sed -i "0,/^  repository: .*/s,,  repository: $image,; 0,/^  tag: .*/s,,  tag: $version," "$work/conversion-operator/values.yaml"
bin/tools/helm template "$work/conversion-operator" | grep -qF "image: \"$image:$version\"" || fail "the chart does not use the image $image:$version"
tar "${plain[@]}" -C "$work" -cf - conversion-operator | gzip -9n >"$folder/conversion-operator-$number.tgz"

go run -C internal/dev/tools ./bundle -root=../../.. -output="$work/bundle" -version="$number" -image="$image@$digest"
ARCHIVE="$folder/conversion-operator-$number-bundle.tar" DOCKERFILE=$work/bundle/bundle.Dockerfile CONTEXT=$work/bundle internal/dev/tools/image.sh build "$image-bundle:$version" amd64

# The subjects of all commits since the previous release.
{
  printf '# %s\n\nImage: `%s:%s@%s`\n\n' "$version" "$image" "$version" "$digest"
  if previous=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null); then
    printf 'Changes since %s:\n\n' "$previous"
    git log --no-merges --reverse --format='- %s (%h)' "$previous..HEAD"
  else
    echo 'This is the first release.'
  fi
} >"$folder/CHANGELOG.md"

# What was built, and from which sources: https://slsa.dev/spec/v1.1/provenance. Who publishes the
# release signs it, and the checksums.
(cd "$folder" && sha256sum -- *) >"$work/built"
jq -n --arg repository "$repository" --arg revision "$revision" --arg version "$version" --arg image "$image" --arg uri "$uri" \
  --arg go "$(go env GOVERSION)" --rawfile built "$work/built" '{
  _type: "https://in-toto.io/Statement/v1",
  subject: [$built | split("\n")[] | select(. != "") | {name: .[66:], digest: {sha256: .[:64]}}],
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: ($repository + "/blob/main/internal/dev/tools/release.sh"),
      externalParameters: {version: $version, image: $image, uri: $uri},
      internalParameters: {go: $go},
      resolvedDependencies: [{uri: ("git+" + $repository), digest: {gitCommit: $revision}}]
    },
    runDetails: {builder: {id: ($repository + "/blob/main/internal/dev/tools/release.sh")}}
  }
}' >"$folder/provenance.json"
(cd "$folder" && sha256sum -- * >"$work/checksums.txt" && mv "$work/checksums.txt" .)
echo "release $version, image $image@$digest:"
ls -l "$folder" | awk 'NR > 1 { printf "%9d KB  %s\n", $5 / 1024, $NF }'
