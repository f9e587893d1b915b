#!/usr/bin/env bash
# try-release.sh FOLDER installs a release from its files alone, converts and migrates objects, and
# removes it: first install.yaml, then the chart with Helm. with-cluster.sh runs it, with the images of
# the release. The objects are those of config/samples.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=$(cd "$1" && pwd)
sample=$root/config/samples/crontab-hostport
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s\n' "$1"; }
fail() { echo "error: $1" >&2 && exit 1; }
k() { $INSIDE kubectl "$@"; }
helm() { $INSIDE "$root/bin/tools/helm" --namespace operator "$@"; }

# convert installs a kind with two versions and its policy, and reads an object at both.
convert() {
  k apply -f "$sample/3-crd-both.yaml" -f "$sample/2-policy.yaml"
  k wait --for=condition=Ready conversionpolicy/crontabs.example.com --timeout=5m
  k apply -f "$sample/objects.yaml"
  read_both
}

read_both() {
  local old new
  old=$(k get crontabs.v1beta1.example.com local -o jsonpath='{.hostPort}')
  new=$(k get crontabs.v1.example.com local -o jsonpath='{.host}:{.port}')
  [[ -n $old && $old == "$new" ]] || fail "v1beta1 reads '$old', and v1 '$new'"
  echo "both versions read $old"
}

# release deletes the kind's objects and its policy, which needs one served version.
release() {
  k delete crontabs.v1.example.com --all --all-namespaces
  k delete conversionpolicy crontabs.example.com --wait=false
  k patch crd crontabs.example.com --type=json -p '[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]'
  k wait --for=delete conversionpolicy/crontabs.example.com --timeout=5m
  k delete crd crontabs.example.com
  k delete converterfleets --all --timeout=5m
}

step 'The files are complete'
(cd "$folder" && sha256sum --check --quiet checksums.txt)
jq -e '.predicateType == "https://slsa.dev/provenance/v1"' "$folder/provenance.json" >/dev/null
tar -C "$work" -xzf "$folder/kubectl-conversion-linux-$(go env GOARCH).tar.gz"
"$work/kubectl-conversion" version

step 'With install.yaml'
k apply --server-side -f "$folder/install.yaml"
k -n conversion-system rollout status deployment/conversion-operator --timeout=5m
convert
$INSIDE "$work/kubectl-conversion" status crontabs.example.com
release
k delete -f "$folder/install.yaml" --timeout=5m

step 'With Helm'
chart=$(echo "$folder"/conversion-operator-*[0-9].tgz)
k create namespace operator
k label namespace operator pod-security.kubernetes.io/enforce=restricted
helm install conversions "$chart" --wait --timeout=5m
helm test conversions --timeout=5m
convert
helm upgrade conversions "$chart" --wait --timeout=5m --set replicas=1
if said=$(helm uninstall conversions --timeout=5m 2>&1); then fail 'helm uninstall is not refused while a policy converts'; fi
echo "$said"
helm rollback conversions 1 --wait --timeout=5m
read_both
release
helm uninstall conversions --wait --timeout=5m
k -n operator wait --for=delete pods --all --timeout=5m # they serve until API servers call them no more
left=$(k -n operator get deployments,services,secrets,jobs,pods -o name)
[[ -z $left ]] || fail "the uninstallation leaves $left"
step 'The release works'
