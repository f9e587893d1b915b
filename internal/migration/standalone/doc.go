// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone migrates stored objects without the operator: from a shell, a pipeline, or a
// hook of a chart. The engine is that of migration pods. This package does what the manager does
// around it:
//
//   - targets.go finds the resources that users name, or all that can be migrated, and refuses
//     those that another client migrates (others.go).
//   - rights.go lists the rights of a run, checks them, and prints them as Roles.
//   - The record of a run is a ConfigMap (configmap.go) or a file (file.go), and one process (record.go)
//     at a time holds it (lock.go). No run reads the record of another one.
//   - migrator.go runs the engines, several at a time, because most of a run is waiting.
//   - prune.go removes old versions from status.storedVersions after a complete run.
//   - dryrun.go says what a run would do.
package standalone
