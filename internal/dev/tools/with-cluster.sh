#!/usr/bin/env bash
# with-cluster.sh NAME COMMAND... runs a command with a cluster that has the images of IMAGE, by default
# bin/image.tar, and of ARCHIVES, and deletes the cluster afterwards.
#
# The command gets KUBECONFIG, and INSIDE: the words before a command that has to run in the
# cluster's network, which are empty, or `.../localcluster exec ... --`.
#
#   CLUSTER=local    the project's own, built from Go modules (default)
#   NODE=processes   its two nodes run pods as processes of this user: IMG runs bin/conversion-operator
#   NODE=containers  its node runs containers, which needs root (default)
#   CLUSTER=kind     created with kind, which needs a container engine
#   CLUSTER=current  that of the current kubeconfig; it must be able to pull IMG
#   KEEP=1           keep the cluster
#   AUDIT_POLICY     a file: the API server of a local cluster writes an audit log by it,
#                    to the file AUDIT_LOG
#   RESTART=1        a local cluster restarts components that end
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
name=$1
shift
archives=("${IMAGE:-$root/bin/image.tar}" ${ARCHIVES:-})

# Called at every exit, so that an interrupted run leaves nothing behind.
leave() {
  local status=$?
  if [[ -n ${KEEP:-} ]]; then
    echo "The cluster is still up. Its kubeconfig: $KUBECONFIG"
    [[ -z $INSIDE ]] || echo "Reach it with: $INSIDE kubectl get conversionpolicies"
    echo "Take it down with: $down"
  else
    $down >/dev/null || echo "error: the cluster did not go down; try: $down" >&2
  fi
  exit "$status"
}

# Another run would take down the cluster that this one uses. The lock ends with the processes that have
# its file open, which are this script and the command.
if [[ ${CLUSTER:-local} == local ]]; then
  clusters=${LOCALCLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/conversion-operator/localcluster}/clusters
  mkdir -p "$clusters"
  exec {used}>"$clusters/$name.used"
  flock --nonblock "$used" || { echo "error: another run uses the cluster $name: wait for its end, or stop it; to run both, set LOCALCLUSTER_CACHE to another folder for one" >&2 && exit 1; }
fi

case ${CLUSTER:-local} in
local)
  localcluster=$root/bin/localcluster
  down="$localcluster down --name $name"
  case ${NODE:-containers} in
  processes)
    binaries=assets archives=()
    nodes=(--process-nodes=2 "--image=${IMG:-localhost/conversion-operator:dev}=$root/bin/conversion-operator")
    ;;
  containers) binaries=build nodes=() ;;
  *) echo "error: NODE=$NODE: use processes or containers" >&2 && exit 1 ;;
  esac
  "$localcluster" "$binaries" >/dev/null
  [[ ! -d $clusters/$name ]] || echo "replacing the cluster $name, which an earlier run left"
  $down >/dev/null 2>&1 || true
  INSIDE="$localcluster exec --name $name --"
  KUBECONFIG=
  trap leave EXIT
  "$localcluster" up --name "$name" "${nodes[@]}" --audit-policy="${AUDIT_POLICY:-}" ${RESTART:+--restart} {used}>&-
  KUBECONFIG=$("$localcluster" kubeconfig --name "$name")
  [[ -z ${AUDIT_POLICY:-} ]] || export AUDIT_LOG=${KUBECONFIG%/*}/log/audit.log
  for archive in "${archives[@]}"; do
    said=$("$localcluster" load --name "$name" "$archive" 2>&1) || { echo "$said" >&2 && exit 1; }
  done
  ;;
kind)
  down="kind delete cluster --name $name"
  INSIDE=
  if kind get clusters 2>/dev/null | grep -qx "$name"; then
    echo "error: kind has a cluster $name already, which is left unchanged: delete it with: $down" >&2
    exit 1
  fi
  KUBECONFIG=$root/bin/$name.kubeconfig
  trap leave EXIT
  kind create cluster --name "$name" --kubeconfig "$KUBECONFIG" --wait 3m
  for archive in "${archives[@]}"; do kind load image-archive "$archive" --name "$name"; done
  ;;
current)
  INSIDE=
  echo "using the current cluster, $(kubectl config current-context); it has to be able to pull ${IMG:-the image} (make push)"
  ;;
*)
  echo "error: CLUSTER=$CLUSTER: use local, kind or current" >&2
  exit 1
  ;;
esac
export INSIDE
[[ -z ${KUBECONFIG:-} ]] || export KUBECONFIG
"$@"
