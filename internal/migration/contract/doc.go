// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract defines what the manager and the pods of a migration Job exchange.
//
// The manager writes a Spec into the arguments of the Job. Kubernetes makes them immutable, so all
// pods of a Job use the same Spec. If a policy needs another Spec, the manager replaces the Job.
// The image is part of the Job, too: a pod reads the Spec of the manager version that created its
// Job.
//
// The pods write a Record into the ConfigMap of the run. The Record outlives the Job and the
// manager: a newer manager, and the pods of its Jobs, read the Record of an older version.
package contract
