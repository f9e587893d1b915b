// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract is what the manager and the pods of a migration Job tell each
// other.
//
// The manager writes a Spec into the arguments of the Job. Kubernetes does not let
// any client change those, so that all pods of one Job do the same, and a Job with
// another Spec than the policy asks for now is made again. The image of the pods is
// part of the Job, too: a pod reads the Spec of the manager that made its Job.
//
// The pods write a Record into the ConfigMap of the run. It outlives the Job, and the
// manager: a newer manager, and the pods of a Job that it makes, read the Record that
// an older version left.
package contract
