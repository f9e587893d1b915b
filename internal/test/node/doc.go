// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs the pods of a real control plane as processes, like a small kubelet: without root,
// namespaces, containers or images, and with no network but loopback.
//
// [Start] serves the API server, and [Cluster.Add] adds nodes; [Node.Kill] ends one as a power failure
// does. A node watches the pods that are bound to it, and for each
//
//   - runs the program that [Options.Images] sets for the image, or the one beside it that the container's command
//     names, with the container's arguments, and only the container's environment
//   - mounts Secrets, ConfigMaps, and projected tokens and fields of the pod as folders that follow
//     changes, and writes their paths into arguments and variables instead of mountPath
//   - gives the process its real ServiceAccount token, in the file that KUBECONFIG names: the path
//     at which clients look in a pod is fixed, and cannot be mounted
//   - runs HTTP and TCP probes, restarts by restartPolicy, reports the status, and stops the process
//     within the grace period after the pod is deleted
//   - serves kubectl logs
//
// # Addresses
//
// Each pod has an address of its own, 127.<cluster>.<node>.<n>: Linux lets everyone listen at all of
// 127.0.0.0/8. A process has to listen there alone, so an argument --flag=:PORT becomes
// --flag=<address>:PORT. A default of the program does not, so that pods have to have such flags.
// Clients on this machine connect to status.podIP directly.
//
// An API server connects to Services and nodes through a proxy of this package, over a Unix socket:
// [WriteEgress] writes its configuration. The proxy connects to a ready pod of the Service, as
// kube-proxy does. The EndpointSlices that it reads are written here and not by
// kube-controller-manager (see [Controllers]), because API servers accept loopback addresses only as
// names, with the address type FQDN.
//
// # What these nodes do not prove
//
// Images and their entrypoints, Pod Security in the kernel (users, capabilities, read-only root file
// systems), network policies, limits of control groups, kube-proxy and cluster DNS, and whether a pod
// finds its credentials at the fixed path. A memory limit only becomes GOMEMLIMIT. Init containers,
// subPath, envFrom, variables of Secrets and ConfigMaps, downwardAPI volumes, startup, exec and
// gRPC probes, headers of probes, hooks other than a sleep before the stop, and termination message files
// are missing; a pod with an unknown kind of volume or variable, an init container, a startup probe or a
// subPath does not start, and its status says why. End-to-end tests on real containers show the rest.
package node
